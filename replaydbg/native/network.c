/* Sockets of a program with one lane. The object is genuine in both modes; in replay it stands on a placeholder descriptor. */
#include "core.h"

static PyTypeObject *socket_type;
static initproc original_socket_init;
static Gate *socket_gate;

/* Descriptor, family, type and protocol: the first fields of the C object. A Python class over it may have methods of its own. */
static PyObject *
socket_fields(PyObject *s)
{
    int f[4];
    memcpy(f, (char *)s + sizeof(PyObject), sizeof f);
    return Py_BuildValue("(iiii)", f[0], f[1], f[2], f[3]);
}

static int
init_with_fields(PyObject *self, PyObject *fields)
{
    own_work_begin();
    PyObject *args = Py_BuildValue("(OOOO)", PyTuple_GET_ITEM(fields, 1), PyTuple_GET_ITEM(fields, 2), PyTuple_GET_ITEM(fields, 3),
                                   PyTuple_GET_ITEM(fields, 0));
    int rc = args ? original_socket_init(self, args, NULL) : -1;
    Py_XDECREF(args);
    own_work_end();
    return rc;
}

static int
socket_init(PyObject *self, PyObject *args, PyObject *kwds)
{
    if (gate_passes())
        return original_socket_init(self, args, kwds);
    Crossing c;
    cross_begin(&c, socket_gate, self, ((PyTupleObject *)args)->ob_item, PyTuple_GET_SIZE(args), NULL);
    bool replayed = !c.perform;
    PyObject *fields = c.perform && original_socket_init(self, args, kwds) == 0 ? socket_fields(self) : NULL;
    fields = cross_end(&c, fields);
    int rc = fields ? 0 : -1;
    if (fields && PyTuple_CheckExact(fields) && PyTuple_GET_SIZE(fields) == 4) {
        int fd = (int)PyLong_AsLong(PyTuple_GET_ITEM(fields, 0));
        bool given = PyTuple_GET_SIZE(args) > 3 && PyTuple_GET_ITEM(args, 3) != Py_None;
        if (replayed && !given)
            fd_place_socket(fd);
        if (!given)
            fd_opened(fd, -1);
        if (replayed)
            rc = init_with_fields(self, fields);
    }
    Py_XDECREF(fields);
    return rc;
}

static PyObject *
make_socket(PyObject *fields)
{
    fd_place_socket((int)PyLong_AsLong(PyTuple_GET_ITEM(fields, 0)));
    own_work_begin();
    PyObject *s = socket_type->tp_new(socket_type, PyTuple_New(0), NULL);
    own_work_end();
    if (s && init_with_fields(s, fields) < 0)
        Py_CLEAR(s);
    return s;
}

static PyObject *
socket_pair(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    Crossing c;
    cross_begin(&c, g, self, args, nargs, kwnames);
    bool replayed = !c.perform;
    PyObject *pair = c.perform ? gate_call_original(g, self, args, nargs, kwnames) : NULL, *outcome = NULL;
    if (pair)
        outcome = Py_BuildValue("(NN)", socket_fields(PyTuple_GET_ITEM(pair, 0)), socket_fields(PyTuple_GET_ITEM(pair, 1)));
    outcome = cross_end(&c, outcome);
    if (replayed && outcome && PyTuple_CheckExact(outcome) && PyTuple_GET_SIZE(outcome) == 2) {
        own_work_begin();
        pair = Py_BuildValue("(NN)", make_socket(PyTuple_GET_ITEM(outcome, 0)), make_socket(PyTuple_GET_ITEM(outcome, 1)));
        own_work_end();
    }
    Py_XDECREF(outcome);
    own_work_gives(pair);
    return pair;
}

/* _accept() returns a descriptor and an address. */
static PyObject *
socket_accept(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    Crossing c;
    cross_begin(&c, g, self, args, nargs, kwnames);
    bool replayed = !c.perform;
    PyObject *result = cross_end(&c, c.perform ? gate_call_original(g, self, args, nargs, kwnames) : NULL);
    if (result && PyTuple_CheckExact(result) && PyTuple_GET_SIZE(result) == 2) {
        int fd = (int)PyLong_AsLong(PyTuple_GET_ITEM(result, 0));
        if (replayed)
            fd_place_socket(fd);
        fd_opened(fd, -1);
    }
    return result;
}

/* The real function encodes names with a codec that is written in Python: it is imported before the crossing, in both modes. */
static PyObject *
takes_host(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    if (nargs > 0 && PyUnicode_Check(args[0])) {
        PyObject *encoder = PyCodec_Encoder("idna");
        Py_XDECREF(encoder);
        PyErr_Clear();
    }
    return gate_regular(g, self, args, nargs, kwnames);
}

const HandlerEntry network_handlers[] = {
    {"socket_pair", socket_pair}, {"socket_accept", socket_accept}, {"takes_host", takes_host}, {NULL, NULL}};

void
network_module_loaded(PyObject *module, const char *name)
{
    PyObject *type;
    if (strcmp(name, "_socket") != 0 || socket_type || !(socket_gate = gate_named("_socket", "socket.__init__")) ||
        !(type = PyDict_GetItemString(PyModule_GetDict(module), "socket")))
        return;
    socket_type = (PyTypeObject *)type;
    original_socket_init = socket_type->tp_init;
    socket_type->tp_init = socket_init;
    patch_wrapper(socket_type, "__init__", (void *)socket_init);
}
