/* Which lane goes on in a replay of edited code. Nobody waits for the outside, and each lane takes the events of its
 * own lane of the recording; so any order of theirs would do, and it is kept as near to the recorded one as can be: the
 * lane whose next item comes first in the log goes first, if it can. That rule alone gives a program which is not
 * edited exactly the recorded order. See lenient.h. */
#include "base/core.h"
#include "clock/clock.h"
#include "lanes/lanes.h"
#include "lenient/inside.h"
#include <stdio.h>
#include <stdlib.h>

#define SPINS 20 /* of a million ticks each, without a crossing: then another lane goes first, whatever was recorded */

static LenientLane *table; /* by id in this replay */
static int table_size;

static LenientLane *
entry(int lane)
{
    if (lane >= table_size) {
        int size = lane + 64;
        table = realloc(table, (size_t)size * sizeof *table);
        if (table == NULL)
            Py_FatalError("replaydbg: out of memory for lanes");
        memset(table + table_size, 0, (size_t)(size - table_size) * sizeof *table);
        table_size = size;
    }
    return &table[lane];
}

void
lenient_lane_made(int lane, Stream *stream)
{
    LenientLane *l = entry(lane);
    l->is_known = true;
    l->stream = stream && !stream->is_taken ? stream : NULL;
    if (l->stream)
        l->stream->is_taken = true;
}

/* Threads that C code starts have no record of their beginning: they have the number that they had. */
Stream *
lenient_stream_of(int lane)
{
    LenientLane *l = entry(lane);
    if (!l->is_known)
        lenient_lane_made(lane, (size_t)lane < lenient_index.stream_count ? lenient_index.streams[lane] : NULL);
    return l->stream;
}

/* The clock's reading that was recorded where the lane is now, NULL: there is none. */
static Reading *
reading_here(Stream *s)
{
    stream_next(s);
    while (s->reading_next < s->reading_count && s->readings[s->reading_next].before < s->cursor)
        s->reading_next++;
    Reading *next = s->reading_next < s->reading_count ? &s->readings[s->reading_next] : NULL;
    return next && next->before == s->cursor ? next : NULL;
}

bool
stream_reads_clock(Stream *s)
{
    return reading_here(s) != NULL;
}

uint64_t
lenient_interpreter_clock(void)
{
    Stream *s = lenient_stream_of(core.lane);
    Reading *here = s ? reading_here(s) : NULL;
    if (here == NULL)
        return 0;
    s->reading_next++;
    ticks_event(); /* as it was one: a preemption behind it was counted from here */
    lenient_read_ahead();
    return here->time;
}

static uint64_t
order_of(const Lane *lane)
{
    LenientLane *l = entry(lane->id);
    Stream *s = lenient_stream_of(lane->id);
    Item *next = s ? stream_next(s) : NULL;
    if (entry(lane->id)->reserved)
        return l->reserved;
    return next ? next->order : NEVER;
}

/* Its memory may be gone by now. */
static bool
has_ended(const void *joined)
{
    for (int i = 0; i < lanes.made; i++)
        if (lanes.at[i] == joined)
            return lanes.at[i]->ended;
    return true;
}

static bool
can_go_on(const Lane *lane)
{
    LenientLane *l = entry(lane->id);
    if (lane->ended || l->state == STAYS)
        return false;
    if (l->state == GOES_ON || l->is_trusted)
        return true;
    return lane->waits_for == waits_for_lock ? lane_semaphore_free(lane->key) : has_ended(lane->key);
}

/* The one that comes first in the log, of those that can go on; `but` is left out. */
static Lane *
first_of(const Lane *but)
{
    Lane *best = NULL;
    uint64_t least = NEVER;
    for (int i = 0; i < lanes.made; i++) {
        Lane *lane = lanes.at[i];
        if (lane == NULL || lane == but || !can_go_on(lane))
            continue;
        uint64_t order = order_of(lane);
        if (best == NULL || order < least) {
            best = lane;
            least = order;
        }
    }
    return best;
}

/* All wait for each other: the time of the one that waits least is over. */
static Lane *
first_late(void)
{
    Lane *best = NULL;
    for (int i = 0; i < lanes.made; i++) {
        Lane *lane = lanes.at[i];
        if (lane && !lane->ended && entry(i)->state == WAITS_FOR_KEY && lane->deadline != NEVER &&
            (best == NULL || lane->deadline < best->deadline))
            best = lane;
    }
    return best;
}

_Noreturn static void
nobody_goes_on(void)
{
    char text[900] = "no thread can continue:";
    size_t n = strlen(text);
    if (!lenient_index.has_ended && lenient_is_used_up())
        diverge("end", NULL, NULL, "");
    for (int i = 0; i < lanes.made && n < 700; i++) {
        Lane *lane = lanes.at[i];
        _PyInterpreterFrame *frame = lane && !lane->ended && lane->tstate ? compat_top_frame(lane->tstate) : NULL;
        PyCodeObject *code = frame ? compat_frame_code(frame) : NULL;
        char file[LONGEST_NAME] = "?";
        if (code)
            text_copy(file, sizeof file, code->co_filename);
        if (lane && !lane->ended)
            n += (size_t)snprintf(text + n, sizeof text - n, " %.40s waits for %s at %.120s:%d;",
                                  lane->name ? lane->name : "a thread", lane->waits_for ? lane->waits_for : "its turn",
                                  file, code ? PyCode_Addr2Line(code, compat_frame_lasti(frame)) : 0);
    }
    text[n - 1] = 0;
    diverge("stuck", NULL, NULL, text);
}

static Lane *
choose(void)
{
    Lane *next = first_of(NULL);
    if (next == NULL && (next = first_late()))
        liberty(LANE, 0, NULL, "its timeout expires, because no other thread can continue");
    if (next == NULL)
        nobody_goes_on();
    return next;
}

/* ---- what lanes do ---- */

Wake
lenient_wait(const void *key, const char *waits_for, uint64_t deadline, bool interruptible, Why why)
{
    Lane *self = lanes.running;
    Stream *s = lenient_stream_of(self->id);
    Item *item = s ? stream_next(s) : NULL;
    bool is_recorded = item && item->kind == ITEM_SWITCH && item->why == why;
    if (is_recorded)
        item->used = true;
    else if (self->wake == INTERRUPTED && deadline != NEVER)
        return TIMED_OUT; /* its deadline had passed when a signal interrupted it: then nobody waited again */
    else
        liberty(LANE, 0, NULL, "it waits here, but continued in the recording");
    LenientLane *l = entry(self->id);
    l->state = WAITS_FOR_KEY;
    l->is_trusted = is_recorded;
    self->key = key;
    self->waits_for = waits_for;
    self->deadline = deadline;
    Lane *next = choose();
    self->wake = WOKEN;
    ticks_event();
    if (next != self)
        lanes_go_on(next);
    else
        lenient_read_ahead();
    l = entry(self->id);
    bool was_trusted = l->is_trusted, can = can_go_on(self);
    l->state = GOES_ON;
    l->is_trusted = false;
    self->key = NULL;
    self->waits_for = NULL;
    self->deadline = NEVER;
    return self->wake = was_trusted ? (Wake)item->wake : can ? WOKEN : TIMED_OUT;
}

Lane *
lenient_next_at_end(void)
{
    Stream *s = lenient_stream_of(lanes.running->id);
    Item *item = s ? stream_next(s) : NULL;
    if (item && item->kind == ITEM_SWITCH && item->why == ENDED)
        item->used = true;
    Lane *next = choose();
    ticks_event();
    return next;
}

void
lenient_let_others(uint64_t order)
{
    Lane *self = lanes.running, *other;
    while (lanes.alive > 1 && (other = first_of(self)) && order_of(other) < order) {
        entry(self->id)->reserved = order;
        ticks_event();
        lanes_go_on(other);
        entry(self->id)->reserved = 0;
    }
}

_Noreturn void
lenient_stay(void)
{
    Lane *self = lanes.running;
    entry(self->id)->state = STAYS;
    self->waits_for = "something that never happens";
    lanes_go_on(choose());
    nobody_goes_on();
}

/* A recorded preemption may be here. */
void
lenient_slice_used_up(bool is_preemption)
{
    static uint64_t event, spins;
    Lane *self = lanes.running;
    Stream *s = lenient_stream_of(self->id);
    Item *item = s ? stream_next(s) : NULL;
    if (is_preemption && item && item->kind == ITEM_SWITCH && item->why == PREEMPTED) {
        item->used = true;
        ticks_event();
        Lane *next = choose();
        if (next != self)
            lanes_go_on(next);
        else
            lenient_read_ahead();
        return;
    }
    spins = event == core.crossings ? spins + 1 : 0;
    event = core.crossings;
    Lane *other = first_of(self);
    if (other == NULL || (order_of(other) >= order_of(self) && spins < SPINS))
        return;
    spins = 0;
    liberty(LANE, 0, NULL, "it computes for a long time while other threads could continue");
    lanes_go_on(other);
}
