/* A crossing is recorded: its outcome goes into the log. */
#include "base/core.h"
#include "clock/clock.h"
#include "collector/collector.h"
#include "crossing/inside.h"
#include "log/log.h"
#include "values/values.h"

#define LARGEST_EVENT (200u << 20) /* readers take no record beyond 256 MiB: a length is not believed without limit */

static Buf out_buf;

static inline uint8_t *
put_varint(uint8_t *p, uint64_t v)
{
    while (v >= 0x80) {
        *p++ = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    *p++ = (uint8_t)v;
    return p;
}

static uint8_t *
put_head(Crossing *c, uint8_t *p, bool raised)
{
    p = put_varint(p, (uint64_t)c->site << 2 | raised);
    if (c->gate->flags & GATE_ARGS)
        p = put_varint(p, c->args_id);
    if (c->gate->flags & GATE_DIGEST) {
        memcpy(p, &c->digest, 4);
        p += 4;
    }
    return p;
}

static uint64_t start; /* ns; 0: no time is recorded yet */

void
cross_time_continues(void)
{
    start = monotonic_ns() - replay_time;
}

/* Each 256 events, and before calls that fail if they are made twice: whether one was made when the program was killed
 * is told from the age of what is there (replaydbg/resume/calls/name_rules.py). */
void
record_time(void)
{
    uint64_t now = monotonic_ns();
    if (start == 0)
        start = now;
    uint64_t since = now - start;
    cross_control(CONTROL_TIME, &since, 1);
}

static void
record_collector(void)
{
    uint64_t numbers[4];
    collector_numbers(numbers);
    cross_control(CONTROL_COLLECTOR, numbers, 4);
}

static void
record_commit(uint8_t *end)
{
    core.crossings++;
    ticks_event();
    clocks_crossed();
    log_commit(&event_log, end);
    if ((core.crossings & 255) == 1)
        record_time();
    if (__builtin_expect(core.crossings >= core.heap_due, 0))
        crossing_hooks.heap_is_due();
}

/* The descriptor that a crossing has read from at its current position, or -1. */
static int
source_fd(Crossing *c)
{
    if (!(c->gate->flags & GATE_READS))
        return -1;
    if (c->gate->is_method)
        return file_fd(c->self);
    long fd = c->nargs > 0 && PyLong_Check(c->args[0]) ? PyLong_AsLong(c->args[0]) : -1;
    return fd < 0 || fd > 65535 ? -1 : (int)fd;
}

static void
record_value(Crossing *c, PyObject *result)
{
    Buf *b = &out_buf;
    b->used = 0;
    if (result == NULL) {
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        bool of_upcall = cross_state.upcall_error && value == cross_state.upcall_error;
        PyErr_Restore(type, value, traceback);
        c->raised_by_program = of_upcall;
        if (of_upcall)
            buf_byte(b, TAG_NONE); /* replay raises what its own handler raised */
        else if (value_encode_exception(b, &event_types, c->args, c->nargs) < 0) {
            buf_byte(b, TAG_OPAQUE);
            buf_str(b, "exception", 9);
        }
    }
    else if (PyBytes_CheckExact(result) &&
             content_encode(b, source_fd(c), PyBytes_AS_STRING(result), (size_t)PyBytes_GET_SIZE(result))) {
        /* a piece of a large file: a reference has been written */
    }
    else if (value_encode(b, result, ENCODE_RESULT, &event_types, c->args, c->nargs) < 0) {
        const char *name = Py_TYPE(result)->tp_name;
        note("unrecordable", name);
        b->used = 0;
        buf_byte(b, TAG_OPAQUE);
        buf_str(b, name, strlen(name));
    }
    if (c->gate->flags & GATE_FILLS) {
        if (result == NULL || !content_encode(b, source_fd(c), c->fill, c->fill_length)) {
            buf_byte(b, TAG_BYTES);
            buf_str(b, (const char *)c->fill, result ? c->fill_length : 0);
        }
    }
}

void
record_end(Crossing *c, PyObject *result)
{
    uint8_t *p;
    if ((core.crossings & core.compare_every) == 0)
        record_collector();
    if (result && !(c->gate->flags & GATE_FILLS)) { /* the commonest outcomes go straight into the log */
        if (PyFloat_CheckExact(result)) {
            if ((p = log_room(&event_log, 40))) {
                p = put_head(c, p, false);
                double d = PyFloat_AS_DOUBLE(result);
                *p++ = TAG_FLOAT;
                memcpy(p, &d, 8);
                record_commit(p + 8);
            }
            return;
        }
        if (result == Py_None || PyBool_Check(result)) {
            if ((p = log_room(&event_log, 40))) {
                p = put_head(c, p, false);
                *p++ = result == Py_None ? TAG_NONE : result == Py_True ? TAG_TRUE : TAG_FALSE;
                record_commit(p);
            }
            return;
        }
    }
    record_value(c, result);
    if (out_buf.used > LARGEST_EVENT) {
        note("large", "a call returned more than 200 MiB that did not come from a regular file");
        log_fail(4);
        return;
    }
    if ((p = log_room(&event_log, out_buf.used + 40))) {
        p = put_head(c, p, result == NULL);
        memcpy(p, out_buf.data, out_buf.used);
        record_commit(p + out_buf.used);
    }
}

PyObject *
recorded_end(Crossing *c, PyObject *result)
{
    if (__builtin_expect(core.is_resumed, 0)) {
        bool is_again = false;
        if (c->perform && c->site == 0)
            cross_define_late(c);
        result = crossing_hooks.live_end(c, result, &is_again);
        if (is_again)
            return cross_made_again();
    }
    if (__builtin_expect(c->gate->stream_act != ACT_NONE, 0))
        crossing_hooks.stream_acted(c, result);
    if (__builtin_expect(c->transfers[0].number != 0, 0))
        crossing_hooks.transfer_ends(c, result);
    record_end(c, result);
    if (__builtin_expect(core.is_future, 0))
        crossing_hooks.future_recorded();
    shared_crossing(false, c->gate->flags);
    return result;
}

/* ---- control records ---- */

void
cross_control(unsigned rest, const uint64_t *numbers, int n)
{
    uint8_t *p = log_room(&event_log, 64);
    if (p == NULL)
        return;
    p = put_varint(p, rest << 2 | 2u);
    for (int i = 0; i < n; i++)
        p = put_varint(p, numbers[i]);
    log_commit(&event_log, p);
}

void
cross_ended(int exit_code)
{
    uint64_t n = (uint64_t)(exit_code & 0xFF);
    if (core.mode == RECORD) {
        cross_control(CONTROL_END, &n, 1);
        log_memory();
        group_ends((int)n);
        log_sync(); /* its exit code is seen */
    }
}
