/* The crossing of an ordinary gate: what a row of the table says is all that there is to it. */
#include "base/core.h"
#include "crossing/crossing.h"

static void
digest_argument(Crossing *c, PyObject *buffer)
{
    Py_buffer view;
    if (PyUnicode_Check(buffer)) {
        cross_digest(c, PyUnicode_DATA(buffer), (size_t)PyUnicode_GET_LENGTH(buffer) * PyUnicode_KIND(buffer));
        return;
    }
    if (PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE) < 0) {
        PyErr_Clear();
        return;
    }
    cross_digest(c, view.buf, (size_t)view.len);
    PyBuffer_Release(&view);
}

/* How much of the buffer a call filled: as many bytes as the number it returned, or all of it. */
static size_t
filled(Gate *g, PyObject *result, Py_ssize_t length)
{
    if (g->flags & GATE_FILLS_ALL)
        return (size_t)length;
    Py_ssize_t n = PyLong_CheckExact(result) ? PyLong_AsSsize_t(result) : length;
    if (PyTuple_CheckExact(result) && PyTuple_GET_SIZE(result) > 0 && PyLong_CheckExact(PyTuple_GET_ITEM(result, 0)))
        n = PyLong_AsSsize_t(PyTuple_GET_ITEM(result, 0)); /* recvfrom_into */
    return (size_t)(n < 0 || n > length ? 0 : n);
}

static PyObject *
regular_filling(Crossing *c, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    Gate *g = c->gate;
    Py_buffer view = {0};
    bool have = nargs > g->buffer && PyObject_GetBuffer(args[g->buffer], &view, PyBUF_WRITABLE) == 0;
    PyErr_Clear();
    PyObject *result = c->perform ? gate_call_original(g, self, args, nargs, kwnames) : NULL;
    if (c->perform && result && have) {
        c->fill = view.buf;
        c->fill_length = filled(g, result, view.len);
    }
    bool replayed = !c->perform;
    result = cross_end(c, result);
    if (replayed && result && have && c->fill_length <= (size_t)view.len)
        memcpy(view.buf, c->fill, c->fill_length);
    if (have)
        PyBuffer_Release(&view);
    return result;
}

static PyObject *
regular_crossing(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    Crossing c;
    cross_begin(&c, g, self, args, nargs, kwnames);
    if ((g->flags & GATE_DIGEST) && nargs > g->buffer)
        digest_argument(&c, args[g->buffer]);
    PyObject *result;
    if (g->flags & GATE_FILLS)
        result = regular_filling(&c, self, args, nargs, kwnames);
    else
        result = cross_end(&c, c.perform ? gate_call_original(g, self, args, nargs, kwnames) : NULL);
    if (result && (g->flags & (GATE_OPENS | GATE_CLOSES | GATE_WRITES_FD)))
        crossing_hooks.regular_done(g, result, args, nargs);
    return result;
}

bool
is_path_object(PyObject *o)
{
    static PyObject *name;
    if (name == NULL)
        name = PyUnicode_InternFromString("__fspath__");
    if (PyUnicode_Check(o) || PyBytes_Check(o) || PyLong_Check(o))
        return false;
    PyObject *convert = _PyType_Lookup(Py_TYPE(o), name);
    return convert != NULL && convert != Py_None; /* None: the class says that it is no path */
}

#define MOST_CONVERTED 16

/* Fills `copy` with the arguments, path-like objects converted (new references): their number, or -1 if one of them
 * raised. */
static int
convert_paths(PyObject *const *args, Py_ssize_t n, PyObject **copy)
{
    int converted = 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        bool is_path = is_path_object(args[i]);
        copy[i] = is_path ? PyOS_FSPath(args[i]) : Py_NewRef(args[i]);
        if (copy[i] == NULL) {
            while (i > 0)
                Py_DECREF(copy[--i]);
            return -1;
        }
        converted += is_path;
    }
    return converted;
}

PyObject *
gate_regular(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    Py_ssize_t n = nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0), i = 0;
    if (!(g->flags & GATE_PATH) || n > MOST_CONVERTED)
        return regular_crossing(g, self, args, nargs, kwnames);
    while (i < n && !is_path_object(args[i]))
        i++;
    if (i == n)
        return regular_crossing(g, self, args, nargs, kwnames);
    /* __fspath__ is program code: it runs before the crossing, not inside */
    PyObject *copy[MOST_CONVERTED] = {NULL};
    if (convert_paths(args, n, copy) < 0)
        return NULL;
    PyObject *result = regular_crossing(g, self, copy, nargs, kwnames);
    for (i = 0; i < n; i++)
        Py_DECREF(copy[i]);
    return result;
}
