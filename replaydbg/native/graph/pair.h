/* Two snapshots, column by column, and which of their objects are the same. */
#ifndef REPLAYDBG_PAIR_H
#define REPLAYDBG_PAIR_H

#include "graph.h"

enum { TYPE, VALUE, SIZE, FIRST, TARGET, LABEL, FLOATS, COLUMNS };
enum { NO_VALUE, TEXT, SMALL, FLOAT };

typedef struct {
    const uint32_t *type, *value, *first, *target, *label;
    const uint64_t *size, *floats;
    size_t float_count;
    uint32_t count;
} Heap;

typedef struct {
    Heap before, after;
    const uint32_t *to_after, *to_before, *types, *texts;
    size_t type_count, text_count;
} Pair;

static inline int
is_type_equal(const Pair *pair, uint32_t i, uint32_t j)
{
    uint32_t type = pair->before.type[i];
    return type < pair->type_count && pair->types[type] == pair->after.type[j];
}

static inline uint32_t
translated(const Pair *pair, uint32_t index)
{
    return index < pair->text_count ? pair->texts[index] : UNREACHED;
}

static inline int
is_value_equal(const Pair *pair, uint32_t one, uint32_t other)
{
    if ((one & 3) != (other & 3)) {
        return 0;
    }
    switch (one & 3) {
    case TEXT:
        return translated(pair, one >> 2) == other >> 2;
    case FLOAT:
        return one >> 2 < pair->before.float_count && other >> 2 < pair->after.float_count &&
               pair->before.floats[one >> 2] == pair->after.floats[other >> 2];
    default:
        return one == other;
    }
}

/* Kind 0 of a label is an index of a text; the number of any other is the same everywhere. */
static inline int
is_label_equal(const Pair *pair, uint32_t one, uint32_t other)
{
    if ((one & 15) != (other & 15)) {
        return 0;
    }
    return (one & 7) == 0 ? translated(pair, one >> 4) == other >> 4 : one == other;
}

static inline int
heap_make(PyObject *columns_of, Column *columns, Heap *heap)
{
    static const Py_ssize_t width[COLUMNS] = {4, 4, 8, 4, 4, 4, 8};
    Graph graph;
    if (!PyTuple_Check(columns_of) || PyTuple_GET_SIZE(columns_of) != COLUMNS) {
        PyErr_SetString(PyExc_TypeError, "a heap is a tuple of seven columns");
        return -1;
    }
    for (int i = 0; i < COLUMNS; i++) {
        if (column_get(PyTuple_GET_ITEM(columns_of, i), width[i], "heap", &columns[i]) < 0) {
            return -1;
        }
    }
    if (graph_make(&columns[FIRST], &columns[TARGET], NULL, &graph) < 0) {
        return -1;
    }
    if (columns[TYPE].length != graph.count || columns[VALUE].length != graph.count ||
        columns[SIZE].length != graph.count || columns[LABEL].length != columns[TARGET].length) {
        PyErr_SetString(PyExc_ValueError, "the columns of a heap do not fit together");
        return -1;
    }
    *heap = (Heap){
        .type = U32(columns[TYPE]),
        .value = U32(columns[VALUE]),
        .first = U32(columns[FIRST]),
        .target = U32(columns[TARGET]),
        .label = U32(columns[LABEL]),
        .size = U64(columns[SIZE]),
        .floats = U64(columns[FLOATS]),
        .float_count = columns[FLOATS].length,
        .count = graph.count,
    };
    return 0;
}

static inline int
pair_make(Column *columns, Pair *pair)
{
    pair->to_after = U32(columns[0]);
    pair->to_before = U32(columns[1]);
    pair->types = U32(columns[2]);
    pair->texts = U32(columns[3]);
    pair->type_count = columns[2].length;
    pair->text_count = columns[3].length;
    int is_wrong = columns[0].length != pair->before.count || columns[1].length != pair->after.count;
    for (uint32_t i = 0; i < pair->before.count && !is_wrong; i++) {
        is_wrong = pair->to_after[i] != UNREACHED && pair->to_after[i] >= pair->after.count;
    }
    if (is_wrong) {
        PyErr_SetString(PyExc_ValueError, "the columns of a matching do not fit");
        return -1;
    }
    return 0;
}

#endif
