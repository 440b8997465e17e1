/* Reading objects without running Python, and telling whether one has changed. */
#ifndef REPLAYDBG_SIGNATURE_H
#define REPLAYDBG_SIGNATURE_H
#include "base/core.h"
#include <internal/pycore_dict.h>
#include <internal/pycore_object.h>

/* Borrowed, or NULL: it is not there, or only Python could tell. */
PyObject *read_key(PyObject *dict, PyObject *name);           /* name: an exact str */
PyObject *read_number_key(PyObject *dict, int64_t number);
PyObject *read_attribute(PyObject *o, PyObject *name);
/* Two that differ: the value has changed. Of an immutable value its content, of a container which objects it holds. 0 for NULL. */
uint64_t signature_of(PyObject *o);
PyTypeObject *deque_type(PyObject *o); /* that it is of in C; NULL: it is no deque */

/* Where the attributes of an instance lie. */
typedef struct {
    PyDictValues *values; /* beside the object, or */
    PyObject *dict;       /* a dictionary, or neither */
} Instance;
Instance instance_of(PyObject *o);
PyDictKeysObject *shared_keys(PyTypeObject *type); /* the names of `values` */

#endif
