/* A process of a group of processes when its recording begins, or cannot begin. */
#include "boot/inside.h"
#include "log/log.h"
#include "memory/memory.h"
#include <stdlib.h>
#include <unistd.h>

static char **
words_of(PyObject *list)
{
    Py_ssize_t n = list && PyList_CheckExact(list) ? PyList_GET_SIZE(list) : 0;
    char **words = n ? calloc((size_t)n + 1, sizeof *words) : NULL;
    for (Py_ssize_t i = 0; words && i < n; i++) {
        PyObject *item = PyList_GET_ITEM(list, i);
        words[i] = PyBytes_Check(item) ? PyBytes_AS_STRING(item) : "";
    }
    return words;
}

/* A program that somebody else has started runs in any case, if need be unrecorded. `plainly` is a tuple: the
 * interpreter, its arguments and its environment. */
void
member_starts_plainly(PyObject *boot)
{
    PyObject *given = PyDict_GetItemString(boot, "plainly");
    if (given == NULL || !PyTuple_Check(given) || PyTuple_GET_SIZE(given) != 3)
        return;
    PyObject *program = PyTuple_GET_ITEM(given, 0);
    char **argv = words_of(PyTuple_GET_ITEM(given, 1)), **env = words_of(PyTuple_GET_ITEM(given, 2));
    PyObject *page = PyDict_GetItemString(boot, "group"), *number = PyDict_GetItemString(boot, "process");
    if (page && PyBytes_Check(page) && number && PyLong_Check(number))
        group_has_no_room(PyBytes_AS_STRING(page), (unsigned)PyLong_AsUnsignedLong(number));
    if (PyBytes_Check(program) && argv && env)
        execve(PyBytes_AS_STRING(program), argv, env);
    free(argv);
    free(env);
}

/* It may have inherited ends of channels that a group which goes on has made again. Each is a tuple of bytes and numbers;
 * what is not one was not written by the launcher, and names nothing. */
static void
keep_names(PyObject *ends)
{
    Py_ssize_t n = ends && PyList_CheckExact(ends) ? PyList_GET_SIZE(ends) : 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        unsigned long long device, inode, cookie;
        unsigned int kind, peer_pid;
        const char *texts[4];
        if (PyArg_ParseTuple(PyList_GET_ITEM(ends, i), "KKIKIyyyy", &device, &inode, &kind, &cookie, &peer_pid,
                             &texts[0], &texts[1], &texts[2], &texts[3]))
            endpoint_keeps_name(device, inode, kind, cookie, peer_pid, texts);
        else
            PyErr_Clear();
    }
}

void
member_begins(PyObject *boot)
{
    keep_names(PyDict_GetItemString(boot, "ends"));
    PyObject *library = PyDict_GetItemString(boot, "joins"), *number = PyDict_GetItemString(boot, "process");
    if (library && PyBytes_Check(library))
        group_lets_join(PyBytes_AS_STRING(library));
    if (number && PyLong_Check(number) && PyLong_AsLong(number) > 1)
        shared_process_starts(); /* its parent has what they share already */
}
