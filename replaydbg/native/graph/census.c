/* Counts over all nodes: which are chosen, how many of each type, and which edges lead to them. */
#include "graph.h"

PyObject *
graph_missing(PyObject *module, PyObject *args)
{
    PyObject *column, *found = NULL;
    if (!PyArg_ParseTuple(args, "O:missing", &column)) {
        return NULL;
    }
    Column columns[1] = {0};
    if (column_get(column, 4, "column", &columns[0]) == 0 && (found = new_column(columns[0].length, 1)) != NULL) {
        for (size_t i = 0; i < columns[0].length; i++) {
            PyBytes_AS_STRING(found)[i] = U32(columns[0])[i] == UNREACHED;
        }
    }
    columns_release(columns, 1);
    return found;
}

PyObject *
graph_census(PyObject *module, PyObject *args)
{
    PyObject *group, *size, *chosen, *counts = NULL, *bytes = NULL, *found = NULL;
    unsigned int groups;
    if (!PyArg_ParseTuple(args, "OOOI:census", &group, &size, &chosen, &groups)) {
        return NULL;
    }
    Column columns[3] = {0};
    if (column_get(group, 4, "group", &columns[0]) == 0 && column_get(size, 8, "size", &columns[1]) == 0 &&
        column_get(chosen, 1, "chosen", &columns[2]) == 0) {
        size_t count = columns[0].length;
        int is_wrong = columns[1].length != count || columns[2].length != count;
        for (size_t i = 0; i < count && !is_wrong; i++) {
            is_wrong = U32(columns[0])[i] >= groups;
        }
        if (is_wrong) {
            PyErr_SetString(PyExc_ValueError, "the columns of a census do not fit");
        }
        else {
            counts = new_column(groups, 8);
            bytes = new_column(groups, 8);
            if (counts != NULL && bytes != NULL) {
                memset(OUT64(counts), 0, (size_t)groups * 8);
                memset(OUT64(bytes), 0, (size_t)groups * 8);
                for (size_t i = 0; i < count; i++) {
                    if (U8(columns[2])[i]) {
                        OUT64(counts)[U32(columns[0])[i]]++;
                        OUT64(bytes)[U32(columns[0])[i]] += U64(columns[1])[i];
                    }
                }
            }
            found = two_columns(counts, bytes);
        }
    }
    columns_release(columns, 3);
    return found;
}

PyObject *
graph_edges_to(PyObject *module, PyObject *args)
{
    PyObject *target, *chosen, *found = NULL;
    if (!PyArg_ParseTuple(args, "OO:edges_to", &target, &chosen)) {
        return NULL;
    }
    Column columns[2] = {0};
    if (column_get(target, 4, "target", &columns[0]) == 0 && column_get(chosen, 1, "chosen", &columns[1]) == 0) {
        uint32_t *edges = PyMem_RawMalloc(columns[0].length * sizeof *edges + 1);
        size_t count = 0;
        if (edges == NULL) {
            PyErr_NoMemory();
        }
        else {
            for (size_t i = 0; i < columns[0].length; i++) {
                uint32_t to = U32(columns[0])[i];
                if (to < columns[1].length && U8(columns[1])[to]) {
                    edges[count++] = (uint32_t)i;
                }
            }
            found = PyBytes_FromStringAndSize((const char *)edges, (Py_ssize_t)(count * 4));
        }
        PyMem_RawFree(edges);
    }
    columns_release(columns, 2);
    return found;
}
