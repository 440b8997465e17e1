/* Gates. A gated function stays the object that it was: what is replaced is the PyMethodDef that it points to, by a
 * copy whose C function is a trampoline of ours. So identity, name, repr, pickling, `inspect`, copies of it bound
 * elsewhere (`from time import time`, class attributes, defaults) and the interpreter's specialised calls all go on as
 * before and all lead through the gate. A C function only receives its `self`, not which function object was called:
 * hence one trampoline for each gate. */
#include "base/core.h"
#include "base/many.h"
#include "collector/collector.h"
#include "crossing/inside.h"
#include "log/log.h"
#include <stdlib.h>
#include <structmember.h>

#define MOST_GATES 1024

static Gate gates[MOST_GATES];
static int gate_count;
static vectorcallfunc function_vectorcall, method_vectorcall; /* of METH_FASTCALL | METH_KEYWORDS */

/* A replay has become a recording within the call, see resume/live.c: its handler starts anew. */
static bool
gate_again(PyObject **result)
{
    Py_CLEAR(*result);
    return cross_again();
}

static inline PyObject *
pass_through(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    if (gate_passes() && !(g->flags & GATE_ALWAYS)) {
        PyObject *result = gate_call_original(g, self, args, nargs, kwnames);
        return __builtin_expect(core.is_resumed, 0) ? crossing_hooks.live_passed(g, args, nargs, result) : result;
    }
    PyObject *result;
    if (!__builtin_expect(core.lenient, 0) || !crossing_hooks.answers_data(g, self, args, nargs, kwnames, &result))
        do
            result = g->handler(g, self, args, nargs, kwnames);
        while (__builtin_expect(cross_state.again, 0) && gate_again(&result));
    cross_settle();
    return result;
}

/* ---- one trampoline for each gate ---- */
#define TRAMPOLINE(n)                                                                                                  \
    static PyObject *trampoline_##n(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)        \
    {                                                                                                                  \
        return pass_through(&gates[0##n - 01000], self, args, nargs, kwnames);                                         \
    }
#define NAME(n) trampoline_##n,
MANY_1024(TRAMPOLINE)
static const _PyCFunctionFastWithKeywords trampolines[MOST_GATES] = {MANY_1024(NAME)};

/* ---- the real thing ---- */

static PyObject *
attribute_really(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    PyGetSetDef *def = g->original_attribute;
    if (nargs == 0)
        return def->get(self, def->closure);
    return def->set(self, args[0], def->closure) < 0 ? NULL : Py_NewRef(Py_None);
}

PyObject *
gate_call_original(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    if (__builtin_expect(log_is_durable, 0) && !output_may_leave(g, self, args, nargs))
        return NULL;
    if (g->original_attribute)
        return attribute_really(g, self, args, nargs);
    if (!g->is_method) {
        if ((g->original_def->ml_flags & ~METH_COEXIST) == METH_NOARGS && nargs == 0 && kwnames == NULL)
            return g->original_def->ml_meth(g->self, NULL);
        return PyObject_Vectorcall(g->original, args, (size_t)nargs, kwnames);
    }
    Py_ssize_t n = 1 + nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    PyObject *few[8], **all = n <= 8 ? few : malloc((size_t)n * sizeof *all);
    if (all == NULL)
        return PyErr_NoMemory();
    all[0] = self;
    if (n > 1)
        memcpy(all + 1, args, (size_t)(n - 1) * sizeof *all);
    PyObject *result = PyObject_Vectorcall(g->original, all, (size_t)nargs + 1, kwnames);
    if (all != few)
        free(all);
    return result;
}

/* What cannot be recorded yet: the recording ends here and says so; the program goes on. A replay never comes here. */
static PyObject *
gate_stops(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    char name[160];
    snprintf(name, sizeof name, "%s.%s", g->module, g->name);
    if (core.mode == REPLAY)
        /* here the recording ended, or elsewhere */
        cross_at_end() ? diverge("end", g, NULL, "") : diverge("unsupported", g, NULL, name);
    if (core.is_future)
        diverge("outside", g, NULL, "");
    note("unsupported", name);
    log_fail(4);
    return gate_call_original(g, self, args, nargs, kwnames);
}

/* A slot of a type is patched when its module is loaded; the function of that name, if there is one, leads there
 * anyway. */
PyObject *
gate_slot(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    PyErr_Format(PyExc_SystemError, "replaydbg: %s.%s is no function", g->module, g->name);
    return NULL;
}

/* Not a crossing: noted once, since C code behind it may read the outside unseen. */
static PyObject *
gate_noted(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    char name[160];
    snprintf(name, sizeof name, "%s.%s", g->module, g->name);
    note("uncovered", name);
    return gate_call_original(g, self, args, nargs, kwnames);
}

/* ---- the table ---- */

const HandlerEntry gate_handlers[] = {{"regular", gate_regular}, {"stops", gate_stops}, {"noted", gate_noted},
                                      {"native", gate_slot},     {"slot", gate_slot},   {NULL, NULL}};

Handler
handler_named(const char *name)
{
    for (const HandlerEntry *const *table = handler_tables; *table; table++)
        for (const HandlerEntry *e = *table; e->name; e++)
            if (strcmp(e->name, name) == 0)
                return e->handler;
    return NULL;
}

Gate *
gate_named(const char *module, const char *name)
{
    for (int i = 0; i < gate_count; i++)
        if (strcmp(gates[i].name, name) == 0 && strcmp(gates[i].module, module) == 0)
            return &gates[i];
    return NULL;
}

Gate *
gate_numbered(int id)
{
    return id > 0 && id <= gate_count ? &gates[id - 1] : NULL;
}

static PyObject *
nothing(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    Py_RETURN_NONE;
}

/* The interpreter's own entry points for our calling convention are not exported: they are read off a fresh object. */
static int
learn_vectorcalls(void)
{
    static PyMethodDef def = {"nothing", (PyCFunction)(void (*)(void))nothing, METH_FASTCALL | METH_KEYWORDS, NULL};
    PyObject *function = PyCFunction_NewEx(&def, NULL, NULL);
    PyObject *method = PyDescr_NewMethod(&PyBaseObject_Type, &def);
    if (function == NULL || method == NULL)
        return -1;
    function_vectorcall = ((PyCFunctionObject *)function)->vectorcall;
    method_vectorcall = ((PyMethodDescrObject *)method)->vectorcall;
    Py_DECREF(function);
    Py_DECREF(method);
    return 0;
}

/* rows: list of (module, name, handler, flags, buffer) */
int
gates_load(PyObject *rows)
{
    if (learn_vectorcalls() < 0)
        return -1;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(rows); i++) {
        const char *module, *name, *handler;
        unsigned flags;
        int buffer;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(rows, i), "sssIi", &module, &name, &handler, &flags, &buffer))
            return -1;
        if (gate_count >= MOST_GATES || handler_named(handler) == NULL) {
            PyErr_Format(PyExc_RuntimeError, "gate table: no place or no handler for %s.%s (%s)", module, name,
                         handler);
            return -1;
        }
        Gate *g = &gates[gate_count++];
        g->id = gate_count;
        g->module = strdup(module);
        g->name = strdup(name);
        g->flags = flags;
        g->buffer = buffer;
        g->handler = handler_named(handler);
        crossing_hooks.gate_loaded(g);
    }
    return 0;
}

/* ---- installing ---- */

static void
adopt_definition(Gate *g, PyMethodDef *def)
{
    g->original_def = def;
    g->ml = *def;
    g->ml.ml_meth = (PyCFunction)(void (*)(void))trampolines[g->id - 1];
    g->ml.ml_flags = METH_FASTCALL | METH_KEYWORDS | (def->ml_flags & (METH_CLASS | METH_STATIC | METH_COEXIST));
}

/* Since 3.13 a function whose text has no signature gets one from its calling convention, which is ours now: the text
 * says it then. */
static void
keep_signature(Gate *g, PyObject *object)
{
    PyObject *before = PyObject_GetAttrString(g->original, "__text_signature__");
    PyObject *after = PyObject_GetAttrString(object, "__text_signature__");
    char *doc;
    if (after == Py_None && before && PyUnicode_Check(before) &&
        asprintf(&doc, "%s%s\n--\n\n%s", g->ml.ml_name, PyUnicode_AsUTF8(before), g->ml.ml_doc ? g->ml.ml_doc : "") > 0)
        g->ml.ml_doc = doc;
    Py_XDECREF(before);
    Py_XDECREF(after);
    PyErr_Clear();
}

static int
install_function(Gate *g, PyObject *object)
{
    PyCFunctionObject *f = (PyCFunctionObject *)object;
    g->original = PyCMethod_New(f->m_ml, f->m_self, f->m_module, PyCFunction_GET_CLASS(object));
    if (g->original == NULL)
        return -1;
    PyObject_GC_UnTrack(g->original); /* ours: not part of the program's collections */
    g->self = f->m_self;
    adopt_definition(g, f->m_ml);
    f->m_ml = &g->ml;
    f->vectorcall = function_vectorcall;
    keep_signature(g, object);
    return 0;
}

static int
install_method(Gate *g, PyObject *object)
{
    PyMethodDescrObject *d = (PyMethodDescrObject *)object;
    bool of_class = Py_IS_TYPE(object, &PyClassMethodDescr_Type);
    PyTypeObject *type = PyDescr_TYPE(d);
    g->original = of_class ? PyDescr_NewClassMethod(type, d->d_method) : PyDescr_NewMethod(type, d->d_method);
    if (g->original == NULL)
        return -1;
    PyObject_GC_UnTrack(g->original);
    g->is_method = true;
    adopt_definition(g, d->d_method);
    d->d_method = &g->ml;
    if (!of_class)
        d->vectorcall = method_vectorcall;
    keep_signature(g, object);
    return 0;
}

static PyObject *
attribute_get(PyObject *self, void *gate)
{
    return pass_through(gate, self, NULL, 0, NULL);
}

static int
attribute_set(PyObject *self, PyObject *value, void *gate)
{
    PyGetSetDef *def = ((Gate *)gate)->original_attribute;
    if (value == NULL)
        return def->set(self, value, def->closure); /* none of them can be deleted: it says so */
    PyObject *done = pass_through(gate, self, &value, 1, NULL);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

static int
install_attribute(Gate *g, PyObject *object)
{
    PyGetSetDescrObject *d = (PyGetSetDescrObject *)object;
    g->original = Py_NewRef(object);
    g->original_attribute = d->d_getset;
    g->attribute = *d->d_getset;
    g->attribute.get = attribute_get;
    g->attribute.set = d->d_getset->set ? attribute_set : NULL;
    g->attribute.closure = g;
    d->d_getset = &g->attribute;
    return 0;
}

/* When a slot of a type is replaced, the method that shows it to Python code leads to the replacement too. */
void
patch_wrapper(PyTypeObject *type, const char *name, void *function)
{
    PyObject *wrapper = PyDict_GetItemString(compat_type_dict(type), name);
    if (wrapper && Py_IS_TYPE(wrapper, &PyWrapperDescr_Type))
        ((PyWrapperDescrObject *)wrapper)->d_wrapped = function;
}

void
patch_wrapper_of(PyTypeObject *type, const char *name, void *original, void *function)
{
    PyObject *wrapper = PyDict_GetItemString(compat_type_dict(type), name);
    if (wrapper && Py_IS_TYPE(wrapper, &PyWrapperDescr_Type) &&
        ((PyWrapperDescrObject *)wrapper)->d_wrapped == original)
        ((PyWrapperDescrObject *)wrapper)->d_wrapped = function;
}

/* Where an object of this type keeps the attribute, or 0. */
Py_ssize_t
member_offset(PyTypeObject *type, const char *name)
{
    PyObject *descr = PyDict_GetItemString(compat_type_dict(type), name);
    return descr && Py_IS_TYPE(descr, &PyMemberDescr_Type) ? ((PyMemberDescrObject *)descr)->d_member->offset : 0;
}

/* "stat", "FileIO.read", or "poll().poll" for a type that has no name in its module. Borrowed from where it lives. */
static PyObject *
find_target(PyObject *module, const char *name)
{
    char first[80];
    const char *dot = strrchr(name, '.');
    if (dot == NULL)
        return PyDict_GetItemString(PyModule_GetDict(module), name);
    size_t n = (size_t)(dot - name);
    bool by_instance = n > 2 && strncmp(dot - 2, "()", 2) == 0;
    if (n >= sizeof first)
        return NULL;
    memcpy(first, name, n);
    first[by_instance ? n - 2 : n] = 0;
    PyObject *holder = PyDict_GetItemString(PyModule_GetDict(module), first);
    if (holder == NULL)
        return NULL;
    if (by_instance) {
        PyObject *instance = PyObject_CallNoArgs(holder);
        if (instance == NULL) {
            PyErr_Clear();
            return NULL;
        }
        holder = (PyObject *)Py_TYPE(instance);
        Py_DECREF(instance);
    }
    if (!PyType_Check(holder) || PyType_Ready((PyTypeObject *)holder) < 0)
        return NULL; /* static types of 3.11 are made ready at their first use */
    return PyDict_GetItemString(compat_type_dict((PyTypeObject *)holder), dot + 1);
}

int
gates_install_module(PyObject *module, const char *name)
{
    for (int i = 0; i < gate_count; i++) {
        Gate *g = &gates[i];
        if (g->original || g->handler == gate_slot || strcmp(g->module, name) != 0)
            continue;
        own_work_begin();
        PyObject *target = find_target(module, g->name);
        own_work_end();
        if (target == NULL)
            continue; /* not on this version or platform */
        int rc = 0;
        if (PyCFunction_Check(target))
            rc = install_function(g, target);
        else if (Py_IS_TYPE(target, &PyMethodDescr_Type) || Py_IS_TYPE(target, &PyClassMethodDescr_Type))
            rc = install_method(g, target);
        else if (Py_IS_TYPE(target, &PyGetSetDescr_Type))
            rc = install_attribute(g, target);
        if (rc < 0)
            return -1;
    }
    for (const ModuleHook *hook = module_hooks; *hook; hook++)
        if ((*hook)(module, name) < 0)
            return -1;
    return 0;
}
