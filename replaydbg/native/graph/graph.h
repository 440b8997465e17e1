/* Walks over the graph of a heap snapshot, for the tool's side: what the modules of replaydbg/heap/walks do in
 * Python, ten to fifty times as fast. Nothing of this runs in a recorded program.
 *
 * Columns come in as buffers and go out as bytes. Whatever they hold, nothing is read or written outside them: they
 * may come from a file that somebody else made, so every number is checked before the first walk.
 */

#ifndef REPLAYDBG_GRAPH_H
#define REPLAYDBG_GRAPH_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#define UNREACHED UINT32_MAX

/* ---- columns ---- */

typedef struct {
    Py_buffer view;
    size_t length;
} Column;

static inline int
column_get(PyObject *object, Py_ssize_t width, const char *name, Column *column)
{
    if (PyObject_GetBuffer(object, &column->view, PyBUF_SIMPLE) < 0) {
        column->view.obj = NULL;
        return -1;
    }
    if (column->view.len % width != 0) {
        PyErr_Format(PyExc_ValueError, "%s: %zd bytes are no column of %zd each", name, column->view.len, width);
        return -1;
    }
    column->length = (size_t)(column->view.len / width);
    return 0;
}

static inline void
columns_release(Column *columns, int count)
{
    for (int i = 0; i < count; i++) {
        if (columns[i].view.obj != NULL) {
            PyBuffer_Release(&columns[i].view);
        }
    }
}

#define U32(column) ((const uint32_t *)(column).view.buf)
#define U64(column) ((const uint64_t *)(column).view.buf)
#define U8(column) ((const uint8_t *)(column).view.buf)

typedef struct {
    const uint32_t *first, *target, *roots;
    uint32_t count, root_count;
} Graph;

/* Check that every number leads somewhere. */
static inline int
graph_make(const Column *first, const Column *target, const Column *roots, Graph *graph)
{
    if (first->length == 0 || first->length > INT32_MAX || target->length > UINT32_MAX - 1) {
        PyErr_SetString(PyExc_ValueError, "a graph needs first edges, and at most 2**31 nodes");
        return -1;
    }
    graph->count = (uint32_t)(first->length - 1);
    graph->first = U32(*first);
    graph->target = U32(*target);
    graph->roots = roots != NULL ? U32(*roots) : NULL;
    graph->root_count = roots != NULL ? (uint32_t)roots->length : 0;
    int is_wrong = graph->first[0] != 0 || graph->first[graph->count] != target->length;
    for (uint32_t i = 0; i < graph->count && !is_wrong; i++) {
        is_wrong = graph->first[i] > graph->first[i + 1];
    }
    for (size_t i = 0; i < target->length && !is_wrong; i++) {
        is_wrong = graph->target[i] >= graph->count;
    }
    for (uint32_t i = 0; i < graph->root_count && !is_wrong; i++) {
        is_wrong = graph->roots[i] >= graph->count;
    }
    if (is_wrong) {
        PyErr_SetString(PyExc_ValueError, "an edge or a root leads out of the graph");
        return -1;
    }
    return 0;
}

static inline PyObject *
two_columns(PyObject *one, PyObject *other)
{
    PyObject *both = one != NULL && other != NULL ? PyTuple_Pack(2, one, other) : NULL;
    Py_XDECREF(one);
    Py_XDECREF(other);
    return both;
}

static inline PyObject *
new_column(size_t length, size_t width)
{
    return PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(length * width));
}

#define OUT32(bytes) ((uint32_t *)PyBytes_AS_STRING(bytes))
#define OUT64(bytes) ((uint64_t *)PyBytes_AS_STRING(bytes))

PyObject *graph_strong(PyObject *module, PyObject *args);
PyObject *graph_tree(PyObject *module, PyObject *args);
PyObject *graph_dominators(PyObject *module, PyObject *args);
PyObject *graph_retained(PyObject *module, PyObject *args);
PyObject *graph_retained_by(PyObject *module, PyObject *args);
PyObject *graph_missing(PyObject *module, PyObject *args);
PyObject *graph_census(PyObject *module, PyObject *args);
PyObject *graph_edges_to(PyObject *module, PyObject *args);
PyObject *graph_origins(PyObject *module, PyObject *args);
PyObject *graph_tops(PyObject *module, PyObject *args);
PyObject *graph_translate(PyObject *module, PyObject *args);
PyObject *graph_match(PyObject *module, PyObject *args);
PyObject *graph_match_paths(PyObject *module, PyObject *args);
PyObject *graph_unlike(PyObject *module, PyObject *args);
PyObject *graph_degrees(PyObject *module, PyObject *args);
PyObject *graph_other_bits(PyObject *module, PyObject *args);
PyObject *graph_renumbered(PyObject *module, PyObject *args);
PyObject *graph_rises(PyObject *module, PyObject *args);
PyObject *graph_highest(PyObject *module, PyObject *args);

#endif
