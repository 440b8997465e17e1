/* The calls of a stretch of the run: which functions began, in which of the others, and from which line to which.
 *
 * Only those of the user's own code, if the order says so: then a function that a library calls counts as called by
 * whoever called the library. Each lane has a stack of the calls that have not ended; what has left the interpreter's
 * stack without a word (a lane that ends) is dropped when the next one begins. Nothing here makes a Python object. */
#include "base/core.h"
#include "clock/clock.h"
#include "code/code.h"
#include "engine/inside.h"
#include "lanes/lanes.h"

#define MOST_CALLS 100000u
#define MOST_NAMES (8u << 20) /* bytes */
enum { MOST_OPEN = 4096, MOST_LANES = 1024 };

typedef struct {
    uint32_t code, parent; /* from 1; 0: none */
    int lane;
    bool goes_on; /* a generator or a coroutine that had waited */
    uint64_t begun, ended;
} CallRecord;

typedef struct {
    _PyInterpreterFrame *frame;
    uint32_t number,
        below; /* of the call; the place of the one that is open below it, or of the next free one, from 1 */
} OpenCall;

static struct {
    uint32_t most; /* 0: none are wanted */
    uint32_t used, codes;
    bool is_cut, is_own;
    uint32_t order;                 /* by which it is known which codes have names here */
    CallRecord *records;            /* MOST_CALLS */
    OpenCall *open;                 /* MOST_OPEN, of all lanes */
    uint32_t free;                  /* the place of the first that is free, from 1; 0: none is */
    uint32_t innermost[MOST_LANES]; /* of each lane: the place of its last open one, from 1 */
    Buf names;
} calls;

bool
called_begin(uint64_t most, bool is_own)
{
    bool was_wanted = calls.most > 0;
    calls.most = most < MOST_CALLS ? (uint32_t)most : MOST_CALLS;
    calls.used = calls.codes = 0;
    calls.is_cut = false;
    calls.is_own = is_own;
    calls.order++;
    calls.names.used = 0;
    if (calls.most == 0 && !was_wanted)
        return true;
    if (calls.records == NULL) {
        calls.records = memory_apart(MOST_CALLS * sizeof *calls.records);
        calls.open = memory_apart(MOST_OPEN * sizeof *calls.open);
        calls.names = (Buf){.data = memory_apart(MOST_NAMES), .size = MOST_NAMES, .is_fixed = true};
    }
    for (uint32_t i = 0; i < MOST_OPEN; i++)
        calls.open[i].below = i + 1 < MOST_OPEN ? i + 2 : 0;
    calls.free = 1;
    memset(calls.innermost, 0, sizeof calls.innermost);
    return calls.most == 0 || listen_to(listening_to() | LISTEN_RETURNS) == 0;
}

static bool
is_among_callers(const _PyInterpreterFrame *wanted, _PyInterpreterFrame *frame)
{
    while (frame && frame != wanted)
        frame = compat_previous_frame(frame);
    return frame != NULL;
}

static uint32_t
code_number(PyCodeObject *code)
{
    CodeFacts *facts = code_facts(code);
    if (facts->called_order == calls.order)
        return facts->called_id;
    report_list(&calls.names, 3);
    report_name(&calls.names, code->co_filename);
    report_number(&calls.names, code->co_firstlineno);
    report_name(&calls.names, code->co_qualname);
    facts->called_order = calls.order;
    return facts->called_id = ++calls.codes;
}

static void
drop_innermost(int lane)
{
    uint32_t place = calls.innermost[lane];
    OpenCall *o = &calls.open[place - 1];
    calls.records[o->number - 1].ended = stepclock.count;
    calls.innermost[lane] = o->below;
    o->below = calls.free;
    calls.free = place;
}

static void
begin_call(_PyInterpreterFrame *frame, bool goes_on)
{
    int lane = core.lane;
    if (calls.most == 0 || lane < 0 || lane >= MOST_LANES || stepclock.count == 0)
        return;
    PyCodeObject *code = compat_frame_code(frame);
    if (calls.is_own ? !rule_is_own(frame) : code_facts(code)->is_importers)
        return;
    while (calls.innermost[lane] &&
           !is_among_callers(calls.open[calls.innermost[lane] - 1].frame, compat_previous_frame(frame)))
        drop_innermost(lane);
    bool has_room = calls.used < calls.most && calls.names.used + 3 * LONGEST_NAME < MOST_NAMES;
    uint32_t place = has_room ? calls.free : 0;
    if (place == 0) {
        calls.is_cut = true;
        return;
    }
    calls.free = calls.open[place - 1].below;
    uint32_t below = calls.innermost[lane];
    CallRecord *record = &calls.records[calls.used++];
    record->code = code_number(code);
    record->parent = below ? calls.open[below - 1].number : 0;
    record->lane = lane;
    record->goes_on = goes_on;
    record->begun = stepclock.count + 1;
    record->ended = 0;
    calls.open[place - 1] = (OpenCall){frame, calls.used, below};
    calls.innermost[lane] = place;
}

void
called_start(_PyInterpreterFrame *frame)
{
    begin_call(frame, false);
}

void
called_resume(_PyInterpreterFrame *frame)
{
    begin_call(frame, true);
}

void
called_end(_PyInterpreterFrame *frame)
{
    int lane = core.lane;
    if (calls.most == 0 || lane < 0 || lane >= MOST_LANES)
        return;
    for (uint32_t at = calls.innermost[lane]; at; at = calls.open[at - 1].below)
        if (calls.open[at - 1].frame == frame) {
            while (calls.innermost[lane] != at)
                drop_innermost(lane);
            drop_innermost(lane);
            return;
        }
}

void
called_report(Buf *b)
{
    report_key(b, "calls");
    report_list(b, 3);
    report_number(b, calls.is_cut);
    report_list(b, calls.codes);
    if (calls.names.used)
        buf_bytes(b, calls.names.data, calls.names.used);
    report_list(b, calls.used);
    for (uint32_t i = 0; i < calls.used; i++) {
        const CallRecord *r = &calls.records[i];
        const int64_t numbers[] = {r->code - 1, r->parent, r->lane, r->goes_on, (int64_t)r->begun, (int64_t)r->ended};
        report_list(b, 6);
        for (int k = 0; k < 6; k++)
            report_number(b, numbers[k]);
    }
}
