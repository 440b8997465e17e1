/* Which activation of a frame ran what, and which lane: what a step backwards needs to know. An activation is a frame
 * since it was last started; frames lie at addresses that are used again. Kept while the clock runs, so that every
 * process that is cloned from this one has it. Nothing here makes a Python object. */
#include "base/core.h"
#include "clock/inside.h"
#include <stdlib.h>

bool activations_are_kept;
LaneLines *lane_lines; /* of the running lane */

static struct {
    Activation *at;
    size_t size, used; /* a power of two */
} table;
static Activation *recent;
static struct {
    LaneLines **at; /* by lane */
    int size, current;
} by_lane;

static size_t
slot_of(const _PyInterpreterFrame *frame)
{
    size_t i = ((uintptr_t)frame >> 3) * 0x9E3779B97F4A7C15u >> 20 & (table.size - 1);
    while (table.at[i].frame && table.at[i].frame != frame)
        i = (i + 1) & (table.size - 1);
    return i;
}

static void
grow(void)
{
    Activation *old = table.at;
    size_t n = table.size;
    table.size = n ? n * 2 : 1024;
    table.at = calloc(table.size, sizeof *table.at);
    if (table.at == NULL)
        Py_FatalError("replaydbg: out of memory for the step clock");
    for (size_t i = 0; i < n; i++)
        if (old[i].frame)
            table.at[slot_of(old[i].frame)] = old[i];
    free(old);
}

/* A frame's address is used again when it has ended: a start clears what is known of it, so nothing needs to be
 * removed. Old addresses stay few: frames live on a stack, and only those of generators lie on the heap. */
static Activation *
activation_of(_PyInterpreterFrame *frame)
{
    if (recent && recent->frame == frame)
        return recent;
    if (table.used * 2 >= table.size)
        grow();
    Activation *a = &table.at[slot_of(frame)];
    if (a->frame == NULL) {
        a->frame = frame;
        table.used++;
    }
    return recent = a;
}

/* Without a look at the frame itself, which may be gone. */
const Activation *
activation_at(const _PyInterpreterFrame *frame)
{
    const Activation *a = table.size ? &table.at[slot_of(frame)] : NULL;
    return a && a->frame ? a : NULL;
}

const Activation *
activation_find(_PyInterpreterFrame *frame)
{
    if (!activations_are_kept || table.size == 0)
        return NULL;
    const Activation *a = &table.at[slot_of(frame)];
    return a->frame && a->code == compat_frame_code(frame) ? a : NULL;
}

void
activation_start(_PyInterpreterFrame *frame)
{
    PyCodeObject *code = compat_frame_code(frame);
    Activation *a = activation_of(frame);
    *a = (Activation){.frame = frame,
                      .code = code,
                      .first_line = code->co_firstlineno,
                      .started = stepclock.count + 1,
                      .is_generator = frame->owner == FRAME_OWNED_BY_GENERATOR};
}

/* The object in which it lay has died. */
void
activation_forget(_PyInterpreterFrame *frame)
{
    Activation *a = table.size ? &table.at[slot_of(frame)] : NULL;
    if (a && a->frame)
        *a = (Activation){.frame = frame};
}

const Activation *
activation_started(uint64_t started, int first_line)
{
    for (size_t i = 0; i < table.size; i++) {
        const Activation *a = &table.at[i];
        if (a->code && a->started == started && a->first_line == first_line)
            return a;
    }
    return NULL;
}

/* The first one, or the one behind another; NULL: there are no more. Nothing may be started meanwhile. */
const Activation *
activation_next(const Activation *a)
{
    for (a = a ? a + 1 : table.at; a && a < table.at + table.size; a++)
        if (a->frame)
            return a;
    return NULL;
}

/* The first line of another lane than the one before. */
static void
change_lane(int lane)
{
    if (lane >= by_lane.size) {
        int size = lane * 2 + 16;
        by_lane.at = realloc(by_lane.at, (size_t)size * sizeof *by_lane.at);
        if (by_lane.at == NULL)
            Py_FatalError("replaydbg: out of memory for the step clock");
        memset(by_lane.at + by_lane.size, 0, (size_t)(size - by_lane.size) * sizeof *by_lane.at);
        by_lane.size = size;
    }
    if (by_lane.at[lane] == NULL && (by_lane.at[lane] = calloc(1, sizeof(LaneLines))) == NULL)
        Py_FatalError("replaydbg: out of memory for the step clock");
    by_lane.current = lane;
    lane_lines = by_lane.at[lane];
}

const LaneLines *
lane_lines_of(int lane)
{
    return lane < by_lane.size ? by_lane.at[lane] : NULL;
}

/* Returns whether it is the activation's first line. */
bool
activation_line(_PyInterpreterFrame *frame, PyCodeObject *code, int unit)
{
    int lane = core.lane;
    if (lane_lines == NULL || lane != by_lane.current)
        change_lane(lane);
    lane_lines->before = lane_lines->last;
    lane_lines->last = stepclock.count;
    Activation *a = activation_of(frame);
    if (a->code != code)
        *a = (Activation){.frame = frame, .code = code, .first_line = code->co_firstlineno};
    a->before = a->last;
    a->before_unit = a->last_unit;
    a->last = stepclock.count;
    a->last_unit = unit;
    a->is_passed = false;
    return a->before == 0;
}

static Activation *
activation_now(_PyInterpreterFrame *frame)
{
    Activation *a = frame && table.size ? &table.at[slot_of(frame)] : NULL;
    return a && a->frame && a->code == compat_frame_code(frame) ? a : NULL;
}

void
activation_pass(_PyInterpreterFrame *frame)
{
    Activation *a = activation_now(frame);
    if (a)
        a->is_passed = true;
}

bool
activation_passes(_PyInterpreterFrame *frame)
{
    Activation *a = activation_now(frame);
    bool passes = a == NULL || a->is_passed; /* of one that began before the clock nothing is known */
    if (a)
        a->is_passed = false;
    return passes;
}
