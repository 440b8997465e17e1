/* Lines and ticks of a run, counted.
 *
 *   listen.c       how the core hears of lines, calls and jumps
 *   stepclock.c    the count of lines in a replay: positions, hits, breakpoints
 *   activations.c  which lines ran in the same activation of a frame, in the same lane
 *   ticks.c        the count behind the slices of lanes
 *   checks.c       counts calls and jumps on 3.11
 *   trace.c        every tick and event of a run written down, for the comparison of two runs
 */
#ifndef REPLAYDBG_CLOCK_H
#define REPLAYDBG_CLOCK_H
#include "base/core.h"
#include <time.h>
#include "code/code.h"

/* LISTEN_LINE_TICKS: lines tick too (on 3.11 they do anyway). */
enum { LISTEN_LINES = 1, LISTEN_TICKS = 2, LISTEN_LINE_TICKS = 4, LISTEN_RAISES = 8, LISTEN_RETURNS = 16 };

/* listen.c */
int listen_to(unsigned what); /* 0: to nothing */
/* another lane runs: what is kept for each thread of the interpreter */
void listen_switch(void **leaves, void **comes);
void listen_started(PyThreadState *ts); /* a thread of the interpreter is new; may be NULL */
unsigned listening_to(void);
int listen_to_instructions(_PyInterpreterFrame *frame); /* of its code, from here on; the process is a throw-away one */
typedef struct {
    _PyInterpreterFrame *frame;
    PyCodeObject *code;
    uint64_t started;      /* count of lines when it was started; 0: before the clock */
    uint64_t last, before; /* its last line, and the one before that, as counts; 0: none */
    int last_unit, before_unit, first_line;
    bool is_generator; /* it lies in an object, which may die */
    bool is_passed;    /* since its last line an exception came out of what it called, or was thrown into it */
} Activation;

typedef struct {
    uint64_t last, before; /* the lane's last line, and the one before that */
} LaneLines;

/* activations.c */
extern bool activations_are_kept;
extern LaneLines *lane_lines;                                      /* of the lane that ran the last line */
const LaneLines *lane_lines_of(int lane);                          /* NULL: it has run none */
const Activation *activation_find(_PyInterpreterFrame *frame);     /* NULL: nothing is known of it */
const Activation *activation_at(const _PyInterpreterFrame *frame); /* the same of one that may have ended */
/* the frame may have ended, unless it is a generator's */
const Activation *activation_started(uint64_t started, int first_line);
const Activation *activation_next(const Activation *a); /* NULL: the first one, or there are no more */
void activation_forget(_PyInterpreterFrame *frame);
typedef struct {
    uint64_t count;     /* lines since it was started; the one that is about to run is counted */
    uint64_t point;     /* points passed in this line; see points.c */
    uint64_t last_own;  /* count at the last line that is not of a library */
    uint64_t digest;    /* of the path: code objects and instructions */
    uint64_t stop_at;   /* the count at which `stop` is called */
    void (*stop)(void); /* before the line runs; may return: then the program goes on */
    bool is_on;
    bool looks;       /* each line is shown to engine_line() */
    bool asks;        /* where a breakpoint is met, something is evaluated */
    int broken;       /* the breakpoint that was met at this line, from 1; 0: none */
    int fd, steps_fd; /* of the report, of the steps for each event; -1: the replay has no clock */
} StepClock;

/* stepclock.c */
extern StepClock stepclock;
int stepclock_prepare(PyObject *asked);
void stepclock_begin(void);          /* the program begins */
void stepclock_crossed(void);        /* an event has been consumed */
void stepclock_report(bool stopped); /* once, at the end */
void stepclock_drop_breaks(void);

/* function: "", or its first line is meant. The texts must stay as long as the breakpoint. */
/* false: there are too many */
bool stepclock_add_break(const char *file, const char *function, int line, uint64_t stop_at);
void stepclock_report_breaks(Buf *b); /* a key and its value */
extern bool course_is_on;             /* the program's own lines are hashed for the comparison of two runs */
extern bool signals_wait;             /* replay, 3.11: until the trace function is called */
typedef struct {
    PyObject *type, *value;
    _PyInterpreterFrame *frame; /* that raises it */
    int lasti;
    bool is_again; /* it had been raised before: `raise error` in a handler, or of an exception that was kept */
} Raise;

/* What higher parts register in boot/parts.c. */
typedef struct {
    bool (*adopt_thread)(void); /* a thread state that is not core.tstate; false: of no lane */
    int (*open_gate)(void);     /* its id; 0: none is open */
    void (*function_starts)(_PyInterpreterFrame *frame);
    void (*function_ends)(_PyInterpreterFrame *frame, PyObject *value); /* NULL: it yields, or raises */
    void (*function_resumes)(_PyInterpreterFrame *frame);               /* a generator or coroutine goes on */
    void (*instruction)(_PyInterpreterFrame *frame);
    void (*raised)(const Raise *raise);
    void (*own_line)(_PyInterpreterFrame *frame, CodeFacts *facts, int unit); /* if course_is_on */
    bool (*stands_at)(_PyInterpreterFrame *frame);                            /* if stepclock.looks */
    bool (*passage)(int number); /* of a breakpoint, from 1, if stepclock.asks; true: stand here */
    void (*take_clock)(void);
    void (*report_uncaught)(Buf *b);
    void (*signals_go_on)(void); /* if signals_wait */
} ClockHooks;
extern const ClockHooks clock_hooks;
typedef void (*TickHandler)(void);

/* ticks.c */
int ticks_on(uint64_t slice, bool by_line, TickHandler used_up); /* counting goes on from where it stood */
void ticks_of_lines(void);                                       /* from the next tick on lines are ticks, too */
int ticks_off(void);
void ticks_slice(uint64_t slice); /* the handler's last act: ticks until it is called again */
/* ---- simulated.c: the time of a future ---- */
uint64_t time_now(void); /* ns: of the system's monotonic clock, or the simulated one */
/* ns: of the monotonic clock, of the wall clock, and of CPU time */
void simulated_begins(uint64_t at, uint64_t wall, uint64_t computed);
uint64_t simulated_clock(clockid_t clock); /* ns: what a clock of the system would say */
void simulated_reaches(uint64_t at);
void simulated_passes(uint64_t ns);
void simulated_jumps(uint64_t ns);      /* what is waited for comes earlier; no clock that is read changes */
void simulated_steps(int64_t by);       /* ns: the wall clock is set; others go on */
void simulated_computes(bool is_event); /* what the ticks since it was last called have taken */

uint64_t ticks_count(void);       /* all of them */
extern void (*ticks_heard)(void); /* is called at each event; NULL: nobody listens */
void ticks_event(void);           /* an event has been recorded, or consumed; or lanes have switched */
uint64_t ticks_since(void);       /* then */
void ticks_crossing(void);        /* the crossing that is due */
void ticks_forked(void);          /* in the child */
extern bool ticks_are_counted, ticks_crossing_is_due;
extern bool ticks_by_checks;     /* 3.11: checks.c counts calls and jumps, not a trace function */
extern bool ticks_slice_is_over; /* another thread may say so: then the slice is used up at the next tick; atomic */
void ticks_load(uint64_t slice, int fd); /* only in tests: what is reported, and where */
void ticks_begin(void);
void ticks_crossed(void);
void ticks_report(void);
extern bool ticks_are_reported; /* only in tests */

/* checks.c */
extern bool checks_are_heard;
bool checks_are_repeated(void); /* whether the current check is made again until there is nothing to do */
void checks_go_on(void);        /* sets the flags again that make checks happen, if checks are counted */
#if PY_VERSION_HEX < 0x030C0000
/* `frame` is that of our pthread_self() */
typedef struct {
    int at;           /* the index of a word on the stack from `frame` */
    uint64_t address; /* the value of that word if the interpreter makes a check */
} CheckCaller;
extern CheckCaller checks_caller;

static inline uint64_t
code_address(const void *word)
{
    return (uintptr_t)word & 0xffffffffffffull; /* aarch64 may have a signature in the higher bits */
}

static inline bool
check_asks(void *const *frame)
{
    return code_address(frame[checks_caller.at]) == checks_caller.address;
}

bool checks_learn(void *const *frame); /* while the address is unknown; true: pthread_self() returns no thread */
bool checks_met(void);                 /* at a check; true: the same */
void checks_met_elsewhere(void *const *frame); /* perhaps at a check, in a thread that is no lane */
#endif

/* trace.c */
extern bool trace_is_asked, trace_is_on;               /* on: it has not ended */
int trace_load(const char *directory, uint64_t limit); /* limit: of each file, in bytes */
void trace_begin(void);
void trace_crossed(void);
void trace_report(void);

static inline void
clocks_report(void)
{
    stepclock_report(false);
    ticks_report();
    trace_report();
}

/* listen.c */
int listen_module_loaded(PyObject *module, const char *name);

#endif
