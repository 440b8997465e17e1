/* The schedule of a future. The launcher gives it in a file: it is drawn at random (lanes.c), or it is the usual one but
 * for a list of deviations, or the lane with the highest priority runs and priorities change at given ticks. Behind
 * that, the file gets what was decided, so that the launcher can give the same decisions, or some of them, again.
 *
 * A place is named by a lane and how far that one has come: the number of its marks (its events, and the threads that it
 * has started) and its ticks since. So it stays the same when others are scheduled in another way. */
#include "base/core.h"
#include "clock/clock.h"
#include "code/code.h"
#include "lanes/inside.h"
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

/* flags: decisions are written; and places where one was possible; with the variables that have plain values there */
enum { TRACES = 1, POINTS = 2, PLAIN = 4 };
enum { A_PREEMPTION, A_CHOICE, AN_ORDER, A_PAUSE }; /* kinds of deviations */
enum {
    TURN = 100000,
    MOST_READY = 64,
    MOST_PLAIN = 64,
    MOST_ORDERED = 8
}; /* TURN: ticks; 5 ms of simulated time, as threads of CPython */

typedef struct {
    uint32_t kind, flags;
    uint64_t count;
} Head;
typedef struct {
    uint32_t kind, lane;
    uint64_t marks, ticks;
    uint32_t value; /* the lane that goes on; of an order, its number; of a pause, microseconds */
    uint32_t is_done;
} Step;

static struct {
    enum { BY_CHANCE, BY_DEVIATIONS, BY_PRIORITIES } kind;
    uint32_t flags;
    int fd; /* 0: none */
    Step *steps;
    size_t count, open;               /* open: not done, and not passed by */
    uint64_t points;                  /* places in the program's own code at which another lane could have gone on */
    uint64_t began, since, turn_ends; /* ticks; since: the running lane came, or was marked */
    bool draws_pauses, is_preempted, is_turn_over, is_switching, is_overtaken;
    int64_t wanted; /* lane; -1: whoever is first */
    uint32_t ready[MOST_READY], ready_count;
    int place;
} plan;

bool
schedule_is_given(void)
{
    return plan.kind != BY_CHANCE;
}

/* Ticks of the running lane since its last mark. */
static uint64_t
position(void)
{
    return lanes.running->marked_ticks + (ticks_count() - plan.since);
}

static Step *
step_of(uint32_t kind, bool is_here)
{
    const Lane *self = lanes.running;
    uint64_t at = position();
    for (size_t i = 0; i < plan.count; i++) {
        Step *s = &plan.steps[i];
        if (s->is_done || s->kind != kind || s->lane != (uint32_t)self->id)
            continue;
        if (s->marks == self->marks && (is_here ? s->ticks == at : s->ticks > at))
            return s;
    }
    return NULL;
}

static void
done(Step *step)
{
    step->is_done = 1;
    plan.open--;
}

/* Those of the running lane that it has gone by can come no more. */
static void
forget_passed(void)
{
    const Lane *self = lanes.running;
    uint64_t at = position();
    for (size_t i = 0; i < plan.count; i++) {
        Step *s = &plan.steps[i];
        if (!s->is_done && s->lane == (uint32_t)self->id &&
            (s->marks < self->marks || (s->marks == self->marks && s->ticks < at)))
            done(s);
    }
}

static bool
notes_points(void)
{
    return (plan.flags & POINTS) && plan.open == 0;
}

uint64_t
schedule_slice(void)
{
    uint64_t now = ticks_count(), left = plan.turn_ends > now ? plan.turn_ends - now : 1;
    if (plan.kind == BY_PRIORITIES)
        return plan.is_overtaken || plan.open ? 1 : left;
    forget_passed();
    const Step *next = step_of(A_PREEMPTION, false);
    if (next && next->ticks - position() < left)
        left = next->ticks - position();
    return notes_points() ? 1 : left;
}

static void
heard(void)
{
    Lane *self = lanes.running;
    if (plan.is_switching || self == NULL)
        return;
    self->marks++;
    self->marked_ticks = 0;
    plan.since = ticks_count();
    if (schedule_is_given() && ticks_are_counted)
        ticks_slice(schedule_slice());
}

/* ---- what was decided ---- */

static void
put_text(Buf *b, PyObject *text)
{
    char bytes[LONGEST_NAME];
    size_t n = text_copy(bytes, sizeof bytes, text);
    buf_varint(b, n);
    buf_bytes(b, bytes, n);
}

/* Where a lane stands: in the program's own code, if it has been called from there. */
static void
put_place(Buf *b, const Lane *lane)
{
    PyThreadState *ts = lane == lanes.running ? core.tstate : lane->tstate;
    _PyInterpreterFrame *top = ts ? compat_top_frame(ts) : NULL, *frame = top;
    while (frame && code_is_library(compat_frame_code(frame)))
        frame = compat_previous_frame(frame);
    frame = frame ? frame : top;
    int line = frame ? PyCode_Addr2Line(compat_frame_code(frame), compat_frame_lasti(frame)) : 0;
    buf_varint(b, line > 0 ? (uint64_t)line : 0);
    if (line <= 0)
        return;
    put_text(b, compat_frame_code(frame)->co_filename);
    put_text(b, compat_frame_code(frame)->co_qualname);
}

static void
put_head(Buf *b, char kind)
{
    const Lane *self = lanes.running;
    buf_byte(b, (uint8_t)kind);
    buf_varint(b, (uint64_t)self->id);
    buf_varint(b, self->marks);
    buf_varint(b, position());
    buf_varint(b, ticks_count() - plan.began);
    buf_varint(b, core.crossings);
}

static void
put_ready(Buf *b)
{
    buf_varint(b, plan.ready_count);
    for (uint32_t i = 0; i < plan.ready_count; i++)
        buf_varint(b, plan.ready[i]);
}

static void
note_ready(void)
{
    plan.ready_count = 0;
    for (Lane *l = lanes.ready_first; l && plan.ready_count < MOST_READY; l = l->next_ready)
        plan.ready[plan.ready_count++] = (uint32_t)l->id;
}

static bool
is_own_code(void)
{
    _PyInterpreterFrame *frame = core.tstate ? compat_top_frame(core.tstate) : NULL;
    return frame && !code_facts(compat_frame_code(frame))->is_library;
}

/* Whether what Python does with it, and letting it go, runs no code of the program and reaches nothing else. */
static bool
is_plain(PyObject *value)
{
    return value == NULL || value == Py_None || PyLong_CheckExact(value) || PyBool_Check(value) ||
           PyFloat_CheckExact(value) || PyComplex_CheckExact(value) || PyUnicode_CheckExact(value) ||
           PyBytes_CheckExact(value);
}

static void
put_names(Buf *b, uint64_t n, Buf *names)
{
    buf_varint(b, n);
    buf_bytes(b, names->data, names->used);
    free(names->data);
}

/* The variables that only this call has, and that have a plain value, or none. */
static void
put_plain(Buf *b, _PyInterpreterFrame *frame)
{
    PyCodeObject *code = compat_frame_code(frame);
    uint64_t n = 0;
    Buf names = {0};
    for (int i = 0; i < code->co_nlocalsplus && n < MOST_PLAIN; i++) {
        int kind = _PyLocals_GetKind(code->co_localspluskinds, i);
        if (compat_is_hidden(kind) || (kind & (CO_FAST_CELL | CO_FAST_FREE)) || !is_plain(compat_frame_value(frame, i)))
            continue;
        put_text(&names, PyTuple_GET_ITEM(code->co_localsplusnames, i));
        n++;
    }
    put_names(b, n, &names);
}

/* The variables of the module that the code names, and that have a plain value. */
static void
put_plain_globals(Buf *b, _PyInterpreterFrame *frame)
{
    PyObject *named = compat_frame_code(frame)->co_names;
    uint64_t n = 0;
    Buf names = {0};
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(named) && n < MOST_PLAIN; i++) {
        PyObject *value = read_key(frame->f_globals, PyTuple_GET_ITEM(named, i));
        if (value == NULL || !is_plain(value))
            continue;
        put_text(&names, PyTuple_GET_ITEM(named, i));
        n++;
    }
    put_names(b, n, &names);
}

static void
note_point(void)
{
    Buf b = {0};
    if (lanes.ready_count == 0 || !is_own_code())
        return;
    note_ready();
    put_head(&b, 'P');
    put_ready(&b);
    put_place(&b, lanes.running);
    if (plan.flags & PLAIN) {
        put_plain(&b, compat_top_frame(core.tstate));
        put_plain_globals(&b, compat_top_frame(core.tstate));
    }
    else {
        buf_varint(&b, 0);
        buf_varint(&b, 0);
    }
    report_send(plan.fd, &b);
}

/* Where each lane stands when the future begins. */
static void
note_begin(void)
{
    Buf b = {0};
    uint64_t n = 0;
    for (int i = 0; i < lanes.made; i++)
        n += lanes.at[i] && !lanes.at[i]->ended;
    put_head(&b, 'B');
    buf_varint(&b, n);
    for (int i = 0; i < lanes.made; i++)
        if (lanes.at[i] && !lanes.at[i]->ended) {
            buf_varint(&b, (uint64_t)i);
            put_place(&b, lanes.at[i]);
        }
    report_send(plan.fd, &b);
}

int
schedule_load(int fd)
{
    struct stat st;
    Head head;
    uint32_t drawn = 0;
    lanes_draws(&drawn, 2);
    plan.draws_pauses = drawn; /* half of the futures have none */
    if (fstat(fd, &st) < 0 || st.st_size == 0) {
        close(fd);
        return 0;
    }
    if (pread(fd, &head, sizeof head, 0) != sizeof head || head.count > (uint64_t)st.st_size / sizeof(Step))
        return -1;
    size_t size = head.count * sizeof(Step);
    plan.steps = grown(NULL, head.count + 1, sizeof *plan.steps);
    if (pread(fd, plan.steps, size, sizeof head) != (ssize_t)size)
        return -1;
    plan.kind = head.kind;
    plan.flags = head.flags;
    plan.count = plan.open = head.count;
    plan.fd = fd_keep(fd);
    plan.began = plan.since = ticks_count();
    plan.turn_ends = plan.began + TURN;
    plan.wanted = -1;
    ticks_heard = heard;
    if (plan.flags & TRACES)
        note_begin();
    return 0;
}

/* ---- decisions ---- */

Turn
schedule_due(void)
{
    uint64_t now = ticks_count();
    bool is_over = now >= plan.turn_ends;
    Turn turn = is_over ? GIVES_WAY : GOES_ON;
    if (plan.kind == BY_PRIORITIES) {
        plan.points += lanes.ready_count > 0 && is_own_code();
        for (size_t i = 0; i < plan.count; i++)
            if (!plan.steps[i].is_done && plan.steps[i].ticks <= plan.points) {
                done(&plan.steps[i]);
                turn = GIVES_WAY;
            }
        if (turn == GOES_ON && plan.is_overtaken)
            turn = IS_OVERTAKEN;
        plan.is_overtaken = false;
    }
    else {
        Step *step = step_of(A_PREEMPTION, true);
        if (step == NULL && !is_over && notes_points())
            note_point();
        if (step) {
            done(step);
            plan.wanted = step->value;
            turn = GIVES_WAY;
            is_over = false;
        }
    }
    plan.is_preempted = turn != GOES_ON;
    plan.is_turn_over = is_over;
    plan.turn_ends = is_over ? now + TURN : plan.turn_ends;
    return turn;
}

int
schedule_place(void)
{
    int place = 0;
    Step *step = plan.kind == BY_DEVIATIONS && !plan.is_preempted ? step_of(A_CHOICE, true) : NULL;
    if (step) {
        done(step);
        plan.wanted = step->value;
    }
    int64_t wanted = plan.wanted;
    plan.wanted = -1;
    for (const Lane *l = lanes.ready_first; l && wanted >= 0; l = l->next_ready, place++)
        if (l->id == wanted)
            return place;
    return 0;
}

bool
schedule_has_priorities(void)
{
    return plan.kind == BY_PRIORITIES;
}

void
schedule_chosen(int place)
{
    if (!(plan.flags & TRACES))
        return;
    note_ready();
    plan.place = place;
}

void
schedule_switches(const Lane *next, Why why)
{
    Lane *self = lanes.running;
    if (plan.fd == 0)
        return;
    if (plan.flags & TRACES) {
        Buf b = {0};
        put_head(&b, 'S');
        buf_varint(&b, why);
        buf_varint(&b, (uint64_t)next->id);
        buf_varint(&b, (uint64_t)plan.place);
        buf_varint(&b, why == PREEMPTED && plan.is_turn_over);
        put_ready(&b);
        put_place(&b, self);
        put_place(&b, next);
        report_send(plan.fd, &b);
    }
    self->marked_ticks = position();
    plan.since = ticks_count();
    plan.turn_ends = ticks_count() + TURN;
    plan.is_preempted = plan.is_turn_over = plan.is_overtaken = false;
    plan.is_switching = true;
}

void
schedule_stays(void)
{
    plan.is_preempted = plan.is_turn_over = false;
    plan.wanted = -1;
}

void
schedule_switched(void)
{
    plan.is_switching = false;
}

void
schedule_arrived(void)
{
    if (plan.fd == 0)
        return;
    plan.since = ticks_count();
    if (schedule_is_given() && ticks_are_counted)
        ticks_slice(schedule_slice());
}

void
schedule_can_run(const Lane *lane)
{
    const Lane *self = lanes.running;
    if (plan.kind != BY_PRIORITIES || self == NULL || self == lane || lane->priority <= self->priority)
        return;
    plan.is_overtaken = true;
    if (ticks_are_counted)
        ticks_slice(1);
}

/* ---- event loops ---- */

/* A process does not always run when it could. Timers that would come one after the other are due at once then, and
 * what is begun later ends later. */
void
schedule_pauses(void)
{
    enum { ONE_IN = 4, DOUBLINGS = 14 }; /* of a microsecond: up to 16 ms */
    uint32_t drawn = 1, doublings = 0, length = 0;
    if (!core.is_future || core.mode != RECORD)
        return;
    lanes_draws(&drawn, ONE_IN);
    lanes_draws(&doublings, DOUBLINGS);
    lanes_draws(&length, 1u << doublings);
    length = plan.draws_pauses && drawn == 0 ? (1u << doublings) + length : 0;
    if (plan.kind == BY_DEVIATIONS) {
        Step *step = step_of(A_PAUSE, true);
        length = step ? step->value : 0;
        if (step)
            done(step);
    }
    if (length == 0)
        return;
    simulated_passes(length * (uint64_t)1000);
    if (plan.flags & TRACES) {
        Buf b = {0};
        put_head(&b, 'T');
        buf_varint(&b, length);
        put_place(&b, lanes.running);
        report_send(plan.fd, &b);
    }
}

static uint32_t
orders_of(int n)
{
    uint32_t orders = 1;
    for (int i = 2; i <= n && i <= MOST_ORDERED; i++)
        orders *= (uint32_t)i;
    return orders;
}

/* By its number: at each place one of those that are left, 0 being the first. */
static void
put_in_order(struct epoll_event *events, int n, uint32_t number)
{
    n = n < MOST_ORDERED ? n : MOST_ORDERED;
    for (int i = 0; i < n - 1; i++) {
        uint32_t each = orders_of(n - 1 - i);
        uint32_t from = number / each;
        number %= each;
        struct epoll_event taken = events[i + (int)from];
        memmove(&events[i + 1], &events[i], from * sizeof *events);
        events[i] = taken;
    }
}

int
schedule_ready(struct epoll_event *events, int n)
{
    uint32_t number = 0;
    if (n < 2 || !lanes_draws(&number, orders_of(n)))
        return n;
    if (schedule_is_given()) {
        Step *step = step_of(AN_ORDER, true);
        number = step && step->value < orders_of(n) ? step->value : 0;
        if (step)
            done(step);
    }
    if (plan.flags & TRACES) {
        Buf b = {0};
        put_head(&b, 'O');
        buf_varint(&b, number);
        buf_varint(&b, orders_of(n));
        put_place(&b, lanes.running);
        report_send(plan.fd, &b);
    }
    put_in_order(events, n, number);
    return n;
}
