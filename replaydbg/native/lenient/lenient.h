/* A replay of edited code. It asks for other things, in another order, than the code that was recorded; the answers are looked for in
 * the whole log, and every liberty that is taken is told. An answer is never guessed: where there is none the replay ends.
 *
 *   lenient_index.c  the log as it was read once, at the start: for each lane what it did
 *   lenient.c        a crossing, and where its answer is
 *   lenient_lanes.c  which lane goes on
 *   liberties.c      what was not as recorded
 *   lenient_facts.c  what follows from the recording, though nobody asked it then
 *   draws.c          in which order it takes random numbers and reads the clock
 *
 * Each lane of the recording has a *stream* of items: its events, and what belongs between them (handlers, switches, memory). The cursor of
 * a stream stands behind the last item that the program has come by. A program that is not edited takes each item where the cursor
 * stands, and no liberty. */
#ifndef REPLAYDBG_LENIENT_H
#define REPLAYDBG_LENIENT_H
#include "lanes/lanes.h"

typedef enum { ITEM_EVENT, ITEM_SIGNAL, ITEM_CALLBACK, ITEM_BETWEEN, ITEM_SWITCH, ITEM_START, ITEM_MEMORY } ItemKind;

typedef struct {
    uint64_t at;       /* offset in the log: of an event, its outcome; of what else there is, what follows the head */
    uint64_t order;    /* offset of the record itself: who comes first */
    uint64_t key;      /* event: gate, arguments and bytes; START: of id and name */
    uint64_t loose;    /* event: gate and arguments; SWITCH: ticks since the last event or switch */
    uint32_t number;   /* event: from 1 */
    uint32_t site;     /* event; START: the id of the lane in the recording */
    uint32_t next;     /* event: the next one in the stream with the same key, from 1; 0: there is none */
    uint32_t epoch;    /* event: the number of the event that had opened this descriptor; 0: none had */
    int32_t fd;        /* event: the descriptor that is asked of, or -1 */
    uint8_t kind;
    bool raised, used, told, within; /* told: as skipped; within: the next crossing had begun (MEMORY) */
    uint8_t why, wake; /* SWITCH: Why; what the lane is told when it goes on again (Wake) */
} Item;

typedef struct {
    uint64_t key;
    uint32_t first, after, last; /* items from 1: the first that may be unused; the first behind the cursor that may be; the last of all */
} Chain;

typedef struct {
    Item *items;
    size_t count, size, cursor;
    IdMap chain_of;    /* key to number of chain, from 1 */
    Chain *chains;
    size_t chain_count, chain_size;
    bool is_taken;     /* a lane of this replay has it */
} Stream;

typedef struct { /* of a lane in this replay, by its id */
    Stream *stream;    /* NULL: the recording has no such lane */
    enum { GOES_ON, WAITS_FOR_KEY, STAYS } state;
    bool is_known;     /* which stream it has is said */
    bool is_trusted;   /* it waits, and in the recording it did too, and went on */
    uint64_t reserved; /* it stands in a crossing that is answered by what is there; 0: it does not */
} LenientLane;

typedef struct {
    Stream **streams;  /* by lane of the recording */
    size_t stream_count;
    Stream spare;      /* events behind the recorded end */
    size_t events;     /* without these */
    bool has_ended;    /* the recording goes on to the program's own end */
    uint32_t *epochs;  /* by descriptor, as the program has come by */
    size_t epoch_count;
} LenientIndex;
extern LenientIndex lenient_index;

/* lenient_index.c */
void index_read(void);
bool lenient_from_here(void);                          /* the program has been changed: an exact replay goes on as a lenient one */
uint64_t index_function_of_site(uint32_t site);        /* hash of file and qualified name */
uint64_t index_loose(const Gate *g, uint64_t arguments);
uint64_t index_exact(const Gate *g, uint64_t arguments, uint32_t digest);
Chain *stream_chain(Stream *s, uint64_t key);          /* NULL: there is none */
bool index_adopts(const Gate *g);
int index_opened(const uint8_t *at, unsigned flags, int *fds, int most); /* descriptors that an outcome brings */
uint32_t *index_epoch(int fd);
Stream *index_stream(size_t lane);

/* lenient.c */
PyObject *lenient_end(Crossing *c, PyObject *own);     /* steals `own`: what the real thing gave where it is done in a replay too */
void lenient_read_ahead(void);
void lenient_lane_started(int id, PyObject *name);
void lenient_ended(void);                              /* the program has ended */
bool lenient_is_used_up(void);                         /* everything has been asked for */
Item *stream_next(Stream *s);                          /* the next item that is not used, or NULL; the cursor goes there */

/* lenient_lanes.c */
Wake lenient_wait(const void *key, const char *waits_for, uint64_t deadline, bool interruptible, Why why);
Lane *lenient_next_at_end(void);                       /* the running lane has ended */
void lenient_let_others(uint64_t order);               /* those go first that did so in the recording */
_Noreturn void lenient_stay(void);                     /* the running lane never goes on */
void lenient_slice_used_up(bool is_preemption);
void lenient_lane_made(int lane, Stream *stream);
Stream *lenient_stream_of(int lane);

/* liberties.c */
typedef enum {
    SKIPPED, REORDERED, REPEATED, WRITTEN, ACCEPTED, SPARE, SIGNALLED, PREEMPTION, LANE, UNUSED, FOLLOWS, LIBERTY_KINDS
} LibertyKind;
void liberty(LibertyKind kind, uint64_t event, Crossing *c, const char *detail);
bool liberty_fold(uint64_t event, uint64_t loose);     /* that event is what was written otherwise: told already */
void liberty_written(Crossing *c, uint64_t loose);
uint64_t liberties_taken(void);
void liberties_report(Buf *b);                         /* two keys with their values */

/* lenient_facts.c */
int facts_prepare(PyObject *facts);
void facts_done(Crossing *c);
size_t facts_path(PyObject *o, char *text, size_t size); /* the absolute path, by the program's working directory; 0: not known */
PyObject *facts_answer(Crossing *c, bool *is_known);

/* lenient_data.c */
int data_prepare(PyObject *paths);

/* world.c */
PyObject *world_moved_path(PyObject *path);

/* draws.c */
void draws_report(Buf *b);                             /* two keys with their values */

/* cross.c */
void cross_forget_definitions(void);
void cross_read_definition(uint64_t rest);
uint64_t cross_recorded_arguments(uint64_t id);
uint32_t cross_arguments_defined(void);
void cross_read_control_at(const uint8_t *at, unsigned rest, Crossing *c);
PyObject *cross_outcome_at(const uint8_t *at, Crossing *c, uint64_t head);
bool cross_signal_is_due(void);
void cross_signal_is_due_no_more(void);
void cross_keep_raised(void);
bool cross_give_raised(void);
const Buf *cross_arguments(const Crossing *c);         /* as encoded; NULL: not kept */

/* lanes.c */
void lanes_go_on(Lane *next);
uint64_t lanes_ticks_since(void);
void lanes_ticks_begin(void);

#endif
