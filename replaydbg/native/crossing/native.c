/* Crossings that are made by C code where no Python callable is gated. */
#include "base/core.h"
#include "code/code.h"
#include "collector/collector.h"
#include "crossing/inside.h"
#include "log/log.h"

bool
native_begin_encoded(NativeCrossing *n, Gate *g, const Buf *arguments, const void *data, size_t ndata)
{
    Crossing *c = &n->cross;
    if (__builtin_expect(core.goes_live, 0) && core.depth == 0)
        crossing_hooks.live_at_call(g, NULL, NULL, 0, NULL);
    own_work_begin();
    memset(c, 0, sizeof *c);
    c->gate = g;
    c->outer = cross_state.open;
    cross_state.open = g;
    c->site = site_here(g->id, g->flags & GATE_SHAPE, &c->site_hash);
    if (g->flags & GATE_ARGS) {
        cross_take_arguments(c, arguments);
    }
    if (__builtin_expect(core.tells, 0))
        unfinished_begin(c);
    if (g->flags & GATE_DIGEST)
        cross_digest(c, data, ndata);
    c->perform = core.mode != REPLAY;
    if (__builtin_expect(core.is_future, 0) && core.mode == RECORD)
        crossing_hooks.future_asks(c);
    if (__builtin_expect(log_is_durable, 0) && (g->flags & (GATE_OUTPUT | GATE_UNLESS_FILE)) == GATE_OUTPUT)
        log_sync(); /* others cannot go on: most of these calls do not let them either */
    return c->perform;
}

bool
native_begin(NativeCrossing *n, Gate *g, const char *text, int64_t a, int64_t b, const void *data, size_t ndata)
{
    static Buf arguments;
    Buf *buf = &arguments;
    buf->used = 0;
    buf_byte(buf, TAG_TUPLE);
    buf_varint(buf, 3);
    buf_byte(buf, TAG_STR);
    buf_str(buf, text, strlen(text));
    for (int i = 0; i < 2; i++) {
        int64_t v = i ? b : a;
        buf_byte(buf, TAG_INT);
        buf_varint(buf, ((uint64_t)v << 1) ^ (uint64_t)(v >> 63));
    }
    return native_begin_encoded(n, g, buf, data, ndata);
}

int64_t
native_end_filled(NativeCrossing *n, int64_t rc, const void **out, size_t *nout)
{
    Crossing *c = &n->cross;
    if (core.mode == REPLAY) {
        PyObject *result = crossing_ways[core.way].answer(c);
        if (__builtin_expect(core.tells, 0))
            unfinished_end(c);
        rc = result && PyLong_Check(result) ? PyLong_AsLongLong(result) : -1;
        Py_XDECREF(result);
        *out = c->fill;
        *nout = c->fill_length;
        if (__builtin_expect(draws_are_kept, 0))
            draws_crossed(c->gate);
    }
    else if (__builtin_expect(!c->perform, 0))
        cross_made_again(); /* another lane has made a recording of the replay */
    else if (core.mode == RECORD) {
        PyObject *result = PyLong_FromLongLong(rc);
        c->fill = *out;
        c->fill_length = *nout;
        record_end(c, result);
        if (__builtin_expect(core.is_future, 0))
            crossing_hooks.future_recorded();
        Py_XDECREF(result);
    }
    cross_state.open = c->outer;
    own_work_end();
    return rc;
}

int64_t
native_end(NativeCrossing *n, int64_t rc, void *out, size_t nout)
{
    const void *filled = out;
    size_t length = nout;
    rc = native_end_filled(n, rc, &filled, &length);
    if (core.mode == REPLAY && n->cross.gate->flags & GATE_FILLS && !engine.diverting) {
        if (length != nout)
            diverge("arguments", n->cross.gate, &n->cross, "a different number of bytes is requested");
        if (nout > 0) /* else `out` may be NULL */
            memcpy(out, filled, nout);
    }
    return rc;
}
