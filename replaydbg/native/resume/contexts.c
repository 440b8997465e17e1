/* TLS contexts. What a program has loaded into one is in the memory of OpenSSL, which a replay does not fill: no
 * certificate and no key is in the log. The context objects are genuine, so when the program goes live, the same calls
 * are made again on those that are still there, in their order. The launcher says where their files are. */
#include "base/core.h"
#include "crossing/crossing.h"
#include "gates/gates.h"
#include "log/log.h"
#include "resume/inside.h"
#include "values/values.h"
#include <stdlib.h>

enum { MOST_FILES = 2, MOST_ARGUMENTS = 6 };

/* Calls that a replay does not make, and which of their arguments are files. */
static const struct {
    const char *name, *files[MOST_FILES];
    bool is_attribute; /* only setting it loads something */
} loaders[] = {
    {"_SSLContext.load_cert_chain", {"certfile", "keyfile"}, false},
    {"_SSLContext.load_verify_locations", {"cafile", "capath"}, false},
    {"_SSLContext.load_dh_params", {"path"}, false},
    {"_SSLContext.set_default_verify_paths", {NULL}, false},
    {"_SSLContext.set_ciphers", {NULL}, false},
    {"_SSLContext.set_ecdh_curve", {NULL}, false},
    {"_SSLContext._set_alpn_protocols", {NULL}, false},
    {"_SSLContext.keylog_filename", {"path"}, true},
};

typedef struct {
    PyObject *context; /* borrowed; NULL: it is gone, or the call was repeated later */
    Gate *gate;
    int loader;
    uint64_t event;
    Py_ssize_t nargs, named; /* of the latter the last ones have a keyword */
    Buf values;              /* the arguments one by one, then the tuple of keywords */
    bool is_known;           /* all of them are data */
    bool may_fail;           /* the user goes on without */
    char *files[MOST_FILES]; /* absolute paths; NULL: as the program gave it */
} Loading;
static Loading *loadings;
static size_t loading_count;
static destructor original_dealloc;
static PyTypeObject *context_type;

/* ---- while it is a replay ---- */

static void
context_gone(PyObject *context)
{
    for (size_t i = 0; i < loading_count; i++)
        if (loadings[i].context == context)
            loadings[i].context = NULL;
    original_dealloc(context);
}

int
contexts_module_loaded(PyObject *module, const char *name)
{
    PyObject *type = core.goes_live && strcmp(name, "_ssl") == 0
                         ? PyDict_GetItemString(PyModule_GetDict(module), "_SSLContext")
                         : NULL;
    if (type == NULL || !PyType_Check(type) || original_dealloc)
        return 0;
    context_type = (PyTypeObject *)type;
    original_dealloc = context_type->tp_dealloc;
    context_type->tp_dealloc = context_gone;
    return 0;
}

/* Any buffer is bytes then: OpenSSL has copied it. */
static bool
keep_value(Buf *b, PyObject *v)
{
    Py_buffer view;
    if (value_encode(b, v, ENCODE_RESULT, &event_types, NULL, 0) == 0)
        return true;
    if (PyObject_GetBuffer(v, &view, PyBUF_SIMPLE) < 0) {
        PyErr_Clear();
        buf_byte(b, TAG_NONE);
        return false;
    }
    buf_byte(b, TAG_BYTES);
    buf_str(b, view.buf, (size_t)view.len);
    PyBuffer_Release(&view);
    return true;
}

/* In place of a function that gives a password, what it has given. */
static bool
keep_argument(Loading *l, PyObject *v)
{
    if (!PyCallable_Check(v))
        return keep_value(&l->values, v);
    if (!tls_take_password(&l->values))
        buf_byte(&l->values, TAG_NONE); /* the key is not encrypted */
    return true;
}

static int
loader_of(const Gate *g)
{
    if (strcmp(g->module, "_ssl") == 0)
        for (int i = 0; i < (int)(sizeof loaders / sizeof *loaders); i++)
            if (strcmp(g->name, loaders[i].name) == 0)
                return i;
    return -1;
}

/* A program that reads its certificates anew every night makes the same call each time: the last one counts. */
static void
drop_equal(const Loading *l)
{
    for (size_t i = 0; i < loading_count; i++)
        if (loadings[i].context == l->context && loadings[i].gate == l->gate && loadings[i].nargs == l->nargs &&
            loadings[i].values.used == l->values.used &&
            memcmp(loadings[i].values.data, l->values.data, l->values.used) == 0)
            loadings[i].context = NULL;
}

void
contexts_follow(const Crossing *c)
{
    int loader = loader_of(c->gate);
    Py_ssize_t named = c->kwnames ? PyTuple_GET_SIZE(c->kwnames) : 0;
    if (loader < 0 || c->self == NULL || c->nargs + named > MOST_ARGUMENTS ||
        (loaders[loader].is_attribute && c->nargs == 0))
        return;
    Loading l = {.context = c->self,
                 .gate = c->gate,
                 .loader = loader,
                 .event = core.crossings,
                 .nargs = c->nargs,
                 .named = named,
                 .is_known = true};
    for (Py_ssize_t i = 0; i < c->nargs + named; i++)
        l.is_known &= keep_argument(&l, c->args[i]);
    if (named)
        l.is_known &= keep_value(&l.values, c->kwnames);
    drop_equal(&l);
    loadings = grown(loadings, loading_count + 1, sizeof *loadings);
    loadings[loading_count++] = l;
}

/* ---- when it goes live ---- */

void
contexts_report(Buf *b)
{
    uint64_t count = 0;
    for (size_t i = 0; i < loading_count; i++)
        count += loadings[i].context != NULL;
    report_list(b, count);
    for (size_t i = 0; i < loading_count; i++)
        if (loadings[i].context) {
            report_dict(b, 2);
            report_key(b, "event");
            report_number(b, (int64_t)loadings[i].event);
            report_key(b, "known");
            buf_byte(b, loadings[i].is_known ? TAG_TRUE : TAG_FALSE);
        }
}

/* `paths`: one for each file argument, each ends with a null byte; empty: as the program gave it. */
void
context_settle(uint64_t event, bool may_fail, const char *paths, size_t n)
{
    for (size_t i = 0; i < loading_count; i++) {
        Loading *l = &loadings[i];
        if (l->event != event)
            continue;
        l->may_fail = may_fail;
        const char *end = paths + n;
        for (int k = 0; k < MOST_FILES && paths < end; k++) {
            size_t length = strnlen(paths, (size_t)(end - paths));
            if (length && paths + length < end)
                l->files[k] = strdup(paths);
            paths += length + 1;
        }
    }
}

/* Which of the arguments a file is; -1: it was not given. */
static Py_ssize_t
place_of(const Loading *l, int file, PyObject *kwnames)
{
    if (file < l->nargs)
        return file;
    for (Py_ssize_t i = 0; kwnames && i < PyTuple_GET_SIZE(kwnames); i++)
        if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, i), loaders[l->loader].files[file]) == 0)
            return l->nargs + i;
    return -1;
}

static PyObject *
make_again(const Loading *l)
{
    const uint8_t *p = l->values.data, *end = p + l->values.used;
    PyObject *args[MOST_ARGUMENTS] = {NULL}, *kwnames = NULL, *done = NULL;
    Py_ssize_t n = 0;
    while (n < l->nargs + l->named && (args[n] = value_decode(&p, end, &event_types, NULL, 0)))
        n++;
    if (l->named && !PyErr_Occurred())
        kwnames = value_decode(&p, end, &event_types, NULL, 0);
    for (int i = 0; i < MOST_FILES && !PyErr_Occurred(); i++) {
        Py_ssize_t place = l->files[i] ? place_of(l, i, kwnames) : -1;
        if (place >= 0)
            Py_XSETREF(args[place], PyUnicode_DecodeFSDefault(l->files[i]));
    }
    if (!PyErr_Occurred())
        done = gate_call_original(l->gate, l->context, args, l->nargs, kwnames);
    for (Py_ssize_t i = 0; i < n; i++)
        Py_XDECREF(args[i]);
    Py_XDECREF(kwnames);
    return done;
}

/* Takes the exception. */
static const char *
why_not(const Loading *l)
{
    static char text[512];
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    PyObject *shown = value ? PyObject_Str(value) : NULL;
    const char *reason = shown ? PyUnicode_AsUTF8(shown) : NULL;
    const char *file = l->files[0] ? l->files[0] : l->files[1] ? l->files[1] : "";
    snprintf(text, sizeof text, "its TLS context: %s failed%s%s: %s", strchr(l->gate->name, '.') + 1,
             *file ? " for " : "", file, reason ? reason : "no reason is known");
    PyErr_Clear();
    Py_XDECREF(shown);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    return text;
}

const char *
contexts_continue(void)
{
    const char *problem = NULL;
    if (context_type)
        context_type->tp_dealloc = original_dealloc;
    core.depth++; /* the C library's calls below it are none of the program's */
    for (size_t i = 0; i < loading_count; i++) {
        Loading *l = &loadings[i];
        PyObject *done = l->context && l->is_known && problem == NULL ? make_again(l) : NULL;
        if (done == NULL && PyErr_Occurred()) {
            const char *reason = why_not(l);
            problem = l->may_fail ? NULL : reason;
        }
        Py_XDECREF(done);
        free(l->values.data);
        free(l->files[0]);
        free(l->files[1]);
    }
    core.depth--;
    free(loadings);
    loadings = NULL;
    loading_count = 0;
    return problem;
}
