/* The lanes: making them, switching between them, who is next. See lanes.h. */
#include "base/core.h"
#include "clock/clock.h"
#include "code/code.h"
#include "collector/collector.h"
#include "crossing/crossing.h"
#include "lanes/inside.h"
#include "log/log.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define IDENTS                                                                                                         \
    0x2c0000000000ul /* where idents lie: addresses that are the same in every replay, and memory, since libc gets them; sanitizers leave them free */
#define IDENT_STEP 4096ul
#define MOST_IDENTS 262144
#define MORE_IDENTS 16 /* so many get memory at a time: a program may be allowed few addresses */
#define KEYS 1024
#define MOST_SPARED 5000
#define LOWEST_DRAWN (1u << 31) /* priorities below it are of those who were preempted */

Lanes lanes;
__thread bool on_lanes;
static Lane *ended; /* one whose stack could not be given back while it was on it */
static struct {
    Lane *first, *last;
} waiting[KEYS]; /* by what they wait for */
static struct {
    uint64_t state; /* of the generator */
    bool chaos;
    bool counts_lines;  /* ticks are lines, too: with chaos, from where it begins */
    bool lines_are_due; /* they will be after the next record */
    uint64_t seed;
    uint64_t mean; /* of a slice, in ticks */
    bool is_fixed; /* it is asked for: nobody looks at the time */
    /* Most bugs need one or two switches at the right places and that nobody disturbs the others for long, some need
     * many close to each other. So how fine slices are is drawn once for each run, and in half of the runs who was
     * preempted stands back until all others wait (Burckhardt and others: A randomized scheduler with probabilistic
     * guarantees of finding bugs, 2010). */
    unsigned fineness; /* chaos: the longest usual slice */
    bool by_priority;  /* chaos: who can run and has the highest priority does */
    bool own_only;     /* chaos: slices are of ticks in the program's own code, not in libraries */
    uint64_t own_left; /* then: until the slice is used up */
    uint64_t spared;   /* and ticks of libraries since the last one was */
    uint32_t lowest;   /* priority that has been given away */
} preemption;
static uint64_t last_tstate; /* the interpreter numbers them */
/* replay: what happens after as many ticks as are left */
static enum { NOTHING, A_PREEMPTION, A_HANDLER } due;
static void slice_used_up(void);
static bool deadlock_said, stop_on_deadlock;

/* ---- idents ---- */

uintptr_t
lane_ident(const Lane *lane)
{
    return IDENTS + (uintptr_t)(lane->id % MOST_IDENTS) * IDENT_STEP;
}

/* Idents are handed to the C library by programs: what it reads and writes there must be memory. */
static bool
ident_gets_memory(int id)
{
    static int have;
    if (id % MOST_IDENTS < have)
        return true;
    void *next = (void *)(IDENTS + (uintptr_t)have * IDENT_STEP);
    void *at = mmap(next, MORE_IDENTS * IDENT_STEP, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (at != next && at != MAP_FAILED)
        munmap(at, MORE_IDENTS * IDENT_STEP); /* by a kernel that does not know the last flag */
    if (at != next)
        return false;
    have += MORE_IDENTS;
    return true;
}

static Lane *
lane_numbered(int id)
{
    return id >= 0 && id < lanes.made ? lanes.at[id] : NULL;
}

bool
lane_is_ident(uintptr_t ident)
{
    return ident >= IDENTS && ident < IDENTS + MOST_IDENTS * IDENT_STEP && (ident - IDENTS) % IDENT_STEP == 0;
}

Lane *
lane_of_ident(uintptr_t ident)
{
    int id = lane_is_ident(ident) ? (int)((ident - IDENTS) / IDENT_STEP) : -1;
    if (id < 0)
        return NULL;
    /* the youngest that had it */
    for (int i = id + (lanes.made - 1) / MOST_IDENTS * MOST_IDENTS; i >= 0; i -= MOST_IDENTS)
        if (lane_numbered(i))
            return lane_numbered(i);
    return NULL;
}

bool
lane_has_gil(void)
{
    PyThreadState *attached = compat_attached();
    return attached && attached == core.tstate;
}

/* ---- chance ---- */

/* splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014) */
static uint64_t
chance(void)
{
    uint64_t z = preemption.state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

#define LONG_SLICE (1u << 20)

static uint64_t
next_slice(void)
{
    if (schedule_is_given())
        return schedule_slice();
    if (contender_begin())
        return LONG_SLICE; /* it is over when another lane would have the interpreter's lock */
    if (!preemption.chaos)
        return preemption.mean / 2 + 1 + chance() % preemption.mean;
    /* Now and then a slice is long all the same. */
    return 1 + chance() % (chance() % 8 ? preemption.fineness : preemption.fineness * 16u);
}

/* ---- queues ---- */

static void
ready_append(Lane *lane)
{
    lane->is_ready = true;
    lane->next_ready = NULL;
    if (lanes.ready_last)
        lanes.ready_last->next_ready = lane;
    else
        lanes.ready_first = lane;
    lanes.ready_last = lane;
    __atomic_store_n(&lanes.ready_count, lanes.ready_count + 1, __ATOMIC_SEQ_CST);
    if (lanes.ready_count == 1)
        contender_lane_can_run();
    schedule_can_run(lane);
}

static Lane *
ready_take(int place)
{
    Lane *before = NULL, *lane = lanes.ready_first;
    for (int i = 0; i < place; i++) {
        before = lane;
        lane = lane->next_ready;
    }
    if (before)
        before->next_ready = lane->next_ready;
    else
        lanes.ready_first = lane->next_ready;
    if (lanes.ready_last == lane)
        lanes.ready_last = before;
    lane->is_ready = false;
    __atomic_store_n(&lanes.ready_count, lanes.ready_count - 1, __ATOMIC_SEQ_CST);
    return lane;
}

static size_t
slot_of(const void *key)
{
    return ((uintptr_t)key >> 4 ^ (uintptr_t)key >> 14) & (KEYS - 1);
}

static void
waiting_add(Lane *lane)
{
    size_t i = slot_of(lane->key);
    lane->next_waiting = NULL;
    lane->previous_waiting = waiting[i].last;
    if (waiting[i].last)
        waiting[i].last->next_waiting = lane;
    else
        waiting[i].first = lane;
    waiting[i].last = lane;
}

static void
waiting_remove(Lane *lane)
{
    size_t i = slot_of(lane->key);
    if (lane->previous_waiting)
        lane->previous_waiting->next_waiting = lane->next_waiting;
    else
        waiting[i].first = lane->next_waiting;
    if (lane->next_waiting)
        lane->next_waiting->previous_waiting = lane->previous_waiting;
    else
        waiting[i].last = lane->previous_waiting;
    lane->key = NULL;
}

void
lane_wake(Lane *lane, Wake wake)
{
    if (lane->is_ready || lane == lanes.running)
        return;
    if (lane->key)
        waiting_remove(lane);
    if (lane->heap_index)
        hub_forget(lane);
    lane->wake = wake;
    ready_append(lane);
}

void
lane_wake_first(const void *key)
{
    for (Lane *l = waiting[slot_of(key)].first; l; l = l->next_waiting)
        if (l->key == key) {
            if (core.mode != REPLAY)
                lane_wake(l, WOKEN);
            return;
        }
}

void
lane_wake_all(const void *key)
{
    for (Lane *l = waiting[slot_of(key)].first, *next; l && core.mode != REPLAY; l = next) {
        next = l->next_waiting;
        if (l->key == key)
            lane_wake(l, WOKEN);
    }
}

/* A thread that is no lane has raised a semaphore since the lanes were last looked at: one may wait for it. */
static bool raised_elsewhere;

void
lanes_raised_elsewhere(void)
{
    __atomic_store_n(&raised_elsewhere, true, __ATOMIC_SEQ_CST);
    hub_notify();
}

bool
lanes_may_be_woken(void)
{
    return __atomic_load_n(&raised_elsewhere, __ATOMIC_SEQ_CST);
}

static void
wake_by_foreign_threads(void)
{
    __atomic_store_n(&raised_elsewhere, false, __ATOMIC_SEQ_CST);
    for (int i = 0; i < KEYS; i++)
        for (Lane *l = waiting[i].first, *next; l; l = next) {
            next = l->next_waiting;
            if (l->waits_for == waits_for_lock && lane_semaphore_free(l->key))
                lane_wake(l, WOKEN);
        }
}

/* ---- who is next, while recording ---- */

/* The interpreter runs handlers in the main lane alone: if that one waits, it is notified of the signal, as the
 * kernel tells a thread. Once for each arrival: whoever does not look at signals waits on. */
static bool told_of_signal;

bool
lanes_signal_due(void)
{
    if (!compat_signals_tripped())
        told_of_signal = false;
    else if (!told_of_signal)
        return lanes.main->interruptible && !lanes.main->is_ready && lanes.running != lanes.main;
    return false;
}

static void
wake_for_signal(void)
{
    if (lanes_signal_due()) {
        told_of_signal = true;
        lane_wake(lanes.main, INTERRUPTED);
    }
}

static void
wake_for_notices(void)
{
    if (lanes_may_be_woken())
        wake_by_foreign_threads();
    wake_for_signal();
}

/* A connection of a future holds less than one of TCP: whether this one would have waited is not known. */
static bool
waits_for_room(void)
{
    for (int i = 0; i < lanes.made; i++)
        if (lanes.at[i] && !lanes.at[i]->ended && lanes.at[i]->waits_for == waits_for_room_to_send)
            return true;
    return false;
}

static void
say_deadlock(void)
{
    deadlock_said = true;
    if (core.is_future && waits_for_room())
        diverge("outside", NULL, NULL, "more room in a connection than it has");
    report_deadlock();
    if (stop_on_deadlock) {
        cross_ended(EXIT_DEADLOCK);
        if (core.is_future)
            diverge("deadlock", NULL, NULL, "");
        leave_process(EXIT_DEADLOCK);
    }
}

void
lanes_hang(void)
{
    say_deadlock();
}

static int
place_of_next(void)
{
    int best = 0, place = 0;
    if (schedule_is_given() && !preemption.by_priority)
        return schedule_place();
    if (!preemption.chaos || lanes.ready_count < 2)
        return 0;
    if (!preemption.by_priority)
        return (int)(chance() % (uint64_t)lanes.ready_count);
    uint32_t highest = 0;
    for (Lane *l = lanes.ready_first; l; l = l->next_ready, place++)
        if (l->priority > highest) {
            highest = l->priority;
            best = place;
        }
    return best;
}

static bool has_run = true; /* a lane, since it was asked last */

void
lanes_vfork_begins(void)
{
    lanes.alone = lanes.running;
}

void
lanes_vfork_ended(void)
{
    lanes.alone = NULL;
}

bool
lanes_have_run(void)
{
    bool have = has_run;
    has_run = false;
    return have;
}

static Lane *
choose(void)
{
    static unsigned turns;
    lanes.chooser = lanes.running;
    lanes.running = NULL; /* it may be woken before it has left */
    core.lane = 0;
    if (lanes.ready_count == 0 || (++turns & 7) == 0)
        hub_look(false);
    wake_for_notices();
    while (lanes.ready_count == 0) {
        /* else there may be genuine threads */
        bool has_others = core.is_future && lanes_hooks.takes_turns(); /* who may raise a semaphore */
        if (hub_is_idle() && !has_others && !deadlock_said && lanes.alive > 0 && core.mode != OBSERVE)
            say_deadlock();
        hub_begin();               /* from now on a foreign thread that raises a semaphore is heard: */
        wake_by_foreign_threads(); /* one may have done so before */
        if (lanes.ready_count == 0)
            hub_look(true);
        wake_by_foreign_threads();
        wake_for_signal();
    }
    lanes.running = lanes.chooser;
    core.lane = lanes.running->id;
    int place = place_of_next();
    schedule_chosen(place);
    has_run = true;
    return ready_take(place);
}

/* ---- switching ---- */

static void
forget_ended(void)
{
    if (ended == NULL)
        return;
    stack_give_back(ended);
    lanes.at[ended->id] = NULL; /* whoever joins it later finds nobody of that ident: it has ended */
    free(ended->specific);
    free(ended->name);
    free(ended->locals);
    free(ended->crossing.sending.data);
    free(ended);
    ended = NULL;
}

static void
arrive(void)
{
    stack_arrived();
    errno = lanes.running->saved_errno;
    forget_ended();
    schedule_arrived();
}

/* The C stacks change here. What the running lane has of the core's state goes with it. */
static void
switch_to(Lane *next)
{
    Lane *from = lanes.running;
    from->depth = core.depth;
    from->saved_errno = errno;
    cross_state_swap(&from->crossing, &next->crossing);
    listen_switch(&from->tracing, &next->tracing);
    locals_switch(from, next);
    lanes.running = next;
    core.lane = next->id;
    compat_forget_raised();
    checks_go_on();
    core.tstate = next->tstate;
    core.depth = next->depth;
    stack_change(from, next);
    arrive();
}

/* What a lane has changed by now, the next one has not: the debugger wants to know who it was. */
static void
look_at_watched(bool attached)
{
    if (!attached)
        PyEval_RestoreThread(core.tstate);
    lanes_hooks.look_at_watched(NULL);
    if (!attached)
        PyEval_SaveThread();
}

/* Gives up as the interpreter's threads do: without the lock of the interpreter, and, in the middle of a crossing, with
 * the collector as the program left it. */
static void
leave_and_return(Lane *next)
{
    bool attached = lane_has_gil(), in_crossing = core.depth > 0 && core.tstate;
    PyGC_Head *aside = NULL;
    if (__builtin_expect(stepclock.looks, 0) && lanes_hooks.is_watched() && core.tstate)
        look_at_watched(attached);
    if (in_crossing) {
        if (!attached)
            PyEval_RestoreThread(core.tstate);
        aside = collector_set_aside();
        collector_resume();
    }
    if (attached || in_crossing)
        PyEval_SaveThread();
    switch_to(next);
    if (attached || in_crossing)
        PyEval_RestoreThread(core.tstate);
    contender_turn();
    if (in_crossing) {
        collector_pause(false);
        collector_take_back(aside);
        if (!attached) {
            contender_comes_back();
            PyEval_SaveThread();
        }
    }
}

static void
record_switch(Lane *next, Why why)
{
    uint64_t numbers[3] = {(uint64_t)next->id, (uint64_t)why | (uint64_t)next->wake << 2, ticks_since()};
    schedule_switches(next, why);
    if (core.mode == RECORD)
        cross_control(CONTROL_LANE, numbers, 3);
    ticks_event();
    schedule_switched();
    lanes_varied();
}

/* Replay: who goes on, by the numbers of a LANE record. */
static Lane *
recorded_next(const uint64_t numbers[3])
{
    char text[120];
    Lane *next = lane_numbered((int)numbers[0]);
    if (next == NULL || next->ended) {
        snprintf(text, sizeof text, "thread %d continues in the recording, but does not exist here", (int)numbers[0]);
        diverge("thread", NULL, NULL, text);
    }
    if (core.strict && numbers[2] != ticks_since()) {
        snprintf(text, sizeof text, "thread %d computed %lld ticks in the recording, but %lld now", lanes.running->id,
                 (long long)numbers[2], (long long)ticks_since());
        diverge("ticks", NULL, NULL, text);
    }
    next->wake = (Wake)(numbers[1] >> 2 & 3);
    ticks_event();
    core.switches_passed += core.live_at && core.crossings + 1 == core.live_at;
    return next;
}

/* NULL if the log has no switch here. */
static Lane *
replayed_switch(Why why)
{
    uint64_t numbers[3];
    return cross_read_switch(why, numbers) ? recorded_next(numbers) : NULL;
}

/* A lane that is alone is counted no longer. Not at once: often another one begins soon, and a change costs both. */
static void
count_no_longer(void)
{
    if (lanes.alive > 1)
        return;
    contender_end();
    if (ticks_are_counted)
        ticks_slice(LONG_SLICE);
}

static void
go_on(Lane *next)
{
    if (next != lanes.running)
        leave_and_return(next);
    count_no_longer();
    if (core.mode == REPLAY && core.depth == 0)
        cross_read_ahead(); /* a preemption or a handler may be due */
}

void
lanes_go_on(Lane *next)
{
    go_on(next);
}

void
lanes_expect_nothing(void)
{
    due = NOTHING;
}

void
lane_switch_inside(const uint64_t numbers[3])
{
    if ((numbers[1] & 3) != INSIDE_A_CROSSING)
        diverge("thread", NULL, NULL, "in the recording another thread continued before this");
    go_on(recorded_next(numbers));
}

/* One gives up in the middle of the crossing that is read. */
void
lane_switches_inside(Crossing *open)
{
    uint64_t numbers[3];
    Lane *self = lanes.running;
    for (int i = 0; i < 3; i++)
        numbers[i] = cross_read_number();
    self->within = open;
    lane_switch_inside(numbers);
    self->within = NULL;
}

/* The next record is about a switch: if it is a preemption, the lane that runs must know. It is read where it happens.
 */
bool
lane_switch_is_ahead(void)
{
    const uint8_t *here = event_log.rp++;
    uint64_t numbers[3];
    for (int i = 0; i < 3; i++)
        numbers[i] = cross_read_number();
    event_log.rp = here;
    if ((numbers[1] & 3) == PREEMPTED)
        lanes_expect_preemption(numbers[2]);
    return true;
}

/* ---- what lanes do ---- */

static Why
reason(void)
{
    return core.depth > 0 ? INSIDE_A_CROSSING : FOR_A_LOCK;
}

Wake
lane_wait(const void *key, const char *waits_for, uint64_t deadline, bool interruptible)
{
    Lane *self = lanes.running, *next;
    Why why = reason();
    if (engine.diverting)
        lanes_hooks.would_wait(waits_for ? waits_for : "something");
    if (core.lenient)
        return lanes_hooks.lenient_wait(key, waits_for, deadline, interruptible, why);
    if (core.mode == REPLAY && core.goes_live && crossing_hooks.live_inside())
        deadline = lane_clock_deadline(deadline); /* it was computed by the replay's clock */
    if (core.mode == REPLAY) {
        self->waits_for = waits_for;
        self->key = key;
        self->deadline = deadline;
        self->interruptible = interruptible;
        next = replayed_switch(why);
        if (next == NULL && (self->wake != INTERRUPTED || deadline == NEVER))
            diverge("thread", NULL, NULL, "it waits here, but continued in the recording");
        if (next == NULL)
            return TIMED_OUT; /* its deadline had passed when a signal interrupted it: then nobody waited again */
        self->waits = true;
        go_on(next);
        self->waits = self->interruptible = false;
        self->waits_for = NULL;
        self->key = NULL;
        return self->wake;
    }
    self->key = key;
    self->waits_for = waits_for;
    self->interruptible = interruptible;
    self->deadline = deadline;
    self->is_ready = false;
    if (key)
        waiting_add(self);
    if (deadline != NEVER)
        hub_time(self);
    next = choose();
    if (why == FOR_A_LOCK || next != self)
        record_switch(next, why);
    go_on(next);
    self->waits_for = NULL;
    self->interruptible = false;
    return self->wake;
}

/* Gives way if another one can run. */
static void
give_way(Why why, bool keeps_priority)
{
    Lane *self = lanes.running;
    if (core.is_future)
        simulated_computes(false); /* one that looks again and again for what another one does after a while */
    hub_look(false);
    wake_for_notices();
    if (lanes.ready_count == 0) {
        schedule_stays();
        contender_turn();
        return;
    }
    self->wake = WOKEN;
    if (!keeps_priority)
        self->priority = --preemption.lowest;
    ready_append(self);
    Lane *next = choose();
    if (next == self) {
        schedule_stays();
        contender_turn();
        return;
    }
    record_switch(next, why);
    go_on(next);
}

void
lane_yield(void)
{
    if (core.mode != REPLAY) /* in which it is inside a crossing, whose end reads the log */
        give_way(reason(), false);
}

/* ---- preemption ---- */

/* Replay: the next thing in the log is that the running lane is preempted, so many ticks after the last event or
 * switch. */
void
lanes_expect_preemption(uint64_t ticks)
{
    if (core.lenient && ticks <= ticks_since())
        return; /* the place has been gone by: it is left out at the next crossing */
    if (ticks <= ticks_since())
        diverge("ticks", NULL, NULL, "the recording switched to another thread earlier");
    due = A_PREEMPTION;
    ticks_slice(ticks - ticks_since());
}

/* How far the running lane has computed, for the place of a signal handler: 0 if ticks are not counted, else 1 more
 * than their number since the last event or switch. Without it, the first passage of a loop would do as well as the one
 * where the signal came. */
uint64_t
lanes_place(void)
{
    return on_lanes && lanes.is_on && lanes.alive > 1 ? ticks_since() + 1 : 0;
}

/* Replay: a handler is due there. False: it is here already, or ticks are not counted. */
bool
lanes_expect_place(uint64_t ticks)
{
    if (ticks == 0 || ticks <= lanes_place())
        return false;
    due = A_HANDLER;
    ticks_slice(ticks - lanes_place());
    return true;
}

/* Of a small program most ticks are the library's, that starts its threads: the places where it goes wrong would seldom
 * be met. But a library may wait for another lane by looking again and again. */
static bool
is_spared(void)
{
    if (!preemption.own_only || core.mode != RECORD || lanes.alive == 1)
        return false;
    _PyInterpreterFrame *frame = compat_top_frame(core.tstate);
    bool is_library = frame == NULL || code_facts(compat_frame_code(frame))->is_library;
    ticks_slice(1);
    if (is_library ? ++preemption.spared < MOST_SPARED : --preemption.own_left > 0)
        return true;
    preemption.own_left = next_slice();
    preemption.spared = 0;
    return false;
}

static void
slice_used_up(void)
{
    int is_due = due;
    if (is_spared())
        return;
    bool is_replay = core.mode == REPLAY;
    if (core.goes_live)
        crossing_hooks.live_inside();
    if (is_replay && core.is_future)
        return; /* a future need not give way where the recorded run did */
    Turn turn = schedule_is_given() ? schedule_due() : GIVES_WAY;
    due = NOTHING;
    ticks_slice(core.mode == REPLAY || lanes.alive == 1 ? LONG_SLICE : preemption.own_only ? 1 : next_slice());
    if (!on_lanes || !lanes.is_on)
        return;
    if (lanes.alive == 1)
        ticks_off();
    else if (core.mode != REPLAY)
        turn == GOES_ON ? (void)0 : give_way(PREEMPTED, turn == IS_OVERTAKEN);
    else if (is_due == A_HANDLER)
        lanes_hooks.look_for_signals();
    else if (core.lenient)
        lanes_hooks.lenient_slice_used_up(is_due == A_PREEMPTION);
    else if (is_due == A_PREEMPTION) {
        Lane *next = replayed_switch(PREEMPTED);
        if (next == NULL)
            diverge("thread", NULL, NULL, "it is preempted here, but continued in the recording");
        go_on(next);
    }
}

/* ---- beginning and end ---- */

static void
note_start(Lane *lane)
{
    PyObject *name = NULL, *key;
    own_work_begin();
    _PyInterpreterFrame *frame = compat_top_frame(core.tstate); /* Thread.start() */
    PyObject *thread = frame && compat_frame_code(frame)->co_nlocalsplus > 0 ? compat_frame_value(frame, 0) : NULL;
    if (thread && PyUnicode_CompareWithASCIIString(compat_frame_code(frame)->co_name, "start") == 0 &&
        (key = PyUnicode_InternFromString("_name"))) {
        name = PyObject_GenericGetAttr(thread, key);
        Py_DECREF(key);
    }
    PyErr_Clear();
    const char *text = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;
    PyErr_Clear();
    lane->name = text ? strdup(text) : NULL;
    cross_lane_started(lane->id, name);
    Py_XDECREF(name);
    own_work_end();
}

static void
lane_main(void)
{
    arrive();
    contender_turn();
    if (core.mode == REPLAY)
        cross_read_ahead(); /* it may be preempted before its first crossing */
    void *result = lanes.running->start(lanes.running->argument);
    if (!lanes.is_on)
        exit(0); /* the last thread of a child that it has forked */
    lane_end(result);
}

static bool
enter_in_table(Lane *lane)
{
    if (lanes.made == lanes.size) {
        int size = lanes.size ? lanes.size * 2 : 64;
        Lane **at = realloc(lanes.at, (size_t)size * sizeof *at);
        if (at == NULL)
            return false;
        lanes.at = at;
        lanes.size = size;
    }
    if (!ident_gets_memory(lanes.made))
        return false;
    lane->id = lanes.made;
    lanes.at[lanes.made++] = lane;
    core.lanes_made = lanes.made;
    lanes.alive++;
    return true;
}

/* Threads cannot be preempted where ticks cannot be counted. No build is known. */
static void
refuse_build(void)
{
    static const char what[] = "threads in this build of Python, whose calls and jumps cannot be counted";
    if (core.mode == REPLAY)
        diverge("unsupported", NULL, NULL, what);
    note("unsupported", what);
    log_fail(4);
}

/* Ticks are counted while there are several lanes. */
static void
count_ticks(void)
{
    ticks_event();
    if (!ticks_are_counted && ticks_on(LONG_SLICE, preemption.counts_lines, slice_used_up) < 0)
        refuse_build();
    if (core.mode == REPLAY)
        cross_read_ahead(); /* a preemption may be due */
    else
        ticks_slice(preemption.own_only ? 1 : next_slice());
}

void
lanes_count_from_start(void)
{
    if (ticks_on(LONG_SLICE, preemption.counts_lines, slice_used_up) < 0)
        Py_FatalError("replaydbg: ticks cannot be counted");
}

Lane *
lane_make(size_t stack_size, void *(*start)(void *), void *argument)
{
    Lane *lane = calloc(1, sizeof *lane);
    if (lane == NULL || !stack_take(lane, stack_size) || !enter_in_table(lane)) {
        if (lane)
            stack_give_back(lane);
        free(lane);
        return NULL;
    }
    lane->parent = lanes.running->id;
    lane_name_at_start(lane);
    lane->priority = LOWEST_DRAWN + (uint32_t)(chance() % LOWEST_DRAWN);
    lane->start = start;
    lane->argument = argument;
    lane->deadline = NEVER;
    stack_prepare(lane, lane_main);
    if (lane_has_gil()) {
        /* The interpreter has just made the new thread's state; threads of its own C code have none. */
        PyThreadState *newest = PyInterpreterState_ThreadHead(core.tstate->interp);
        lane->tstate = newest->id > last_tstate ? newest : NULL;
        last_tstate = newest->id;
        note_start(lane);
        count_ticks();
        listen_started(lane->tstate);
    }
    if (core.mode != REPLAY && !lane->is_ready) /* a replay may just have become a recording */
        ready_append(lane);
    return lane;
}

_Noreturn void
lane_end(void *result)
{
    Lane *self = lanes.running, *next;
    locals_end(self);
    self->ended = true;
    self->result = result;
    lanes.alive--;
    if (core.depth > 0)
        collector_put_back(); /* the interpreter ends threads wherever they ask for its lock, in crossings too */
    core.tstate = self->tstate = NULL; /* the interpreter has freed it */
    if (lanes.alive == 0)
        exit(0); /* the last thread of a child that is recorded: the first lane, which never ends here, is not in it */
    if (self == lanes.main)
        lanes.main = &lanes.first; /* there is none any more */
    lane_wake_all(self);
    if (core.goes_live)
        crossing_hooks.live_inside();
    if (core.lenient)
        next = lanes_hooks.lenient_next_at_end();
    else if (core.mode == REPLAY) {
        next = replayed_switch(ENDED);
        if (next == NULL)
            diverge("thread", NULL, NULL, "it ends here, but continued in the recording");
    }
    else {
        next = choose();
        record_switch(next, ENDED);
    }
    ended = self;
    switch_to(next);
    abort();
}

/* A thread state that is not the running lane's: it has got one now, or another. Not if the thread is none of ours, or
 * the interpreter is another one. */
bool
lane_adopt(void)
{
    PyThreadState *ts = PyThreadState_Get();
    if (core.tstate == NULL && lanes.running == lanes.main)
        return false; /* the program has ended */
    if (!on_lanes) {
        note("uncovered", "a thread that C code has started calls Python functions");
        return false;
    }
    if (!lanes.is_on || ts->interp != PyInterpreterState_Main())
        return false;
    core.tstate = lanes.running->tstate = ts;
    listen_started(ts);
    return true;
}

void
lanes_obey(uint64_t seed, bool chaos, uint64_t mean, bool stop)
{
    static const uint16_t most[] = {4, 8, 16, 40, 150, 1000};
    preemption.state = preemption.seed = seed;
    preemption.chaos = preemption.counts_lines = chaos;
    preemption.fineness = most[chance() % 6];
    preemption.by_priority = chance() % 2;
    preemption.own_only = chaos && chance() % 4 != 0;
    preemption.lowest = LOWEST_DRAWN;
    preemption.mean = mean ? mean : 30000;
    preemption.is_fixed = mean > 0;
    preemption.own_left = next_slice();
    lanes.first.priority = LOWEST_DRAWN + (uint32_t)(chance() % LOWEST_DRAWN);
    stop_on_deadlock = stop;
}

int
lanes_vary(uint64_t seed, int schedule)
{
    bool counts_lines = preemption.counts_lines;
    lanes_obey(seed, true, 0, true);
    if (schedule_load(schedule) < 0)
        return -1;
    if (schedule_is_given()) {
        preemption.by_priority = schedule_has_priorities();
        preemption.own_only = false;
    }
    preemption.counts_lines = counts_lines;
    preemption.lines_are_due = !counts_lines;
    for (int i = 0; i < lanes.made; i++)
        if (lanes.at[i])
            lanes.at[i]->priority = LOWEST_DRAWN + (uint32_t)(chance() % LOWEST_DRAWN);
    return 0;
}

bool
lanes_draws(uint32_t *number, uint32_t below)
{
    *number = preemption.chaos ? (uint32_t)(chance() % below) : 0;
    return preemption.chaos;
}

static void
count_lines(void)
{
    preemption.lines_are_due = false;
    preemption.counts_lines = true;
    if (ticks_are_counted)
        ticks_of_lines();
}

/* A replay reads the record right behind that of the event or the switch, where it has counted nothing since, either. */
void
lanes_varied(void)
{
    if (!preemption.lines_are_due)
        return;
    cross_control(CONTROL_CHAOS, &preemption.seed, 1);
    count_lines();
}

void
lanes_count_lines(Crossing *open)
{
    cross_read_number();
    count_lines();
}

void
lanes_begin_lines(void)
{
    count_lines();
}

void
lanes_interpreter_ends(void)
{
    contender_allow(false);
}

void
lanes_fork_begins(void)
{
    contender_end();
}

void
lanes_forked(bool is_recorded)
{
    hub_forked();
    if (is_recorded)
        return;
    lanes.is_on = false; /* one thread lives on, on the stack where it is; those that it starts are genuine */
    ticks_forked();
}

/* In a child that is recorded, and in its replay: of all lanes the one that forked lives on, and is the main one from
 * now on. Numbers of lanes count on. Nothing of the others runs again; their stacks are not given back, as the kernel
 * keeps those of threads. */
void
lanes_forget_others(void)
{
    for (int i = 0; i < lanes.made; i++)
        if (lanes.at[i] && lanes.at[i] != lanes.running) {
            lanes.at[i]->ended = true;
            lanes.at[i] = NULL;
        }
    memset(waiting, 0, sizeof waiting);
    lanes.ready_first = lanes.ready_last = NULL;
    __atomic_store_n(&lanes.ready_count, 0, __ATOMIC_SEQ_CST);
    lanes.alive = 1;
    lanes.main = lanes.running;
    if (lanes.main != &lanes.first)
        lanes.first.interruptible = lanes.first.is_ready = false; /* it stands for the main one when that has ended */
    ended = NULL;
    due = NOTHING;
    deadlock_said = false;
    count_no_longer();
}

/* In a replay nobody stands in a queue: the log said who continues. A semaphore has its genuine value, so whoever waits
 * for one that is taken waits on; all others look again. */
void
lanes_continue(void)
{
    due = NOTHING;
    lane_clock_continues();
    for (int i = 0; i < lanes.made; i++) {
        Lane *lane = lanes.at[i];
        if (lane == NULL || lane->ended || lane == lanes.running || lane->is_ready)
            continue;
        bool is_taken = lane->waits && lane->waits_for == waits_for_lock && !lane_semaphore_free(lane->key);
        if (!is_taken) {
            lane->key = NULL;
            lane->wake = WOKEN;
            ready_append(lane);
            continue;
        }
        waiting_add(lane);
        lane->deadline = lane_clock_deadline(lane->deadline);
        if (lane->deadline != NEVER)
            hub_time(lane);
    }
    contender_allow(!preemption.chaos && !preemption.is_fixed && !ticks_are_reported);
    if (lanes.alive > 1)
        ticks_slice(preemption.own_only ? 1 : next_slice());
}

int
lanes_begin(void)
{
    lanes.main = &lanes.first;
    lanes.first.tstate = core.tstate;
    lanes.first.name = "MainThread";
    lanes.first.deadline = NEVER;
    last_tstate = core.tstate->id;
    lanes.running = &lanes.first;
    lane_name_at_start(&lanes.first);
    if (!enter_in_table(&lanes.first)) {
        PyErr_SetString(PyExc_RuntimeError, "replaydbg: no room for the numbers of threads");
        return -1;
    }
    on_lanes = true;
    lanes.is_on = true;
    core.tstate->thread_id = lane_ident(&lanes.first);
    _PyRuntime.main_thread = lane_ident(&lanes.first);
    /* slices that are drawn need no competition, nor do those of tests */
    contender_allow(core.mode == RECORD && !preemption.chaos && !preemption.is_fixed && !ticks_are_reported);
    stacks_begin();
    threads_install();
    libcalls_install();
    return 0;
}
