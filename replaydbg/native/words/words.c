/* The module replaydbg.native._words: find many words in data at once, for the tool's side.
 *
 * One pass over the data, whatever the number of words: the first four bytes at each place are hashed to 16 bits, and a
 * set of bits tells whether any word begins so (Rabin and Karp, "Efficient randomized pattern-matching algorithms", 1987,
 * with a fixed length of four). Only then are the words with that hash compared. Nothing of this runs in a recorded program.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#define START 4 /* bytes that are hashed; no word is shorter */
#define BITS 16

typedef struct {
    const uint8_t *data;
    Py_ssize_t size;
    Py_ssize_t next; /* the next word with the same hash, or -1 */
} Word;

typedef struct {
    Word *words;
    Py_ssize_t count;
    Py_ssize_t first[1 << BITS];        /* by hash, or -1 */
    uint64_t is_used[(1 << BITS) / 64]; /* 8 KiB: it stays in the nearest cache, unlike `first` */
    PyObject *tuple;                    /* of the words */
} Table;

static uint32_t
hash_at(const uint8_t *p)
{
    uint32_t start;
    memcpy(&start, p, START);
    return (start * UINT32_C(2654435761)) >> (32 - BITS); /* Knuth's multiplicative hash */
}

static int
fill(Table *table, PyObject *words)
{
    table->count = PyTuple_GET_SIZE(words);
    table->words = PyMem_Calloc((size_t)table->count + 1, sizeof *table->words);
    if (!table->words) {
        PyErr_NoMemory();
        return -1;
    }
    memset(table->first, 0xff, sizeof table->first);
    memset(table->is_used, 0, sizeof table->is_used);
    for (Py_ssize_t i = 0; i < table->count; i++) {
        PyObject *each = PyTuple_GET_ITEM(words, i);
        if (!PyBytes_Check(each) || PyBytes_GET_SIZE(each) < START) {
            PyErr_Format(PyExc_ValueError, "a word is bytes, at least %d of them", START);
            return -1;
        }
        Word *word = &table->words[i];
        word->data = (const uint8_t *)PyBytes_AS_STRING(each);
        word->size = PyBytes_GET_SIZE(each);
        uint32_t hash = hash_at(word->data);
        word->next = table->first[hash];
        table->first[hash] = i;
        table->is_used[hash / 64] |= UINT64_C(1) << hash % 64;
    }
    return 0;
}

static int
append(PyObject *found, Py_ssize_t offset, Py_ssize_t index)
{
    PyObject *pair = Py_BuildValue("(nn)", offset, index);
    int failed = !pair || PyList_Append(found, pair) < 0;
    Py_XDECREF(pair);
    return failed ? -1 : 0;
}

static int
search(const Table *table, const uint8_t *data, Py_ssize_t size, PyObject *found)
{
    for (Py_ssize_t at = 0; at + START <= size; at++) {
        uint32_t hash = hash_at(data + at);
        if (!(table->is_used[hash / 64] >> hash % 64 & 1))
            continue;
        for (Py_ssize_t i = table->first[hash]; i >= 0; i = table->words[i].next) {
            const Word *word = &table->words[i];
            if (word->size <= size - at && memcmp(word->data, data + at, (size_t)word->size) == 0 &&
                append(found, at, i) < 0)
                return -1;
        }
    }
    return 0;
}

/* The tables of the words that were searched last: most calls are for a few tuples in turn, in a few bytes, and half a
 * megabyte would be filled for each. A tuple does not change, and one that is held is known by its address. */
#define KEPT 4
static Table *kept[KEPT]; /* the latest one first */

static void
free_table(Table *table)
{
    if (table) {
        PyMem_Free(table->words);
        Py_XDECREF(table->tuple);
        PyMem_Free(table);
    }
}

/* Returns the table of words, which is the caller's until it is kept: a search allocates, so others may run meanwhile.
 * NULL with an exception. */
static Table *
take_table(PyObject *words)
{
    for (int i = 0; i < KEPT; i++)
        if (kept[i] && kept[i]->tuple == words) {
            Table *table = kept[i];
            kept[i] = NULL;
            return table;
        }
    Table *table = PyMem_Malloc(sizeof *table);
    if (!table)
        return (Table *)PyErr_NoMemory();
    table->words = NULL;
    table->tuple = Py_NewRef(words);
    if (fill(table, words) < 0) {
        free_table(table);
        return NULL;
    }
    return table;
}

/* The first empty place is that of the one that was taken; without one, the last one goes. */
static void
keep_table(Table *table)
{
    Table *moved = table;
    for (int i = 0; i < KEPT && moved; i++) {
        Table *here = kept[i];
        kept[i] = moved;
        moved = here;
    }
    free_table(moved);
}

/* find(words, data): a list of (offset, index of the word), sorted by offset; matches may overlap. */
static PyObject *
find(PyObject *module, PyObject *args)
{
    PyObject *words;
    Py_buffer data;
    if (!PyArg_ParseTuple(args, "O!y*:find", &PyTuple_Type, &words, &data))
        return NULL;
    Table *table = take_table(words);
    PyObject *found = table ? PyList_New(0) : NULL;
    if (found && search(table, data.buf, data.len, found) < 0)
        Py_CLEAR(found);
    if (table)
        keep_table(table);
    PyBuffer_Release(&data);
    return found;
}

static void
free_module(void *module)
{
    for (int i = 0; i < KEPT; i++) {
        free_table(kept[i]);
        kept[i] = NULL;
    }
}

static PyMethodDef methods[] = {
    {"find", find, METH_VARARGS, PyDoc_STR("Return where words are in data: a list of (offset, index of the word).")},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "replaydbg.native._words",
    .m_doc = PyDoc_STR("Many words found in data at once, for the tool's side."),
    .m_methods = methods,
    .m_free = free_module,
};

PyMODINIT_FUNC
PyInit__words(void)
{
    return PyModule_Create(&definition);
}
