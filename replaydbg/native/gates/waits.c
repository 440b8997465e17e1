/* Waiting for children. In a group of processes who has waited for a child knows how it ended, and says so in its row. */
#include "base/core.h"
#include "crossing/crossing.h"
#include "files/files.h"
#include "gates/inside.h"
#include "log/log.h"

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

static PyObject *
noted(PyObject *result, bool by_id)
{
    int status, pid = wait_result(result, by_id, &status);
    if (pid)
        group_waited(pid, status);
    return result;
}

static PyObject *
heard(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    return noted(gate_regular(g, self, args, nargs, kwnames), false);
}

static PyObject *
heard_usage(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    return noted(waits_usage(g, self, args, nargs, kwnames), false);
}

static PyObject *
heard_id(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    return noted(gate_regular(g, self, args, nargs, kwnames), true);
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
