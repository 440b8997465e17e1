/* Addresses in reprs. About 25 functions of the interpreter print the address of an object, their own or another's, and
 * extension modules have more. The functions stay; what they return is looked through, and an address in it that
 * belongs to the object, or to one that it refers to, is exchanged for the made-up address of that object. */
#include "base/core.h"
#include "base/many.h"
#include "crossing/crossing.h"
#include "identity/inside.h"

/* ---- finding what an address belongs to ---- */

typedef struct {
    uintptr_t wanted;
    PyObject *found;
} Search;

static int
compare_referent(PyObject *o, void *search)
{
    Search *s = search;
    if ((uintptr_t)o != s->wanted)
        return 0;
    s->found = o;
    return 1;
}

static PyObject *
object_at(uintptr_t address, PyObject *self)
{
    Search s = {.wanted = address};
    if (address == (uintptr_t)self)
        return self;
    if (PyWeakref_Check(self)) {
        PyObject *referent = compat_weakref_object(self);
        if ((uintptr_t)referent == address)
            return referent;
    }
    traverseproc traverse = Py_TYPE(self)->tp_traverse;
    if (traverse && PyObject_IS_GC(self))
        traverse(self, compare_referent, &s);
    return s.found;
}

/* ---- exchanging ---- */

/* The number after "0x" at `from`; *end is where it ends. 0: too short for an address, or too long. */
static uintptr_t
hex_number(int kind, const void *data, Py_ssize_t from, Py_ssize_t length, Py_ssize_t *end)
{
    uintptr_t v = 0;
    Py_ssize_t i = from + 2;
    for (; i < length; i++) {
        Py_UCS4 c = PyUnicode_READ(kind, data, i);
        int digit = c >= '0' && c <= '9' ? (int)(c - '0') : c >= 'a' && c <= 'f' ? (int)(c - 'a') + 10 : -1;
        if (digit < 0)
            break;
        v = v << 4 | (uintptr_t)digit;
    }
    *end = i;
    return i - from - 2 >= 5 && i - from - 2 <= 16 ? v : 0;
}

/* `text` with the characters from `from` to `end` exchanged for an address. Steals `text`. */
static PyObject *
exchange(PyObject *text, Py_ssize_t from, Py_ssize_t end, uintptr_t address)
{
    PyObject *before = PyUnicode_Substring(text, 0, from),
             *after = PyUnicode_Substring(text, end, PyUnicode_GET_LENGTH(text));
    Py_DECREF(text);
    char digits[20]; /* 3.11's PyUnicode_FromFormat knows no %zx */
    snprintf(digits, sizeof digits, "0x%zx", (size_t)address);
    PyObject *result = before && after ? PyUnicode_FromFormat("%U%s%U", before, digits, after) : NULL;
    Py_XDECREF(before);
    Py_XDECREF(after);
    return result;
}

static PyObject *
exchange_addresses(PyObject *text, PyObject *self)
{
    for (Py_ssize_t i = 0; text && i + 7 <= PyUnicode_GET_LENGTH(text); i++) {
        int kind = PyUnicode_KIND(text);
        const void *data = PyUnicode_DATA(text);
        Py_ssize_t length = PyUnicode_GET_LENGTH(text), end;
        if (kind == PyUnicode_1BYTE_KIND) { /* the usual one */
            const char *x = memchr((const char *)data + i, 'x', (size_t)(length - i));
            if (x == NULL)
                break;
            i = x - (const char *)data - (x > (const char *)data + i);
        }
        if (PyUnicode_READ(kind, data, i) != '0' || i + 1 >= length || PyUnicode_READ(kind, data, i + 1) != 'x')
            continue;
        uintptr_t address = hex_number(kind, data, i, length, &end);
        PyObject *o = address ? object_at(address, self) : NULL;
        if (o)
            text = exchange(text, i, end, identity_address(o));
        i = end - 1;
    }
    return text;
}

/* ---- one function of ours for each of the interpreter's ---- */
#define MOST_REPRS 512
static reprfunc originals[MOST_REPRS];
static int used;

static PyObject *
repr_through(int n, PyObject *self)
{
    PyObject *text = originals[n](self);
    return text && PyUnicode_CheckExact(text) ? exchange_addresses(text, self) : text;
}

#define REPR(n)                                                                                                        \
    static PyObject *repr_##n(PyObject *self)                                                                          \
    {                                                                                                                  \
        return repr_through(0##n - 01000, self);                                                                       \
    }
#define NAME(n) repr_##n,
MANY_512(REPR)
static const reprfunc wrappers[MOST_REPRS] = {MANY_512(NAME)};

/* Reprs of plain data and of containers print no addresses of their own, and may be long. */
static bool
is_plain(reprfunc function)
{
    static PyTypeObject *const plain[] = {&PyUnicode_Type,  &PyBytes_Type, &PyByteArray_Type, &PyLong_Type,
                                          &PyBool_Type,     &PyFloat_Type, &PyComplex_Type,   &PyList_Type,
                                          &PyTuple_Type,    &PyDict_Type,  &PySet_Type,       &PyRange_Type,
                                          &PyDictKeys_Type, &PyODict_Type, &PySlice_Type,     &PyType_Type};
    if (function == ((PyTypeObject *)PyExc_BaseException)->tp_repr)
        return true;
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (plain[i]->tp_repr == function)
            return true;
    return false;
}

void
identity_patch_repr(PyTypeObject *type)
{
    static IdMap seen; /* original function: 1 + its number here; a plain one, and our own: MOST_REPRS + 1 */
    reprfunc original = type->tp_repr;
    if (original == NULL || original == repr_in_python)
        return;
    uint32_t *slot = idmap_slot(&seen, (uintptr_t)original);
    if (*slot > MOST_REPRS)
        return;
    if (*slot == 0 && is_plain(original)) {
        *slot = MOST_REPRS + 1;
        return;
    }
    if (*slot == 0) {
        if (used == MOST_REPRS) {
            identity_not_covered("addresses in reprs", type->tp_name);
            return;
        }
        int n = used++;
        originals[n] = original;
        *slot = (uint32_t)n + 1;
        *idmap_slot(&seen, (uintptr_t)wrappers[n]) = MOST_REPRS + 1;
        slot = idmap_slot(&seen, (uintptr_t)original);
    }
    reprfunc ours = wrappers[*slot - 1];
    type->tp_repr = ours;
    patch_wrapper_of(type, "__repr__", (void *)original, (void *)ours);
    if (type->tp_str == original) { /* some types say the same in both */
        type->tp_str = ours;
        patch_wrapper_of(type, "__str__", (void *)original, (void *)ours);
    }
}
