/* A crossing: the program asks for something from outside. A gate describes it, does the real thing if `perform` is true, and hands over what
 * came of it; what happens then (logged, or taken from the log and checked) is the way's matter:
 *
 *     Crossing c;
 *     cross_begin(&c, gate, self, args, nargs, kwnames);
 *     PyObject *result = c.perform ? gate_call_original(...) : NULL;
 *     result = cross_end(&c, result);
 *     ...             // what else is made of it, in a replay perhaps
 *     cross_settle(); // in a slot of a type; a gate's trampoline does it
 *
 *   cross.c    its begin and its end
 *   record.c   it is recorded
 *   replay.c   the next event of the log answers it
 *   unfinished.c  calls that have begun and not ended
 *   native.c   crossings of C code where no Python callable is gated
 *   outputs.c  which ones wait until the disk has the log
 *   gate.c     the table of gates in C, trampolines, installing
 *   regular.c  the crossing of an ordinary gate
 *   warned.c   warnings that gated functions issue
 *   draws.c    in which order random numbers and the clock are asked for
 *   note.c     what a replay cannot repeat
 */
#ifndef REPLAYDBG_CROSSING_H
#define REPLAYDBG_CROSSING_H
#include "base/core.h"
#include "clock/clock.h"

/* ---- gates ---- */
typedef PyObject *(*Handler)(Gate *gate, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);

/* What a gate may do to a stream besides writing bytes that the program has computed. */
typedef enum {
    ACT_NONE,
    ACT_OPEN,
    ACT_MOVE,
    ACT_CUT,
    ACT_CUT_PATH,
    ACT_PLACE,
    ACT_SEND,
    ACT_MESSAGE,
    ACT_RECEIVE
} StreamAct;

struct Gate {
    PyMethodDef ml; /* what the patched object points to instead of `original_def` */
    int id;         /* from 1, as in the header of the recording; 0: not in the table */
    unsigned flags; /* GATE_ARGS and so on */
    int buffer;     /* GATE_DIGEST, GATE_FILLS: index of the argument that is the buffer (self not counted) */
    Handler handler;
    PyMethodDef *original_def;
    PyGetSetDef attribute, *original_attribute; /* of an attribute: no argument to get it, one to set it */
    PyObject *original; /* a genuine callable that does the real thing; of a method: takes self first */
    PyObject *self;     /* of a function: its m_self */
    bool is_method;
    StreamAct stream_act;
    uint8_t moves;             /* in a group: how it sends or receives, see files/channels.c; 0: it does not */
    const char *module, *name; /* "posix", "stat"; "_io", "FileIO.write" */
};

Gate *gate_named(const char *module, const char *name); /* NULL if the table has no such row */
Gate *gate_numbered(int id);                            /* the same by its id */
PyObject *gate_call_original(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
int gates_load(PyObject *rows);                               /* rows of the table, from the boot file */
int gates_install_module(PyObject *module, const char *name); /* binds the rows of one module that is just loaded */
PyObject *gate_regular(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
PyObject *gate_slot(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
Handler handler_named(const char *name);
bool is_path_object(PyObject *o); /* not str, bytes or int, but with __fspath__ */
void patch_wrapper(PyTypeObject *type, const char *name, void *function);
Py_ssize_t member_offset(PyTypeObject *type, const char *name);
/* only if it led to `original` */
void patch_wrapper_of(PyTypeObject *type, const char *name, void *original, void *function);

/* ---- one crossing ---- */
typedef struct {
    uint64_t number; /* of the transfer; 0: there is none */
    int fd;          /* -1: it has none */
    unsigned flags;  /* TRANSFER_RECEIVES and so on */
} Moving;
struct Crossing {
    Gate *gate;
    uint32_t site;      /* record: site id */
    uint64_t site_hash; /* replay: what the recorded site must hash to */
    uint32_t args_id;   /* record */
    uint64_t args_hash; /* both */
    PyObject *const *args;
    Py_ssize_t nargs;
    PyObject *self, *kwnames;
    bool perform;
    bool raised_by_program; /* the exception is of program code that ran inside */
    bool is_answered;       /* of a future: it is not made, but answered: from the recording, or at random */
    Gate *outer;            /* which gate was open around it */
    bool digested;
    uint32_t digest;
    const uint8_t *leaving; /* what is digested, shown if it is not what was recorded */
    size_t leaving_length;
    size_t left;         /* bytes digested in all pieces together */
    const uint8_t *fill; /* record: content that was filled in; replay: content to fill in */
    size_t fill_length;
    /* of a gate that moves something; the rest is set only if there is one */
    bool has_keywords;
    Moving transfers[2];     /* one by one, as far as there are any: it may move from one channel to another */
    uint64_t moved_by_outer; /* of the crossing around it, as far as it has come */
    uint64_t given_digest;   /* of all bytes that it was given to send */
    size_t given;
    struct Unfinished *unfinished; /* while core.tells */
};
/* Between its begin and its end a replay may become a recording. Then it ends with an exception, and the gate that
 * made it starts anew, for which whoever calls a handler asks this: true once. */
bool cross_again(void);
void cross_begin(Crossing *c, Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
/* Steals `result`; NULL with an exception set means that it raised. Returns a new reference, or NULL with an exception
 * set. */
PyObject *cross_end(Crossing *c, PyObject *result);
void cross_digest(Crossing *c, const void *data, size_t n); /* between begin and end; may be called for each piece */
/* A replay that uses the parts of an outcome looks first whether it has them: the recording may say anything. */
void cross_expect_outcome(const Crossing *c, bool has_its_type);
Gate *cross_open(void);                        /* of the running lane; NULL: none */
const Buf *cross_arguments(const Crossing *c); /* as encoded; NULL: not kept */

/* A crossing made by C code where no Python callable is gated (SQLite's files): arguments are one text and two numbers, bytes may
 * leave (`data`), the outcome is a number and bytes that arrive. The GIL must be held. Usage:
 *
 *     NativeCrossing c;
 *     int64_t rc = 0;
 *     if (native_begin(&c, gate, "main.db", offset, amount, NULL, 0)) { rc = real call filling out }
 *     rc = native_end(&c, rc, out, nout);   // replay: returns the recorded number and fills `out` (exactly nout bytes)
 */
typedef struct {
    Crossing cross;
} NativeCrossing;
bool native_begin(NativeCrossing *c, Gate *g, const char *text, int64_t a, int64_t b, const void *data, size_t ndata);
int64_t native_end(NativeCrossing *c, int64_t rc, void *out, size_t nout);
/* The same with arguments that are coded already (a tuple), and with as many bytes as there are: a replay gives where
 * they lie. */
bool native_begin_encoded(NativeCrossing *c, Gate *g, const Buf *arguments, const void *data, size_t ndata);
int64_t native_end_filled(NativeCrossing *c, int64_t rc, const void **out, size_t *nout);

/* Program code that runs inside a crossing (a handler, an opener): crossings count again between these two. */
typedef struct {
    int depth;
    PyGC_Head *aside; /* what the crossing has made so far */
} Upcall;
Upcall upcall_enter(void);
void upcall_leave(Upcall upcall);

/* What of a crossing belongs to the lane that is in it. */
typedef struct {
    PyObject *upcall_error; /* compared by address only: the exception that a handler raised inside a crossing */
    PyObject *raised_type, *raised_value, *raised_traceback; /* the same in a replay */
    Gate *open;
    uint64_t moved; /* see cross_moved() */
    bool again;     /* the call that is open is to be made once more: the replay has become a recording meanwhile */
    Buf sending;    /* all that the open call sends, or the last one did; of a replay that is to become a recording */
} CrossState;
Buf *cross_sending(void); /* of the running lane */
void cross_state_swap(CrossState *leaves, const CrossState *comes);

/* A function of the C library has sent or received `n` bytes for the running lane: of a call that raises in the end,
 * nobody else knows. Only while somebody counts. */
extern int moved_bytes_count;
void cross_moved(ssize_t n);
uint64_t cross_count_moved(uint64_t from); /* from now on; returns how many there were until now */
bool cross_has_moved(void);                /* it was ever called */

/* ---- the log, as crossings write and read it ---- */
void cross_control(unsigned kind, const uint64_t *numbers, int n); /* record: a control record of numbers */
void cross_lane_started(int id, PyObject *name);                   /* name: NULL or a str */
void cross_ended(int exit_code);                                   /* record: the END record */
bool cross_at_end(void);                                           /* replay: nothing is left in the log */
/* nor has it said that the program ended: something ended it */
bool cross_ends_unannounced(void);
void cross_expect_exit(void); /* replay: the process ends; so must the log */
/* replay: whether nothing is left that could answer, or no more is to be asked for: it is to become a recording. What
 * follows in the log belongs to an event that is not there */
bool cross_is_used_up(void);
void cross_continue(void);          /* it becomes one: what is counted goes on */
uint64_t cross_replayed_time(void); /* replay: ns since the program began, at the last event at least */
/* replay: reads a LANE record; false: a crossing comes first */
bool cross_read_switch(unsigned why, uint64_t numbers[3]);
void cross_read_ahead(void); /* replay */
void signal_delivered(void); /* the expected handler has run */
/* something met while recording that a replay cannot repeat; said once for each */
void note(const char *kind, const char *text);
void note_in_file(const char *kind, const char *text); /* for the launcher alone */
typedef struct {
    uint64_t event; /* before which the collector was first seen to stand elsewhere; 0: never */
    char detail[120];
} Drift;
extern Drift drift;

/* For those who read what follows the head of a control record. They end the replay where it cannot be read. */
uint64_t cross_read_number(void);
void cross_read_raw(void *to, size_t n);
void cross_expect_signal(void); /* a handler is due before the next crossing */
void cross_keep_raised(void);   /* what it raised, until the log says whether it came out */

/* For lenient/, which looks for what the log says in another order. */
void cross_forget_definitions(void);
void cross_read_definition(uint64_t kind);
uint64_t cross_recorded_arguments(uint64_t id);
uint32_t cross_arguments_defined(void);
void cross_read_control_at(const uint8_t *at, unsigned kind, Crossing *c);
PyObject *cross_outcome_at(const uint8_t *at, Crossing *c, uint64_t head);
bool cross_signal_is_due(void);
void cross_signal_is_due_no_more(void);
bool cross_give_raised(void);

/* ---- warned.c ---- */
/* kinds of a CALLBACK record; those before are of TLS, four are of readline */
enum { CALLBACK_WARNING = 3, CALLBACK_READLINE, CALLBACK_STATEMENT = 8 };
int warned_prepare(void);

/* ---- draws.c: random numbers and readings of the clock, in the order in which a replayed program asks for them ---- */
/* `number`: other random numbers than recorded; 0: as recorded */
void draws_prepare(bool is_reported, uint64_t number);
void draws_install(PyTypeObject *generator); /* of _random */
void draws_seeded(PyObject *generator, bool is_from_outside);
PyObject *draws_changed(const Gate *g, PyObject *result);
void draws_report(Buf *b); /* two keys with their values */

/* ---- outputs.c ---- */
bool output_stays(int fd); /* what is written to it is seen by nobody before it is synchronised */

/* ---- unfinished.c ---- */
void unfinished_each(void (*visit)(const Buf *call)); /* in the order in which they began; a value each */

/* ---- what higher parts register in boot/parts.c ---- */

/* How a crossing goes, by core.way. */
typedef struct {
    PyObject *(*end)(Crossing *c, PyObject *result); /* as cross_end() */
    PyObject *(*answer)(Crossing *c);                /* of one that was not performed; NULL: each one is */
    void (*read_ahead)(void);
    void (*lane_started)(int id, PyObject *name);
    bool (*is_used_up)(void);
    void (*ended)(void);
} CrossingWay;
extern const CrossingWay crossing_ways[WAYS];

/* Where in a log a control record may stand. */
enum {
    OF_NEXT_CROSSING = 1,  /* it belongs to the next crossing, or the next lane: it is read there, not ahead */
    ENDS_A_STRETCH = 2,    /* whoever looks for the next record stops at it */
    WITHIN_A_CROSSING = 4, /* it is looked for where the next crossing has begun already */
    NOT_AT_THE_END = 8,    /* a program that ends before it has ended earlier than when it was recorded */
};
typedef struct {
    void (*read)(Crossing *open); /* what follows the head; `open`: the crossing that is open, or NULL */
    unsigned place;
    /* at the head, which stays unread; true: what comes from here on is not read ahead. May be NULL */
    bool (*look_ahead)(void);
} ControlRecord;
extern const ControlRecord control_records[CONTROL_KINDS];

/* Program code that C code called inside a crossing: the rows by falling `from`, the first that fits reads it. */
typedef struct {
    int from;
    void (*read)(int kind, Crossing *c, PyObject *recorded);
} CallbackReader;
extern const CallbackReader callback_readers[];

/* An irregular handler is announced by each part in its own table, which ends with a row without a name. */
typedef struct {
    const char *name;
    Handler handler;
} HandlerEntry;
extern const HandlerEntry *const handler_tables[]; /* ends with NULL */

/* What is to be done when a module has just been loaded, besides its rows (slots of types, the VFS of SQLite). -1: an
 * exception is set. */
typedef int (*ModuleHook)(PyObject *module, const char *name);
extern const ModuleHook module_hooks[]; /* in this order; ends with NULL */

typedef struct {
    bool (*adopt_thread)(void); /* a thread state that is not core.tstate; false: of no lane */
    bool (*answers_data)(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
                         PyObject **result);
    void (*gate_loaded)(Gate *g);
    /* of GATE_OPENS, CLOSES, WRITES_FD */
    void (*regular_done)(Gate *g, PyObject *result, PyObject *const *args, Py_ssize_t nargs);
    /* record: the real thing is done, its outcome not yet in the log */
    void (*stream_acted)(Crossing *c, PyObject *result);
    void (*transfer_begins)(Crossing *c); /* of a gate that moves something: record, and redigest.c */
    void (*transfer_ends)(Crossing *c, PyObject *result);
    void (*tell)(const void *data, size_t n);         /* replay: what is digested, a piece at a time */
    void (*await_log)(void);                          /* record: until the disk has it; others go on meanwhile */
    void (*heap_is_due)(void);                        /* record: core.crossings has come to core.heap_due */
    void (*memory_look)(bool before, unsigned flags); /* record: logs what has changed; flags of the crossing's gate */
    void (*collect_output)(void);                     /* replay under the debugger */
    void (*reach_serial)(uint64_t serial);            /* the next one is that, if it was less */
    void (*point_crossed)(void);                      /* replay under the debugger: an event has been consumed */
    void (*stand_at_point)(void);
    void (*replay_is_whole)(void); /* all of the log was used */
    /* Of a replay that becomes a recording. At the beginning of a call, with the arguments as it gets them: */
    void (*live_at_call)(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
    bool (*live_inside)(void); /* within a call, or where a lane waits: whether it has become one by now */
    void (*live_follow)(const Crossing *c, PyObject *result);      /* it is still a replay: what a call returned */
    void (*live_piece)(const void *data, size_t n, bool is_first); /* it is still one: what the open call sends */
    bool (*live_is_settled)(void); /* afterwards: the call that begins is known to have been made before */
    /* a call ends: its outcome is known, or is what the program gets of `result`, or it is to be made again; steals it */
    PyObject *(*live_end)(Crossing *c, PyObject *result, bool *is_again);
    /* replay before futures: of each call; `result` is NULL where an exception is set */
    void (*past_follow)(const Crossing *c, PyObject *result);
    void (*future_asks)(Crossing *c); /* in a future: whether the call that begins is made; ends it if it cannot be */
    void (*future_recorded)(void);    /* the same: an event is in the log */
    /* a call that is no crossing has ended: what the program gets of `result`; steals it */
    PyObject *(*live_passed)(Gate *g, PyObject *const *args, Py_ssize_t nargs, PyObject *result);
} CrossingHooks;
extern const CrossingHooks crossing_hooks;

/* The parts of these tables that are of this folder. */
PyObject *observed_end(Crossing *c, PyObject *result);
PyObject *recorded_end(Crossing *c, PyObject *result);
PyObject *replayed_end(Crossing *c, PyObject *result);
PyObject *replay_end(Crossing *c);
void replay_read_ahead(void);
void observed_lane_started(int id, PyObject *name);
void recorded_lane_started(int id, PyObject *name);
void replayed_lane_started(int id, PyObject *name);
bool replayed_is_used_up(void);
void replayed_ended(void);
void replay_number(Crossing *open);
void replay_passed(Crossing *open);
void replay_text(Crossing *open);
void replay_checksum(Crossing *open);
void replay_exit(Crossing *open);
void replay_serials(Crossing *open);
void replay_collector(Crossing *open);
void replay_callback(Crossing *open);
void warned_again(int kind, Crossing *c, PyObject *recorded); /* an exception may be set after it */
extern const HandlerEntry gate_handlers[];

/* ---- asked at each crossing ---- */

/* The last act of a gate: the program sees all that came of its crossing, and another lane may continue. */
static inline void
cross_settle(void)
{
    if (__builtin_expect(ticks_crossing_is_due, 0) && core.depth == 0)
        ticks_crossing();
}

static inline bool
gate_passes(void)
{
    return core.mode == OBSERVE || core.depth > core.ground ||
           (PyThreadState_Get() != core.tstate && !crossing_hooks.adopt_thread());
}

static inline void
shared_crossing(bool before, unsigned flags)
{
    if (__builtin_expect(core.shares_memory, 0))
        crossing_hooks.memory_look(before, flags);
}

/* Each if it is asked for. */
static inline void
clocks_crossed(void)
{
    if (stepclock.fd >= 0)
        stepclock_crossed();
    if (engine.is_on && stepclock.is_on)
        crossing_hooks.point_crossed();
    if (ticks_are_reported)
        ticks_crossed();
    if (trace_is_on)
        trace_crossed();
}

#endif
