/* What the files of this folder have of each other. */
#ifndef REPLAYDBG_LANES_INSIDE_H
#define REPLAYDBG_LANES_INSIDE_H
#include "base/core.h"
#include "lanes/lanes.h"
#include <semaphore.h>
#include <signal.h>
#include <ucontext.h>

/* lanes.c */
/* replay: in the middle of a crossing; numbers of the LANE record */
void lane_switch_inside(const uint64_t numbers[3]);
/* the running lane waits */
Wake lane_wait(const void *key, const char *waits_for, uint64_t deadline, bool interruptible);
void lane_wake(Lane *lane, Wake wake); /* it can run */
void lane_wake_first(const void *key); /* the one that has waited longest for it */
void lane_wake_all(const void *key);
bool lanes_signal_due(void);       /* the main lane waits and has not been notified of a signal */
void lanes_raised_elsewhere(void); /* by a thread that is no lane: a semaphore, for which a lane may wait */
bool lanes_may_be_woken(void);     /* so: since they were last looked at */
void lane_yield(void);             /* others that can run do so first */
Lane *lane_make(size_t stack_size, void *(*start)(void *), void *argument);
_Noreturn void lane_end(void *result);
bool lane_is_ident(uintptr_t ident); /* of a lane, alive or not; else of a genuine thread */
bool lane_has_gil(void);             /* the running lane may call the interpreter */
void lanes_hang(void);               /* all wait, and nothing can come */
bool lanes_have_run(void);           /* any, since this was asked last */

/* Lanes give way to each other between a switch in the middle of a blocking call and its end; this says whether there
 * is need. In a future time is simulated, so one that is alone does not really wait, either. */
static inline bool
lanes_share(void)
{
    return on_lanes && lanes.is_on && core.mode != REPLAY && (lanes.alive > 1 || core.is_future) &&
           (lanes.alone == NULL || lanes.running != lanes.alone) && !lane_has_gil();
}

bool lanes_draws(uint32_t *number, uint32_t below); /* with chaos; false: without */

/* schedules.c: of a future */
typedef enum { GOES_ON, GIVES_WAY, IS_OVERTAKEN } Turn; /* IS_OVERTAKEN: gives way, and keeps its priority */
int schedule_load(int fd);                              /* the launcher's file; -1: it cannot be read */
bool schedule_is_given(void);                           /* else it is drawn */
bool schedule_has_priorities(void);                     /* then: the highest one runs */
uint64_t schedule_slice(void);                          /* ticks until schedule_due() is to be asked */
Turn schedule_due(void);                                /* of the running lane, at a tick */
int schedule_place(void);                          /* in the queue of those that can run, of the one that goes on */
void schedule_chosen(int place);                   /* that one is about to be taken from it */
void schedule_switches(const Lane *next, Why why); /* the running lane gives way, */
void schedule_switched(void);                      /* which has been logged, */
void schedule_stays(void);                         /* it was to give way, and nobody else can run */
void schedule_arrived(void);                       /* and another one runs */
void schedule_can_run(const Lane *lane);
void schedule_pauses(void); /* in a future: an event loop looks later than it could */
struct epoll_event;
int schedule_ready(struct epoll_event *events, int n); /* puts them in an order that the kernel could have; returns n */

/* switch.c */
bool stack_take(Lane *lane, size_t size); /* 0: the usual one */
void stack_give_back(Lane *lane);
void stacks_begin(void);
void stack_prepare(Lane *lane, void (*begin)(void)); /* it begins with this when it runs first */
void stack_change(Lane *from, Lane *next);
void stack_arrived(void); /* first of all when a lane goes on, or begins */
int our_sigmask(int how, const sigset_t *set, sigset_t *before);
int our_sigprocmask(int how, const sigset_t *set, sigset_t *before);
typedef struct HubWait {
    int fd;
    unsigned events, revents; /* as epoll has them */
    Lane *lane;
    struct HubWait *next;
    struct HubWait **unsure, *next_unsure; /* hub.c; unsure: what points to this one, or NULL */
} HubWait;

/* hub.c */
Wake hub_wait(HubWait *waits, int n, const char *waits_for, uint64_t deadline); /* TIMED_OUT; WOKEN: look again */
void hub_begin(void);          /* hub_notify() is heard from now on; again is harmless */
void hub_look(bool may_sleep); /* wakes lanes */
bool hub_is_idle(void);        /* nobody waits for anything outside */
bool hub_has_news(void);       /* from any thread: something that a lane waits for is there, or its time is over */
void hub_closed(int fd);       /* the number is free, or is about to be */
void hub_closing(int fd);      /* it will be: who waits for it goes on first */
void hub_forget(Lane *lane);   /* it waits for no time any more */
void hub_time(Lane *lane);     /* it waits for lane->deadline */
void hub_notify(void);         /* from another thread: look again */
typedef long (*HelperCall)(void *argument);
long hub_help(HelperCall call, void *argument, const char *waits_for);        /* in a helper thread; sets errno */
long hub_help_to_end(HelperCall call, void *argument, const char *waits_for); /* the same; signals wait */
void hub_forked(void);

/* log_sync.c */
void log_sync_forked(void); /* in any child: no helper is at work */

/* contender.c: who competes for the interpreter's lock for lanes that could run */
void contender_allow(bool is_allowed); /* not allowed: it ends, if it runs */
bool contender_begin(void);            /* there are several lanes; again is harmless. False: slices are counted */
void contender_end(void);
void contender_lane_can_run(void); /* one, and none could before */
void contender_turn(void);         /* another lane runs, or this one again */
void contender_comes_back(void);   /* it gives the lock up for a moment, and takes it in the program's C code */

/* transfers.c */
extern const Relink transfer_functions[];
extern const char waits_for_room_to_send[];
int await_ready(int fd, short events, const char *waits_for); /* 0: a call on it does not wait; -1: EINTR */
uint64_t deadline_in(int64_t ns);                             /* of lane_wait(); negative: NEVER */
#define OURS(name) {#name, (void *)our_##name}                /* of a Relink */

/* threads.c */
void threads_install(void);
void threads_module_loaded(const char *name);

/* mutexes.c */
void mutexes_library_loaded(void); /* an extension module is new */

/* libcalls.c */
void libcalls_install(void);

/* thread_calls.c */
void lane_name_at_start(Lane *lane);
/* what stands for this function of the C library's; NULL: itself */
void *thread_call(const char *name);
void thread_calls_relink(void); /* libraries that are there call ours from now on */

/* locals.c */
extern const Relink locals_functions[];
void locals_library_loaded(void);
void locals_switch(Lane *leaves, Lane *comes);
void locals_end(Lane *lane);

/* deadlock.c */
void report_deadlock(void);
void deadlock_taken(const void *semaphore);
void deadlock_given(const void *semaphore);

#endif
