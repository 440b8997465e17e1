/* Items that are no objects: numbers that lie in memory one after another, in rows of rows. How they lie is read from
 * the objects that have them, since a buffer asked for leaves traces: numpy makes a description for each.
 *
 * Of bytearray, array.array and numpy.ndarray. The fields of the last and the numbers of its types are a part of its
 * interface in C (ndarraytypes.h: PyArrayObject_fields, NPY_TYPES), the same in its versions 1 and 2. */
#include "base/core.h"
#include "code/code.h"

typedef struct {
    PyObject_VAR_HEAD char *items;
    Py_ssize_t allocated;
    const struct {
        char typecode;
        int itemsize;
    } *description;
} ArrayHead; /* as arraymodule.c has it */

typedef struct {
    PyObject_HEAD char *data;
    int dims;
    Py_ssize_t *shape, *strides;
    PyObject *base, *description;
} NdarrayHead;

typedef struct {
    PyObject_HEAD PyTypeObject *scalar;
    char kind, letter, byteorder, flags;
    int number;
} DescriptionHead;

enum { OBJECTS = 17 };
/* By number; 0: texts and records, whose sizes differ. */
static const uint8_t ndarray_sizes[] = {1, 1, 1, 2, 2, 4, 4, 8, 8, 8, 8, 4, 8, 16, 8, 16, 32, 8, 0, 0, 0, 8, 8, 2};

PyTypeObject *
base_named(PyObject *o, const char *name)
{
    PyTypeObject *type = Py_TYPE(o);
    while (type && strcmp(type->tp_name, name) != 0)
        type = type->tp_base;
    return type;
}

static bool
one_row(Elements *found, const void *at, Py_ssize_t length, Py_ssize_t size)
{
    found->at = at;
    found->size = size;
    found->dims = 1;
    found->are_objects = false;
    found->shape[0] = length;
    found->strides[0] = size;
    return true;
}

static bool
of_ndarray(Elements *found, const NdarrayHead *array)
{
    const DescriptionHead *description = (const void *)array->description;
    int number = description ? description->number : -1, dims = array->dims;
    bool is_known = number >= 0 && number < (int)sizeof ndarray_sizes && ndarray_sizes[number] > 0;
    if (!is_known || dims < 0 || dims > MOST_DIMENSIONS || array->data == NULL)
        return false;
    found->at = (const uint8_t *)array->data;
    found->size = ndarray_sizes[number];
    found->dims = dims;
    found->are_objects = number == OBJECTS;
    memcpy(found->shape, array->shape, (size_t)dims * sizeof *array->shape);
    memcpy(found->strides, array->strides, (size_t)dims * sizeof *array->strides);
    return true;
}

bool
elements_of(Elements *found, PyObject *o)
{
    if (PyByteArray_Check(o))
        return one_row(found, PyByteArray_AS_STRING(o), PyByteArray_GET_SIZE(o), 1);
    if (base_named(o, "numpy.ndarray"))
        return of_ndarray(found, (const NdarrayHead *)o);
    if (base_named(o, "array.array") == NULL)
        return false;
    const ArrayHead *array = (const ArrayHead *)o;
    return array->description && one_row(found, array->items, Py_SIZE(o), array->description->itemsize);
}

bool
elements_enter(Elements *of, int64_t index)
{
    Py_ssize_t n = of->dims ? of->shape[0] : 0, i = index < 0 ? (Py_ssize_t)index + n : (Py_ssize_t)index;
    if (i < 0 || i >= n)
        return false;
    of->at += i * of->strides[0];
    of->dims--;
    memmove(of->shape, of->shape + 1, (size_t)of->dims * sizeof *of->shape);
    memmove(of->strides, of->strides + 1, (size_t)of->dims * sizeof *of->strides);
    return true;
}

PyObject *
elements_object(const Elements *of)
{
    return of->are_objects && of->dims == 0 ? *(PyObject *const *)of->at : NULL;
}

size_t
elements_bytes(const Elements *of)
{
    size_t bytes = (size_t)of->size;
    for (int i = 0; i < of->dims; i++)
        bytes = of->shape[i] ? bytes * (size_t)of->shape[i] : 0;
    return bytes;
}

static uint64_t
hash_row(uint64_t h, const Elements *of, const uint8_t *at, int dim)
{
    if (dim == of->dims)
        return hash_bytes(at, (size_t)of->size, h);
    if (dim == of->dims - 1 && of->strides[dim] == of->size)
        return hash_bytes(at, (size_t)(of->shape[dim] * of->size), h);
    for (Py_ssize_t i = 0; i < of->shape[dim]; i++)
        h = hash_row(h, of, at + i * of->strides[dim], dim + 1);
    return h;
}

uint64_t
elements_hash(const Elements *of)
{
    uint64_t h = hash_bytes(of->shape, (size_t)of->dims * sizeof *of->shape, (uint64_t)of->size);
    return hash_row(h, of, of->at, 0);
}
