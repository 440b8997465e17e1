/* Sockets. The object is genuine in both modes; in replay it stands on a placeholder descriptor. */
#include "base/core.h"
#include "collector/collector.h"
#include "crossing/crossing.h"
#include "files/files.h"
#include "gates/gates.h"
#include "log/log.h"
#include <sys/socket.h>
#include <sys/stat.h>

static initproc original_socket_init;
static Gate *socket_gate;

/* The first fields of the C object. A Python class over it may have methods of its own. */
typedef struct {
    int fd, family, type, protocol;
    void *error_handler;
    int64_t timeout;
} Fields;

/* Descriptor, family, type and protocol; a socket that is made not to wait has lost that flag of its type. */
static PyObject *
socket_fields(PyObject *s)
{
    Fields f;
    memcpy(&f, (char *)s + sizeof(PyObject), sizeof f);
    return Py_BuildValue("(iiii)", f.fd, f.family, f.timeout == 0 ? f.type | SOCK_NONBLOCK : f.type, f.protocol);
}

static int
init_with_fields(PyObject *self, PyObject *fields)
{
    own_work_begin();
    PyObject *args = Py_BuildValue("(OOOO)", PyTuple_GET_ITEM(fields, 1), PyTuple_GET_ITEM(fields, 2),
                                   PyTuple_GET_ITEM(fields, 3), PyTuple_GET_ITEM(fields, 0));
    int rc = args ? original_socket_init(self, args, NULL) : -1;
    Py_XDECREF(args);
    own_work_end();
    return rc;
}

static bool
is_socket(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode);
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
        /* one that was inherited, or came from a pipe's end, may be none here */
        if (replayed && !(given && is_socket(fd)) && !files_hooks.socket_made(fd, fields))
            fd_place_socket(fd);
        if (!given)
            fd_opened(fd, -1);
        if (replayed)
            rc = init_with_fields(self, fields);
    }
    Py_XDECREF(fields);
    cross_settle();
    return rc;
}

static PyObject *
make_socket(PyObject *fields)
{
    if (!PyTuple_CheckExact(fields) || PyTuple_GET_SIZE(fields) != 4)
        diverge("corrupt", NULL, NULL, "the fields of a socket cannot be read");
    fd_place_socket((int)PyLong_AsLong(PyTuple_GET_ITEM(fields, 0)));
    own_work_begin();
    PyObject *s = socket_type->tp_new(socket_type, PyTuple_New(0), NULL);
    own_work_end();
    if (s && init_with_fields(s, fields) < 0)
        Py_CLEAR(s);
    return s;
}

static void
make_pair_real(PyObject *pair)
{
    own_work_begin();
    PyObject *numbers =
        Py_BuildValue("(ii)", socket_fd(PyTuple_GET_ITEM(pair, 0)), socket_fd(PyTuple_GET_ITEM(pair, 1)));
    if (numbers)
        fd_made_pipe(numbers, true);
    Py_XDECREF(numbers);
    own_work_end();
}

static PyObject *
socket_pair(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    Crossing c;
    cross_begin(&c, g, self, args, nargs, kwnames);
    bool replayed = !c.perform;
    PyObject *pair = c.perform ? gate_call_original(g, self, args, nargs, kwnames) : NULL, *outcome = NULL;
    if (pair)
        outcome =
            Py_BuildValue("(NN)", socket_fields(PyTuple_GET_ITEM(pair, 0)), socket_fields(PyTuple_GET_ITEM(pair, 1)));
    outcome = cross_end(&c, outcome);
    if (replayed && outcome && PyTuple_CheckExact(outcome) && PyTuple_GET_SIZE(outcome) == 2) {
        own_work_begin();
        pair =
            Py_BuildValue("(NN)", make_socket(PyTuple_GET_ITEM(outcome, 0)), make_socket(PyTuple_GET_ITEM(outcome, 1)));
        own_work_end();
    }
    if (__builtin_expect(core.goes_live, 0) && pair && replayed)
        make_pair_real(pair);
    Py_XDECREF(outcome);
    own_work_gives(pair);
    for (Py_ssize_t i = 0; pair && i < 2; i++) {
        endpoint_forget(socket_fd(PyTuple_GET_ITEM(pair, i)));
        endpoint_meet(socket_fd(PyTuple_GET_ITEM(pair, i)));
    }
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
        if (replayed && !files_hooks.socket_accepted(socket_fd(self), fd, PyTuple_GET_ITEM(result, 1)))
            fd_place_socket(fd);
        fd_opened(fd, -1);
        endpoint_meet(fd);
    }
    return result;
}

#define MOST_ARGUMENTS 8

/* A codec that is written in Python. */
static void
import_idna(void)
{
    PyObject *encoder = PyCodec_Encoder("idna");
    Py_XDECREF(encoder);
    PyErr_Clear();
}

/* Names are encoded before the crossing, in both modes: that is Python code, whose exceptions have causes and
 * tracebacks. */
static PyObject *
takes_host(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    PyObject *copy[MOST_ARGUMENTS];
    Py_ssize_t n = nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    if (nargs == 0 || n > MOST_ARGUMENTS || !PyUnicode_Check(args[0])) {
        import_idna();
        return gate_regular(g, self, args, nargs, kwnames);
    }
    memcpy(copy, args, (size_t)n * sizeof *copy);
    if ((copy[0] = PyUnicode_AsEncodedString(args[0], "idna", NULL)) == NULL)
        return NULL;
    Crossing c;
    cross_begin(&c, g, self, args, nargs, kwnames);
    PyObject *result = cross_end(&c, c.perform ? gate_call_original(g, self, copy, nargs, kwnames) : NULL);
    Py_DECREF(copy[0]);
    return result;
}

/* In an address only a name that is not ASCII needs the codec. The real function runs it; before that it is run in both
 * modes, for what it leaves behind: modules that it imports while it works. */
static PyObject *
takes_address(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    PyObject *address = nargs > 0 ? args[nargs - 1] : NULL;
    PyObject *host =
        address && PyTuple_Check(address) && PyTuple_GET_SIZE(address) > 0 ? PyTuple_GET_ITEM(address, 0) : NULL;
    if (host && PyUnicode_Check(host) && !PyUnicode_IS_ASCII(host)) {
        PyObject *encoded = PyUnicode_AsEncodedString(host, "idna", NULL);
        Py_XDECREF(encoded);
        PyErr_Clear(); /* the real function says what is wrong with it */
    }
    PyObject *result = gate_regular(g, self, args, nargs, kwnames);
    if (strcmp(g->name, "socket.sendto") != 0) /* bind, connect */
        endpoint_forget(socket_fd(self));
    return result;
}

/* recv_into(buffer, nbytes=0, flags=0), recvfrom_into: the buffer may be given by name. */
static PyObject *
socket_recv_into(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    static const char *const names[] = {"buffer", "nbytes", "flags"};
    Py_ssize_t named = kwnames ? PyTuple_GET_SIZE(kwnames) : 0, known = 0;
    if (nargs > 0 || named == 0 || named > 3)
        return gate_regular(g, self, args, nargs, kwnames);
    PyObject *zero = PyLong_FromLong(0), *all[3] = {NULL, zero, zero};
    for (Py_ssize_t i = 0; i < named; i++)
        for (int k = 0; k < 3; k++)
            if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, i), names[k]) == 0) {
                all[k] = args[i];
                known++;
            }
    PyObject *result =
        all[0] && known == named ? gate_regular(g, self, all, 3, NULL) : gate_regular(g, self, args, nargs, kwnames);
    Py_XDECREF(zero);
    return result;
}

const HandlerEntry network_handlers[] = {
    {"socket_pair", socket_pair},     {"socket_accept", socket_accept},       {"takes_host", takes_host},
    {"takes_address", takes_address}, {"socket_recv_into", socket_recv_into}, {NULL, NULL}};

int
network_module_loaded(PyObject *module, const char *name)
{
    PyObject *type;
    if (strcmp(name, "_socket") != 0 || socket_type || !(socket_gate = gate_named("_socket", "socket.__init__")) ||
        !(type = PyDict_GetItemString(PyModule_GetDict(module), "socket")))
        return 0;
    socket_type = (PyTypeObject *)type;
    original_socket_init = socket_type->tp_init;
    socket_type->tp_init = socket_init;
    patch_wrapper(socket_type, "__init__", (void *)socket_init);
    return 0;
}
