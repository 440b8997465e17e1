/* The hub: while recording, who waits for what from outside, and who is woken by it. One epoll for all descriptors, a
 * heap of deadlines, and threads for calls that can only be waited for by making them. A replay has no hub. */
#include "base/core.h"
#include "clock/clock.h"
#include "lanes/inside.h"
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* A descriptor stays with epoll, which tells of each change (whoever waits has seen before that it is not ready): to
 * wait for it again takes no call of the system. But its number may have become another file's without our knowledge (a
 * C library closed it in a way of its own). So waits that rely on earlier registrations with epoll are unsure until they are
 * repeated, before all sleep at the latest. */
typedef struct {
    HubWait *first;
    uint32_t looked_for; /* the events */
    bool added;
} Slot;

static struct {
    int epoll, notice; /* 0: not made yet */
    Slot *slots;       /* by descriptor */
    int size;
    int waits; /* descriptors that are waited for */
    HubWait *unsure;
    Lane **heap; /* from 1: the lane whose deadline comes first */
    size_t timers, heap_size;
} hub;
static uint64_t first_deadline = NEVER; /* in hub.heap, for other threads */

/* ---- deadlines ---- */

static void
place(size_t i, Lane *lane)
{
    hub.heap[i] = lane;
    lane->heap_index = i;
    if (i == 1)
        __atomic_store_n(&first_deadline, lane->deadline, __ATOMIC_RELAXED);
}

static void
sift(size_t i, Lane *lane)
{
    while (i > 1 && hub.heap[i / 2]->deadline > lane->deadline) {
        place(i, hub.heap[i / 2]);
        i /= 2;
    }
    for (size_t child; (child = i * 2) <= hub.timers; i = child) {
        if (child < hub.timers && hub.heap[child + 1]->deadline < hub.heap[child]->deadline)
            child++;
        if (hub.heap[child]->deadline >= lane->deadline)
            break;
        place(i, hub.heap[child]);
    }
    place(i, lane);
}

void
hub_time(Lane *lane)
{
    if (hub.timers + 1 >= hub.heap_size) {
        hub.heap_size = hub.heap_size ? hub.heap_size * 2 : 64;
        hub.heap = realloc(hub.heap, hub.heap_size * sizeof *hub.heap);
        if (hub.heap == NULL)
            Py_FatalError("replaydbg: out of memory for the timers of lanes");
    }
    sift(++hub.timers, lane);
}

void
hub_forget(Lane *lane)
{
    size_t i = lane->heap_index;
    Lane *last = hub.heap[hub.timers--];
    lane->heap_index = 0;
    if (last != lane)
        sift(i, last);
    if (hub.timers == 0)
        __atomic_store_n(&first_deadline, NEVER, __ATOMIC_RELAXED);
}

static void
wake_late(void)
{
    uint64_t now = hub.timers ? time_now() : 0;
    while (hub.timers && hub.heap[1]->deadline <= now)
        lane_wake(hub.heap[1], TIMED_OUT);
}

/* ---- descriptors ---- */

static void
prepare(void)
{
    if (hub.epoll > 0)
        return;
    hub.epoll = fd_keep(epoll_create1(EPOLL_CLOEXEC));
    hub.notice = fd_keep(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    struct epoll_event event = {.events = EPOLLIN, .data.fd = hub.notice};
    if (hub.epoll < 0 || hub.notice < 0 || epoll_ctl(hub.epoll, EPOLL_CTL_ADD, hub.notice, &event) < 0)
        Py_FatalError("replaydbg: no descriptor for waiting");
}

void
hub_begin(void)
{
    prepare();
}

static Slot *
slot_of(int fd)
{
    if (fd >= hub.size) {
        int size = fd < 512 ? 1024 : fd * 2;
        hub.slots = realloc(hub.slots, (size_t)size * sizeof *hub.slots);
        if (hub.slots == NULL)
            Py_FatalError("replaydbg: out of memory for descriptors");
        memset(hub.slots + hub.size, 0, (size_t)(size - hub.size) * sizeof *hub.slots);
        hub.size = size;
    }
    return &hub.slots[fd];
}

/* False: it cannot be waited for (a regular file, a closed one), so the call itself will not wait. */
static bool
arm(int fd, Slot *slot)
{
    struct epoll_event event = {.events = EPOLLET, .data.fd = fd};
    for (HubWait *w = slot->first; w; w = w->next)
        event.events |= w->events;
    int rc = epoll_ctl(hub.epoll, slot->added ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event);
    if (rc < 0 && errno == (slot->added ? ENOENT : EEXIST)) /* it was closed in between, or is a copy of one that was */
        rc = epoll_ctl(hub.epoll, slot->added ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd, &event);
    slot->added = rc == 0;
    slot->looked_for = event.events;
    return rc == 0;
}

void
hub_closed(int fd)
{
    if (on_lanes && fd >= 0 && fd < hub.size)
        hub.slots[fd].added = false;
}

/* Wakes those who wait for it and need not wait any longer. */
static bool
wake_ready(int fd)
{
    bool is_one = false;
    for (HubWait *w = hub.slots[fd].first; w; w = w->next) {
        struct pollfd p = {fd, (short)w->events, 0};
        if (poll(&p, 1, 0) > 0) {
            w->revents = (unsigned)(unsigned short)p.revents;
            lane_wake(w->lane, WOKEN);
            is_one = true;
        }
    }
    return is_one;
}

/* Whoever waits inside a call of the kernel has the file, and not its number: what has arrived before the number is
 * closed is taken all the same, such as the end that shutdown() makes. */
void
hub_closing(int fd)
{
    while (lanes_share() && fd >= 0 && fd < hub.size && wake_ready(fd))
        lane_yield();
    hub_closed(fd);
}

static void
unsure_add(HubWait *wait)
{
    wait->unsure = &hub.unsure;
    wait->next_unsure = hub.unsure;
    if (hub.unsure)
        hub.unsure->unsure = &wait->next_unsure;
    hub.unsure = wait;
}

static void
unsure_remove(HubWait *wait)
{
    if (wait->unsure == NULL)
        return;
    *wait->unsure = wait->next_unsure;
    if (wait->next_unsure)
        wait->next_unsure->unsure = wait->unsure;
    wait->unsure = NULL;
}

/* What is ready by now, epoll says then. */
static void
make_sure(void)
{
    while (hub.unsure) {
        HubWait *wait = hub.unsure;
        unsure_remove(wait);
        if (!arm(wait->fd, slot_of(wait->fd))) {
            wait->revents = wait->events;
            lane_wake(wait->lane, WOKEN);
        }
    }
}

static void
remove_wait(HubWait *wait)
{
    HubWait **at = &slot_of(wait->fd)->first;
    unsure_remove(wait);
    while (*at && *at != wait)
        at = &(*at)->next;
    if (*at) {
        *at = wait->next;
        hub.waits--;
    }
}

Wake
hub_wait(HubWait *waits, int n, const char *waits_for, uint64_t deadline)
{
    prepare();
    for (int i = 0; i < n; i++) {
        if (waits[i].fd < 0)
            continue;
        Slot *slot = slot_of(waits[i].fd);
        waits[i].lane = lanes.running;
        waits[i].revents = 0;
        waits[i].next = slot->first;
        slot->first = &waits[i];
        waits[i].unsure = NULL;
        hub.waits++;
        if (slot->added && (slot->looked_for & waits[i].events) == waits[i].events)
            unsure_add(&waits[i]);
        else if (!arm(waits[i].fd, slot))
            waits[i].revents = waits[i].events;
    }
    bool ready = false;
    for (int i = 0; i < n; i++)
        ready |= waits[i].fd >= 0 && waits[i].revents;
    Wake wake = ready ? WOKEN : lane_wait(NULL, waits_for, deadline, true);
    for (int i = 0; i < n; i++)
        if (waits[i].fd >= 0)
            remove_wait(&waits[i]);
    return wake;
}

static void
wake_for(int fd, uint32_t events)
{
    for (HubWait *w = slot_of(fd)->first; w; w = w->next)
        if ((w->revents = events & (w->events | EPOLLERR | EPOLLHUP)))
            lane_wake(w->lane, WOKEN);
}

/* ---- helpers: threads that make a call for a lane; they know nothing of the interpreter ---- */

typedef struct Job {
    HelperCall call;
    void *argument;
    long result;
    int error;
    bool done;
    Lane *lane;
    pthread_t thread;
    struct Job *next;
} Job;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t work;
    Job *waiting, *done;
    int idle, busy; /* busy: jobs that lanes wait for */
} helpers = {.lock = PTHREAD_MUTEX_INITIALIZER, .work = PTHREAD_COND_INITIALIZER};

#define INTERRUPT (SIGRTMAX - 2) /* tells a helper to come back from its call */

static void *
helper_main(void *unused)
{
    sigset_t all;
    sigfillset(&all);
    sigdelset(&all, INTERRUPT);
    pthread_sigmask(SIG_SETMASK, &all, NULL); /* the program's signals are for the thread of the lanes */
    pthread_mutex_lock(&helpers.lock);
    for (;;) {
        helpers.idle++;
        while (helpers.waiting == NULL)
            pthread_cond_wait(&helpers.work, &helpers.lock);
        helpers.idle--;
        Job *job = helpers.waiting;
        helpers.waiting = job->next;
        job->thread = pthread_self();
        pthread_mutex_unlock(&helpers.lock);
        long result = job->call(job->argument);
        int error = errno;
        pthread_mutex_lock(&helpers.lock);
        job->result = result;
        job->error = error;
        job->done = true;
        job->next = helpers.done;
        helpers.done = job;
        hub_notify();
    }
    return NULL;
}

static void
nothing(int signum)
{
}

static bool
start_helper(void)
{
    static bool prepared;
    if (!prepared) {
        struct sigaction action = {.sa_handler = nothing}; /* without SA_RESTART: the call is interrupted */
        sigaction(INTERRUPT, &action, NULL);
        prepared = true;
    }
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 256 << 10); /* getaddrinfo is what needs most */
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&thread, &attributes, helper_main, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return rc == 0;
}

/* If it is, nobody will look at it any more. */
static bool
is_done(Job *job)
{
    pthread_mutex_lock(&helpers.lock);
    bool done = job->done;
    Job **at = &helpers.done;
    while (*at && *at != job)
        at = &(*at)->next;
    if (*at)
        *at = job->next;
    pthread_mutex_unlock(&helpers.lock);
    return done;
}

/* A signal has come for the lane: the helper is called back until it is. */
static void
call_back(Job *job)
{
    pthread_mutex_lock(&helpers.lock);
    if (!job->done && job->thread)
        pthread_kill(job->thread, INTERRUPT);
    pthread_mutex_unlock(&helpers.lock);
}

static long
help(HelperCall call, void *argument, const char *waits_for, bool interruptible)
{
    Job job = {.call = call, .argument = argument, .lane = lanes.running}, **at;
    prepare();
    pthread_mutex_lock(&helpers.lock);
    for (at = &helpers.waiting; *at; at = &(*at)->next)
        ;
    *at = &job;
    bool enough = helpers.idle > 0 && job.next == NULL && helpers.waiting == &job;
    pthread_cond_signal(&helpers.work);
    pthread_mutex_unlock(&helpers.lock);
    if (!enough && !start_helper() && helpers.idle == 0) {
        pthread_mutex_lock(&helpers.lock);
        for (at = &helpers.waiting; *at && *at != &job; at = &(*at)->next)
            ;
        bool taken = *at == NULL;
        if (!taken)
            *at = job.next;
        pthread_mutex_unlock(&helpers.lock);
        if (!taken)
            return call(argument); /* no thread to be had: everybody waits */
    }
    helpers.busy++;
    while (!is_done(&job))
        if (lane_wait(NULL, waits_for, NEVER, interruptible) == INTERRUPTED)
            call_back(&job);
    helpers.busy--;
    errno = job.error;
    return job.result;
}

long
hub_help(HelperCall call, void *argument, const char *waits_for)
{
    return help(call, argument, waits_for, true);
}

long
hub_help_to_end(HelperCall call, void *argument, const char *waits_for)
{
    return help(call, argument, waits_for, false);
}

static void
wake_helped(void)
{
    pthread_mutex_lock(&helpers.lock);
    Job *job = helpers.done;
    helpers.done = NULL;
    for (; job; job = job->next)
        lane_wake(job->lane, WOKEN);
    pthread_mutex_unlock(&helpers.lock);
}

void
hub_notify(void)
{
    uint64_t one = 1;
    if (hub.notice > 0 && write(hub.notice, &one, sizeof one) < 0)
        errno = 0; /* full: it is seen anyway */
}

/* ---- looking ---- */

bool
hub_is_idle(void)
{
    return hub.waits == 0 && hub.timers == 0 && helpers.busy == 0;
}

bool
hub_has_news(void)
{
    uint64_t deadline = __atomic_load_n(&first_deadline, __ATOMIC_RELAXED);
    struct pollfd epoll = {hub.epoll, POLLIN, 0};
    if (deadline != NEVER && deadline <= monotonic_ns())
        return true;
    return (hub.waits || helpers.busy) && poll(&epoll, 1, 0) > 0;
}

static void
take_events(struct epoll_event *events, int n)
{
    uint64_t count;
    for (int i = 0; i < n; i++)
        if (events[i].data.fd != hub.notice)
            wake_for(events[i].data.fd, events[i].events);
        else if (read(hub.notice, &count, sizeof count) > 0)
            wake_helped();
}

/* In a future nothing comes from outside. What threads of C libraries do is waited for: it takes no simulated time. */
static void
pass_time(void)
{
    struct pollfd epoll = {hub.epoll, POLLIN, 0};
    if (poll(&epoll, 1, helpers.busy ? -1 : 0) > 0 || lanes_signal_due()) {
        lanes_hooks.has_news();
        return;
    }
    if (lanes_hooks.takes_turns()) {
        if (!lanes_hooks.await_turn(hub.timers ? hub.heap[1]->deadline : NEVER, lanes_have_run()))
            lanes_hang();
    }
    else if (hub.timers)
        simulated_reaches(hub.heap[1]->deadline);
    else
        lanes_hang();
}

/* Until something comes, or a signal. One that came before is seen: signals are blocked until the kernel waits. */
static void
sleep_until_notice(void)
{
    if (core.is_future) {
        pass_time();
        return;
    }
    sigset_t all, before;
    struct pollfd epoll = {hub.epoll, POLLIN, 0};
    struct timespec time = {0};
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    if (hub.timers) {
        uint64_t now = monotonic_ns(), deadline = hub.heap[1]->deadline, left = deadline > now ? deadline - now : 0;
        time.tv_sec = (time_t)(left / 1000000000);
        time.tv_nsec = (long)(left % 1000000000);
    }
    /* with the main lane's mask: signals are for that one */
    sigset_t *mask = lanes.chooser == lanes.main ? &before : &lanes.main->mask;
    if (!lanes_signal_due()) /* ppoll counts nanoseconds */
        ppoll(&epoll, 1, hub.timers ? &time : NULL, mask);
    sigprocmask(SIG_SETMASK, &before, NULL);
}

#define LONGEST_UNSURE 50000000u /* ns, while nobody sleeps */

static void
make_sure_now_and_then(void)
{
    static unsigned looks;
    static uint64_t last;
    if (++looks & 255)
        return;
    uint64_t now = monotonic_ns();
    if (now - last > LONGEST_UNSURE) {
        last = now;
        make_sure();
    }
}

void
hub_look(bool may_sleep)
{
    struct epoll_event events[64];
    int n = 0;
    if (may_sleep) {
        prepare();
        make_sure();
        if (lanes.ready_count == 0)
            sleep_until_notice();
    }
    else
        make_sure_now_and_then();
    if (may_sleep || hub.waits || helpers.busy)
        n = epoll_wait(hub.epoll, events, 64, 0);
    if (n > 0)
        take_events(events, n);
    wake_late();
}

/* In a child: the helpers are not there, and the epoll is its parent's. The program must not find our descriptors among
 * its own. */
void
hub_forked(void)
{
    log_sync_forked();
    if (hub.epoll > 0) {
        fd_forget(hub.epoll);
        fd_forget(hub.notice);
    }
    memset(&hub, 0, sizeof hub);
    first_deadline = NEVER;
    helpers.waiting = helpers.done = NULL;
    helpers.idle = helpers.busy = 0;
    pthread_mutex_init(&helpers.lock, NULL);
    pthread_cond_init(&helpers.work, NULL);
}
