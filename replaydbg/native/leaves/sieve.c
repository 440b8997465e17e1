/* Which values of a log may have a part of a secret that goes on in another one: nearly none has, and the others are not
 * worth a step of Python each (replaydbg/log/edit/joined_secrets.py, which decides all else).
 *
 * Values belong to streams. Of each stream the end of what came last is kept. A value is of interest if a hint is in it,
 * or if its first byte and the last one before it are one behind the other in a hint. From then on all values of its
 * stream are, until Python says that nothing in it goes on. */
#include "leaves/leaves.h"
#include <stdbool.h>
#include <string.h>

enum { MOST_BEFORE = 64 };

typedef struct {
    uint64_t key[3];
    uint8_t end[2 * MOST_BEFORE];
    uint8_t size, bound; /* of `end`; and where the last value begins in it, or 0 */
    bool is_slow;        /* Python has it */
} Stream;

typedef struct {
    PyObject_HEAD uint8_t pairs[(1 << 16) / 8];
    Py_ssize_t before; /* bytes that are kept of what has no hints */
    bool is_always;
    Stream every; /* the first value of each record, where others than the one before receive it */
    Stream *streams;
    uint32_t *table; /* by hash: 1 more than the index of a stream */
    uint64_t first;  /* the number of the first one */
    size_t count, most;
    int64_t last; /* the number of the one that received the first value of a record, or -1 */
} Sieve;

static size_t
slot_of(const Sieve *s, const uint64_t key[3])
{
    uint64_t hash = key[0] * UINT64_C(0x9E3779B97F4A7C15) ^ key[1];
    hash = (hash ^ hash >> 29) * UINT64_C(0xBF58476D1CE4E5B9) ^ key[2];
    hash = (hash ^ hash >> 32) * UINT64_C(0x94D049BB133111EB);
    size_t at = (size_t)(hash >> 20) & (2 * s->most - 1);
    while (s->table[at] && memcmp(s->streams[s->table[at] - 1].key, key, sizeof s->streams->key) != 0)
        at = (at + 1) & (2 * s->most - 1);
    return at;
}

/* Forget the older half. */
static void
forget_half(Sieve *s)
{
    size_t half = s->count / 2;
    memmove(s->streams, s->streams + half, (s->count - half) * sizeof *s->streams);
    s->count -= half;
    s->first += half;
    memset(s->table, 0, 2 * s->most * sizeof *s->table);
    for (size_t i = 0; i < s->count; i++)
        s->table[slot_of(s, s->streams[i].key)] = (uint32_t)i + 1;
    if (s->last < (int64_t)s->first)
        s->last = -1;
}

static Stream *
stream(Sieve *s, uint64_t a, uint64_t b, uint64_t c)
{
    const uint64_t key[3] = {a, b, c};
    size_t at = slot_of(s, key);
    if (s->table[at])
        return &s->streams[s->table[at] - 1];
    if (s->count == s->most) {
        forget_half(s);
        at = slot_of(s, key);
    }
    Stream *made = &s->streams[s->count++];
    memset(made, 0, sizeof *made);
    memcpy(made->key, key, sizeof made->key);
    made->is_slow = s->is_always;
    s->table[at] = (uint32_t)s->count;
    return made;
}

static void
keep_end(const Sieve *s, Stream *it, const uint8_t *value, size_t size)
{
    size_t most = (size_t)s->before;
    if (size >= most) {
        memcpy(it->end, value + size - most, most);
        it->size = (uint8_t)most;
        it->bound = 0;
        return;
    }
    if (it->size > most)
        memmove(it->end, it->end + it->size - most, most);
    it->bound = it->size > most ? (uint8_t)most : it->size;
    memcpy(it->end + it->bound, value, size);
    it->size = (uint8_t)(it->bound + size);
}

/* A value that is being taken. */
typedef struct {
    const Value *value;
    const uint8_t *bytes; /* NULL: it is a content, which only Python reads */
    size_t size;
    bool has_hint;
    PyObject *found;
} Taken;

/* The number of the stream, -1 for that of all places; that of the stream that it begins as, or -2; what is kept of the
 * stream, and where the last value begins in that; the value's kind, its first byte, and the one behind its last. */
static int
report(const Taken *t, int64_t number, int64_t begins_as, const Stream *it)
{
    PyObject *each = Py_BuildValue("(LLy#iiKK)", (long long)number, (long long)begins_as, (const char *)it->end,
                                   (Py_ssize_t)it->size, (int)it->bound, (int)t->value->kind,
                                   (unsigned long long)t->value->start, (unsigned long long)t->value->end);
    int failed = !each || PyList_Append(t->found, each) < 0;
    Py_XDECREF(each);
    return failed ? -1 : 0;
}

static int
take(const Sieve *s, const Taken *t, int64_t number, Stream *it)
{
    if (!it->is_slow && t->bytes && !t->has_hint) {
        unsigned pair = it->size ? (unsigned)it->end[it->size - 1] << 8 | t->bytes[0] : 0;
        if (!it->size || !(s->pairs[pair / 8] >> pair % 8 & 1)) {
            keep_end(s, it, t->bytes, t->size);
            return 0;
        }
    }
    int failed = report(t, number, -2, it);
    it->is_slow = true;
    it->size = it->bound = 0; /* Python has it now */
    return failed;
}

/* The first value of a record also goes on with that of another place. */
static int
take_every(Sieve *s, const Taken *t, int64_t number)
{
    int64_t last = s->last;
    s->last = number;
    if (!s->every.is_slow) {
        if (last == number)
            return 0; /* its own stream is enough */
        if (last >= 0) {
            const Stream *before = &s->streams[(uint64_t)last - s->first];
            if (before->is_slow) {
                s->every.is_slow = true;
                return report(t, -1, last, &s->every);
            }
            memcpy(s->every.end, before->end, sizeof before->end);
            s->every.size = before->size;
            s->every.bound = before->bound;
        }
    }
    return take(s, t, -1, &s->every);
}

/* Returns whether a hint begins in a value; -1 with an exception. */
static int
has_hint(Hints *hints, const Value *value)
{
    int found = 0;
    for (; hints->next < PyList_GET_SIZE(hints->list); hints->next++) {
        unsigned long long at = PyLong_AsUnsignedLongLong(PyList_GET_ITEM(hints->list, hints->next));
        if (at == (unsigned long long)-1 && PyErr_Occurred())
            return -1;
        if (at >= value->end)
            break;
        found |= at >= value->start;
    }
    return found;
}

static int64_t
number_of(const Sieve *s, const Stream *it)
{
    return (int64_t)(s->first + (uint64_t)(it - s->streams));
}

int
sieve_take(PyObject *sieve, const Value *value, const uint8_t *bytes, Hints *hints, PyObject *found)
{
    Sieve *s = (Sieve *)sieve;
    if (!value->site || value->start == value->end)
        return 0;
    int hinted = bytes ? has_hint(hints, value) : 0;
    if (hinted < 0)
        return -1;
    Taken t = {value, bytes, (size_t)(value->end - value->start), hinted, found};
    Stream *own = stream(s, 0, value->site, value->number);
    int64_t number = number_of(s, own);
    if (!value->number && take_every(s, &t, number) < 0)
        return -1;
    if (take(s, &t, number, own) < 0)
        return -1;
    if (!value->arguments)
        return 0;
    own = stream(s, value->gate + 1, value->arguments, value->number); /* 0 is for places */
    return take(s, &t, number_of(s, own), own);
}

/* rest(number, end, bound): nothing in the stream goes on; what is kept of it, and where the last value begins in that. */
static PyObject *
rest(PyObject *self, PyObject *args)
{
    Sieve *s = (Sieve *)self;
    long long number;
    Py_buffer end;
    int bound;
    if (!PyArg_ParseTuple(args, "Ly*i:rest", &number, &end, &bound))
        return NULL;
    Stream *it = number == -1 ? &s->every : NULL;
    if (number >= (long long)s->first && (uint64_t)number - s->first < s->count)
        it = &s->streams[(uint64_t)number - s->first];
    if (end.len > 2 * MOST_BEFORE - 1 || bound < 0 || bound > end.len) {
        PyErr_SetString(PyExc_ValueError, "too much of a stream");
    }
    else if (it) {
        memcpy(it->end, end.buf, (size_t)end.len);
        it->size = (uint8_t)end.len;
        it->bound = (uint8_t)bound;
        it->is_slow = s->is_always;
    }
    PyBuffer_Release(&end);
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

static PyObject *
first(PyObject *self, void *closure)
{
    return PyLong_FromUnsignedLongLong(((Sieve *)self)->first);
}

static PyObject *
make(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    Py_ssize_t before, most;
    Py_buffer pairs;
    int is_always;
    if (!PyArg_ParseTuple(args, "y*nnp:Sieve", &pairs, &before, &most, &is_always))
        return NULL;
    bool fits = pairs.len == (1 << 16) / 8 && before > 0 && before < MOST_BEFORE && most > 1 && most <= 1 << 20 &&
                (most & (most - 1)) == 0;
    Sieve *s = fits ? (Sieve *)type->tp_alloc(type, 0) : NULL;
    if (!fits)
        PyErr_SetString(PyExc_ValueError, "the bits of all pairs, less than 64 bytes, a power of two are needed");
    if (s) {
        memcpy(s->pairs, pairs.buf, sizeof s->pairs);
        s->before = before;
        s->most = (size_t)most;
        s->last = -1;
        s->is_always = s->every.is_slow = is_always;
        s->streams = PyMem_Malloc(s->most * sizeof *s->streams);
        s->table = PyMem_Calloc(2 * s->most, sizeof *s->table);
        if (!s->streams || !s->table) {
            Py_CLEAR(s);
            PyErr_NoMemory();
        }
    }
    PyBuffer_Release(&pairs);
    return (PyObject *)s;
}

static void
dealloc(PyObject *self)
{
    PyMem_Free(((Sieve *)self)->streams);
    PyMem_Free(((Sieve *)self)->table);
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"rest", rest, METH_VARARGS, PyDoc_STR("Let values of a stream be of no interest again.")},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef fields[] = {
    {"first", first, NULL, PyDoc_STR("The number of the first stream that is known."), NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, (void *)PyDoc_STR("Passes over values in which nothing goes on in another one.")},
    {Py_tp_new, make},
    {Py_tp_dealloc, dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, fields},
    {0, NULL},
};

PyType_Spec sieve_spec = {
    .name = "replaydbg.native._leaves.Sieve",
    .basicsize = sizeof(Sieve),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};
