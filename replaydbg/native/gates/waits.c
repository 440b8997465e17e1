/* Waiting for children. In a group of processes who has waited for a child knows how it ended, and says so in its row. */
#include "base/core.h"
#include "crossing/crossing.h"
#include "gates/inside.h"
#include "log/log.h"
#include <sys/wait.h>

/* wait3 and wait4 import `resource` for their result: in both modes, and before the crossing. */
static PyObject *
waits_usage(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    PyObject *resource = PyImport_ImportModule("resource");
    if (resource == NULL)
        return NULL;
    Py_DECREF(resource);
    return gate_regular(g, self, args, nargs, kwnames);
}

int
waits_exit_code(int status)
{
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static int
number_at(PyObject *tuple, Py_ssize_t i)
{
    long n = PyLong_Check(PyTuple_GET_ITEM(tuple, i)) ? PyLong_AsLong(PyTuple_GET_ITEM(tuple, i)) : -1;
    PyErr_Clear();
    return (int)n;
}

static PyObject *
noted(PyObject *result)
{
    int status = result && PyTuple_Check(result) && PyTuple_GET_SIZE(result) >= 2 ? number_at(result, 1) : -1;
    if (status >= 0 && (WIFEXITED(status) || WIFSIGNALED(status)) && number_at(result, 0) > 0)
        group_waited(number_at(result, 0), waits_exit_code(status));
    return result;
}

static PyObject *
heard(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    return noted(gate_regular(g, self, args, nargs, kwnames));
}

static PyObject *
heard_usage(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    return noted(waits_usage(g, self, args, nargs, kwnames));
}

/* Its result is (pid, uid, signal, status, code). */
static PyObject *
heard_id(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    PyObject *result = gate_regular(g, self, args, nargs, kwnames);
    if (result && PyTuple_Check(result) && PyTuple_GET_SIZE(result) >= 5) {
        int status = number_at(result, 3), code = number_at(result, 4);
        if (code == CLD_EXITED || code == CLD_KILLED || code == CLD_DUMPED)
            group_waited(number_at(result, 0), code == CLD_EXITED ? status : -status);
    }
    return result;
}

/* Only in a group: other recordings pay nothing for it. */
void
waits_hear(void)
{
    static const HandlerEntry entries[] = {
        {"waitpid", heard}, {"wait", heard}, {"wait3", heard_usage}, {"wait4", heard_usage}, {"waitid", heard_id}};
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        Gate *g = group_is_on() ? gate_named("posix", entries[i].name) : NULL;
        if (g)
            g->handler = entries[i].handler;
    }
}

const HandlerEntry wait_handlers[] = {{"os_wait_usage", waits_usage}, {NULL, NULL}};
