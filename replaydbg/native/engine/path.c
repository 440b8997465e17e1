/* The path of one frame through a line: the instructions that it executes, the functions that it calls and what they
 * return, and the events that are asked meanwhile. With it `why` follows the operands of the bytecode; see
 * replaydbg/debugger/flow.py.
 *
 * Only in a process that runs a line again for that. Nothing here makes a Python object. */
#include "base/core.h"
#include "clock/clock.h"
#include "engine/inside.h"

enum { MOST_UNITS = 8192, MOST_CALLS = 512, MOST_EVENTS = 512 };

typedef struct {
    _PyInterpreterFrame *frame; /* NULL: it has returned */
    int unit;                   /* of the watched frame */
    bool is_direct;             /* its bytecode calls the function, without C code between */
    uint64_t started, last;     /* counts of lines; last: at the return */
    int returned;               /* the unit at which it returned; -1: it did not */
    PyObject *value;            /* only its address counts */
    PyTypeObject *type;
} Call;

static struct {
    _PyInterpreterFrame *frame; /* NULL: nothing is followed */
    uint64_t started;
    int lane;
    bool is_cut;
    int units[MOST_UNITS], unit_count;
    Call calls[MOST_CALLS];
    int call_count;
    struct {
        uint64_t number;
        int unit;
        bool is_direct;
    } events[MOST_EVENTS];
    int event_count;
} path;

static int
unit_of(_PyInterpreterFrame *frame)
{
    return compat_frame_lasti(frame) / (int)sizeof(_Py_CODEUNIT);
}

/* Returns whether it can be done. */
bool
path_begin(bool is_wanted)
{
    path.frame = NULL;
    path.unit_count = path.call_count = path.event_count = 0;
    path.is_cut = false;
    if (!is_wanted)
        return true;
    path.frame = compat_top_frame(core.tstate);
    const Activation *a = path.frame ? activation_find(path.frame) : NULL;
    if (a == NULL)
        path.frame = NULL;
    path.started = a ? a->started : 0;
    path.lane = core.lane;
    if (path.frame == NULL)
        return true;
    return listen_to(listening_to() | LISTEN_RETURNS) == 0 && listen_to_instructions(path.frame) == 0;
}

static bool
is_followed(_PyInterpreterFrame *frame)
{
    const Activation *a = activation_find(frame);
    return frame == path.frame && core.lane == path.lane && a && a->started == path.started;
}

void
path_instruction(_PyInterpreterFrame *frame)
{
    if (path.frame == NULL || !is_followed(frame))
        return;
    if (path.unit_count == MOST_UNITS)
        path.is_cut = true;
    else
        path.units[path.unit_count++] = unit_of(frame);
}

void
path_start(_PyInterpreterFrame *frame)
{
    if (path.frame == NULL || core.lane != path.lane || compat_previous_frame(frame) != path.frame ||
        !is_followed(path.frame))
        return;
    if (path.call_count == MOST_CALLS) {
        path.is_cut = true;
        return;
    }
    path.calls[path.call_count++] = (Call){.frame = frame,
                                           .unit = unit_of(path.frame),
                                           .is_direct = !compat_frame_begins_loop(frame),
                                           .started = stepclock.count + 1,
                                           .returned = -1};
}

/* value: NULL where it did not return, but yields or raises. */
void
path_return(_PyInterpreterFrame *frame, PyObject *value)
{
    if (path.frame == NULL || core.lane != path.lane)
        return;
    for (int i = path.call_count - 1; i >= 0; i--) {
        Call *c = &path.calls[i];
        if (c->frame != frame)
            continue;
        const Activation *a = activation_find(frame);
        c->frame = NULL;
        c->last = a ? a->last : 0;
        c->returned = value ? unit_of(frame) : -1;
        c->value = value;
        c->type = value ? Py_TYPE(value) : NULL;
        return;
    }
    if (frame == path.frame)
        path.frame = NULL; /* its memory is another one's from here on */
}

void
path_event(void)
{
    if (path.frame == NULL || core.lane != path.lane)
        return;
    if (path.event_count == MOST_EVENTS) {
        path.is_cut = true;
        return;
    }
    _PyInterpreterFrame *top = compat_top_frame(core.tstate);
    path.events[path.event_count].number = core.crossings;
    path.events[path.event_count].unit = unit_of(path.frame);
    path.events[path.event_count++].is_direct = top == path.frame;
}

void
path_report(Buf *b)
{
    report_key(b, "path");
    report_list(b, 4);
    report_number(b, path.is_cut);
    report_list(b, (uint64_t)path.unit_count);
    for (int i = 0; i < path.unit_count; i++)
        report_number(b, path.units[i]);
    report_list(b, (uint64_t)path.call_count);
    for (int i = 0; i < path.call_count; i++) {
        const Call *c = &path.calls[i];
        const int64_t numbers[] = {c->unit,
                                   c->is_direct,
                                   (int64_t)c->started,
                                   (int64_t)c->last,
                                   c->returned,
                                   (int64_t)(uintptr_t)c->value,
                                   (int64_t)(uintptr_t)c->type};
        report_list(b, 7);
        for (int k = 0; k < 7; k++)
            report_number(b, numbers[k]);
    }
    report_list(b, (uint64_t)path.event_count);
    for (int i = 0; i < path.event_count; i++) {
        report_list(b, 3);
        report_number(b, (int64_t)path.events[i].number);
        report_number(b, path.events[i].unit);
        report_number(b, path.events[i].is_direct);
    }
}
