/* The columns of a later snapshot, predicted from those of one before: replaydbg/heap/walks/column_prediction.py. */
#include "graph.h"

PyObject *
graph_degrees(PyObject *module, PyObject *args)
{
    PyObject *object, *found = NULL;
    if (!PyArg_ParseTuple(args, "O:degrees", &object)) {
        return NULL;
    }
    Column column = {0};
    if (column_get(object, 4, "first_edge", &column) == 0) {
        size_t count = column.length > 0 ? column.length - 1 : 0;
        const uint32_t *first = U32(column);
        found = new_column(count, 4);
        for (size_t i = 0; found != NULL && i < count; i++) {
            OUT32(found)[i] = first[i + 1] - first[i];
        }
    }
    columns_release(&column, 1);
    return found;
}

PyObject *
graph_other_bits(PyObject *module, PyObject *args)
{
    PyObject *objects[2], *found = NULL;
    if (!PyArg_ParseTuple(args, "OO:other_bits", &objects[0], &objects[1])) {
        return NULL;
    }
    Column columns[2] = {0};
    if (column_get(objects[0], 1, "one", &columns[0]) == 0 && column_get(objects[1], 1, "other", &columns[1]) == 0) {
        if (columns[0].length != columns[1].length) {
            PyErr_SetString(PyExc_ValueError, "the snapshot's columns are not equally long");
        }
        else {
            const uint8_t *one = U8(columns[0]), *other = U8(columns[1]);
            found = new_column(columns[0].length, 1);
            uint8_t *out = found != NULL ? (uint8_t *)PyBytes_AS_STRING(found) : NULL;
            for (size_t i = 0; out != NULL && i < columns[0].length; i++) {
                out[i] = one[i] ^ other[i];
            }
        }
    }
    columns_release(columns, 2);
    return found;
}

/* Where the lowest bits, under `mask`, are `kind`, the number above the lowest `shift` bits becomes what the table has
 * for it. */
static int
renumber(const Column *column, const Column *table, uint32_t mask, uint32_t kind, uint32_t shift, uint32_t *out)
{
    const uint32_t *in = U32(*column), *to = U32(*table), low = (1u << shift) - 1;
    for (size_t i = 0; i < column->length; i++) {
        uint32_t number = in[i] >> shift;
        if ((in[i] & mask) != kind) {
            out[i] = in[i];
        }
        else if (number < table->length && to[number] <= UINT32_MAX >> shift) {
            out[i] = to[number] << shift | (in[i] & low);
        }
        else {
            return -1;
        }
    }
    return 0;
}

PyObject *
graph_renumbered(PyObject *module, PyObject *args)
{
    PyObject *objects[2], *found = NULL;
    unsigned int mask, kind, shift;
    if (!PyArg_ParseTuple(args, "OOIII:renumbered", &objects[0], &objects[1], &mask, &kind, &shift)) {
        return NULL;
    }
    Column columns[2] = {0};
    if (column_get(objects[0], 4, "column", &columns[0]) == 0 && column_get(objects[1], 4, "table", &columns[1]) == 0) {
        found = new_column(columns[0].length, 4);
        if (found != NULL && (shift > 31 || renumber(&columns[0], &columns[1], mask, kind, shift, OUT32(found)) < 0)) {
            Py_CLEAR(found);
            PyErr_SetString(PyExc_IndexError, "a number leads out of its table");
        }
    }
    columns_release(columns, 2);
    return found;
}
