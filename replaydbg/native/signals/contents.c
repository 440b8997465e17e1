/* The contents of large objects near a place in pure computation. The walk of places.c takes few items of a container
 * and both ends of a text; a loop that only changes an element in the middle of a long list, or an array, looks the
 * same to it in each round.
 *
 * So the contents are hashed in chunks, and each chunk is kept. A chunk that differs excludes a place by itself: a
 * replay that goes round in a loop compares the chunk that differed in the last round first, which nearly always
 * decides, whatever size the rest has.
 *
 * How much is hashed grows with the time since the last record (`computed`), so that a program that gets signals all the
 * time pays some percent for them at most. Nothing here runs program code. */
#include "base/core.h"
#include "code/code.h"
#include "signals/inside.h"
#include <string.h>

enum {
    FEW_ITEMS = 128,  /* the walk of places.c visits as many of a container */
    FEW_BYTES = 512,  /* and as many of a text */
    LEAST_UNITS = 64, /* in a chunk */
    UNITS_ALWAYS = 16384,
    UNITS_EACH_US = 8 /* 2 to 4 ns each: up to 3 % of the program's time */
};
#define MOST_UNITS ((uint64_t)1 << 24)

typedef struct {
    enum { ITEMS, ENTRIES, ELEMENTS, WORDS, DIGEST } kind;
    PyObject *object;
    const uint8_t *data; /* WORDS */
    Py_ssize_t bytes;    /* WORDS */
    Py_ssize_t units;
    Py_buffer view; /* WORDS; .obj is NULL: nothing to release */
} Bulk;

/* ---- what has contents ---- */

static bool
words_of(Bulk *bulk, const void *data, Py_ssize_t bytes)
{
    bulk->kind = WORDS;
    bulk->data = data;
    bulk->bytes = bytes;
    bulk->units = (bytes + 7) / 8;
    return bytes > 0;
}

static bool
buffer_of(Bulk *bulk, PyObject *o)
{
    if (PyObject_GetBuffer(o, &bulk->view, PyBUF_ANY_CONTIGUOUS | PyBUF_FORMAT) < 0) {
        PyErr_Clear();
        bulk->view.obj = NULL;
        return false;
    }
    if (bulk->view.format && strchr(bulk->view.format, 'O')) {
        PyBuffer_Release(&bulk->view); /* addresses of objects */
        return false;
    }
    return words_of(bulk, bulk->view.buf, bulk->view.len);
}

static bool
memory_of(Bulk *bulk, PyObject *o)
{
    PyMemoryViewObject *view = (PyMemoryViewObject *)o;
    if (view->flags & _Py_MEMORYVIEW_RELEASED || view->mbuf->flags & _Py_MANAGED_BUFFER_RELEASED ||
        !PyBuffer_IsContiguous(&view->view, 'A') || (view->view.format && strchr(view->view.format, 'O')))
        return false;
    return words_of(bulk, view->view.buf, view->view.len);
}

static bool
is_buffer(const char *name)
{
    return strcmp(name, "array.array") == 0 || strcmp(name, "numpy.ndarray") == 0;
}

/* An object of hashlib: its digest so far stands for all that went into it. Not the ones that need a length. */
static bool
is_digest(const char *name)
{
    static const char *const modules[] = {"_hashlib.", "_md5.",    "_sha1.", "_sha2.",
                                          "_sha256.",  "_sha512.", "_sha3.", "_blake2."};
    if (strstr(name, "shake") || strcmp(name, "_hashlib.HASHXOF") == 0)
        return false;
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++)
        if (strncmp(name, modules[i], strlen(modules[i])) == 0)
            return true;
    return false;
}

/* False: it has no more than the walk sees. */
static bool
bulk_of(Bulk *bulk, PyObject *o)
{
    const char *name = Py_TYPE(o)->tp_name;
    bulk->object = o;
    bulk->view.obj = NULL;
    bulk->units = 0;
    if (PyFunction_Check(o) || PyCFunction_Check(o) || PyType_Check(o))
        return false;
    if (PyList_CheckExact(o) || PyTuple_CheckExact(o)) {
        bulk->kind = ITEMS;
        bulk->units = Py_SIZE(o);
    }
    else if (PyDict_CheckExact(o)) {
        bulk->kind = ENTRIES;
        bulk->units = ((PyDictObject *)o)->ma_keys->dk_nentries;
    }
    else if (PyAnySet_CheckExact(o)) {
        bulk->kind = ELEMENTS;
        bulk->units = ((PySetObject *)o)->mask + 1;
    }
    else if (PyByteArray_CheckExact(o))
        return Py_SIZE(o) > FEW_BYTES && words_of(bulk, PyByteArray_AS_STRING(o), Py_SIZE(o));
    else if (PyMemoryView_Check(o))
        return memory_of(bulk, o);
    else if (is_buffer(name))
        return buffer_of(bulk, o);
    else if (is_digest(name)) {
        bulk->kind = DIGEST;
        bulk->units = 1;
        return true;
    }
    return bulk->units > FEW_ITEMS;
}

/* ---- hashes of chunks ---- */

static inline uint64_t
hash_word(uint64_t word, uint64_t h)
{
    return place_mix(h, place_may_be_address(word) ? 0 : word);
}

static uint64_t
hash_words(const Bulk *bulk, Py_ssize_t from, Py_ssize_t to)
{
    uint64_t h = 0, word;
    for (Py_ssize_t i = from; i < to; i++) {
        Py_ssize_t left = bulk->bytes - 8 * i;
        word = 0;
        memcpy(&word, bulk->data + 8 * i, left < 8 ? (size_t)left : 8);
        h = hash_word(word, h);
    }
    return h;
}

static uint64_t
hash_item(PyObject *o, uint64_t h)
{
    return place_hash_quickly(o, &h) ? h : place_hash_simple(o, h, 1);
}

static uint64_t
hash_entries(PyObject *dict, Py_ssize_t from, Py_ssize_t to)
{
    uint64_t h = 0;
    Py_ssize_t at = from;
    PyObject *key, *value;
    while (at < to && PyDict_Next(dict, &at, &key, &value))
        h = hash_item(value, hash_item(key, h));
    return h;
}

/* Whatever their order is: it may depend on addresses. */
static uint64_t
hash_elements(PyObject *set)
{
    uint64_t sum = 0;
    Py_ssize_t at = 0;
    PyObject *key;
    Py_hash_t hash;
    while (_PySet_NextEntry(set, &at, &key, &hash))
        sum += hash_item(key, 0);
    return sum;
}

static uint64_t
hash_digest(PyObject *o)
{
    uint64_t h = 0;
    PyObject *digest = PyObject_CallMethod(o, "digest", NULL);
    if (digest && PyBytes_Check(digest))
        h = hash_bytes(PyBytes_AS_STRING(digest), (size_t)PyBytes_GET_SIZE(digest), 1);
    Py_XDECREF(digest);
    PyErr_Clear();
    return h;
}

static uint64_t
hash_chunk(const Bulk *bulk, Py_ssize_t from, Py_ssize_t to)
{
    uint64_t h = 0;
    switch (bulk->kind) {
    case ITEMS:
        for (Py_ssize_t i = from; i < to; i++)
            h = hash_item(PySequence_Fast_GET_ITEM(bulk->object, i), h);
        return h;
    case ENTRIES:
        return hash_entries(bulk->object, from, to);
    case ELEMENTS:
        return hash_elements(bulk->object);
    case DIGEST:
        return hash_digest(bulk->object);
    case WORDS:
        return hash_words(bulk, from, to);
    }
    return h;
}

/* ---- all of them ---- */

/* What is hashed, one object after the other, is cut into chunks of one size. */
typedef struct {
    uint64_t size; /* units in each */
    int wanted;    /* the only one that is needed, or ALL */
    uint64_t *to;
    int at;        /* the chunk that is being filled */
    uint64_t used; /* units in it */
} Cut;
#define ALL (-1)

static void
cut_bulk(Cut *cut, const Bulk *bulk)
{
    bool is_whole = bulk->kind == ELEMENTS || bulk->kind == DIGEST;
    for (Py_ssize_t done = 0, n; done < bulk->units; done += n) {
        n = Py_MIN(bulk->units - done, (Py_ssize_t)(cut->size - cut->used));
        if (is_whole)
            n = bulk->units;
        if (cut->used == 0)
            cut->to[cut->at] = 0;
        if (cut->wanted == ALL || cut->wanted == cut->at)
            cut->to[cut->at] = place_mix(cut->to[cut->at], hash_chunk(bulk, done, done + n));
        cut->used += (uint64_t)n;
        if (cut->used >= cut->size) {
            cut->used = 0;
            cut->at++;
        }
    }
}

static uint64_t
most_units(uint64_t computed)
{
    return computed < MOST_UNITS / UNITS_EACH_US ? UNITS_ALWAYS + computed * UNITS_EACH_US : MOST_UNITS;
}

/* Each that has contents, while units are left; returns how many units these have. */
static uint64_t
each_bulk(PyObject **objects, int count, uint64_t computed, Cut *cut)
{
    uint64_t most = most_units(computed), units = 0;
    Bulk bulk;
    for (int i = 0; i < count; i++) {
        if (!bulk_of(&bulk, objects[i]))
            continue;
        if (units + (uint64_t)bulk.units <= most) {
            units += (uint64_t)bulk.units;
            if (cut && cut->at < MOST_CHUNKS)
                cut_bulk(cut, &bulk);
        }
        if (bulk.view.obj)
            PyBuffer_Release(&bulk.view);
    }
    return units;
}

/* Returns the number of chunks. */
static int
hash_all(PyObject **objects, int count, uint64_t computed, uint64_t size, int wanted, uint64_t *to)
{
    Cut cut = {.size = size, .wanted = wanted, .to = to};
    each_bulk(objects, count, computed, &cut);
    return cut.at + (cut.used > 0);
}

void
contents_here(Contents *contents, PyObject **objects, int count, uint64_t computed)
{
    uint64_t units = each_bulk(objects, count, computed, NULL);
    contents->size = Py_MAX(LEAST_UNITS, units / MOST_CHUNKS + 1);
    contents->differs = 0;
    contents->count = hash_all(objects, count, computed, contents->size, ALL, contents->chunks);
}

bool
contents_are_here(Contents *contents, PyObject **objects, int count, uint64_t computed)
{
    uint64_t here[MOST_CHUNKS + 1];
    int likely = contents->differs;
    if (hash_all(objects, count, computed, contents->size, likely, here) != contents->count)
        return false;
    if (contents->count == 0)
        return true;
    if (here[likely] != contents->chunks[likely])
        return false;
    hash_all(objects, count, computed, contents->size, ALL, here);
    for (int i = 0; i < contents->count; i++)
        if (here[i] != contents->chunks[i]) {
            contents->differs = i;
            return false;
        }
    return true;
}
