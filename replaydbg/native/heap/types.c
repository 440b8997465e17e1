/* What is known of each type whose objects are met: how they are looked at, what their classes call their slots. */
#include "base/core.h"
#include "code/code.h"
#include "heap/inside.h"
#include <structmember.h>

static traverseproc traverse_of_classes; /* of the instances of every class that is written in Python */
static PyObject *name_of_module;

static PyObject *
importers_class(void)
{
    static const char *const names[] = {"_frozen_importlib", "importlib._bootstrap"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        PyObject *module = PyDict_GetItemString(PyImport_GetModuleDict(), names[i]);
        PyObject *found =
            module && PyModule_Check(module) ? PyDict_GetItemString(PyModule_GetDict(module), "ModuleSpec") : NULL;
        if (found)
            return found;
    }
    return NULL;
}

/* Once, before the program runs: these texts are made by its allocator. */
int
heap_prepare(void)
{
    PyObject *class = importers_class();
    if (class && PyType_Check(class))
        traverse_of_classes = ((PyTypeObject *)class)->tp_traverse;
    name_of_module = name_of_module ? name_of_module : PyUnicode_InternFromString("__module__");
    if (name_of_module)
        PyObject_Hash(name_of_module);
    if (traverse_of_classes == NULL && !PyErr_Occurred())
        PyErr_SetString(PyExc_SystemError, "the importer has no classes");
    return name_of_module && traverse_of_classes ? 0 : -1;
}

static inline bool
is_class(PyTypeObject *type)
{
    return type->tp_flags & Py_TPFLAGS_HEAPTYPE &&
           (type->tp_traverse == traverse_of_classes || !PyType_IS_GC(type) || type->tp_base == NULL);
}

/* The type that is written in C on which a class is built; of a type in C, itself. */
static PyTypeObject *
c_type(PyTypeObject *type)
{
    while (type->tp_base && is_class(type))
        type = type->tp_base;
    return type;
}

static bool
is_named(PyTypeObject *type, const char *name)
{
    return strcmp(type->tp_name, name) == 0;
}

static How
how_by_name(PyTypeObject *type)
{
    if (is_named(type, "collections.deque"))
        return IS_DEQUE;
    if (is_named(type, "array.array"))
        return IS_ARRAY;
    if (is_named(type, "numpy.ndarray"))
        return IS_NDARRAY;
    return type->tp_traverse == NULL || type == &PyBaseObject_Type ? IS_LEAF : IS_OTHER;
}

static How
how_of(PyTypeObject *type)
{
    static const struct {
        PyTypeObject *type;
        How how;
    } known[] = {{&PyFunction_Type, IS_FUNCTION},
                 {&PyCell_Type, IS_CELL},
                 {&PyGen_Type, IS_GENERATOR},
                 {&PyCoro_Type, IS_GENERATOR},
                 {&PyAsyncGen_Type, IS_GENERATOR},
                 {&PyFrame_Type, IS_FRAME},
                 {&PyCode_Type, IS_CODE},
                 {&PyTraceBack_Type, IS_TRACEBACK},
                 {&PyBool_Type, IS_CONSTANT},
                 {&PyEllipsis_Type, IS_CONSTANT},
                 {&_PyNone_Type, IS_CONSTANT},
                 {&_PyNotImplemented_Type, IS_CONSTANT},
                 {&PyFloat_Type, IS_FLOAT},
                 {&PyByteArray_Type, IS_BYTEARRAY},
                 {&PyCFunction_Type, IS_BUILTIN},
                 {&_PyWeakref_RefType, IS_WEAKREF},
                 {&_PyWeakref_ProxyType, IS_WEAKREF},
                 {&_PyWeakref_CallableProxyType, IS_WEAKREF},
                 {&PySet_Type, IS_SET},
                 {&PyFrozenSet_Type, IS_SET},
                 {&PyModule_Type, IS_MODULE}};
    for (PyTypeObject *each = type; each; each = each->tp_base)
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            if (known[i].type == each)
                return known[i].how;
    static const struct {
        unsigned long flag;
        How how;
    } flags[] = {{Py_TPFLAGS_LONG_SUBCLASS, IS_INT},    {Py_TPFLAGS_UNICODE_SUBCLASS, IS_STR},
                 {Py_TPFLAGS_BYTES_SUBCLASS, IS_BYTES}, {Py_TPFLAGS_LIST_SUBCLASS, IS_LIST},
                 {Py_TPFLAGS_TUPLE_SUBCLASS, IS_TUPLE}, {Py_TPFLAGS_DICT_SUBCLASS, IS_DICT},
                 {Py_TPFLAGS_TYPE_SUBCLASS, IS_TYPE},   {Py_TPFLAGS_BASE_EXC_SUBCLASS, IS_EXCEPTION}};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (type->tp_flags & flags[i].flag)
            return flags[i].how;
    return how_by_name(c_type(type));
}

/* ---- names ---- */

static PyObject *
module_of(PyTypeObject *type)
{
    PyObject *dict = compat_type_dict(type), *name = dict ? read_key(dict, name_of_module) : NULL;
    return name && PyUnicode_Check(name) ? name : NULL;
}

/* The qualified name with its module. */
size_t
heap_type_name(uint8_t text[TYPE_NAME_ROOM], PyTypeObject *type)
{
    size_t n = 0;
    if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE)) {
        n = strlen(type->tp_name);
        bool is_builtin = strchr(type->tp_name, '.') == NULL;
        memcpy(text, "builtins.", 9);
        size_t at = is_builtin ? 9 : 0;
        n = n < 1000 ? n : 1000;
        memcpy(text + at, type->tp_name, n);
        return at + n;
    }
    n = text_of_name(text, 1000, module_of(type));
    if (n)
        text[n++] = '.';
    return n + text_of_name(text + n, 1000, ((PyHeapTypeObject *)type)->ht_qualname);
}

static uint32_t
place_of_name(PyTypeObject *type)
{
    uint8_t text[TYPE_NAME_ROOM];
    return texts_place(&heap.types, text, heap_type_name(text, type));
}

/* A class of the program, not of a library: decided by the name of its module. */
bool
heap_is_mine(PyTypeObject *type)
{
    if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE))
        return false;
    if (heap.limits.all)
        return is_class(type);
    uint8_t text[1024];
    size_t n = text_of_name(text, sizeof text, module_of(type));
    uint64_t key = hash_bytes(text, n, 9);
    return pointers_find(&heap.module_names, key ? key : 1)->key != 0;
}

/* ---- slots, and what C types call their parts ---- */

static bool
is_left_out(const char *name)
{
    static const char *const names[] = {"__globals__",  "__builtins__", "__doc__",  "__module__",   "__name__",
                                        "__qualname__", "__objclass__", "__dict__", "__thisclass__"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static void
find_members(TypeFacts *facts, PyTypeObject *type)
{
    facts->first_member = (uint32_t)(heap.members.used / sizeof(Member));
    for (; type; type = type->tp_base)
        for (PyMemberDef *m = type->tp_members; m && m->name; m++) {
            bool is_object = m->type == T_OBJECT_EX || m->type == T_OBJECT;
#ifdef Py_RELATIVE_OFFSET
            is_object = is_object && !(m->flags & Py_RELATIVE_OFFSET);
#endif
            if (is_object && m->offset > 0 && !is_left_out(m->name))
                *(Member *)column_room(&heap.members, sizeof(Member)) =
                    (Member){label_member(m->name), (uint32_t)m->offset};
        }
    facts->member_count = (uint32_t)(heap.members.used / sizeof(Member)) - facts->first_member;
}

static bool
has_members(How how)
{
    return how != IS_FUNCTION && how != IS_GENERATOR && how != IS_FRAME && how != IS_MODULE && how != IS_TYPE &&
           how != IS_CODE && how != IS_TRACEBACK;
}

static uint32_t
before_object(PyTypeObject *type)
{
    return type->tp_flags & COMPAT_PREHEADER ? 2 * sizeof(PyObject *) : 0;
}

static TypeFacts *
facts_at(size_t i)
{
    return (TypeFacts *)heap.type_facts.data + i;
}

const TypeFacts *
type_facts(PyTypeObject *type)
{
    static size_t last;
    if (last < heap.type_facts.used / sizeof(TypeFacts) && facts_at(last)->type == type)
        return facts_at(last);
    PointerEntry *e = pointers_find(&heap.types_known, (uint64_t)(uintptr_t)type);
    if (e->key) {
        last = e->value;
        return facts_at(last);
    }
    TypeFacts facts = {.type = type, .how = how_of(type), .name = place_of_name(type), .is_mine = heap_is_mine(type)};
    facts.is_gc = PyType_IS_GC(type);
    facts.fixed_size = (uint32_t)type->tp_basicsize + before_object(type) +
                       (facts.is_gc && !type->tp_is_gc ? (uint32_t)sizeof(PyGC_Head) : 0);
    if (has_members(facts.how))
        find_members(&facts, type);
    last = heap.type_facts.used / sizeof(TypeFacts);
    *(TypeFacts *)column_room(&heap.type_facts, sizeof facts) = facts;
    *e = (PointerEntry){(uint64_t)(uintptr_t)type, (uint32_t)last};
    heap.types_known.used++;
    return facts_at(last);
}
