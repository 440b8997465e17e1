/* Values to bytes and back: section 3 of docs/reference/format.md. */
#ifndef REPLAYDBG_VALUES_H
#define REPLAYDBG_VALUES_H
#include "base/core.h"
#include "log/log.h"

typedef struct { /* where type ids are defined: each log counts its own */
    Log *log;
    PyObject *types; /* record: list, id - 1 -> type object */
    uint64_t *hashes;
    size_t count, size;
    struct TypeName *names;
    size_t defined; /* replay: what the log has defined so far */
    bool is_apart;  /* see memory_apart_small() */
} TypeTable;

/* value.c */
extern TypeTable event_types, world_types;

/* Appends `value` to b. Arguments may hold anything (what is not data is named by its type); results must be data.
 * Returns 0, or -1 when a result is not data (b is left as it was; no exception set). `args` serves references to
 * arguments. */
enum { ENCODE_RESULT = 0, ENCODE_ARGUMENT = 1 };
extern bool value_hides_wrappers; /* of buffered and text files only the type, as recordings before have them */
int value_encode(Buf *b, PyObject *value, int how, TypeTable *types, PyObject *const *args, Py_ssize_t nargs);
/* takes the exception set */
int value_encode_exception(Buf *b, TypeTable *types, PyObject *const *args, Py_ssize_t nargs);
PyObject *value_decode(const uint8_t **p, const uint8_t *end, TypeTable *types, PyObject *const *args,
                       Py_ssize_t nargs);
int value_prepare(void);
bool value_skip(const uint8_t **p, const uint8_t *end);
/* of the types that both tables name: those that were found already */
void types_keep_found(TypeTable *types, const TypeTable *before);
int types_define(TypeTable *types, const uint8_t **p, const uint8_t *end); /* reads one TYPE record */
void types_continue(TypeTable *types); /* a replay becomes a recording: numbers count on from those that were read */

/* Values of a type of their own that are made of two others; registered in boot/parts.c. */
typedef struct {
    PyTypeObject **type; /* NULL while its module is not loaded */
    int tag;
    PyObject *(*first)(PyObject *value), *(*second)(PyObject *value); /* borrowed */
    PyObject *(*make)(PyObject *first, PyObject *second);
} ValueCodec;
extern const ValueCodec value_codecs[]; /* the last one has no type */

#endif
