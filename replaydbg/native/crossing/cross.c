/* One crossing: recorded as an event, or answered by the next event after it has been checked against what the program
 * asks. */
#include "base/core.h"
#include "clock/clock.h"
#include "code/code.h"
#include "collector/collector.h"
#include "crossing/inside.h"
#include "log/log.h"
#include "values/values.h"
#include <stdlib.h>

CrossState cross_state;
int moved_bytes_count;
static bool has_moved;

static Buf args_buf;
static IdMap args_ids;
static uint32_t args_defined;

/* ---- arguments ---- */

static void
encode_arguments(Crossing *c, PyObject *kwnames)
{
    Buf *b = &args_buf;
    bool with_self = c->gate->flags & GATE_SELF;
    Py_ssize_t nkw = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
    b->used = 0;
    buf_byte(b, TAG_TUPLE);
    buf_varint(b, (uint64_t)(c->nargs + with_self + (nkw > 0)));
    if (with_self)
        value_encode(b, c->self, ENCODE_ARGUMENT, &event_types, NULL, 0);
    for (Py_ssize_t i = 0; i < c->nargs; i++) {
        if ((c->gate->flags & (GATE_DIGEST | GATE_FILLS)) && i == c->gate->buffer)
            /* its bytes are digested or filled in, see format.md */
            buf_byte(b, c->gate->flags & GATE_DIGEST ? TAG_BUFFER_LEAVES : TAG_BUFFER_FILLED);
        else if (value_encode(b, c->args[i], ENCODE_ARGUMENT, &event_types, NULL, 0) < 0)
            buf_byte(b, TAG_NONE);
    }
    if (nkw) {
        buf_byte(b, TAG_DICT);
        buf_varint(b, (uint64_t)nkw);
        for (Py_ssize_t i = 0; i < nkw; i++) {
            value_encode(b, PyTuple_GET_ITEM(kwnames, i), ENCODE_ARGUMENT, &event_types, NULL, 0);
            if (value_encode(b, c->args[c->nargs + i], ENCODE_ARGUMENT, &event_types, NULL, 0) < 0)
                buf_byte(b, TAG_NONE);
        }
    }
}

static void
intern_arguments(Crossing *c)
{
    c->args_hash = hash_bytes(args_buf.data, args_buf.used, 0);
    if (core.mode != RECORD)
        return;
    uint32_t *slot = idmap_slot(&args_ids, c->args_hash);
    if (!*slot) {
        *slot = ++args_defined;
        uint8_t *p = log_room(&event_log, args_buf.used + 1);
        if (p) {
            *p = DEFINES_ARGUMENTS << 2 | 3u;
            memcpy(p + 1, args_buf.data, args_buf.used);
            log_commit(&event_log, p + 1 + args_buf.used);
        }
    }
    c->args_id = *slot;
}

bool
cross_argued_before(Crossing *c, uint64_t hash)
{
    Buf now = args_buf;
    uint64_t hash_now = c->args_hash;
    args_buf = (Buf){0};
    value_hides_wrappers = true;
    encode_arguments(c, c->kwnames);
    value_hides_wrappers = false;
    intern_arguments(c);
    bool is_it = c->args_hash == hash;
    free(is_it ? now.data : args_buf.data);
    if (!is_it) {
        args_buf = now;
        c->args_hash = hash_now;
    }
    return is_it;
}

const Buf *
cross_arguments(const Crossing *c)
{
    return c && (c->gate->flags & GATE_ARGS) && hash_bytes(args_buf.data, args_buf.used, 0) == c->args_hash ? &args_buf
                                                                                                            : NULL;
}

void
cross_take_arguments(Crossing *c, const Buf *encoded)
{
    args_buf.used = 0;
    buf_bytes(&args_buf, encoded->data, encoded->used);
    intern_arguments(c);
}

/* ---- program code inside ---- */

Upcall
upcall_enter(void)
{
    Upcall upcall = {.depth = core.depth};
    if (upcall.depth > 0) {
        upcall.aside = collector_set_aside();
        collector_resume();
    }
    core.depth = 0;
    if (core.mode == REPLAY && upcall.depth > 0)
        cross_read_ahead(); /* a preemption or a handler may be due before the first crossing in it */
    return upcall;
}

void
upcall_leave(Upcall upcall)
{
    cross_state.upcall_error = NULL;
    if (PyErr_Occurred()) {
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        PyErr_NormalizeException(&type, &value, &traceback);
        cross_state.upcall_error = value;
        PyErr_Restore(type, value, traceback);
    }
    core.depth = upcall.depth;
    if (upcall.depth > 0) {
        collector_pause(false);
        collector_take_back(upcall.aside);
    }
}

/* ---- what belongs to a lane ---- */

Gate *
cross_open(void)
{
    return cross_state.open;
}

Buf *
cross_sending(void)
{
    return &cross_state.sending;
}

void
cross_state_swap(CrossState *leaves, const CrossState *comes)
{
    *leaves = cross_state;
    cross_state = *comes;
}

/* ---- a replay becomes a recording ---- */

/* Of a call that a replay makes, too, and within which it has become a recording: nothing has been written of it. */
void
cross_define_late(Crossing *c)
{
    c->site = site_here(c->gate->id, c->gate->flags & GATE_SHAPE, &c->site_hash);
    if (c->gate->flags & GATE_ARGS) {
        encode_arguments(c, c->kwnames);
        intern_arguments(c);
    }
}

/* Arguments are numbered on, and defined once more where they are met again. */
void
cross_continue(void)
{
    args_defined = cross_arguments_defined();
    cross_time_continues();
    types_continue(&event_types);
    types_continue(&world_types);
}

/* ---- what is moved ---- */

void
cross_moved(ssize_t n)
{
    has_moved = true;
    if (n > 0)
        cross_state.moved += (uint64_t)n;
}

uint64_t
cross_count_moved(uint64_t from)
{
    uint64_t until_now = cross_state.moved;
    cross_state.moved = from;
    return until_now;
}

bool
cross_has_moved(void)
{
    return has_moved;
}

/* ---- the crossing ---- */

void
cross_begin(Crossing *c, Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    cross_settle(); /* of one that the same gate has made before */
    if (__builtin_expect(core.goes_live, 0) && core.depth == 0)
        crossing_hooks.live_at_call(g, self, args, nargs, kwnames);
    shared_crossing(true, g->flags);
    if (__builtin_expect(g->flags & GATE_NAMES, 0) && core.mode == RECORD && core.depth == 0)
        record_time();
    if (core.depth++ == 0)
        /* else it makes an exception; in a future any call may be given one */
        collector_pause((g->flags & GATE_MAKES_NOTHING) && nargs == 0 && kwnames == NULL && !core.is_future);
    perturb();
    c->gate = g;
    c->outer = cross_state.open;
    cross_state.open = g;
    c->self = self;
    c->kwnames = kwnames;
    c->args = args;
    c->nargs = nargs;
    c->digested = false;
    c->digest = 0;
    c->leaving = NULL;
    c->fill = NULL;
    c->fill_length = 0;
    c->raised_by_program = false;
    c->args_id = 0;
    c->args_hash = 0;
    c->site = site_here(g->id, g->flags & GATE_SHAPE, &c->site_hash);
    if (g->flags & GATE_ARGS) {
        encode_arguments(c, kwnames);
        intern_arguments(c);
    }
    c->unfinished = NULL;
    if (__builtin_expect(core.tells, 0))
        unfinished_begin(c);
    c->perform = core.mode != REPLAY || (g->flags & GATE_BOTH);
    if (__builtin_expect(core.settled, 0) && core.depth == 1 && crossing_hooks.live_is_settled())
        c->perform = false;
    c->is_answered = false;
    if (__builtin_expect(core.is_future, 0) && core.depth == 1 && core.mode == RECORD)
        crossing_hooks.future_asks(c);
    if (__builtin_expect(log_is_durable, 0) && (g->flags & GATE_AT_ONCE) && core.mode == RECORD)
        log_sync();
    c->transfers[0].number = 0;
    if (__builtin_expect(g->moves, 0)) {
        c->has_keywords = kwnames != NULL;
        crossing_hooks.transfer_begins(c);
    }
}

void
cross_digest(Crossing *c, const void *data, size_t n)
{
    uint64_t h = hash_bytes(data, n, c->digested ? c->digest : 0);
    c->digest = (uint32_t)(h ^ h >> 32);
    c->left = c->digested ? c->left + n : n;
    if (__builtin_expect(core.tells, 0))
        crossing_hooks.tell(data, n);
    if (__builtin_expect(core.goes_live, 0))
        crossing_hooks.live_piece(data, n, !c->digested);
    c->digested = true;
    c->leaving = data;
    c->leaving_length = n;
    if (__builtin_expect(c->transfers[0].number != 0, 0)) {
        c->given_digest = stream_digest(c->given_digest, data, n);
        c->given += n;
    }
}

static void
give_outcome(Crossing *c, PyObject *result)
{
    if (core.depth > 1)
        return;
    if (result)
        collector_give(result);
    else if (!c->raised_by_program)
        collector_give_exception();
}

PyObject *
observed_end(Crossing *c, PyObject *result)
{
    return result;
}

PyObject *
cross_end(Crossing *c, PyObject *result)
{
    result = crossing_ways[core.way].end(c, result);
    if (__builtin_expect(core.tells, 0))
        unfinished_end(c);
    if (__builtin_expect(warned_inside, 0))
        warned_crossed();
    if ((result == NULL && !cross_state.again) || (result && PyType_IS_GC(Py_TYPE(result))))
        give_outcome(c, result);
    cross_state.open = c->outer;
    if (__builtin_expect(draws_are_kept, 0))
        draws_crossed(c->gate);
    work_end();
    if (ticks_are_counted && core.depth == 0 && !cross_state.again) /* it is made again: it has not ended */
        ticks_crossing_is_due = true;
    if (__builtin_expect(engine.point_is_due, 0) && core.depth == 0)
        crossing_hooks.stand_at_point();
    return result;
}

/* The exception only makes the handler give back what it holds: nobody sees it. */
PyObject *
cross_made_again(void)
{
    PyErr_SetNone(PyExc_SystemError);
    cross_state.again = true;
    return NULL;
}

bool
cross_again(void)
{
    bool is_due = cross_state.again;
    if (is_due) {
        own_work_begin(); /* since Python 3.12 there is an object, which is ours */
        PyErr_Clear();
        own_work_end();
    }
    cross_state.again = false;
    return is_due;
}

void
cross_expect_outcome(const Crossing *c, bool has_its_type)
{
    if (!has_its_type)
        diverge("corrupt", c->gate, NULL, "the recorded result of a call has an invalid type");
}
