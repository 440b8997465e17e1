/* The contender: while recording, a genuine thread that competes for the interpreter's lock (the GIL) on behalf of the
 * lanes that could run, so that they get it as often as the program's threads would without us.
 *
 * All lanes share one thread of the operating system, so nothing competes with the running one. Which of two threads
 * wins is a matter of some microseconds: how long a call without the lock takes, against how long the kernel takes to
 * wake who waits for the lock, on this machine, with this load. No distribution drawn at random comes near it (a thread
 * that has just been woken needs 1 call of os.stat() in one run and 2,000 in the next). So the contender does what the
 * interpreter's own threads do, by the steps of take_gil() (Python/ceval_gil.c): it waits on the lock's own condition
 * variable until somebody gives the lock up, or until the switch interval has passed. But it only looks: where a thread
 * would now have the lock, it sets `ticks_slice_is_over`, and the lane that has waited longest continues at the next
 * tick, with the lock that the running one still has. It has no thread state and runs no Python.
 *
 * A replay has no contender: who continued, and where, is in the log. Neither has chaos, which draws its slices.
 *
 * While no lane can run, one may wait for the outside: what has arrived there is noticed by looking now and then.
 *
 * It ends before a fork (the interpreter counts the process's threads, and a child must not inherit a lock that it
 * holds), when one lane is left, and before the interpreter destroys the lock. */
#include "base/core.h"
#include "clock/clock.h"
#include "lanes/inside.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* ns between two looks at the outside. The shortest is small against the switch interval (5 ms) and costs 4 % of a
 * processor (measured with a thread that computes and one that sleeps). The long one is for lanes that wait for each
 * other alone: then only a signal can come. While all lanes wait the hub is awake itself, and the pauses grow. */
#define SHORTEST_PAUSE 500000u
#define LONG_PAUSE 4000000u
#define LONGEST_PAUSE 100000000u

/* ns. Recording lengthens each call by ADDED_TIME, with the lock in hand: who comes for the lock in that time would as
 * likely as not have found it free. A thread that has just been woken, on another processor than its rival, has the lock
 * for COLD_TIME before it gives it up: its memory is in no cache there. Both are for short calls in a loop, whose rates
 * they bring near to those of a plain run (`tox -e rates`); where more is computed between two calls they do not matter. */
#define ADDED_TIME 700u
#define COLD_TIME 1500u
/* ns. The slowdown of the program is measured over this time. */
#define MEASURED_OVER 20000u
/* ns; bounds: of waiting with the processor in hand, for its first sleep, and for the rest of a wake-up. */
#define LONGEST_SPIN 100000u
#define LONGEST_START 1000000u
#define LONGEST_REST 500000u

static struct {
    bool is_allowed, runs;
    pthread_t thread;
    sem_t awake;
    /* shared with the thread */
    bool sleeps, awaits_turn, ends;
    uint64_t turn;       /* changes when another lane runs: its time begins anew */
    uint64_t comes_back; /* the number of crossings while the running lane comes back into one in which it has waited */
    uint64_t pause;
    int processor;            /* that the lanes are on */
    cpu_set_t allowed;        /* where it may run; nothing: it has not been started elsewhere */
    uint64_t posted, latency; /* when it was woken last; how long that takes, on the average */
} contender;

#define SHARED(field) __atomic_load_n(&contender.field, __ATOMIC_SEQ_CST)
#define SHARE(field, value) __atomic_store_n(&contender.field, value, __ATOMIC_SEQ_CST)

/* ---- in the thread ---- */

static bool
lane_can_run(void)
{
    return __atomic_load_n(&lanes.ready_count, __ATOMIC_SEQ_CST) > 0;
}

/* A handler is due in the main lane, which waits. */
static bool
signal_came(void)
{
    return compat_signals_tripped() && lanes.main->interruptible && !lanes.main->is_ready;
}

/* The running lane is in the way of another one: of one that waits for the outside, as far as can be seen without a
 * lock. */
static bool
is_needed(void)
{
    if (SHARED(ends) || __atomic_load_n(&lanes.running, __ATOMIC_RELAXED) == NULL)
        return false;
    return lane_can_run() || lanes_may_be_woken() || hub_has_news() || signal_came();
}

static struct timespec
time_in(uint64_t ns)
{
    uint64_t at = monotonic_ns() + ns;
    return (struct timespec){(time_t)(at / 1000000000), (long)(at % 1000000000)};
}

/* To spin on the processor that the lanes are on would be in vain: they could not run. And who gives way there without
 * sleeping waits for milliseconds; who sleeps is preferred when it is woken. */
static bool
may_spin(void)
{
    return sched_getcpu() != SHARED(processor);
}

/* How much longer the program takes for what it does in so many ns without us: by the calls that it made lately. */
static uint64_t
added(uint64_t ns)
{
    static uint64_t since, crossings, of_all = 1, of_recording;
    uint64_t now = monotonic_ns(), made = __atomic_load_n(&core.crossings, __ATOMIC_RELAXED);
    if (now - since > MEASURED_OVER) {
        of_all = now - since;
        of_recording = (made - crossings) * ADDED_TIME;
        if (of_recording > of_all / 2)
            of_recording = of_all / 2;
        since = now;
        crossings = made;
    }
    return ns * of_recording / (of_all - of_recording);
}

/* Until the time is over, or another lane runs. */
static void
pass_time(uint64_t ns)
{
    uint64_t turn = SHARED(turn), until = monotonic_ns() + ns;
    while (may_spin() && !SHARED(ends) && SHARED(turn) == turn && monotonic_ns() < until)
        ;
}

/* To be woken takes as long as it does without us, but the running lane gets less far meanwhile: the rest is waited for. */
static void
rest(uint64_t latency)
{
    uint64_t ns = added(latency);
    pass_time(ns < LONGEST_REST ? ns : LONGEST_REST);
}

/* A lane that comes back into a crossing, in which it has waited, gives the lock up again for a moment: the program's C
 * code takes it there. A thread would have taken it once. */
static bool
lock_is_free(Gil *gil)
{
    return compat_gil_is_free(gil) && __atomic_load_n(&core.crossings, __ATOMIC_RELAXED) != SHARED(comes_back);
}

/* Until the lock is free, another lane runs, or the time is over. */
static void
look_for(uint64_t ns, Gil *gil)
{
    uint64_t turn = SHARED(turn), until = monotonic_ns() + ns;
    while (may_spin() && !SHARED(ends) && SHARED(turn) == turn && !lock_is_free(gil) && monotonic_ns() < until)
        ;
}

/* True: a thread in its place would have the lock, or would have asked for it. False: it is not needed any more.
 * `sleeps`: it has found the lock taken. */
static bool
wins(Gil *gil, bool sleeps)
{
    uint64_t turn = SHARED(turn);
    bool has_won = false;
    for (;;) {
        if (!sleeps)
            look_for(ADDED_TIME, gil);
        pthread_mutex_lock(&gil->mutex);
        if (SHARED(turn) == turn && is_needed() && (sleeps || !lock_is_free(gil))) {
            struct timespec until = time_in((gil->interval ? gil->interval : 1) * 1000u);
            int rc = pthread_cond_clockwait(&gil->cond, &gil->mutex, CLOCK_MONOTONIC, &until);
            has_won = rc == ETIMEDOUT && SHARED(turn) == turn;
            if (rc == 0 && SHARED(turn) == turn) {
                pthread_mutex_unlock(&gil->mutex);
                rest(SHARED(latency));
                pthread_mutex_lock(&gil->mutex);
            }
        }
        has_won = is_needed() && (has_won || (SHARED(turn) == turn && lock_is_free(gil)));
        if (has_won)
            __atomic_store_n(&ticks_slice_is_over, true, __ATOMIC_SEQ_CST);
        pthread_mutex_unlock(&gil->mutex);
        turn = SHARED(turn);
        sleeps = false;
        if (has_won || !is_needed())
            break;
    }
    pthread_cond_signal(&gil->cond); /* a thread of C code may wait, too: the notice was for one of them */
    return has_won;
}

/* Until it is woken, or it is time to look at the outside. */
static void
sleep_now(uint64_t *pause)
{
    if (__atomic_load_n(&lanes.running, __ATOMIC_RELAXED) == NULL)
        *pause = *pause < LONGEST_PAUSE ? *pause * 2 : LONGEST_PAUSE;
    else
        *pause = hub_is_idle() ? LONG_PAUSE : SHORTEST_PAUSE;
    SHARE(pause, *pause);
    SHARE(sleeps, true);
    struct timespec until = time_in(*pause);
    if (!SHARED(ends) && !lane_can_run() && sem_clockwait(&contender.awake, CLOCK_MONOTONIC, &until) == 0) {
        uint64_t latency = monotonic_ns() - SHARED(posted);
        SHARE(latency, (SHARED(latency) * 7 + latency) / 8);
        rest(latency);
    }
    SHARE(sleeps, false);
}

/* It has won: until the lane that it did so for runs, or there was none. From then on it competes for the one that ran
 * before, whose thread would be awake: so it stays awake, as long as a switch usually takes. Returns how long that one was
 * still in its call, in ns. */
static uint64_t
await_turn(uint64_t turn, Gil *gil)
{
    uint64_t begin = monotonic_ns(), until = begin + LONGEST_SPIN, now = begin, came_back = begin;
    while (may_spin() && !SHARED(ends) && SHARED(turn) == turn && (now = monotonic_ns()) < until)
        if (came_back == begin && !compat_gil_is_free(gil))
            came_back = now;
    SHARE(awaits_turn, true);
    for (;;) {
        SHARE(sleeps, true);
        if (SHARED(ends) || SHARED(turn) != turn)
            break;
        sem_wait(&contender.awake);
    }
    SHARE(sleeps, false);
    SHARE(awaits_turn, false);
    return came_back - begin;
}

/* The thread that has lost the lock was in a call, and comes back for it when the call is over, `ns` later. If its rival
 * is in a call then, it finds the lock free, and neither of them ever sleeps; else it sleeps until the lock is given up.
 * False: it sleeps. */
static bool
comes_back_in_time(uint64_t ns)
{
    if (ns < COLD_TIME)
        return false;
    ns += added(ns); /* between two calls our rival takes longer than it would without us */
    pass_time(ns < LONGEST_SPIN ? ns : LONGEST_SPIN);
    return true;
}

/* Who is woken while others compute gets a processor the sooner, the shorter the slices are that it asks for (Linux 6.12
 * and later). The threads that it stands for sleep more than the one on which all lanes run, and are preferred for that. */
static void
ask_for_short_slices(void)
{
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
    } attributes = {.size = sizeof attributes, .nice = getpriority(PRIO_PROCESS, 0), .runtime = 100000};
    syscall(SYS_sched_setattr, 0, &attributes, 0);
    prctl(PR_SET_TIMERSLACK, 1000);
}

static void *
contend(void *unused)
{
    if (CPU_COUNT(&contender.allowed))
        sched_setaffinity(0, sizeof contender.allowed, &contender.allowed);
    ask_for_short_slices();
    Gil *gil = compat_gil();
    uint64_t pause = SHORTEST_PAUSE;
    bool sleeps = false;
    while (!SHARED(ends)) {
        uint64_t turn = SHARED(turn);
        if (!is_needed())
            sleep_now(&pause);
        else if (wins(gil, sleeps)) {
            uint64_t left = await_turn(turn, gil);
            sleeps = lane_can_run() && !comes_back_in_time(left);
            continue;
        }
        sleeps = false;
    }
    return NULL;
}

/* ---- in the thread of the lanes ---- */

static void
wake(void)
{
    SHARE(processor, sched_getcpu());
    SHARE(posted, monotonic_ns());
    if (SHARED(sleeps)) {
        SHARE(sleeps, false);
        sem_post(&contender.awake);
    }
}

/* Fewer threads can run on this machine than there are processors for this one. False: or it is not known. */
static bool
processor_is_idle(int processors)
{
    char text[128];
    int running, fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[length > 0 ? length : 0] = 0;
    return sscanf(text, "%*s %*s %*s %d/", &running) == 1 && running < processors;
}

/* On an idle machine, the program's threads would be spread over the processors. The kernel spreads them when they are
 * started, and since they sleep and wake; but the contender is started once, by a thread that never sleeps. On the
 * processor of the lanes it would be woken in vain until they are done with what is raced for. So it is started on
 * another one, and may move from there. On a busy machine, threads are started anywhere. */
static void
start_elsewhere(pthread_attr_t *attributes)
{
    CPU_ZERO(&contender.allowed);
    cpu_set_t others;
    if (sched_getaffinity(0, sizeof others, &others) < 0 || !processor_is_idle(CPU_COUNT(&others)))
        return;
    contender.allowed = others;
    CPU_CLR(sched_getcpu(), &others);
    if (!CPU_COUNT(&others) || pthread_attr_setaffinity_np(attributes, sizeof others, &others) != 0)
        CPU_ZERO(&contender.allowed);
}

bool
contender_begin(void)
{
    pthread_attr_t attributes;
    sigset_t all, before;
    if (contender.runs || !contender.is_allowed)
        return contender.runs;
    sem_init(&contender.awake, 0, 0);
    contender.sleeps = contender.awaits_turn = contender.ends = false;
    contender.pause = SHORTEST_PAUSE;
    sigfillset(&all);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 256 << 10); /* thread-local variables of libraries lie in it */
    start_elsewhere(&attributes);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* the program's signals are for the thread of the lanes */
    contender.runs = pthread_create(&contender.thread, &attributes, contend, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    /* Where all processors are busy, until it sleeps: a thread that has not run yet gets one after milliseconds, one that
     * is woken at once. On an idle one it begins as late as the program's thread would. */
    bool waits = contender.runs && CPU_COUNT(&contender.allowed) == 0;
    for (uint64_t until = monotonic_ns() + LONGEST_START; waits && !SHARED(sleeps) && monotonic_ns() < until;)
        sched_yield();
    return contender.runs;
}

void
contender_end(void)
{
    Gil *gil = compat_gil();
    if (!contender.runs)
        return;
    SHARE(ends, true);
    sem_post(&contender.awake);
    pthread_mutex_lock(&gil->mutex);
    pthread_cond_broadcast(&gil->cond);
    pthread_mutex_unlock(&gil->mutex);
    pthread_join(contender.thread, NULL);
    sem_destroy(&contender.awake);
    contender.runs = false;
    __atomic_store_n(&ticks_slice_is_over, false, __ATOMIC_SEQ_CST);
}

void
contender_allow(bool is_allowed)
{
    contender.is_allowed = is_allowed;
    if (!is_allowed)
        contender_end();
}

void
contender_lane_can_run(void)
{
    if (contender.runs)
        wake();
}

void
contender_turn(void)
{
    if (!contender.runs && (!contender.is_allowed || lanes.alive < 2 || !contender_begin()))
        return;
    __atomic_store_n(&ticks_slice_is_over, false, __ATOMIC_SEQ_CST);
    SHARE(comes_back, UINT64_MAX);
    __atomic_fetch_add(&contender.turn, 1, __ATOMIC_SEQ_CST);
    if (lanes.ready_count > 0 || SHARED(awaits_turn) || (SHARED(pause) > LONG_PAUSE && !hub_is_idle()))
        wake();
}

void
contender_comes_back(void)
{
    SHARE(comes_back, core.crossings);
}
