/* Warnings that a gated C function issues by itself: os.listdir() of a bytearray, for one. In a replay the function
 * does not run.
 *
 * While recording, a warning is noticed where the interpreter makes an object of it, which it does for each before it
 * looks at filters. There it is logged as a callback, and issued a first time, outside of the crossing: filters,
 * registries, a showwarning() of the program's and what that writes are the program's matter. The interpreter goes on
 * with its own; it is made to find in the registry that this one was seen already. If the warning became an exception
 * it ends here too. A replay issues it where the log says.
 *
 * The level of the stack is taken for the usual one, the caller of the function. */
#include "base/core.h"
#include "crossing/inside.h"
#include "log/log.h"
#include "values/values.h"

static const char *const names[] = {
    "Warning",        "UserWarning",    "DeprecationWarning", "PendingDeprecationWarning",
    "SyntaxWarning",  "RuntimeWarning", "FutureWarning",      "ImportWarning",
    "UnicodeWarning", "BytesWarning",   "ResourceWarning",    "EncodingWarning"};
enum { CATEGORIES = sizeof names / sizeof *names };
static PyTypeObject *categories[CATEGORIES];
static initproc init_original;
static bool is_busy;

/* What the interpreter would find in the registry had it shown the warning: taken out again when the crossing ends. */
static struct {
    PyObject *registry, *key;
} shown;

static PyObject *
category_named(const char *name)
{
    for (int i = 0; i < CATEGORIES; i++)
        if (categories[i] && strcmp(names[i], name) == 0)
            return (PyObject *)categories[i];
    return NULL;
}

/* As the interpreter does it: where a warning of this frame is looked up. New reference; the frame object stays with
 * the frame. */
static PyObject *
registry_here(int *line)
{
    PyFrameObject *frame = PyThreadState_GetFrame(core.tstate);
    PyObject *globals = frame ? PyFrame_GetGlobals(frame) : NULL, *registry = NULL;
    *line = frame ? PyFrame_GetLineNumber(frame) : 0;
    if (globals && (registry = PyDict_GetItemString(globals, "__warningregistry__")))
        Py_INCREF(registry);
    else if (globals && (registry = PyDict_New()) && PyDict_SetItemString(globals, "__warningregistry__", registry) < 0)
        Py_CLEAR(registry);
    Py_XDECREF(globals);
    Py_XDECREF(frame);
    return registry;
}

static int
issue(PyObject *category, PyObject *text)
{
    Upcall upcall = upcall_enter();
    is_busy = true;
    int rc = PyErr_WarnFormat(category, 1, "%U", text);
    is_busy = false;
    upcall_leave(upcall);
    return rc;
}

static void
record_warning(const char *category, PyObject *text)
{
    Buf b = {0};
    buf_varint(&b, CONTROL_CALLBACK << 2 | 2u);
    buf_byte(&b, TAG_TUPLE);
    buf_varint(&b, 3);
    buf_byte(&b, TAG_SMALL_INT + CALLBACK_WARNING);
    buf_byte(&b, TAG_STR);
    buf_str(&b, category, strlen(category));
    if (value_encode(&b, text, ENCODE_RESULT, &event_types, NULL, 0) < 0)
        buf_byte(&b, TAG_NONE);
    log_append(&event_log, &b);
}

/* The interpreter goes on with its own warning: for it, it was seen. */
static void
hide_second(PyObject *category, PyObject *text)
{
    int line;
    PyObject *registry = registry_here(&line), *number = PyLong_FromLong(line);
    PyObject *key = number ? PyTuple_Pack(3, text, category, number) : NULL;
    warned_crossed();
    if (key)
        PyObject_GC_UnTrack(key); /* or the collector would track the registry as well from now on */
    if (registry && key && PyDict_CheckExact(registry) && PyDict_Contains(registry, key) == 0 &&
        PyDict_SetItem(registry, key, Py_True) == 0) {
        shown.registry = Py_NewRef(registry);
        shown.key = Py_NewRef(key);
    }
    PyErr_Clear();
    Py_XDECREF(key);
    Py_XDECREF(number);
    Py_XDECREF(registry);
}

bool warned_inside;

void
warned_crossed(void)
{
    if (shown.registry && PyDict_DelItem(shown.registry, shown.key) < 0)
        PyErr_Clear();
    Py_CLEAR(shown.registry);
    Py_CLEAR(shown.key);
    warned_inside = false;
}

/* A warning was made of `text`. */
static int
warning_made(PyObject *self, PyObject *text)
{
    if (__builtin_expect(core.depth != 1, 1) || core.mode != RECORD || is_busy || PyThreadState_Get() != core.tstate)
        return 0;
    Gate *open = cross_open();
    const char *name = ((PyTypeObject *)Py_TYPE(self))->tp_name;
    if (open == NULL || open->flags & GATE_BOTH || text == NULL || !PyUnicode_CheckExact(text) ||
        category_named(name) == NULL)
        return 0;
    shared_crossing(false, GATE_HEARS);
    record_warning(name, text);
    if (issue((PyObject *)Py_TYPE(self), text) < 0)
        return -1;
    hide_second((PyObject *)Py_TYPE(self), text);
    warned_inside = true;
    return 0;
}

static int
our_init(PyObject *self, PyObject *args, PyObject *kwargs)
{
    if (init_original(self, args, kwargs) < 0)
        return -1;
    return kwargs ? 0 : warning_made(self, PyTuple_GET_SIZE(args) == 1 ? PyTuple_GET_ITEM(args, 0) : NULL);
}

#if PY_VERSION_HEX >= 0x030E0000
static vectorcallfunc call_original;

/* How exceptions are made there, without their __init__. */
static PyObject *
our_call(PyObject *type, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    PyObject *self = call_original(type, args, nargsf, kwnames);
    if (self && warning_made(self, PyVectorcall_NARGS(nargsf) == 1 ? args[0] : NULL) < 0)
        Py_CLEAR(self);
    return self;
}
#endif

void
warned_again(int kind, Crossing *c, PyObject *recorded)
{
    PyObject *text = PyTuple_GET_SIZE(recorded) == 3 ? PyTuple_GET_ITEM(recorded, 2) : NULL;
    const char *name =
        text && PyUnicode_Check(PyTuple_GET_ITEM(recorded, 1)) ? PyUnicode_AsUTF8(PyTuple_GET_ITEM(recorded, 1)) : NULL;
    PyObject *category = name ? category_named(name) : NULL;
    int line;
    if (category == NULL || !PyUnicode_Check(text))
        diverge("corrupt", c ? c->gate : NULL, c, "a warning cannot be read");
    PyObject *registry = registry_here(&line); /* made inside the crossing, as while recording */
    Py_XDECREF(registry);
    issue(category, text);
}

int
warned_prepare(void)
{
    PyObject *all = core.tstate->interp->builtins;
    for (int i = 0; i < CATEGORIES; i++) {
        PyObject *type = PyDict_GetItemString(all, names[i]);
        if (type == NULL || !PyType_Check(type))
            continue;
        categories[i] = (PyTypeObject *)type;
        if (init_original == NULL)
            init_original = categories[i]->tp_init;
        if (core.mode != RECORD && !core.goes_live)
            continue;
        if (categories[i]->tp_init == init_original)
            categories[i]->tp_init = our_init;
#if PY_VERSION_HEX >= 0x030E0000
        if (call_original == NULL)
            call_original = categories[i]->tp_vectorcall;
        if (call_original && categories[i]->tp_vectorcall == call_original)
            categories[i]->tp_vectorcall = our_call;
#endif
    }
    return 0;
}
