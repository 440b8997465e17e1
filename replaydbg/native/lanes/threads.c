/* Functions of the C library about threads and semaphores, as the interpreter calls them: its threads are lanes. The
 * real ones serve whoever is no lane: helpers, threads of C libraries, and a child that the program has forked. */
#include "base/core.h"
#include "clock/clock.h"
#include "crossing/crossing.h"
#include "lanes/inside.h"
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static inline bool
is_lane(void)
{
    return on_lanes && lanes.is_on;
}

/* ---- threads ---- */

/* Once nothing is recorded any more a new thread is a genuine one: C libraries that cannot be recorded wait in calls
 * that only a thread of its own may be held up by. Those that are lanes stay so. */
static bool
makes_lanes(void)
{
    return is_lane() && core.mode != OBSERVE;
}

static bool
is_lanes_ident(pthread_t thread)
{
    return lane_is_ident((uintptr_t)thread);
}

static int
our_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument)
{
    size_t size = 0;
    if (!makes_lanes())
        return pthread_create(thread, attributes, start, argument);
    if (attributes)
        pthread_attr_getstacksize(attributes, &size);
    Lane *lane = shortage_ask(size) ? lane_make(size, start, argument) : NULL;
    if (lane == NULL) {
        shortage_met(size);
        return EAGAIN;
    }
    *thread = (pthread_t)lane_ident(lane);
    return 0;
}

static pthread_t __attribute__((no_sanitize("address")))
our_self(void)
{
#if PY_VERSION_HEX < 0x030C0000
    if (__builtin_expect(checks_are_heard, 0)) {
        void *const *frame = __builtin_frame_address(0);
        if (!is_lane())
            checks_met_elsewhere(frame);
        else if (__builtin_expect(checks_caller.at == 0, 0) ? checks_learn(frame) : check_asks(frame) && checks_met())
            return 0; /* nobody */
    }
#endif
    /* in a forked child too: the one thread that lives on is who it was */
    return on_lanes ? (pthread_t)lane_ident(lanes.running ? lanes.running : lanes.chooser) : pthread_self();
}

_Noreturn static void
our_exit(void *result)
{
    if (on_lanes && !lanes.is_on && lanes.running != &lanes.first)
        exit(0); /* the last thread of a forked child */
    if (!is_lane() || lanes.running == &lanes.first)
        pthread_exit(result);
    lane_end(result);
}

/* Since 3.14 a daemon thread that asks for the interpreter's lock while the interpreter ends is no longer ended: it
 * waits for ever. All others would wait with it here. */
static int
our_pause(void)
{
    if (is_lane() && lanes.running != lanes.main && !lane_has_gil() && compat_is_finalizing())
        lane_end(NULL);
    return pause();
}

static int
our_detach(pthread_t thread)
{
    return is_lanes_ident(thread) ? 0 : pthread_detach(thread);
}

static int
our_join(pthread_t thread, void **result)
{
    if (!is_lane() || !is_lanes_ident(thread))
        return pthread_join(thread, result);
    for (Lane *lane; (lane = lane_of_ident((uintptr_t)thread)) && !lane->ended;)
        lane_wait(lane, "the end of a thread", NEVER, false);
    if (result)
        *result = NULL;
    return 0;
}

/* Signals for a lane are signals for the thread that they all run on. */
static int
our_kill(pthread_t thread, int signum)
{
    if (!is_lanes_ident(thread))
        return pthread_kill(thread, signum);
    if (lane_of_ident((uintptr_t)thread) == NULL)
        return ESRCH;
    return pthread_kill(pthread_self(), signum);
}

static int
our_cpu_clock(pthread_t thread, clockid_t *clock)
{
    return pthread_getcpuclockid(is_lanes_ident(thread) ? pthread_self() : thread, clock);
}

/* The interpreter asks for the kernel's number of its thread in this way: lanes must not share one. */
/* it reads as many arguments as the call with the most of them has */
static long __attribute__((no_sanitize("address")))
our_syscall(long number, ...)
{
    long a[6];
    va_list args;
    va_start(args, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(args, long);
    va_end(args);
    long result = syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    bool is_other = number == SYS_gettid && on_lanes && lanes.running != lanes.main;
    return is_other ? result + lanes.running->id : result;
}

/* An exception for another lane: it gets it when it runs. */
static int
our_set_exception(unsigned long ident, PyObject *exception)
{
    int found = PyThreadState_SetAsyncExc(ident, exception);
    if (is_lane() && lane_has_gil() && core.tstate->async_exc == NULL) {
        compat_forget_raised();
        PyEval_RestoreThread(PyEval_SaveThread()); /* looks anew what there is to look at */
    }
    return found;
}

/* ---- values for each thread ---- */

static void *
our_get_specific(pthread_key_t key)
{
    if (!on_lanes || lanes.running == NULL || lanes.running == &lanes.first)
        return pthread_getspecific(key);
    return key < lanes.running->specific_size ? lanes.running->specific[key] : NULL;
}

static int
our_set_specific(pthread_key_t key, const void *value)
{
    if (!on_lanes || lanes.running == NULL || lanes.running == &lanes.first)
        return pthread_setspecific(key, value);
    Lane *lane = lanes.running;
    if (key >= lane->specific_size) {
        size_t size = key + 8;
        void **fresh = realloc(lane->specific, size * sizeof *fresh);
        if (fresh == NULL)
            return ENOMEM;
        memset(fresh + lane->specific_size, 0, (size - lane->specific_size) * sizeof *fresh);
        lane->specific = fresh;
        lane->specific_size = size;
    }
    lane->specific[key] = (void *)value;
    return 0;
}

/* ---- semaphores: the interpreter's locks ---- */

const char waits_for_lock[] = "a lock";

bool
lane_semaphore_free(const void *semaphore)
{
    int value = 0;
    return sem_getvalue((sem_t *)semaphore, &value) == 0 && value > 0;
}

static int
wait_until(sem_t *semaphore, uint64_t deadline)
{
    for (;;) {
        if (sem_trywait(semaphore) == 0) {
            deadlock_taken(semaphore);
            return 0;
        }
        Wake wake = lane_wait(semaphore, waits_for_lock, deadline, true);
        if (wake == WOKEN)
            continue;
        errno = wake == TIMED_OUT ? ETIMEDOUT : EINTR;
        return -1;
    }
}

static int
our_sem_trywait(sem_t *semaphore)
{
    int rc = sem_trywait(semaphore);
    if (rc == 0 && is_lane())
        deadlock_taken(semaphore);
    return rc;
}

static int
our_sem_wait(sem_t *semaphore)
{
    return is_lane() ? wait_until(semaphore, NEVER) : sem_wait(semaphore);
}

static uint64_t
deadline_of(clockid_t clock, const struct timespec *time)
{
    struct timespec now = {0};
    if (time->tv_sec < 0)
        return 0;
    if (time->tv_sec > INT32_MAX * 4LL)
        return NEVER - 1;
    uint64_t deadline = (uint64_t)time->tv_sec * 1000000000u + (uint64_t)time->tv_nsec;
    if (clock == CLOCK_MONOTONIC && core.is_resumed)
        return lane_clock_deadline(deadline);
    if (clock == CLOCK_MONOTONIC || core.mode == REPLAY)
        return deadline;
    clock_gettime(clock, &now);
    uint64_t real =
        core.is_future ? simulated_clock(clock) : (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    return deadline > real ? time_now() + (deadline - real) : 0;
}

static int
our_sem_clockwait(sem_t *semaphore, clockid_t clock, const struct timespec *time)
{
    if (!is_lane())
        return sem_clockwait(semaphore, clock, time);
    uint64_t deadline = deadline_of(clock, time);
    int rc = wait_until(semaphore, deadline);
    if (rc < 0 && errno == ETIMEDOUT && core.mode == REPLAY && clock == CLOCK_MONOTONIC &&
        deadline > lanes.running->replay_clock)
        lanes.running->replay_clock = deadline; /* 3.13 looks whether it has passed */
    return rc;
}

static int
our_sem_timedwait(sem_t *semaphore, const struct timespec *time)
{
    return is_lane() ? wait_until(semaphore, deadline_of(CLOCK_REALTIME, time)) : sem_timedwait(semaphore, time);
}

static int
our_sem_post(sem_t *semaphore)
{
    int rc = sem_post(semaphore);
    if (is_lane()) {
        deadlock_given(semaphore);
        lane_wake_first(semaphore);
    }
    else if (lanes.is_on)
        lanes_raised_elsewhere();
    return rc;
}

/* In a replay no time passes: what the interpreter computes for waiting must come out as if it had just begun, or as if
 * its time were over where it was. Clocks that the program reads are crossings. */
static uint64_t replay_begins = 1000000000000000u;
static bool releases_import_lock;

/* Since 3.14 who releases a lock of the program's hands it over to one who has waited for more than a millisecond, so
 * that others wait when they come for it. While there are several lanes the clock that says so is an input. Returns 0
 * where it is none. */
static uint64_t
recorded_clock(clockid_t clock)
{
    uint64_t now = 0;
    if (PY_VERSION_HEX >= 0x030E0000 && clock == CLOCK_MONOTONIC && lanes.made > 1 && is_lane() && lane_has_gil())
        now = lanes_hooks.interpreter_clock();
    if (now)
        replay_begins = now; /* where a reading is no event, no time has passed since */
    return now;
}

/* C code that reads the clock until it moves must come to an end: it moves by a nanosecond, less than any wait of the
 * interpreter's takes. Where nothing but readings comes, somebody waits for more: the steps grow, and a second passes
 * in some thousand readings. */
static uint64_t
step_of_reading(void)
{
    enum { FEW = 1000, LARGEST = 1000000 };
    static uint64_t event, readings;
    if (event != core.crossings) {
        event = core.crossings;
        readings = 0;
    }
    uint64_t many = ++readings > FEW ? readings - FEW : 0;
    return many == 0 ? 1 : many < 20 ? 1u << many : LARGEST;
}

/* After a replay that has become a recording. Waits that go on were computed by the replay's clock, so the interpreter
 * reads that one for all its waits: it goes on from there. */
static int64_t wait_shift; /* ns */

uint64_t
lane_clock_latest(void)
{
    uint64_t latest = replay_begins;
    for (int i = 0; i < lanes.made; i++)
        if (lanes.at[i] && lanes.at[i]->replay_clock > latest)
            latest = lanes.at[i]->replay_clock;
    return latest;
}

void
lane_clock_continues(void)
{
    wait_shift = core.is_future ? 0 : (int64_t)(lane_clock_latest() - monotonic_ns());
}

uint64_t
lane_clock_deadline(uint64_t deadline)
{
    return deadline == NEVER || (int64_t)deadline < wait_shift ? deadline : deadline - (uint64_t)wait_shift;
}

int64_t
lane_clock_shift(void)
{
    return is_lane() && core.is_resumed && core.depth == 0 ? wait_shift : 0;
}

static int
our_clock_gettime(clockid_t clock, struct timespec *time)
{
    if (is_lane() && releases_import_lock && clock == CLOCK_MONOTONIC) {
        *time = (struct timespec){0, 0};
        return 0;
    }
    uint64_t recorded = recorded_clock(clock);
    if (recorded) {
        *time = (struct timespec){(time_t)(recorded / 1000000000), (long)(recorded % 1000000000)};
        return 0;
    }
    if (core.is_future && is_lane()) {
        uint64_t now = simulated_clock(clock);
        simulated_reaches(time_now() + step_of_reading());
        *time = (struct timespec){(time_t)(now / 1000000000), (long)(now % 1000000000)};
        return 0;
    }
    if (clock == CLOCK_MONOTONIC && lane_clock_shift() != 0) {
        int64_t now = (int64_t)monotonic_ns() + wait_shift;
        *time = (struct timespec){now / 1000000000, now % 1000000000};
        return 0;
    }
    if (!is_lane() || core.mode != REPLAY || clock != CLOCK_MONOTONIC)
        return clock_gettime(clock, time);
    uint64_t now = replay_begins > lanes.running->replay_clock ? replay_begins : lanes.running->replay_clock;
    lanes.running->replay_clock = now + step_of_reading();
    *time = (struct timespec){(time_t)(now / 1000000000), (long)(now % 1000000000)};
    return 0;
}

/* What `time.localtime()` without an argument reads. */
static time_t
our_time(time_t *to)
{
    if (!core.is_future || !is_lane())
        return time(to);
    time_t now = (time_t)(simulated_clock(CLOCK_REALTIME) / 1000000000);
    if (to)
        *to = now;
    return now;
}

/* Since 3.13 who releases the lock of imports hands it over to one who has waited for more than a millisecond, and so
 * has to wait when he wants it again. No clock says so here: it is always free for the next who comes. */
static PyObject *
imp_release_lock(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    releases_import_lock = on_lanes;
    PyObject *result = gate_call_original(g, self, args, nargs, kwnames);
    releases_import_lock = false;
    return result;
}

const HandlerEntry thread_handlers[] = {{"imp_release_lock", imp_release_lock}, {NULL, NULL}};

static const Relink functions[] = {{"pthread_create", (void *)our_create},
                                   {"pthread_self", (void *)our_self},
                                   {"pthread_exit", (void *)our_exit},
                                   {"pthread_detach", (void *)our_detach},
                                   {"pause", (void *)our_pause},
                                   {"pthread_join", (void *)our_join},
                                   {"pthread_kill", (void *)our_kill},
                                   {"pthread_getcpuclockid", (void *)our_cpu_clock},
                                   {"pthread_getspecific", (void *)our_get_specific},
                                   {"pthread_setspecific", (void *)our_set_specific},
                                   {"syscall", (void *)our_syscall},
                                   {"sem_wait", (void *)our_sem_wait},
                                   {"sem_clockwait", (void *)our_sem_clockwait},
                                   {"sem_timedwait", (void *)our_sem_timedwait},
                                   {"sem_post", (void *)our_sem_post},
                                   {"sem_trywait", (void *)our_sem_trywait},
                                   {"clock_gettime", (void *)our_clock_gettime},
                                   {"time", (void *)our_time},
                                   {NULL, NULL}};

void *
threads_interpreters(const char *name)
{
    for (const Relink *r = functions; r->name; r++)
        if (strcmp(r->name, name) == 0)
            return r->function;
    return NULL;
}

/* ctypes and cffi ask by name; see thread_calls.c. */
static const Relink by_name[] = {
    {"PyThreadState_SetAsyncExc", (void *)our_set_exception}, {"pthread_kill", (void *)our_kill}, {NULL, NULL}};

void *
threads_function(const char *name)
{
    for (const Relink *r = by_name; r->name; r++)
        if (strcmp(r->name, name) == 0)
            return r->function;
    void *ours = thread_call(name);
    for (FunctionLookup *lookup = lanes_hooks.lookups; ours == NULL && *lookup; lookup++)
        ours = (*lookup)(name);
    return ours;
}

static void *
our_dlsym(void *library, const char *name)
{
    void *ours = threads_function(name);
    return ours ? ours : lanes_hooks.look_up(library, name);
}

void
threads_module_loaded(const char *name)
{
    static const Relink asking[] = {{"dlsym", (void *)our_dlsym}, {NULL, NULL}};
    static const Relink raising[] = {
        {"PyThreadState_SetAsyncExc", (void *)our_set_exception}, {"pthread_kill", (void *)our_kill}, {NULL, NULL}};
    static Relinking ctypes = {.functions = asking, .only_named = "_ctypes"},
                     cffi = {.functions = asking, .only_named = "_cffi_backend"}, modules = {.functions = raising};
    relink(&modules);
    thread_calls_relink();
    lanes_hooks.relink_raising();
    if (strcmp(name, ctypes.only_named) == 0)
        relink(&ctypes);
    if (strcmp(name, cffi.only_named) == 0)
        relink(&cffi);
}

void
threads_install(void)
{
    static Relinking interpreter = {.functions = functions, .only_interpreter = true};
    relink(&interpreter);
}
