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
 *   deadlock.c  what is said when nobody can go on
 *
 * Each switch is a record of the log: who goes on, why the other gave up, what the one who goes on is told. In a replay nobody waits
 * for anything: whoever would, reads that record. A semaphore has its genuine value in both modes.
 */
#ifndef REPLAYDBG_LANES_H
#define REPLAYDBG_LANES_H
#include "base/core.h"
#include <semaphore.h>
#include <signal.h>
#include <ucontext.h>

/* Why a lane gives up, and what it is told when it goes on: two bits each of a LANE record. */
typedef enum { FOR_A_LOCK, INSIDE_A_CROSSING, PREEMPTED, ENDED } Why;
typedef enum { WOKEN, TIMED_OUT, INTERRUPTED } Wake;

#define NEVER UINT64_MAX

/* Else the C library's functions do it, which takes calls of the system. A shadow stack (CET) would have to be changed too. */
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !(defined(__CET__) && (__CET__ & 2))
#define CHANGES_STACKS
#endif

typedef struct Lane Lane;
struct Lane {
    char *name;              /* for people; NULL: has none */
    char kernel_name[16];    /* what pthread_getname_np() says of it */
    int id;                  /* from 0, the main lane, in the order in which they are made */
    int parent;
    uint32_t priority;       /* with chaos */
    bool ended, is_ready;    /* is_ready: stands in the queue of those that can run */
#ifdef CHANGES_STACKS
    void *top;               /* of its stack while it does not run */
#else
    ucontext_t context;
#endif
    void *stack;
    size_t stack_size;
    sigset_t mask;           /* of signals, while it does not run */
    void *(*start)(void *);
    void *argument, *result;
    PyThreadState *tstate;   /* NULL: not known, or it has none */
    /* what belongs to a lane while it does not run */
    int depth, saved_errno;
    CrossState crossing;
    void *tracing;           /* of listen.c */
    void **specific;         /* values of pthread keys; of the main lane: the real ones */
    size_t specific_size;
    uint8_t *locals;         /* of locals.c: thread-local variables of so many libraries */
    int locals_count;
    struct Destructor *destructors; /* of such variables */
    void *fake_stack;        /* of AddressSanitizer */
    /* while it waits */
    const void *key;         /* the semaphore, or the lane that is joined; NULL: something outside, or nothing */
    const char *waits_for;   /* the same for people, or NULL */
    bool interruptible;
    Wake wake;
    uint64_t deadline;       /* ns of CLOCK_MONOTONIC, or NEVER */
    size_t heap_index;       /* in the hub's timers, from 1; 0: has none */
    uint64_t replay_clock;   /* ns: the last deadline that passed in a replay, where none does by itself */
    Lane *next_ready, *next_waiting, *previous_waiting;
};

typedef struct {
    bool is_on;              /* this process has lanes: false before the program begins, and in a child that it forks */
    Lane *running;           /* NULL while the next one is looked for */
    Lane *chooser;           /* then: on whose stack */
    Lane main;
    Lane **at;               /* by id; NULL: has ended */
    int alive, made, size;
    Lane *ready_first, *ready_last;
    int ready_count;
} Lanes;
extern Lanes lanes;
extern __thread bool on_lanes __attribute__((tls_model("initial-exec"))); /* this is the thread that all lanes run on */

/* lanes.c */
Wake lane_wait(const void *key, const char *waits_for, uint64_t deadline, bool interruptible); /* the running lane waits */
void lane_wake(Lane *lane, Wake wake);                 /* it can run */
void lane_wake_first(const void *key);                 /* the one that has waited longest for it */
void lane_wake_all(const void *key);
bool lanes_signal_due(void);                           /* the main lane waits and has not been told of a signal */
void lane_yield(void);                                 /* others that can run do so first */
Lane *lane_make(size_t stack_size, void *(*start)(void *), void *argument);
_Noreturn void lane_end(void *result);
bool lane_is_ident(uintptr_t ident);                   /* of a lane, alive or not; else of a genuine thread */
Lane *lane_of_ident(uintptr_t ident);                  /* NULL: there is none */
uintptr_t lane_ident(const Lane *lane);
bool lane_has_gil(void);                               /* the running lane may call the interpreter */

/* Lanes give way to each other between a switch in the middle of a blocking call and its end; this says whether there is need. */
static inline bool
lanes_share(void)
{
    return on_lanes && lanes.is_on && core.mode != REPLAY && lanes.alive > 1 && !lane_has_gil();
}

/* switch.c */
bool stack_take(Lane *lane, size_t size);              /* 0: the usual one */
void stack_give_back(Lane *lane);
void stacks_begin(void);
void stack_prepare(Lane *lane, void (*begin)(void));   /* it begins with this when it runs first */
void stack_change(Lane *from, Lane *next);
void stack_arrived(void);                              /* first of all when a lane goes on, or begins */
int our_sigmask(int how, const sigset_t *set, sigset_t *before);
int our_sigprocmask(int how, const sigset_t *set, sigset_t *before);

/* hub.c: only while recording */
typedef struct HubWait {
    int fd;
    unsigned events, revents; /* as epoll has them */
    Lane *lane;
    struct HubWait *next;
    struct HubWait **unsure, *next_unsure; /* hub.c; unsure: what points to this one, or NULL */
} HubWait;
Wake hub_wait(HubWait *waits, int n, const char *waits_for, uint64_t deadline); /* TIMED_OUT; WOKEN: look again */
void hub_begin(void);                                  /* hub_notify() is heard from now on; again is harmless */
void hub_look(bool may_sleep);                         /* wakes lanes */
bool hub_is_idle(void);                                /* nobody waits for anything outside */
void hub_closed(int fd);                               /* the number is free, or is about to be */
void hub_forget(Lane *lane);                           /* it waits for no time any more */
void hub_time(Lane *lane);                             /* it waits for lane->deadline */
void hub_notify(void);                                 /* from another thread: look again */
typedef long (*HelperCall)(void *argument);
long hub_help(HelperCall call, void *argument, const char *waits_for); /* in a helper thread; sets errno */
void hub_forked(void);

/* transfers.c */
extern const Relink transfer_functions[];
int await_ready(int fd, short events, const char *waits_for); /* 0: a call on it does not wait; -1: EINTR */
uint64_t deadline_in(int64_t ns);                      /* of lane_wait(); negative: NEVER */
int our_close(int fd);                                 /* tells the hub */

/* threads.c, libcalls.c */
#define OURS(name) {#name, (void *)our_##name}         /* of a Relink */
void threads_install(void);
void threads_module_loaded(const char *name);
void mutexes_library_loaded(void);                     /* an extension module is new */
void libcalls_install(void);
void lanes_relink(void);                               /* libraries may be new */
void *libcalls_ours(const char *name);                 /* what the C library's function of that name is led to; NULL: it is not */
bool lane_semaphore_free(const void *semaphore);
extern const char waits_for_lock[];                    /* lane->waits_for of one that waits for a semaphore */

void *threads_function(const char *name);              /* what stands for this function if C code asks for it by name; NULL: itself */
/* thread_calls.c */
void lane_name_at_start(Lane *lane);
void *thread_call(const char *name);                   /* what stands for this function of the C library's; NULL: itself */
void thread_calls_relink(void);                        /* libraries that are there call ours from now on */

/* locals.c */
extern const Relink locals_functions[];
void locals_library_loaded(void);
void locals_switch(Lane *leaves, Lane *comes);
void locals_end(Lane *lane);

/* relink.c */
struct dl_phdr_info;
bool relink_leaves_alone(const struct dl_phdr_info *library); /* the core, the C library and their like */
bool relink_is_interpreter(const struct dl_phdr_info *library);

/* deadlock.c */
void report_deadlock(void);
void deadlock_taken(const void *semaphore);
void deadlock_given(const void *semaphore);

#endif
