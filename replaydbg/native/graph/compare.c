/* What two snapshots have in common: texts, objects, and which objects are not what they were. */
#include "pair.h"

/* ---- texts ---- */

typedef struct {
    const char *data;
    const uint32_t *ends;
    size_t count, size;
} Texts;

static int
texts_make(const Column *data, const Column *ends, Texts *texts)
{
    *texts = (Texts){data->view.buf, U32(*ends), ends->length, (size_t)data->view.len};
    uint32_t last = 0;
    for (size_t i = 0; i < texts->count; i++) {
        if (texts->ends[i] < last || texts->ends[i] > texts->size) {
            PyErr_SetString(PyExc_ValueError, "a text ends outside its table");
            return -1;
        }
        last = texts->ends[i];
    }
    return 0;
}

static inline const char *
text_at(const Texts *texts, size_t index, size_t *size)
{
    uint32_t begin = index ? texts->ends[index - 1] : 0;
    *size = texts->ends[index] - begin;
    return texts->data + begin;
}

/* FNV-1a, eight bytes at a time: collisions cost time, nothing else. */
static inline uint64_t
text_hash(const char *text, size_t size)
{
    uint64_t hash = 0xcbf29ce484222325u ^ size;
    for (; size >= 8; text += 8, size -= 8) {
        uint64_t word;
        memcpy(&word, text, 8);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    for (; size > 0; text++, size--) {
        hash = (hash ^ (uint8_t)*text) * 0x100000001b3u;
    }
    return hash ^ hash >> 32;
}

static void
translate(const Texts *from, const Texts *to, uint32_t *table, size_t mask, uint32_t *found)
{
    memset(table, 0xff, (mask + 1) * sizeof *table);
    for (size_t i = 0; i < to->count; i++) {
        size_t size;
        const char *text = text_at(to, i, &size);
        size_t slot = text_hash(text, size) & mask;
        while (table[slot] != UNREACHED) {
            slot = (slot + 1) & mask;
        }
        table[slot] = (uint32_t)i;
    }
    for (size_t i = 0; i < from->count; i++) {
        size_t size, other;
        const char *text = text_at(from, i, &size);
        size_t slot = text_hash(text, size) & mask;
        for (;; slot = (slot + 1) & mask) {
            found[i] = table[slot];
            if (found[i] == UNREACHED) {
                break;
            }
            const char *candidate = text_at(to, found[i], &other);
            if (other == size && memcmp(candidate, text, size) == 0) {
                break;
            }
        }
    }
}

PyObject *
graph_translate(PyObject *module, PyObject *args)
{
    PyObject *objects[4], *found = NULL;
    if (!PyArg_ParseTuple(args, "OOOO:translate", &objects[0], &objects[1], &objects[2], &objects[3])) {
        return NULL;
    }
    Column columns[4] = {0};
    Texts from, to;
    if (column_get(objects[0], 1, "data", &columns[0]) == 0 && column_get(objects[1], 4, "ends", &columns[1]) == 0 &&
        column_get(objects[2], 1, "data", &columns[2]) == 0 && column_get(objects[3], 4, "ends", &columns[3]) == 0 &&
        texts_make(&columns[0], &columns[1], &from) == 0 && texts_make(&columns[2], &columns[3], &to) == 0) {
        size_t slots = 16;
        while (slots < to.count * 2) {
            slots *= 2;
        }
        uint32_t *table = PyMem_RawMalloc(slots * sizeof *table);
        found = table != NULL ? new_column(from.count, 4) : PyErr_NoMemory();
        if (found != NULL) {
            Py_BEGIN_ALLOW_THREADS translate(&from, &to, table, slots - 1, OUT32(found));
            Py_END_ALLOW_THREADS
        }
        PyMem_RawFree(table);
    }
    columns_release(columns, 4);
    return found;
}

/* ---- objects ---- */

/* Both columns are sorted by address, so that one pass finds what lies in both. */
static void
match(const Column *before, const Column *after, const uint32_t *since, uint32_t number, uint32_t *to_after,
      uint32_t *to_before)
{
    const uint64_t *left = U64(*before), *right = U64(*after);
    size_t i = 0, j = 0;
    memset(to_after, 0xff, before->length * sizeof *to_after);
    memset(to_before, 0xff, after->length * sizeof *to_before);
    while (i < before->length && j < after->length) {
        if (left[i] < right[j]) {
            i++;
        }
        else if (left[i] > right[j]) {
            j++;
        }
        else {
            if (since[j] <= number) {
                to_after[i] = (uint32_t)j;
                to_before[j] = (uint32_t)i;
            }
            i++;
            j++;
        }
    }
}

PyObject *
graph_match(PyObject *module, PyObject *args)
{
    PyObject *objects[3], *to_after = NULL, *to_before = NULL, *found = NULL;
    unsigned int number;
    if (!PyArg_ParseTuple(args, "OOOI:match", &objects[0], &objects[1], &objects[2], &number)) {
        return NULL;
    }
    Column columns[3] = {0};
    if (column_get(objects[0], 8, "before", &columns[0]) == 0 && column_get(objects[1], 8, "after", &columns[1]) == 0 &&
        column_get(objects[2], 4, "since", &columns[2]) == 0) {
        if (columns[1].length != columns[2].length || columns[0].length > INT32_MAX || columns[1].length > INT32_MAX) {
            PyErr_SetString(PyExc_ValueError, "the columns of addresses do not fit");
        }
        else {
            to_after = new_column(columns[0].length, 4);
            to_before = new_column(columns[1].length, 4);
            if (to_after != NULL && to_before != NULL) {
                Py_BEGIN_ALLOW_THREADS match(&columns[0], &columns[1], U32(columns[2]), number, OUT32(to_after),
                                             OUT32(to_before));
                Py_END_ALLOW_THREADS
            }
            found = two_columns(to_after, to_before);
        }
    }
    columns_release(columns, 3);
    return found;
}

/* ---- what is not what it was ---- */

static inline int
has_edges(const Heap *heap, uint32_t node)
{
    return heap->first[node] != heap->first[node + 1];
}

/* Whether two different objects are equal numbers, texts or the like: nobody asks for their identity. */
static inline int
is_equal_leaf(const Pair *pair, uint32_t i, uint32_t j)
{
    return is_type_equal(pair, i, j) && (pair->before.value[i] & 3) != NO_VALUE &&
           is_value_equal(pair, pair->before.value[i], pair->after.value[j]) &&
           pair->before.size[i] == pair->after.size[j] && !has_edges(&pair->before, i) && !has_edges(&pair->after, j);
}

static int
is_unlike(const Pair *pair, uint32_t i, uint32_t j)
{
    const Heap *before = &pair->before, *after = &pair->after;
    uint32_t edges = before->first[i + 1] - before->first[i];
    if (!is_type_equal(pair, i, j) || !is_value_equal(pair, before->value[i], after->value[j]) ||
        after->first[j + 1] - after->first[j] != edges) {
        return 1;
    }
    for (uint32_t k = 0; k < edges; k++) {
        uint32_t p = before->first[i] + k, q = after->first[j] + k;
        if (!is_label_equal(pair, before->label[p], after->label[q])) {
            return 1;
        }
        if (pair->to_after[before->target[p]] != after->target[q] &&
            !is_equal_leaf(pair, before->target[p], after->target[q])) {
            return 1;
        }
    }
    return 0;
}

PyObject *
graph_unlike(PyObject *module, PyObject *args)
{
    PyObject *heaps[2], *objects[4], *found = NULL;
    if (!PyArg_ParseTuple(args, "OOOOOO:unlike", &heaps[0], &heaps[1], &objects[0], &objects[1], &objects[2],
                          &objects[3])) {
        return NULL;
    }
    Column columns[2 * COLUMNS + 4] = {0};
    Column *matching = columns + 2 * COLUMNS;
    Pair pair;
    int is_wrong =
        heap_make(heaps[0], columns, &pair.before) < 0 || heap_make(heaps[1], columns + COLUMNS, &pair.after) < 0;
    for (int i = 0; i < 4 && !is_wrong; i++) {
        is_wrong = column_get(objects[i], 4, "matching", &matching[i]) < 0;
    }
    if (!is_wrong && pair_make(matching, &pair) == 0) {
        uint32_t *unlike = PyMem_RawMalloc(((size_t)pair.before.count + 1) * sizeof *unlike);
        size_t count = 0;
        if (unlike == NULL) {
            PyErr_NoMemory();
        }
        else {
            Py_BEGIN_ALLOW_THREADS for (uint32_t i = 0; i < pair.before.count; i++)
            {
                uint32_t j = pair.to_after[i];
                if (j != UNREACHED && is_unlike(&pair, i, j)) {
                    unlike[count++] = i;
                }
            }
            Py_END_ALLOW_THREADS found = PyBytes_FromStringAndSize((const char *)unlike, (Py_ssize_t)(count * 4));
        }
        PyMem_RawFree(unlike);
    }
    columns_release(columns, 2 * COLUMNS + 4);
    return found;
}
