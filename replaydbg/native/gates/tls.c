/* TLS. The numbers behind it are made inside OpenSSL, so what its objects give to the program is recorded: what was
 * read, what was written (as a digest), how a handshake ended, what the peer showed. In a replay the objects are
 * genuine, made on sockets that reach nothing and on files that are gone; nothing is computed with them. No key is in
 * the log, nor needed in a replay.
 *
 * Callbacks of the program run inside a crossing: OpenSSL is given a function of ours around each. When it is called, a
 * control record says so, with what it was given; in a replay the program's function is called where the log has that
 * record. */
#include "base/core.h"
#include "collector/collector.h"
#include "crossing/crossing.h"
#include "gates/gates.h"
#include "log/log.h"
#include "values/values.h"
#include <dlfcn.h>
#include <structmember.h>

static PyTypeObject *session_type, *certificate_type;
static richcmpfunc original_session_compare;
static Gate *compare_gate;
/* d2i_X509 of the OpenSSL in use; NULL: out of reach */
static void *(*read_certificate)(void *, const unsigned char **, long);

/* ---- callbacks ---- */

typedef enum { SERVER_NAME, MESSAGE, PASSWORD } Kind;
enum { ALERT_HANDSHAKE_FAILURE = 40, ALERT_INTERNAL_ERROR = 80 };

/* The real callback for server names gives an alert when the program's one fails, and says what came: that is program
 * code, too. */
static PyObject *
checked_alert(PyObject *function, PyObject *result)
{
    long alert = result == NULL ? ALERT_HANDSHAKE_FAILURE : result == Py_None ? 0 : PyLong_AsLong(result);
    if (result == NULL)
        PyErr_WriteUnraisable(function);
    else if (PyErr_Occurred()) {
        PyErr_WriteUnraisable(result);
        alert = ALERT_INTERNAL_ERROR;
    }
    else
        return result;
    Py_XDECREF(result);
    return PyLong_FromLong(alert);
}

static PyObject *
call_back(Kind kind, PyObject *function, PyObject *args)
{
    Upcall upcall = upcall_enter();
    Py_INCREF(function);
    PyObject *result = PyObject_Call(function, args, NULL);
    if (kind == SERVER_NAME)
        result = checked_alert(function, result);
    Py_DECREF(function);
    upcall_leave(upcall);
    return result;
}

/* The log has what is data among the arguments; the objects are known in a replay. */
static void
record_callback(Kind kind, PyObject *args)
{
    Buf b = {0};
    Py_ssize_t first = kind == PASSWORD ? 0 : 1, n = kind == SERVER_NAME ? 1 : PyTuple_GET_SIZE(args) - first;
    buf_varint(&b, CONTROL_CALLBACK << 2 | 2u);
    buf_byte(&b, TAG_TUPLE);
    buf_varint(&b, (uint64_t)n + 1);
    buf_byte(&b, (uint8_t)(TAG_SMALL_INT + kind));
    for (Py_ssize_t i = first; i < first + n; i++)
        if (value_encode(&b, PyTuple_GET_ITEM(args, i), ENCODE_RESULT, &event_types, NULL, 0) < 0)
            buf_byte(&b, TAG_NONE);
    log_append(&event_log, &b);
}

static PyObject *
called(Kind kind, PyObject *function, PyObject *args)
{
    if (core.mode != RECORD || core.depth == 0)
        return PyObject_Call(function, args, NULL);
    shared_crossing(false, GATE_HEARS); /* what has changed in the crossing so far */
    record_callback(kind, args);
    return call_back(kind, function, args);
}

static PyObject *
called_server_name(PyObject *function, PyObject *args)
{
    return called(SERVER_NAME, function, args);
}

static PyObject *
called_message(PyObject *function, PyObject *args)
{
    return called(MESSAGE, function, args);
}

static PyObject *
called_password(PyObject *function, PyObject *args)
{
    return called(PASSWORD, function, args);
}

static PyMethodDef wrappers[] = {{"callback", called_server_name, METH_VARARGS, NULL},
                                 {"callback", called_message, METH_VARARGS, NULL},
                                 {"callback", called_password, METH_VARARGS, NULL}};

static PyObject *
wrap(Kind kind, PyObject *function)
{
    return PyCallable_Check(function) ? PyCFunction_NewEx(&wrappers[kind], function, NULL) : Py_NewRef(function);
}

/* Steals; the program gets back what it set. */
static PyObject *
unwrap(PyObject *o)
{
    if (o && PyCFunction_CheckExact(o))
        for (size_t i = 0; i < sizeof wrappers / sizeof *wrappers; i++)
            if (((PyCFunctionObject *)o)->m_ml == &wrappers[i])
                Py_SETREF(o, Py_NewRef(PyCFunction_GET_SELF(o)));
    return o;
}

static PyObject *
callback_attribute(Kind kind, Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs == 0)
        return unwrap(gate_call_original(g, self, NULL, 0, NULL));
    PyObject *wrapped = wrap(kind, args[0]);
    PyObject *done = wrapped ? gate_call_original(g, self, &wrapped, 1, NULL) : NULL;
    Py_XDECREF(wrapped);
    return done;
}

static PyObject *
ssl_sni_callback(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    return callback_attribute(SERVER_NAME, g, self, args, nargs);
}

static PyObject *
ssl_msg_callback(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    return callback_attribute(MESSAGE, g, self, args, nargs);
}

/* ---- callbacks in a replay ---- */

static PyObject *
attribute_of(PyObject *o, const char *type, const char *name)
{
    char full[64];
    snprintf(full, sizeof full, "%s.%s", type, name);
    Gate *g = gate_named("_ssl", full);
    PyObject *value = o == NULL ? NULL
                      : g       ? unwrap(gate_call_original(g, o, NULL, 0, NULL))
                                : PyObject_GetAttrString(o, name);
    if (value == NULL)
        PyErr_Clear();
    return value;
}

/* What the program's function is given: the object that it knows, what the log has, and for server names the context.
 */
static PyObject *
callback_arguments(Kind kind, PyObject *recorded, PyObject *owner, PyObject *context)
{
    Py_ssize_t n = PyTuple_GET_SIZE(recorded), before = kind != PASSWORD, after = kind == SERVER_NAME;
    PyObject *args = PyTuple_New(before + n - 1 + after);
    if (args && before)
        PyTuple_SET_ITEM(args, 0, Py_NewRef(owner));
    for (Py_ssize_t i = 1; args && i < n; i++)
        PyTuple_SET_ITEM(args, before + i - 1, Py_NewRef(PyTuple_GET_ITEM(recorded, i)));
    if (args && after)
        PyTuple_SET_ITEM(args, before + n - 1, Py_NewRef(context));
    return args;
}

static Buf password; /* that a function of the program has given, in a replay that is to go live */

bool
tls_take_password(Buf *to)
{
    bool is_there = password.used > 0;
    buf_bytes(to, password.data, password.used);
    password.used = 0;
    return is_there;
}

static void
keep_password(PyObject *given)
{
    password.used = 0;
    if (PyByteArray_CheckExact(given)) {
        buf_byte(&password, TAG_BYTES);
        buf_str(&password, PyByteArray_AS_STRING(given), (size_t)PyByteArray_GET_SIZE(given));
    }
    else
        value_encode(&password, given, ENCODE_RESULT, &event_types, NULL, 0);
}

void
tls_called_back(int which, Crossing *c, PyObject *recorded)
{
    if (c == NULL || !PyTuple_Check(recorded) || PyTuple_GET_SIZE(recorded) == 0 ||
        !PyLong_Check(PyTuple_GET_ITEM(recorded, 0)))
        diverge("corrupt", NULL, NULL, "a callback cannot be read");
    int overflow;
    Kind kind = (Kind)PyLong_AsLongAndOverflow(PyTuple_GET_ITEM(recorded, 0), &overflow);
    bool with_password = kind == PASSWORD && c && c->nargs == 3;
    PyObject *context = with_password || c == NULL ? NULL : attribute_of(c->self, "_SSLSocket", "context");
    PyObject *owner = with_password || c == NULL ? NULL : attribute_of(c->self, "_SSLSocket", "owner");
    PyObject *function = with_password
                             ? Py_NewRef(c->args[2])
                             : attribute_of(context, "_SSLContext", kind == MESSAGE ? "_msg_callback" : "sni_callback");
    PyObject *args =
        function && (with_password || (owner && context)) ? callback_arguments(kind, recorded, owner, context) : NULL;
    if (args == NULL || !PyCallable_Check(function))
        diverge("call", c ? c->gate : NULL, NULL, "a callback of TLS is missing");
    PyObject *result = call_back(kind, function, args), *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (with_password && core.goes_live && result)
        keep_password(result);
    Py_XDECREF(result);
    Py_DECREF(args);
    Py_DECREF(function);
    Py_XDECREF(owner);
    Py_XDECREF(context);
    PyErr_Restore(type, value, traceback);
}

/* load_cert_chain(certfile, keyfile=None, password=None): the last may be a function. */
static PyObject *
ssl_load_cert_chain(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    static const char *const names[] = {"certfile", "keyfile", "password"};
    PyObject *all[3] = {NULL, Py_None, Py_None};
    Py_ssize_t named = kwnames ? PyTuple_GET_SIZE(kwnames) : 0, known = 0;
    for (Py_ssize_t i = 0; i < nargs && i < 3; i++)
        all[i] = args[i];
    for (Py_ssize_t i = 0; i < named; i++)
        for (int k = (int)nargs; k < 3; k++)
            if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, i), names[k]) == 0) {
                all[k] = args[nargs + i];
                known++;
            }
    if (nargs > 3 || known < named || all[0] == NULL || !PyCallable_Check(all[2]))
        return gate_regular(g, self, args, nargs, kwnames);
    Crossing c;
    PyObject *wrapped = wrap(PASSWORD, all[2]), *copy[] = {all[0], all[1], wrapped};
    if (wrapped == NULL)
        return NULL;
    cross_begin(&c, g, self, all, 3, NULL);
    PyObject *result = cross_end(&c, c.perform ? gate_call_original(g, self, copy, 3, NULL) : NULL);
    Py_DECREF(wrapped);
    return result;
}

/* ---- objects ---- */

#define MOST_ARGUMENTS 8

/* _wrap_socket, _wrap_bio: also done in a replay, where no session is there to be taken up. */
static PyObject *
ssl_wrap(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    PyObject *copy[MOST_ARGUMENTS];
    Py_ssize_t n = nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    if (n > MOST_ARGUMENTS)
        return gate_call_original(g, self, args, nargs, kwnames); /* it says that these are too many */
    Crossing c;
    cross_begin(&c, g, self, args, nargs, kwnames);
    memcpy(copy, args, (size_t)n * sizeof *copy);
    for (Py_ssize_t i = nargs; !c.perform && i < n; i++)
        if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, i - nargs), "session") == 0)
            copy[i] = Py_None;
    PyObject *made = gate_call_original(g, self, copy, nargs, kwnames);
    if (!c.perform)
        PyErr_Clear();
    PyObject *outcome = cross_end(&c, made ? Py_NewRef(Py_None) : NULL);
    if (outcome && made == NULL)
        diverge("unrecordable", g, NULL, "an object of TLS could not be made");
    if (outcome == NULL && made) { /* replay: it was refused for a reason that is not there now */
        own_work_begin();
        Py_CLEAR(made);
        own_work_end();
    }
    Py_XDECREF(outcome);
    own_work_gives(made);
    return made;
}

/* shutdown() gives the socket below, of which the object has a weak reference. */
static PyObject *
ssl_shutdown(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    Crossing c;
    cross_begin(&c, g, self, args, nargs, kwnames);
    bool replayed = !c.perform;
    PyObject *given = c.perform ? gate_call_original(g, self, args, nargs, kwnames) : NULL;
    PyObject *outcome = cross_end(&c, given ? PyBool_FromLong(given != Py_None) : NULL), *weak;
    if (replayed && outcome == Py_True) {
        memcpy(&weak, (char *)self + sizeof(PyObject), sizeof weak);
        given = weak && PyWeakref_Check(weak) ? compat_weakref_target(weak) : NULL;
    }
    if (outcome && given == NULL)
        given = Py_NewRef(Py_None);
    if (outcome == NULL)
        Py_CLEAR(given);
    Py_XDECREF(outcome);
    return given;
}

typedef struct {
    PyObject_HEAD void *session;
    PyObject *context;
} Session;

/* A session of a replay is empty: all that it is asked comes from the log. */
static PyObject *
empty_session(PyObject *connection)
{
    Session *made = (Session *)session_type->tp_alloc(session_type, 0);
    if (made)
        made->context = attribute_of(connection, "_SSLSocket", "context");
    return (PyObject *)made;
}

static PyObject *
ssl_session(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    if (nargs > 0)
        return gate_regular(g, self, args, nargs, kwnames);
    Crossing c;
    cross_begin(&c, g, self, args, nargs, kwnames);
    bool replayed = !c.perform;
    PyObject *session = c.perform ? gate_call_original(g, self, args, nargs, kwnames) : NULL;
    PyObject *outcome = cross_end(&c, session ? PyBool_FromLong(session != Py_None) : NULL);
    if (replayed && outcome) {
        own_work_begin();
        session = outcome == Py_True ? empty_session(self) : Py_NewRef(Py_None);
        own_work_end();
    }
    if (outcome == NULL)
        Py_CLEAR(session);
    Py_XDECREF(outcome);
    own_work_gives(session);
    return session;
}

static PyObject *
session_compare(PyObject *left, PyObject *right, int op)
{
    if (gate_passes() || !PyObject_TypeCheck(left, session_type) || !PyObject_TypeCheck(right, session_type))
        return original_session_compare(left, right, op);
    Crossing c;
    PyObject *which = PyLong_FromLong(op);
    cross_begin(&c, compare_gate, left, &which, 1, NULL);
    PyObject *result = c.perform ? original_session_compare(left, right, op) : NULL;
    if (result == Py_NotImplemented) /* of sessions only equality can be asked */
        Py_SETREF(result, Py_NewRef(Py_None));
    result = cross_end(&c, result);
    if (result == Py_None)
        Py_SETREF(result, Py_NewRef(Py_NotImplemented));
    Py_DECREF(which);
    cross_settle();
    return result;
}

/* ---- certificates that the peer showed: logged as bytes, made of them again ---- */

static PyObject *
convert_chain(PyObject *chain, PyObject *(*convert)(PyObject *))
{
    PyObject *list = PyList_New(0);
    for (Py_ssize_t i = 0; list && i < PyList_GET_SIZE(chain); i++) {
        PyObject *one = convert(PyList_GET_ITEM(chain, i));
        if (one == NULL || PyList_Append(list, one) < 0)
            Py_CLEAR(list);
        Py_XDECREF(one);
    }
    return list;
}

enum { ENCODING_DER = 2 };

static PyObject *
certificate_bytes(PyObject *certificate)
{
    return PyObject_CallMethod(certificate, "public_bytes", "i", ENCODING_DER);
}

typedef struct {
    PyObject_HEAD void *x509;
    Py_hash_t hash;
} Certificate;

static PyObject *
make_certificate(PyObject *bytes)
{
    const unsigned char *p = (const unsigned char *)PyBytes_AsString(bytes);
    void *x509 = p ? read_certificate(NULL, &p, (long)PyBytes_GET_SIZE(bytes)) : NULL;
    Certificate *made = x509 ? (Certificate *)certificate_type->tp_alloc(certificate_type, 0) : NULL;
    if (made) {
        made->x509 = x509;
        made->hash = -1;
    }
    return (PyObject *)made;
}

static PyObject *
ssl_chain(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    Handler stops = handler_named("stops");
    if (read_certificate == NULL)
        return stops(g, self, args, nargs, kwnames);
    Crossing c;
    cross_begin(&c, g, self, args, nargs, kwnames);
    bool replayed = !c.perform;
    PyObject *chain = c.perform ? gate_call_original(g, self, args, nargs, kwnames) : NULL;
    PyObject *outcome = chain == NULL              ? NULL
                        : PyList_CheckExact(chain) ? convert_chain(chain, certificate_bytes)
                                                   : Py_NewRef(chain);
    outcome = cross_end(&c, outcome);
    if (replayed && outcome) {
        own_work_begin();
        chain = PyList_CheckExact(outcome) ? convert_chain(outcome, make_certificate) : Py_NewRef(outcome);
        own_work_end();
    }
    if (outcome == NULL)
        Py_CLEAR(chain);
    Py_XDECREF(outcome);
    return chain;
}

/* An attribute whose setting changes nothing but the genuine object: done in both modes, and no crossing. */
static PyObject *
ssl_setting(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    return nargs > 0 ? gate_call_original(g, self, args, nargs, kwnames) : gate_regular(g, self, args, nargs, kwnames);
}

const HandlerEntry tls_handlers[] = {{"ssl_sni_callback", ssl_sni_callback},
                                     {"ssl_msg_callback", ssl_msg_callback},
                                     {"ssl_load_cert_chain", ssl_load_cert_chain},
                                     {"ssl_wrap", ssl_wrap},
                                     {"ssl_shutdown", ssl_shutdown},
                                     {"ssl_session", ssl_session},
                                     {"ssl_chain", ssl_chain},
                                     {"ssl_setting", ssl_setting},
                                     {NULL, NULL}};

int
tls_module_loaded(PyObject *module, const char *name)
{
    if (strcmp(name, "_ssl") != 0 || session_type)
        return 0;
    PyObject *dict = PyModule_GetDict(module), *file = PyDict_GetItemString(dict, "__file__");
    session_type = (PyTypeObject *)PyDict_GetItemString(dict, "SSLSession");
    certificate_type = (PyTypeObject *)PyDict_GetItemString(dict, "Certificate");
    compare_gate = gate_named("_ssl", "SSLSession.__eq__");
    if (session_type && compare_gate) {
        original_session_compare = session_type->tp_richcompare;
        session_type->tp_richcompare = session_compare;
    }
    void *library = dlopen(file && PyUnicode_Check(file) ? PyUnicode_AsUTF8(file) : NULL, RTLD_LAZY | RTLD_NOLOAD);
    *(void **)&read_certificate = library && certificate_type ? dlsym(library, "d2i_X509") : NULL;
    return 0;
}
