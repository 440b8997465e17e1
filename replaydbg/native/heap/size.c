/* How large an object is: with what lies before it, and with the storage that is its alone. From the layouts; no
 * __sizeof__ is asked. */
#include "base/core.h"
#include "code/code.h"
#include "heap/inside.h"

#define KEYS_HEAD sizeof(PyDictKeysObject)

static uint64_t
size_of_keys(PyDictKeysObject *keys)
{
    uint64_t usable = ((uint64_t)1 << keys->dk_log2_size) * 2 / 3;
    uint64_t entry = DK_IS_UNICODE(keys) ? sizeof(PyDictUnicodeEntry) : 3 * sizeof(PyObject *);
    return KEYS_HEAD + ((uint64_t)1 << keys->dk_log2_index_bytes) + usable * entry;
}

uint64_t
size_of_values(PyObject *o, PyDictValues *values)
{
#if PY_VERSION_HEX >= 0x030D0000
    uint64_t slots = values->capacity;
    return ((slots + 7) & ~(uint64_t)7) + (slots + 1) * sizeof(PyObject *);
#else
    PyDictKeysObject *keys = shared_keys(Py_TYPE(o));
    return ((uint8_t *)values)[-1] + (uint64_t)(keys->dk_nentries + keys->dk_usable) * sizeof(PyObject *);
#endif
}

uint64_t
size_of_storage(PyObject *o)
{
    PyDictObject *dict = (PyDictObject *)o;
    if (dict->ma_values)
        return 0; /* the names are their class's */
    return dict->ma_keys->dk_refcnt == 1 ? size_of_keys(dict->ma_keys) : 0;
}

static uint64_t
size_of_str(PyObject *o)
{
    PyASCIIObject *a = (PyASCIIObject *)o;
    uint64_t length = (uint64_t)PyUnicode_GET_LENGTH(o), kind = (uint64_t)PyUnicode_KIND(o), n = (length + 1) * kind;
    if (!PyUnicode_CheckExact(o))
        return (uint64_t)Py_TYPE(o)->tp_basicsize + n;
    if (a->state.compact && a->state.ascii)
        return sizeof(PyASCIIObject) + n;
    uint64_t fixed = a->state.compact ? sizeof(PyCompactUnicodeObject) : sizeof(PyUnicodeObject);
    PyCompactUnicodeObject *c = (PyCompactUnicodeObject *)o;
    uint64_t encoded = c->utf8 && (void *)c->utf8 != PyUnicode_DATA(o) ? (uint64_t)c->utf8_length + 1 : 0;
    return fixed + n + encoded;
}

static uint64_t
size_of_code(PyCodeObject *code)
{
    return (uint64_t)code->co_nlocalsplus * 8 + (uint64_t)code->co_stacksize * 8;
}

/* The blocks of 64 items each that it has. */
static uint64_t
size_of_deque(PyObject *o)
{
    struct {
        PyVarObject base;
        void *left, *right;
        Py_ssize_t left_index;
    } *d = (void *)o;
    uint64_t blocks = ((uint64_t)d->left_index + (uint64_t)Py_SIZE(o) + 63) / 64;
    return (blocks ? blocks : 1) * 66 * sizeof(void *);
}

static uint64_t
size_of_array(PyObject *o)
{
    struct {
        PyVarObject base;
        char *items;
        Py_ssize_t allocated;
        const struct {
            char code;
            int size;
        } *kind;
    } *a = (void *)o;
    return (uint64_t)a->allocated * (uint64_t)a->kind->size;
}

/* Of an array that lies in one piece and is no view of another one, the longest axis spans it all. */
static uint64_t
size_of_ndarray(PyObject *o)
{
    struct {
        PyObject base;
        char *data;
        int dimensions;
        Py_ssize_t *lengths, *strides;
        PyObject *owner, *kind;
        int flags;
    } *a = (void *)o;
    uint64_t most = 0;
    for (int i = 0; a->flags & 4 && i < a->dimensions && i < 64; i++) {
        uint64_t n = (uint64_t)a->lengths[i] * (uint64_t)Py_ABS(a->strides[i]);
        most = n > most ? n : most;
    }
    return most;
}

uint64_t
size_of_owned(PyObject *o)
{
    if (o == NULL || Py_REFCNT(o) != 1)
        return 0;
    const TypeFacts *facts = type_facts(Py_TYPE(o));
    return size_of(o, facts);
}

static uint64_t
size_of_items(PyObject *o, const TypeFacts *t)
{
    if (t->type->tp_itemsize == 0)
        return 0;
    Py_ssize_t n = Py_SIZE(o);
    return n > 0 ? (uint64_t)n * (uint64_t)t->type->tp_itemsize : 0;
}

static uint64_t
size_of_frame_object(PyFrameObject *f)
{
    if (f->f_frame == NULL || f->f_frame->owner != FRAME_OWNED_BY_FRAME_OBJECT)
        return 0;
    return size_of_code(compat_frame_code(f->f_frame)) + offsetof(_PyInterpreterFrame, localsplus);
}

static uint64_t
size_of_class(PyObject *o)
{
    if (!(((PyTypeObject *)o)->tp_flags & Py_TPFLAGS_HEAPTYPE))
        return sizeof(PyTypeObject);
    PyHeapTypeObject *type = (PyHeapTypeObject *)o;
    return sizeof(PyGC_Head) + sizeof(PyHeapTypeObject) +
           (type->ht_cached_keys ? size_of_keys(type->ht_cached_keys) : 0) + size_of_owned(type->ht_type.tp_dict);
}

uint64_t
size_of(PyObject *o, const TypeFacts *t)
{
    uint64_t size = t->fixed_size;
    switch (t->how) {
    case IS_INT: {
#if PY_VERSION_HEX >= 0x030C0000
        uint64_t digits = ((PyLongObject *)o)->long_value.lv_tag >> _PyLong_NON_SIZE_BITS;
        size = size - (uint64_t)PyLong_Type.tp_basicsize + offsetof(PyLongObject, long_value.ob_digit);
#else
        uint64_t digits = (uint64_t)Py_ABS(Py_SIZE(o));
#endif
        return size + (digits ? digits : 1) * sizeof(digit);
    }
    case IS_STR:
        return size - (uint64_t)t->type->tp_basicsize + size_of_str(o);
    case IS_LIST:
        if (((PyListObject *)o)->allocated < 0)
            return size; /* it is being sorted: its items are elsewhere */
        return size + (uint64_t)((PyListObject *)o)->allocated * sizeof(PyObject *);
    case IS_DICT:
        return size + size_of_storage(o);
    case IS_SET: {
        PySetObject *set = (PySetObject *)o;
        return size + (set->table != set->smalltable ? (uint64_t)(set->mask + 1) * sizeof(setentry) : 0);
    }
    case IS_BYTEARRAY:
        return size + (uint64_t)((PyByteArrayObject *)o)->ob_alloc;
    case IS_DEQUE:
        return size + size_of_deque(o);
    case IS_ARRAY:
        return size + size_of_array(o);
    case IS_NDARRAY:
        return size + size_of_ndarray(o);
    case IS_FUNCTION: {
        PyFunctionObject *f = (PyFunctionObject *)o;
        return size + size_of_owned(f->func_closure) + size_of_owned(f->func_defaults) +
               size_of_owned(f->func_kwdefaults);
    }
    case IS_GENERATOR: {
        PyGenObject *g = (PyGenObject *)o;
        bool has_frame = g->gi_frame_state < FRAME_COMPLETED;
        return size + (has_frame ? size_of_code(compat_frame_code(compat_generator_frame(g))) : 0);
    }
    case IS_FRAME:
        return size + size_of_frame_object((PyFrameObject *)o);
    case IS_TYPE:
        return size_of_class(o);
    case IS_CODE:
        return size + (uint64_t)_PyCode_NBYTES((PyCodeObject *)o);
    default:
        return size + size_of_items(o, t);
    }
}
