/* Whether the numbers of a column are in order, and in range. */
#include "graph.h"

/* rises(column, width, strict) */
PyObject *
graph_rises(PyObject *module, PyObject *args)
{
    PyObject *object;
    int width, is_strict;
    if (!PyArg_ParseTuple(args, "Oip:rises", &object, &width, &is_strict)) {
        return NULL;
    }
    if (width != 4 && width != 8) {
        PyErr_SetString(PyExc_ValueError, "numbers have 4 or 8 bytes");
        return NULL;
    }
    Column columns[1] = {0};
    int rises = column_get(object, width, "column", &columns[0]) == 0 ? 1 : -1;
    size_t count = rises > 0 ? columns[0].length : 0;
    for (size_t i = 1; i < count && rises; i++) {
        uint64_t before = width == 4 ? U32(columns[0])[i - 1] : U64(columns[0])[i - 1];
        uint64_t now = width == 4 ? U32(columns[0])[i] : U64(columns[0])[i];
        rises = is_strict ? before < now : before <= now;
    }
    columns_release(columns, 1);
    return rises < 0 ? NULL : PyBool_FromLong(rises);
}

/* highest(column, mask, kind) */
PyObject *
graph_highest(PyObject *module, PyObject *args)
{
    PyObject *object;
    unsigned int mask, kind;
    if (!PyArg_ParseTuple(args, "OII:highest", &object, &mask, &kind)) {
        return NULL;
    }
    Column columns[1] = {0};
    if (column_get(object, 4, "column", &columns[0]) < 0) {
        columns_release(columns, 1);
        return NULL;
    }
    long long found = -1;
    for (size_t i = 0; i < columns[0].length; i++) {
        uint32_t number = U32(columns[0])[i];
        if ((number & mask) == kind && number > found) {
            found = number;
        }
    }
    columns_release(columns, 1);
    return PyLong_FromLongLong(found);
}
