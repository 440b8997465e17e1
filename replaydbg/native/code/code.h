/* Code objects and frames: where in the source a crossing happens, and what can be read of objects without running Python.
 *
 *   site.c       sites
 *   stacks.c     where a frame keeps objects
 *   codes.c      what is known of each code object while lines or ticks are counted
 *   signature.c  reading objects, and whether one has changed
 */
#ifndef REPLAYDBG_CODE_H
#define REPLAYDBG_CODE_H
#include "base/core.h"
#include <internal/pycore_dict.h>
#include <internal/pycore_object.h>

typedef struct {
    int unit;  /* of the instruction itself, where the frame stands at what belongs to it */
    int depth; /* so many entries of the value stack hold objects */
} StackPlace;

/* stacks.c */
StackPlace stack_place(_PyInterpreterFrame *frame);

/* site.c */
/* record: id (defines it when new); replay: 0, with the hash */
uint32_t site_here(int gate, unsigned shape, uint64_t *hash);
int site_define(const uint8_t **p, const uint8_t *end); /* replay: reads one SITE record */
int code_define(const uint8_t **p, const uint8_t *end); /* replay: reads one CODE record */
void sites_forget_definitions(void);                    /* they are read once more, from the first one */
void sites_continue(void);                              /* a replay becomes a recording: definitions are written */
uint64_t site_recorded_hash(uint32_t id);
int site_recorded_gate(uint32_t id);
unsigned site_recorded_shape(uint32_t id);
void site_forget_code(void *extra);            /* the free function of core.code_extra */
int frame_place(_PyInterpreterFrame *frame);   /* as f_lasti, but the same whether it is traced or not */
int call_place(PyCodeObject *code, int lasti); /* the same of an offset, for calls alone */
uint64_t hash_text(PyObject *text, uint64_t seed);

/* codes.c */
bool code_is_library(PyCodeObject *code); /* it came with the interpreter, or was installed; codes.c */
typedef struct CodeFacts {
    struct CodeFacts *next;
    PyCodeObject *code;
    uint64_t hash;                /* code_identity() */
    uint64_t *cells;              /* one for each code unit, or NULL: the step clock's */
    bool breaks_at_start;         /* a breakpoint is at the first line of each activation */
    bool is_library;              /* of the standard library, or installed */
    bool is_importers;            /* Python of the importer itself: neither its lines nor its ticks count */
    bool is_own;                  /* by the patterns of order `own_order` */
    uint32_t own_order;           /* 0: not met under any yet */
    bool has_run;                 /* it began, or ran a line, while the step clock ran */
    uint32_t raise_id;            /* raises.c: from 1; 0: not met yet */
    uint32_t course_hash;         /* course.c; 0: not met yet */
    uint32_t trace_id, inside_id; /* trace.c: from 1; 0: not met yet */
    uint32_t called_id;           /* called.c: from 1, under the order `called_order` */
    uint32_t called_order;
} CodeFacts;

typedef struct {
    void (*born)(CodeFacts *), (*dies)(CodeFacts *); /* may be NULL */
} CodeWatcher;
void codes_watch(CodeWatcher watcher); /* before the first code_facts() */
void codes_each(void (*visit)(CodeFacts *));
extern bool codes_command; /* the program is a command (-c): "<string>" is its own code */
extern CodeFacts *code_last;
CodeFacts *code_facts_find(PyCodeObject *code);

static inline CodeFacts *
code_facts(PyCodeObject *code)
{
    return code_last && code_last->code == code ? code_last : code_facts_find(code);
}

/* Calls `visit` for each run of code units with one line (-1: none). */
void code_lines(PyCodeObject *code, void (*visit)(void *to, int unit, int units, int line), void *to);

/* signature.c */
/* Borrowed, or NULL: it is not there, or only Python could tell. */
PyObject *read_key(PyObject *dict, PyObject *name); /* name: an exact str */
PyObject *read_number_key(PyObject *dict, int64_t number);
PyObject *read_entry(PyObject *dict, PyObject *key, Py_hash_t hash); /* key: only compared */
PyObject *read_attribute(PyObject *o, PyObject *name);
PyObject *read_field(PyObject *o, PyObject *type_name, int64_t offset); /* NULL: its type has no such field */
Py_ssize_t field_holding(PyObject *o, PyTypeObject *type, PyObject *value);

/* Two that differ: the value has changed. Of an immutable value its content, of a container which objects it holds. 0
 * for NULL. */
uint64_t signature_of(PyObject *o);
PyTypeObject *deque_type(PyObject *o);                                /* that it is of in C; NULL: it is no deque */
PyObject *deque_item(PyObject *o, PyTypeObject *type, int64_t index); /* `type`: of deque_type(); NULL: it has none */

/* elements.c: items that are no objects */
#define MOST_DIMENSIONS 64 /* that numpy has */
typedef struct {
    const uint8_t *at;
    Py_ssize_t size; /* of one, in bytes */
    int dims;        /* 0: it is one of them */
    bool are_objects;
    Py_ssize_t shape[MOST_DIMENSIONS], strides[MOST_DIMENSIONS];
} Elements;
PyTypeObject *base_named(PyObject *o, const char *name); /* of its type's bases in C; NULL: none */
bool elements_of(Elements *found, PyObject *o);          /* false: it has none, or their sizes differ */
bool elements_enter(Elements *of, int64_t index);        /* to what has that index; false: there is none */
PyObject *elements_object(const Elements *of);           /* borrowed; NULL: it is a number, or several */
size_t elements_bytes(const Elements *of);
uint64_t elements_hash(const Elements *of);

/* Where the attributes of an instance lie. */
typedef struct {
    PyDictValues *values; /* beside the object, or */
    PyObject *dict;       /* a dictionary, or neither */
} Instance;
Instance instance_of(PyObject *o);
PyDictKeysObject *shared_keys(PyTypeObject *type); /* the names of `values` */

#endif
