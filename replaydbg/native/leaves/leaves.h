/* What the files of the module replaydbg.native._leaves share. */
#ifndef REPLAYDBG_LEAVES_H
#define REPLAYDBG_LEAVES_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

typedef enum { DEFINED, RECORDED, CONTENT } Kind;

typedef struct {
    Kind kind;
    uint64_t gate, site, arguments;
    uint64_t number; /* how many others its record has before it */
    uint64_t start, end;
} Value;

/* Where hints begin, in order; those before the end of the last value are passed over. */
typedef struct {
    PyObject *list;
    Py_ssize_t next;
} Hints;

/* `bytes` are those of the value; of a content they are not asked for. Reports go to `found`. Returns -1 with an exception. */
int sieve_take(PyObject *sieve, const Value *value, const uint8_t *bytes, Hints *hints, PyObject *found);

extern PyType_Spec sieve_spec;

#endif
