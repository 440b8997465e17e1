/* What an object refers to, and by which step: see heap/heap.h. Function, module and class lead to much that is
 * nobody's question; what is not followed of them (globals, code, what the interpreter adds) is left out here. */
#include "base/core.h"
#include "code/code.h"
#include "heap/inside.h"
#include "identity/identity.h"

#define AHEAD 8 /* items whose entries in the table are fetched before they are looked up */

/* ---- edges ---- */

void
edge_add(uint32_t label, PyObject *to)
{
    if (to == NULL)
        return;
    if (heap.target.used / 4 >= heap.limits.edges) {
        heap.edges_cut++;
        return;
    }
    uint32_t node = node_at((uint64_t)(uintptr_t)to);
    if (node == NO_NODE) {
        heap.nodes_cut++;
        return;
    }
    column_put32(&heap.target, node);
    column_put32(&heap.label, label);
}

/* Of those that have a name; they come first. */
static bool
has_edge_to(PyObject *o)
{
    PointerEntry *e = pointers_find(&heap.nodes, (uint64_t)(uintptr_t)o);
    const uint32_t *targets = (const uint32_t *)heap.target.data;
    uint32_t first = ((const uint32_t *)heap.first_edge.data)[heap.here];
    for (uint32_t i = first; e->key && i < heap.named_end; i++)
        if (targets[i] == e->value)
            return true;
    return false;
}

/* How many of `n` items are followed. */
static Py_ssize_t
items_of(Py_ssize_t n)
{
    if ((uint64_t)n <= heap.limits.items)
        return n;
    heap.containers_cut++;
    heap.items_cut += (uint64_t)n - heap.limits.items;
    return (Py_ssize_t)heap.limits.items;
}

static void
size_add(uint64_t more)
{
    ((uint64_t *)heap.size.data)[heap.here] += more;
}

/* ---- containers ---- */

static void
expand_items(PyObject **items, Py_ssize_t n)
{
    n = items_of(n);
    for (Py_ssize_t i = 0; i < n && i < AHEAD; i++)
        pointers_expect(&heap.nodes, (uint64_t)(uintptr_t)items[i]);
    for (Py_ssize_t i = 0; i < n; i++) {
        if (i + AHEAD < n)
            pointers_expect(&heap.nodes, (uint64_t)(uintptr_t)items[i + AHEAD]);
        edge_add(label_of(KIND_INDEX, (uint64_t)i), items[i]);
    }
}

/* Keys that are plain data are part of the step; if nobody else has them, part of the dictionary's size, too. */
static bool
is_plain(PyObject *key)
{
    return PyUnicode_CheckExact(key) || PyLong_CheckExact(key) || PyFloat_CheckExact(key) || PyBytes_CheckExact(key) ||
           PyBool_Check(key) || key == Py_None;
}

static void
expand_dict(PyObject *dict)
{
    PyObject *key, *value;
    Py_ssize_t at = 0, n = items_of(PyDict_GET_SIZE(dict));
    for (Py_ssize_t i = 0; i < n && PyDict_Next(dict, &at, &key, &value); i++) {
        if (is_plain(key))
            size_add(size_of_owned(key));
        else
            edge_add(label_of(KIND_MEMBER, (uint64_t)i), key);
        edge_add(label_key(key, i), value);
    }
}

static void
expand_set(PyObject *set)
{
    PyObject *key;
    Py_hash_t hash;
    Py_ssize_t at = 0, n = items_of(PySet_GET_SIZE(set));
    for (Py_ssize_t i = 0; i < n && _PySet_NextEntry(set, &at, &key, &hash); i++)
        edge_add(label_of(KIND_MEMBER, (uint64_t)i), key);
}

/* Names and values, as attributes, of a dictionary that belongs to an object. */
static void
expand_names(PyObject *dict, int style, bool (*is_wanted)(PyObject *name, PyObject *value))
{
    PyObject *key, *value;
    Py_ssize_t at = 0, n = items_of(PyDict_GET_SIZE(dict));
    for (Py_ssize_t i = 0; i < n && PyDict_Next(dict, &at, &key, &value); i++)
        if (!PyUnicode_CheckExact(key)) {
            edge_add(label_text(".<key>"), key);
            edge_add(label_text(".<value>"), value);
        }
        else if (is_wanted == NULL || is_wanted(key, value))
            edge_add(label_named(style, key), value);
}

/* ---- what is written in C ---- */

static int
see_referent(PyObject *o, void *of)
{
    uint64_t n = heap.referents++;
    if (o != (PyObject *)Py_TYPE((PyObject *)of) && o != heap.own_dict && !PyCode_Check(o) && !has_edge_to(o))
        edge_add(label_of(KIND_REFERENT, n), o);
    return 0;
}

static int
see_item(PyObject *o, void *of)
{
    if (o != (PyObject *)Py_TYPE((PyObject *)of) && heap.referents < heap.limits.items)
        edge_add(label_of(KIND_INDEX, heap.referents++), o);
    return 0;
}

/* A C type's own traverse function only shows what the object refers to; it is what the collector calls, once the
 * object is whole. */
static void
expand_rest(PyObject *o)
{
    heap.referents = 0;
    heap.named_end = (uint32_t)(heap.target.used / 4);
    if (Py_TYPE(o)->tp_traverse && PyObject_GC_IsTracked(o))
        Py_TYPE(o)->tp_traverse(o, see_referent, o);
}

static void
expand_deque(PyObject *o)
{
    const PyTypeObject *type = deque_type(o);
    heap.referents = 0;
    items_of(Py_SIZE(o));
    if (type && type->tp_traverse)
        type->tp_traverse(o, see_item, o);
}

/* ---- functions, frames ---- */

static void
expand_tuple_as(const char *name, PyObject *tuple)
{
    for (Py_ssize_t i = 0; tuple && PyTuple_CheckExact(tuple) && i < PyTuple_GET_SIZE(tuple); i++)
        edge_add(label_numbered(name, (uint64_t)i, "]"), PyTuple_GET_ITEM(tuple, i));
}

static void
expand_function(PyFunctionObject *f)
{
    expand_tuple_as(".__closure__[", f->func_closure);
    expand_tuple_as(".__defaults__[", f->func_defaults);
    if (f->func_kwdefaults && PyDict_CheckExact(f->func_kwdefaults)) {
        PyObject *key, *value;
        Py_ssize_t at = 0;
        char text[200] = ".__kwdefaults__['";
        while (PyDict_Next(f->func_kwdefaults, &at, &key, &value)) {
            size_t n = 17 + text_of_name((uint8_t *)text + 17, 150, key);
            memcpy(text + n, "']", 3);
            edge_add(label_text(text), value);
        }
    }
    if (f->func_dict && PyDict_CheckExact(f->func_dict)) {
        size_add(size_of_owned(f->func_dict));
        expand_names(f->func_dict, STYLE_ATTRIBUTE, NULL);
    }
}

/* How many entries of a frame's value stack hold objects: what an expression has computed so far, and what a loop goes
 * over. */
static int
depth_of(_PyInterpreterFrame *frame, int first)
{
    int places = compat_frame_places(frame);
    return places >= first ? places - first : stack_place(frame).depth;
}

static void
expand_frame(_PyInterpreterFrame *frame, int style)
{
    PyCodeObject *code = compat_frame_code(frame);
    int n = code->co_nlocalsplus, depth = depth_of(frame, n);
    for (int i = 0; i < n; i++) {
        PyObject *value = compat_frame_value(frame, i), *name = PyTuple_GET_ITEM(code->co_localsplusnames, i);
        bool is_cell = value && PyCell_Check(value) &&
                       _PyLocals_GetKind(code->co_localspluskinds, i) & (CO_FAST_CELL | CO_FAST_FREE);
        if (value)
            edge_add(label_named(is_cell ? STYLE_CELL : style, name), value);
    }
    PyObject *names = frame->f_locals;
    if (names && names != frame->f_globals && PyDict_CheckExact(names) && !(code->co_flags & CO_OPTIMIZED))
        expand_names(names, style, NULL);
    for (int i = 0; i < depth && i < code->co_stacksize; i++) {
        PyObject *value = compat_frame_value(frame, n + i);
        if (value)
            edge_add(label_numbered(".<stack ", (uint64_t)i, ">"), value);
    }
}

static void
expand_generator(PyObject *o)
{
    PyGenObject *g = (PyGenObject *)o;
    int style = PyCoro_CheckExact(o) ? STYLE_COROUTINE : PyAsyncGen_CheckExact(o) ? STYLE_ASYNCGEN : STYLE_GENERATOR;
    if (g->gi_frame_state < FRAME_COMPLETED)
        expand_frame(compat_generator_frame(g), style);
    edge_add(label_text(".<exception>"), g->gi_exc_state.exc_value);
}

/* One whose call is running owns nothing: the frame of the call does. */
static void
expand_frame_object(PyFrameObject *f)
{
    edge_add(label_text(".f_back"), (PyObject *)f->f_back);
    edge_add(label_text(".f_trace"), f->f_trace);
    if (f->f_frame && f->f_frame->owner == FRAME_OWNED_BY_FRAME_OBJECT)
        expand_frame(f->f_frame, STYLE_LOCAL);
}

static void
expand_exception(PyObject *o)
{
    PyBaseExceptionObject *e = (PyBaseExceptionObject *)o;
    edge_add(label_text(".args"), e->args);
    edge_add(label_text(".__traceback__"), e->traceback);
    edge_add(label_text(".__context__"), e->context);
    edge_add(label_text(".__cause__"), e->cause);
    edge_add(label_text(".__notes__"), e->notes);
    heap.own_dict = e->dict;
    if (e->dict && PyDict_Check(e->dict)) {
        size_add(size_of_owned(e->dict));
        expand_names(e->dict, STYLE_ATTRIBUTE, NULL);
    }
}

static void
expand_weakref(PyObject *o)
{
    PyWeakReference *ref = (PyWeakReference *)o;
    PyObject *to = compat_weakref_object(ref);
    edge_add(label_text(".__callback__"), ref->wr_callback);
    if (to && to != Py_None && Py_REFCNT(to) > 0)
        edge_add((PyWeakref_CheckProxy(o) ? label_text(".<referent>") : label_text("()")) | KIND_WEAK, to);
}

/* ---- modules and classes ---- */

static bool
is_one_of(PyObject *name, const char *const *names)
{
    for (; *names; names++)
        if (PyUnicode_CompareWithASCIIString(name, *names) == 0)
            return true;
    return false;
}

static bool
is_of_module(PyObject *name, PyObject *value)
{
    static const char *const interpreters[] = {"__builtins__", "__loader__", "__spec__", "__cached__", "__doc__", NULL};
    return PyUnicode_READ_CHAR(name, 0) != '_' || !is_one_of(name, interpreters);
}

static bool
is_of_class(PyObject *name, PyObject *value)
{
    static const char *const interpreters[] = {"__module__",
                                               "__doc__",
                                               "__dict__",
                                               "__weakref__",
                                               "__qualname__",
                                               "__annotations__",
                                               "__static_attributes__",
                                               "__firstlineno__",
                                               NULL};
    if (Py_IS_TYPE(value, &PyMemberDescr_Type) || Py_IS_TYPE(value, &PyGetSetDescr_Type))
        return false;
    return PyUnicode_READ_CHAR(name, 0) != '_' || !is_one_of(name, interpreters);
}

static void
expand_module(PyObject *o)
{
    PyObject *dict = PyModule_GetDict(o);
    if (dict == NULL || !PyDict_CheckExact(dict))
        return;
    size_add(size_of(dict, type_facts(&PyDict_Type)));
    expand_names(dict, STYLE_ATTRIBUTE, is_of_module);
}

static void
expand_class(PyObject *o)
{
    PyTypeObject *type = (PyTypeObject *)o;
    if (!heap_is_mine(type))
        return;
    for (Py_ssize_t i = 0; type->tp_bases && i < PyTuple_GET_SIZE(type->tp_bases); i++)
        edge_add(label_numbered(".__bases__[", (uint64_t)i, "]"), PyTuple_GET_ITEM(type->tp_bases, i));
    expand_names(type->tp_dict, STYLE_ATTRIBUTE, is_of_class);
}

/* ---- instances ---- */

static void
expand_instance(PyObject *o, const TypeFacts *facts)
{
    PyTypeObject *type = Py_TYPE(o);
    uint32_t first = facts->first_member, count = facts->member_count;
    bool is_mine = facts->is_mine;
    if (type->tp_flags & Py_TPFLAGS_MANAGED_DICT || type->tp_dictoffset) {
        Instance found = instance_of(o);
        if (found.values) {
            PyDictKeysObject *keys = shared_keys(type);
            PyDictUnicodeEntry *entries = DK_UNICODE_ENTRIES(keys);
            size_add(size_of_values(o, found.values));
            for (Py_ssize_t i = 0; i < keys->dk_nentries; i++)
                if (found.values->values[i] && entries[i].me_key)
                    edge_add(label_named(STYLE_ATTRIBUTE, entries[i].me_key), found.values->values[i]);
        }
        else if (found.dict && PyDict_Check(found.dict)) {
            heap.own_dict = found.dict;
            size_add(size_of_owned(found.dict));
            expand_names(found.dict, STYLE_ATTRIBUTE, NULL);
            if (Py_REFCNT(found.dict) > 1)
                edge_add(label_text(".__dict__"), found.dict);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        Member m = ((Member *)heap.members.data)[first + i];
        edge_add(m.label, *(PyObject **)((char *)o + m.offset));
    }
    if (is_mine)
        edge_add(heap.class_label, (PyObject *)type);
}

static void
expand_by(PyObject *o, How how)
{
    switch (how) {
    case IS_LIST:
        expand_items(((PyListObject *)o)->ob_item, PyList_GET_SIZE(o));
        break;
    case IS_TUPLE:
        expand_items(((PyTupleObject *)o)->ob_item, PyTuple_GET_SIZE(o));
        break;
    case IS_DICT:
        expand_dict(o);
        break;
    case IS_SET:
        expand_set(o);
        break;
    case IS_FUNCTION:
        expand_function((PyFunctionObject *)o);
        break;
    case IS_CELL:
        edge_add(heap.cell_label, PyCell_GET(o));
        break;
    case IS_GENERATOR:
        expand_generator(o);
        break;
    case IS_FRAME:
        expand_frame_object((PyFrameObject *)o);
        break;
    case IS_TYPE:
        expand_class(o);
        break;
    case IS_WEAKREF:
        expand_weakref(o);
        break;
    case IS_EXCEPTION:
        expand_exception(o);
        break;
    case IS_TRACEBACK:
        edge_add(label_text(".tb_next"), (PyObject *)((PyTracebackObject *)o)->tb_next);
        edge_add(label_text(".tb_frame"), (PyObject *)((PyTracebackObject *)o)->tb_frame);
        break;
    case IS_DEQUE:
        expand_deque(o);
        break;
    case IS_BUILTIN: {
        PyObject *self = ((PyCFunctionObject *)o)->m_self;
        if (self && !PyModule_Check(self))
            edge_add(label_text(".__self__"), self);
        break;
    }
    default:
        break;
    }
}

static bool
has_attributes(How how)
{
    switch (how) {
    case IS_FUNCTION:
    case IS_EXCEPTION: /* its own dictionary; slots and what C calls its parts come after it */
    case IS_MODULE:
    case IS_TYPE:
    case IS_GENERATOR:
    case IS_FRAME:
    case IS_CODE:
        return false;
    default:
        return true;
    }
}

static bool
is_known_wholly(How how)
{
    return how != IS_OTHER && how != IS_EXCEPTION && how != IS_NDARRAY;
}

static void
expand_slots(PyObject *o, const TypeFacts *facts)
{
    for (uint32_t i = 0; i < facts->member_count; i++) {
        Member m = ((Member *)heap.members.data)[facts->first_member + i];
        edge_add(m.label, *(PyObject **)((char *)o + m.offset));
    }
}

static void
expand_object(uint32_t node, PyObject *o)
{
    TypeFacts facts = *type_facts(Py_TYPE(o));
    PyThreadState *ts = compat_attached();
    ((uint32_t *)heap.type.data)[node] = facts.name;
    ((uint64_t *)heap.size.data)[node] = size_of(o, &facts);
    ((uint32_t *)heap.since.data)[node] = heap_since(block_of_object(o));
    uint32_t value = value_of(o, facts.how);
    ((uint32_t *)heap.value.data)[node] = value;
    if (facts.how == IS_MODULE) {
        if (node < heap.frames + heap.modules)
            expand_module(o);
        return;
    }
    if (facts.how == IS_DICT && (o == ts->interp->builtins || o == ts->interp->sysdict))
        return;
    expand_by(o, facts.how);
    if (has_attributes(facts.how) && (facts.member_count || facts.is_mine || facts.type->tp_dictoffset ||
                                      facts.type->tp_flags & Py_TPFLAGS_MANAGED_DICT))
        expand_instance(o, &facts);
    else if (facts.how == IS_EXCEPTION) {
        expand_slots(o, &facts);
        if (facts.is_mine)
            edge_add(heap.class_label, (PyObject *)facts.type);
    }
    if (!is_known_wholly(facts.how))
        expand_rest(o);
}

void
heap_expand(uint32_t node)
{
    uint64_t address = ((uint64_t *)heap.address.data)[node];
    heap.here = node;
    heap.own_dict = NULL;
    if (node >= heap.frames) {
        expand_object(node, (PyObject *)(uintptr_t)address);
        return;
    }
    _PyInterpreterFrame *frame = (_PyInterpreterFrame *)(uintptr_t)address;
    uint32_t value = value_of_frame(frame);
    ((uint32_t *)heap.type.data)[node] = heap.frame_type;
    ((uint32_t *)heap.value.data)[node] = value;
    expand_frame(frame, STYLE_LOCAL);
}
