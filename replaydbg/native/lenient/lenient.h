/* A replay of edited code. It asks for other things, in another order, than the code that was recorded; the answers are looked for in
 * the whole log, and every deviation is reported. An answer is never guessed: where there is none the replay ends.
 *
 *   index.c      the log as it was read once, at the start: for each lane what it did
 *   lenient.c    a crossing, and where its answer is
 *   lanes.c      which lane goes on
 *   liberties.c  what was not as recorded
 *   facts.c      what follows from the recording, though nobody asked it then
 *   data.c       data files that are read where they lie today
 *
 * Each lane of the recording has a *stream* of items: its events, and what belongs between them (handlers, switches, memory). The cursor of
 * a stream stands behind the last item that the program has come by. A program that is not edited takes each item where the cursor
 * stands, and no liberty. */
#ifndef REPLAYDBG_LENIENT_H
#define REPLAYDBG_LENIENT_H
#include "base/core.h"
#include "lanes/lanes.h"

/* data.c */
bool data_call(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject **result);
int data_open(PyObject *file, PyObject *mode);
typedef struct {
    uint64_t at;     /* offset in the log: of an event, its outcome; of what else there is, what follows the head */
    uint64_t order;  /* offset of the record itself: who comes first */
    uint64_t key;    /* event: gate, arguments and bytes; START: of id and name */
    uint64_t loose;  /* event: gate and arguments; SWITCH: ticks since the last event or switch */
    uint32_t number; /* event: from 1 */
    uint32_t site;   /* event; START: the id of the lane in the recording */
    uint32_t next;   /* event: the next one in the stream with the same key, from 1; 0: there is none */
    uint32_t epoch;  /* event: the number of the event that had opened this descriptor; 0: none had */
    int32_t fd;      /* event: the descriptor that is asked of, or -1 */
    uint8_t kind;
    bool raised, used, reported, within; /* reported: as skipped; within: the next crossing had begun (MEMORY) */
    uint8_t why, wake;                   /* SWITCH: Why; the lane's result when it continues (Wake) */
} Item;

typedef struct {
    uint64_t key;
    /* items from 1: the first that may be unused; the first behind the cursor that may be; the last of all */
    uint32_t first, after, last;
} Chain;

typedef struct {
    size_t before; /* the number of items that come before it */
    uint64_t time; /* ns */
} Reading;

typedef struct {
    Item *items;
    size_t count, size, cursor;
    IdMap chain_of; /* key to number of chain, from 1 */
    Chain *chains;
    size_t chain_count, chain_size;
    Reading *readings; /* of the clock by which the interpreter hands locks over (3.14) */
    size_t reading_count, reading_size, reading_next;
    bool is_taken; /* a lane of this replay has it */
} Stream;

typedef struct {    /* of a lane in this replay, by its id */
    Stream *stream; /* NULL: the recording has no such lane */
    enum { GOES_ON, WAITS_FOR_KEY, STAYS } state;
    bool is_known;     /* which stream it has is said */
    bool is_trusted;   /* it waits, and in the recording it did too, and went on */
    uint64_t reserved; /* it stands in a crossing that is answered by what is there; 0: it does not */
} LenientLane;

/* index.c */
void index_read(void);
/* the program has been changed: an exact replay goes on as a lenient one */
bool lenient_from_here(void);

/* lenient.c */
PyObject *lenient_cross_end(Crossing *c, PyObject *own);
PyObject *lenient_answer(Crossing *c);
void lenient_read_ahead(void);
void lenient_lane_started(int id, PyObject *name);
void lenient_ended(void);      /* the program has ended */
bool lenient_is_used_up(void); /* everything has been asked for */

/* lanes.c */
/* The recorded reading of the interpreter's own clock (3.14), where the lane is as far as it was then; else 0. */
uint64_t lenient_interpreter_clock(void);
Wake lenient_wait(const void *key, const char *waits_for, uint64_t deadline, bool interruptible, Why why);
Lane *lenient_next_at_end(void); /* the running lane has ended */
void lenient_slice_used_up(bool is_preemption);

/* liberties.c */
void lenient_handler_is_late(int signum); /* its place was not met for long: it runs here */
void liberties_report(Buf *b);            /* two keys with their values */

/* facts.c */
int facts_prepare(PyObject *facts);

/* data.c */
int data_prepare(PyObject *paths);

#endif
