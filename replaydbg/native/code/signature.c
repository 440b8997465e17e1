/* Reading objects without running Python, and telling whether one has changed. Nothing is made by it: neither the
 * dictionary of an instance that has none yet, nor a bound method, nor a number. */
#include "base/core.h"
#include "code/code.h"
#include <structmember.h>

static uint64_t
mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9FB21C651E98DF25u;
    return h ^ h >> 29;
}

/* ---- dictionaries ---- */

/* As the dictionary itself would find it, but for keys that are no strings and have the same hash: their __eq__ is not
 * run. */
PyObject *
read_key(PyObject *dict, PyObject *name)
{
    PyObject *key, *value;
    Py_hash_t hash = ((PyASCIIObject *)name)->hash;
    Py_ssize_t at = 0;
    if (((PyDictObject *)dict)->ma_keys && PyDict_CheckExact(dict) && DK_IS_UNICODE(((PyDictObject *)dict)->ma_keys))
        return _PyDict_GetItem_KnownHash(dict, name, hash);
    while (PyDict_Next(dict, &at, &key, &value))
        if (key == name || (PyUnicode_CheckExact(key) && PyUnicode_Compare(key, name) == 0))
            return value;
    return NULL;
}

PyObject *
read_number_key(PyObject *dict, int64_t number)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(dict, &at, &key, &value))
        if (PyLong_CheckExact(key)) {
            int overflow;
            long long n = PyLong_AsLongLongAndOverflow(key, &overflow);
            if (!overflow && n == number)
                return value;
        }
    return NULL;
}

/* Any other key is known by its address, as its __eq__ is not run. The hash tells it from one that lay there before. */
PyObject *
read_entry(PyObject *dict, PyObject *wanted, Py_hash_t wanted_hash)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(dict, &at, &key, &value)) {
        PyDictKeysObject *keys = ((PyDictObject *)dict)->ma_keys;
        if (key == wanted &&
            (DK_IS_UNICODE(keys) ? ((PyASCIIObject *)key)->hash : DK_ENTRIES(keys)[at - 1].me_hash) == wanted_hash)
            return value;
    }
    return NULL;
}

/* ---- instances ---- */

Instance
instance_of(PyObject *o)
{
    PyTypeObject *type = Py_TYPE(o);
    Instance found = {NULL, NULL};
    if (type->tp_flags & Py_TPFLAGS_MANAGED_DICT) {
#if PY_VERSION_HEX >= 0x030D0000
        if (type->tp_flags & Py_TPFLAGS_INLINE_VALUES && _PyObject_InlineValues(o)->valid)
            found.values = _PyObject_InlineValues(o);
        else
            found.dict = (PyObject *)_PyObject_ManagedDictPointer(o)->dict;
#elif PY_VERSION_HEX >= 0x030C0000
        PyDictOrValues both = *_PyObject_DictOrValuesPointer(o);
        if (_PyDictOrValues_IsValues(both))
            found.values = _PyDictOrValues_GetValues(both);
        else
            found.dict = _PyDictOrValues_GetDict(both);
#else
        found.values = *_PyObject_ValuesPointer(o);
        if (found.values == NULL)
            found.dict = *_PyObject_ManagedDictPointer(o);
#endif
        return found;
    }
    PyObject **place = type->tp_dictoffset ? _PyObject_GetDictPtr(o) : NULL;
    found.dict = place ? *place : NULL;
    return found;
}

PyDictKeysObject *
shared_keys(PyTypeObject *type)
{
    return ((PyHeapTypeObject *)type)->ht_cached_keys;
}

static PyObject *
value_named(PyObject *o, PyDictValues *values, PyObject *name)
{
    PyDictKeysObject *keys = shared_keys(Py_TYPE(o));
    PyDictUnicodeEntry *entries = DK_UNICODE_ENTRIES(keys);
    for (Py_ssize_t i = 0; i < keys->dk_nentries; i++)
        if (entries[i].me_key && (entries[i].me_key == name || PyUnicode_Compare(entries[i].me_key, name) == 0))
            return values->values[i];
    return NULL;
}

/* As _PyType_Lookup() finds it, but without its cache, in which a name of ours would stay. */
static PyObject *
find_in_type(PyTypeObject *type, PyObject *name)
{
    PyObject *mro = type->tp_mro;
    for (Py_ssize_t i = 0; mro && i < PyTuple_GET_SIZE(mro); i++) {
        PyObject *base = PyTuple_GET_ITEM(mro, i),
                 *dict = PyType_Check(base) ? compat_type_dict((PyTypeObject *)base) : NULL;
        PyObject *value = dict ? read_key(dict, name) : NULL;
        if (value)
            return value;
    }
    return NULL;
}

PyObject *
read_attribute(PyObject *o, PyObject *name)
{
    if (PyModule_CheckExact(o)) {
        PyObject *dict = *(PyObject **)((char *)o + Py_TYPE(o)->tp_dictoffset);
        return dict ? read_key(dict, name) : NULL;
    }
    if (PyCell_Check(o))
        return PyUnicode_CompareWithASCIIString(name, "cell_contents") == 0 ? PyCell_GET(o) : NULL;
    if (PyType_Check(o))
        return find_in_type((PyTypeObject *)o, name);
    Instance found = instance_of(o);
    PyObject *value = found.values                             ? value_named(o, found.values, name)
                      : found.dict && PyDict_Check(found.dict) ? read_key(found.dict, name)
                                                               : NULL;
    if (value)
        return value;
    PyObject *of_type = find_in_type(Py_TYPE(o), name);
    if (of_type && Py_IS_TYPE(of_type, &PyMemberDescr_Type)) {
        PyMemberDef *member = ((PyMemberDescrObject *)of_type)->d_member;
        bool is_object = member->type == T_OBJECT_EX || member->type == T_OBJECT;
        return is_object ? *(PyObject **)((char *)o + member->offset) : NULL;
    }
    return of_type && Py_TYPE(of_type)->tp_descr_get == NULL ? of_type : NULL;
}

/* What an extension type keeps in its own structure: an attribute that C code computes (Cython's `cdef public`) can be
 * read only where it lies. Only of objects of that type: in others there may be anything. */
PyObject *
read_field(PyObject *o, PyObject *type_name, int64_t offset)
{
    PyTypeObject *type = Py_TYPE(o);
    while (type && PyUnicode_CompareWithASCIIString(type_name, type->tp_name) != 0)
        type = type->tp_base;
    bool is_inside = offset >= (int64_t)sizeof(PyObject) && offset % (int64_t)sizeof(PyObject *) == 0;
    if (type == NULL || !is_inside || offset + (int64_t)sizeof(PyObject *) > type->tp_basicsize)
        return NULL;
    return *(PyObject **)((char *)o + offset);
}

/* Where the type's structure has a value in it; 0: nowhere. */
Py_ssize_t
field_holding(PyObject *o, PyTypeObject *type, PyObject *value)
{
    for (Py_ssize_t at = sizeof(PyObject); at + (Py_ssize_t)sizeof value <= type->tp_basicsize; at += sizeof value)
        if (*(PyObject **)((char *)o + at) == value)
            return at;
    return 0;
}

/* ---- signatures ---- */

/* The most bytes of an array that are looked at at every line, as probe/elements.py has it; of a bytearray all. */
#define MOST_HASHED ((size_t)4 << 20)

static uint64_t
of_number(uint64_t h, PyObject *number)
{
    PyLongObject *n = (PyLongObject *)number;
#if PY_VERSION_HEX >= 0x030C0000
    uintptr_t tag = n->long_value.lv_tag;
    Py_ssize_t digits = (Py_ssize_t)(tag >> _PyLong_NON_SIZE_BITS);
    const digit *first = n->long_value.ob_digit;
#else
    Py_ssize_t tag = Py_SIZE(n), digits = tag < 0 ? -tag : tag;
    const digit *first = n->ob_digit;
#endif
    h = mix(h, (uint64_t)tag);
    return digits == 1 ? mix(h, first[0]) : mix(h, hash_bytes(first, (size_t)digits * sizeof *first, 5));
}

static uint64_t
of_text(uint64_t h, PyObject *text)
{
    return mix(h, hash_bytes(PyUnicode_DATA(text), (size_t)PyUnicode_GET_LENGTH(text) * PyUnicode_KIND(text), 6));
}

/* Of immutable values the content: one that dies may give its address to the next. Of anything else, which object it
 * is. */
static uint64_t
of_held(uint64_t h, PyObject *o)
{
    if (o == NULL)
        return mix(h, 1);
    h = mix(h, (uint64_t)(uintptr_t)Py_TYPE(o));
    if (PyFloat_CheckExact(o)) {
        uint64_t bits;
        memcpy(&bits, &((PyFloatObject *)o)->ob_fval, 8);
        return mix(h, bits);
    }
    if (PyLong_CheckExact(o))
        return of_number(h, o);
    if (PyUnicode_CheckExact(o))
        return of_text(h, o);
    if (PyBytes_CheckExact(o))
        return mix(h, hash_bytes(PyBytes_AS_STRING(o), (size_t)PyBytes_GET_SIZE(o), 7));
    return mix(h, (uint64_t)(uintptr_t)o);
}

static uint64_t
of_dict(uint64_t h, PyObject *dict)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(dict, &at, &key, &value))
        h = of_held(of_held(h, key), value);
    return h;
}

/* As odictobject.c has it. The order is kept beside the dictionary, as a list of its keys. */
typedef struct OrderNode {
    PyObject *key;
    Py_hash_t hash;
    struct OrderNode *next, *previous;
} OrderNode;

static uint64_t
of_order(uint64_t h, PyObject *ordered)
{
    const struct {
        PyDictObject dict;
        OrderNode *first;
    } *o = (const void *)ordered;
    Py_ssize_t left = o->dict.ma_used; /* what only looks like one may go in a circle */
    for (const OrderNode *node = o->first; node && left > 0; node = node->next, left--)
        h = of_held(h, node->key);
    return h;
}

typedef struct {
    uint64_t hash;
    PyTypeObject *type; /* of the deque, which it shows as well */
    Py_ssize_t left;
} DequeItems;

static int
see_item(PyObject *item, void *context)
{
    DequeItems *items = context;
    if (item == (PyObject *)items->type)
        return 0;
    items->hash = of_held(items->hash, item);
    return --items->left < 0; /* the same */
}

/* The type in C that a deque is of; NULL: it is no deque. */
PyTypeObject *
deque_type(PyObject *o)
{
    return base_named(o, "collections.deque");
}

/* What it holds only its own module knows to find; for the collector it shows that, in order. */
static uint64_t
of_deque(uint64_t h, PyObject *o, PyTypeObject *type)
{
    DequeItems items = {h, Py_TYPE(o), Py_SIZE(o)};
    if (type->tp_traverse)
        type->tp_traverse(o, see_item, &items);
    return items.hash;
}

typedef struct {
    PyTypeObject *type; /* of the deque, which it shows as well */
    Py_ssize_t left;
    PyObject *found;
} DequeSearch;

static int
pass_item(PyObject *item, void *context)
{
    DequeSearch *search = context;
    if (item == (PyObject *)search->type || search->left-- > 0)
        return 0;
    search->found = item;
    return 1;
}

PyObject *
deque_item(PyObject *o, PyTypeObject *type, int64_t index)
{
    Py_ssize_t n = Py_SIZE(o), i = index < 0 ? (Py_ssize_t)index + n : (Py_ssize_t)index;
    DequeSearch search = {Py_TYPE(o), i, NULL};
    if (i >= 0 && i < n && type->tp_traverse)
        type->tp_traverse(o, pass_item, &search);
    return search.found;
}

static uint64_t
of_set(uint64_t h, PyObject *set)
{
    PyObject *key;
    Py_hash_t hash;
    Py_ssize_t at = 0;
    while (_PySet_NextEntry(set, &at, &key, &hash))
        h = of_held(h, key);
    return h;
}

static uint64_t
of_slots(uint64_t h, PyObject *o)
{
    PyTypeObject *type = Py_TYPE(o);
    for (; type && type->tp_flags & Py_TPFLAGS_HEAPTYPE; type = type->tp_base) {
        PyMemberDef *members = ((PyTypeObject *)type)->tp_members;
        for (; members && members->name; members++)
            if (members->type == T_OBJECT_EX)
                h = of_held(h, *(PyObject **)((char *)o + members->offset));
    }
    return h;
}

static uint64_t
of_instance(uint64_t h, PyObject *o)
{
    Instance found = instance_of(o);
    if (found.values) {
        PyDictKeysObject *keys = shared_keys(Py_TYPE(o));
        for (Py_ssize_t i = 0; i < keys->dk_nentries; i++)
            h = of_held(h, found.values->values[i]);
    }
    else if (found.dict && PyDict_Check(found.dict))
        h = of_dict(h, found.dict);
    return of_slots(h, o);
}

/* Whether of_held() has taken its whole content. A watched value mostly is such a one, and is looked at at every line:
 * what it is not takes longer to find out than what it is. */
static bool
is_atom(PyObject *o)
{
    return PyUnicode_CheckExact(o) || PyLong_CheckExact(o) || PyFloat_CheckExact(o) || PyBytes_CheckExact(o) ||
           PyBool_Check(o) || o == Py_None;
}

static bool
is_looked_at(PyObject *o, const Elements *elements)
{
    return PyByteArray_Check(o) || elements_bytes(elements) <= MOST_HASHED;
}

uint64_t
signature_of(PyObject *o)
{
    if (o == NULL)
        return 0;
    uint64_t h = of_held(0x5bd1e995, o);
    if (is_atom(o))
        return h;
    Elements elements;
    if (PyList_Check(o) || PyTuple_Check(o)) {
        PyObject **items = PyList_Check(o) ? ((PyListObject *)o)->ob_item : ((PyTupleObject *)o)->ob_item;
        for (Py_ssize_t i = 0; i < Py_SIZE(o); i++)
            h = of_held(h, items[i]);
    }
    else if (PyDict_Check(o)) {
        h = of_dict(h, o);
        if (PyODict_Check(o))
            h = of_order(h, o);
    }
    else if (PyAnySet_Check(o))
        h = of_set(h, o);
    else if (elements_of(&elements, o))
        h = mix(h, is_looked_at(o, &elements) ? elements_hash(&elements) : 0);
    else if (Py_TYPE(o)->tp_flags & Py_TPFLAGS_HEAPTYPE && !PyType_Check(o))
        h = of_instance(h, o);
    PyTypeObject *deque = deque_type(o);
    return deque ? of_deque(h, o, deque) : h;
}
