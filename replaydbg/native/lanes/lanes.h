/* Lanes: the program's threads, all on one thread of the operating system.
 *
 * For the interpreter they are ordinary threads: each has a thread state, an ident, locks of the interpreter's own kind, thread-local
 * storage. But the functions of the C library by which the interpreter makes threads and waits are led to ours (libcalls.c): a thread
 * that it starts is a lane, which is a C stack and what is kept beside it, and a lane that would wait gives the processor to another
 * one. So it is we who say who runs, and a replay can say the same again. Nothing of the interpreter's own knows of it: joins,
 * shutdown, daemon threads, locals, timeouts, fork are as they are.
 *
 *   lanes.c     the lanes: making them, switching between them, who is next
 *   switch.c    their C stacks, and the change from one to another
 *   hub.c       while recording: who waits for what from outside, and who is woken by it
 *   threads.c   functions of the C library about threads and semaphores; thread_calls.c: those that the program's C code calls
 *   mutexes.c   mutexes of a library in which the program's functions run, or that waits with one in hand
 *   libcalls.c  functions of the C library that wait for the outside; transfers.c: those that move data
 *   locals.c    thread-local variables of C libraries
 *   log_sync.c  while recording: lanes wait until the disk has the log
 *   contender.c while recording: a genuine thread that competes for the interpreter's lock for lanes that could run
 *   deadlock.c  what is said when nobody can go on
 *
 * Each switch is a record of the log: who goes on, why the other gave up, the result for the one who continues. In a replay nobody waits
 * for anything: whoever would, reads that record. A semaphore has its genuine value in both modes.
 */
#ifndef REPLAYDBG_LANES_H
#define REPLAYDBG_LANES_H
#include "base/core.h"
#include "crossing/crossing.h"
#include <semaphore.h>
#include <signal.h>
#include <sys/socket.h>
#include <ucontext.h>

/* lanes.c */
int lanes_begin(void);
void lanes_continue(void); /* a replay becomes a recording: who can run, who waits, and until when */
void lanes_obey(uint64_t seed, bool chaos, uint64_t mean, bool stop); /* mean: of a slice, in ticks; 0: the usual one */
/* a replay is about to become a recording: from then on its lanes are interleaved at random, as with chaos */
/* `schedule`: what else is known of it, see schedules.c, which closes it; -1: it cannot be read */
int lanes_vary(uint64_t seed, int schedule);
void lanes_varied(void); /* record: an event or a switch is in the log, from which on lines count as ticks */
void lanes_count_lines(Crossing *open); /* replay: reads that they do, without the head */
void lanes_begin_lines(void);           /* the same of edited code, which has read it before */
uint64_t lane_clock_latest(void);       /* replay: the latest time that the interpreter's own waits have come to */
void lanes_count_from_start(void);      /* ticks, though there is one lane */
void lanes_expect_nothing(void);        /* replay: no preemption and no handler is due */
void lanes_expect_preemption(uint64_t ticks);
uint64_t lanes_place(void);              /* how far the running lane has computed */
bool lanes_expect_place(uint64_t ticks); /* replay: a handler is due there; false: now */

/* The program forks, whoever does it: before it, and in any child. */
void lanes_fork_begins(void);
void lanes_forked(bool is_recorded);
void lanes_forget_others(void); /* those that are not in a child; in its replay, too */

/* shortage.c */
void shortage_begin(void);
/* before memory is taken: false, in a replay, where the program did not get it */
bool shortage_ask(uint64_t size);
void shortage_met(uint64_t size);     /* record: right after asking, it did not get it */
void shortage_expect(Crossing *open); /* replay: reads one NO_MEMORY record without its head */

/* The running lane starts a process by vfork(): until its end, what the child calls is called here, in our memory, and
 * without the interpreter's lock (from Python 3.12 on). Another lane would run in the child. */
void lanes_vfork_begins(void);
void lanes_vfork_ended(void);

void lanes_interpreter_ends(void); /* its lock is about to be destroyed */

/* log_sync.c */
void lanes_await_log(void); /* in a crossing, with the interpreter's lock */

/* libcalls.c */
int libcalls_module_loaded(PyObject *module, const char *name);

/* threads.c */
extern const HandlerEntry thread_handlers[];

/* Why a lane gives up, and its result when it continues: two bits each of a LANE record. */
typedef enum { FOR_A_LOCK, INSIDE_A_CROSSING, PREEMPTED, ENDED } Why;
typedef enum { WOKEN, TIMED_OUT, INTERRUPTED } Wake;
#define NEVER UINT64_MAX

/* Else the C library's functions do it, which takes calls of the system. A shadow stack (CET) would have to be changed
 * too. */
#if defined(__x86_64__) && !(defined(__CET__) && (__CET__ & 2))
#define CHANGES_STACKS
#endif
typedef struct Lane Lane;
struct Lane {
    char *name;           /* for people; NULL: has none */
    char kernel_name[16]; /* what pthread_getname_np() says of it */
    int id;               /* from 0, the first lane, in the order in which they are made */
    int parent;
    uint32_t priority;            /* with chaos */
    uint64_t marks, marked_ticks; /* of schedules.c: how far it has come in a future */
    bool ended, is_ready;         /* is_ready: stands in the queue of those that can run */
#ifdef CHANGES_STACKS
    void *top; /* of its stack while it does not run */
#else
    ucontext_t context;
#endif
    void *stack;
    size_t stack_size;
    sigset_t mask; /* of signals, while it does not run */
    void *(*start)(void *);
    void *argument, *result;
    PyThreadState *tstate; /* NULL: not known, or it has none */
    /* what belongs to a lane while it does not run */
    int depth, saved_errno;
    CrossState crossing;
    void *tracing;   /* of listen.c */
    void **specific; /* values of pthread keys; of the main lane: the real ones */
    size_t specific_size;
    uint8_t *locals; /* of locals.c: thread-local variables of so many libraries */
    int locals_count;
    struct Destructor *destructors; /* of such variables */
    void *fake_stack;               /* of AddressSanitizer */
    /* while it waits */
    const void *key;       /* the semaphore, or the lane that is joined; NULL: something outside, or nothing */
    const char *waits_for; /* the same for people, or NULL */
    bool interruptible;
    Wake wake;
    uint64_t deadline;     /* ns of CLOCK_MONOTONIC, or NEVER */
    size_t heap_index;     /* in the hub's timers, from 1; 0: has none */
    uint64_t replay_clock; /* ns: the last deadline that passed in a replay, where none does by itself */
    bool waits;            /* replay: it stands in lane_wait() */
    Crossing *within;      /* replay: the crossing in which it gave way; NULL: none */
    Lane *next_ready, *next_waiting, *previous_waiting;
};

typedef struct {
    bool is_on;        /* this process has lanes: false before the program begins, and in a child that it forks */
    Lane *running;     /* NULL while the next one is looked for */
    Lane *chooser;     /* then: on whose stack */
    Lane first;        /* it began the program, on the stack of the process */
    Lane *main;        /* the first one; in a child that is recorded, the one that forked it */
    Lane **at;         /* by id; NULL: has ended */
    const Lane *alone; /* others wait for this one, whoever waits in it; NULL: none */
    int alive, made, size;
    Lane *ready_first, *ready_last;
    int ready_count;
} Lanes;

/* lanes.c */
extern Lanes lanes;
extern __thread bool on_lanes __attribute__((tls_model("initial-exec"))); /* this is the thread that all lanes run on */
Lane *lane_of_ident(uintptr_t ident);                                     /* NULL: there is none */
uintptr_t lane_ident(const Lane *lane);
bool lane_adopt(void); /* a thread state that is not core.tstate; false: of no lane */

/* transfers.c */
int our_close(int fd); /* tells the hub */

/* libcalls.c */
void lanes_relink(void);      /* libraries may be new */
void lanes_relink_pids(void); /* the program has process ids that stand for others, see log/pids.c */
/* what the C library's function of that name is led to; NULL: it is not */
void *libcalls_ours(const char *name);

/* mutexes.c */
void mutexes_copied(void);

/* threads.c */
bool lane_semaphore_free(const void *semaphore);
/* A replay becomes a recording: the clock of the interpreter's own waits, which stood still, goes on. */
void lane_clock_continues(void);
uint64_t lane_clock_deadline(uint64_t deadline); /* of a replay: the same by the kernel's clock */
int64_t lane_clock_shift(void);     /* ns that a reading of CLOCK_MONOTONIC is ahead of the kernel's here and now */
extern const char waits_for_lock[]; /* lane->waits_for of one that waits for a semaphore */
/* what stands for this function if C code asks for it by name; NULL: itself */
void *threads_function(const char *name);
void *threads_interpreters(const char *name); /* what the interpreter's own calls of it are led to */

/* What higher parts register in boot/parts.c. */
/* what stands for a function that C code asks for by name; NULL: itself */
typedef void *(*FunctionLookup)(const char *name);

typedef struct {
    void (*would_wait)(const char *what); /* in a diversion */
    Wake (*lenient_wait)(const void *key, const char *waits_for, uint64_t deadline, bool interruptible, Why why);
    Lane *(*lenient_next_at_end)(void); /* the running lane has ended */
    void (*lenient_slice_used_up)(bool is_preemption);
    void (*look_for_signals)(void);                      /* replay: the place of a handler is near */
    bool (*is_watched)(void);                            /* a value, by the debugger */
    void (*look_at_watched)(_PyInterpreterFrame *frame); /* NULL: another lane goes on */
    FunctionLookup *lookups;                             /* ends with NULL */
    void *(*look_up)(void *library, const char *name);   /* as dlsym() */
    void (*relink_raising)(void);
    void (*library_loaded)(void); /* libraries may be new */
    /* in a future: by a socket between its threads; false: it is none */
    bool (*connects)(int fd, const struct sockaddr *to, socklen_t size, int *result);
    unsigned (*hung_up)(int fd, unsigned events); /* what TCP would report in place of these, which are of its pair */
    bool (*accepts)(int fd, struct sockaddr *from, socklen_t *size, int flags, int *result);
    /* in a future, of one of several processes: see future/future.h */
    bool (*takes_turns)(void);
    void (*has_news)(void);
    bool (*await_turn)(uint64_t deadline, bool has_run);
    bool (*knows_children)(void);
    pid_t (*child_ended)(pid_t pid, int *status, int fds[], int *n); /* 0: one of these can be read before */
    void (*install_libc)(void);
    /* a reading of CLOCK_MONOTONIC by the interpreter as an event, in ns; 0: it would be none here */
    uint64_t (*interpreter_clock)(void);
} LanesHooks;
extern const LanesHooks lanes_hooks;

/* lanes.c */
/* Readers of control records. */
void lane_switches_inside(Crossing *open);
bool lane_switch_is_ahead(void);
void lanes_go_on(Lane *next);

#endif
