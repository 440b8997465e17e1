/* Pictures of the heap: which objects the program can reach, what they are, and which holds which.
 *
 *   heap.c        where the walk begins
 *   write.c       what is written of it
 *   walk.c        what each object refers to, by which step
 *   types.c       what is known of each type
 *   text.c        values and steps as text
 *   size.c        how large an object is
 *   table.c       columns that grow, and the tables of addresses and texts
 *   record.c      when one is taken while the program is recorded
 *   check.c   invariants of the program, asked in the copy
 *   marks.c   places that the program names
 *
 * It is one call on borrowed pointers. Nothing of the program runs in it and nothing is made in it: no repr, no len(), no __sizeof__, no
 * dictionary of an instance, no frame object; its memory is its own. */
#ifndef REPLAYDBG_HEAP_H
#define REPLAYDBG_HEAP_H
#include "base/core.h"

/* text.c */
size_t text_of_name(uint8_t *to, size_t room, PyObject *name); /* UTF-8, which is cut off; its length */

/* marks.c */
void cut_asked(PyObject *args);  /* the program takes a cut of its group */
void mark_asked(PyObject *args); /* the program names the place where it stands */

/* record.c */
/* an event has been recorded, and core.crossings has come to heap_due */
void heap_crossed(void);
void heap_asked(PyObject *args);      /* the program asks for a snapshot */
void heap_uncaught(PyObject *value);  /* an exception ends the program */
void heap_unraisable(PyObject *args); /* the argument of sys.unraisablehook */
/* before the program begins; asked: see replaydbg/record/snapshots.py */
void heap_record_begin(PyObject *asked);
void heap_await_copies(void); /* they write into the live directory, by its name */
void heap_record_forked(void);

/* types.c */
int heap_prepare(void); /* heap/types.c; before the program begins */
typedef struct {
    uint64_t nodes, edges; /* at most so many */
    uint64_t items;        /* of one container */
    uint32_t text;         /* characters of a value */
    bool all;              /* the modules of the standard library and those that are installed, too */
} HeapLimits;
#define HEAP_LIMITS ((HeapLimits){.nodes = 20000000, .edges = 80000000, .items = 1000000, .text = 80})

/* What a snapshot is called, and when it is taken. */
typedef struct {
    uint64_t number, event, step, time_ns;
    const char *name, *reason;
    /* that ends the program, or NULL: the frames that it passed are gone but for what it holds */
    PyObject *exception;
} HeapOccasion;

/* heap.c */
/* Writes what is reached from frames and modules, or from `roots` (a dict of names and objects) alone, to `fd`. 0, or
 * -1 with errno. */
int heap_capture(int fd, const HeapLimits *limits, const HeapOccasion *occasion, PyObject *roots);
#define TYPE_NAME_ROOM 2048

/* types.c */
size_t heap_type_name(uint8_t text[TYPE_NAME_ROOM], PyTypeObject *type);

#endif
