/* Where a step forward ends: in the lane for which it is made, and by activation of frames, not by depth (in `m() +
 * m()` the second call has the depth of the first, and no line of the caller lies between them).
 *
 * If only the user's own code counts, a step that would end elsewhere goes on to the lane's next own line: that may be
 * one which a library calls. Backwards, a run tracks the lane's last own line. */
#include "base/core.h"
#include "clock/clock.h"
#include "engine/inside.h"
#include "lanes/lanes.h"
#include <fnmatch.h>
#include <locale.h>

enum { NO_RULE, STEP, NEXT, FINISH, TRACK };
#define MOST_OUTER 1000000

typedef struct {
    _PyInterpreterFrame *frame;
    uint64_t started;
} Standing;

static struct {
    int kind, lane;
    bool stopped;
    Standing here, *outer; /* the frame in which it began, and those that wait for it */
    int outer_count;
    PyGenObject *generator; /* whose frame it is; borrowed, NULL: of none, or it has died */
    bool is_generator;
    OwnCode own;
    uint32_t own_order; /* the orders so far of which own code was asked */
    uint64_t tracked;   /* TRACK: count at the lane's last line; 0: none */
} rule;

static destructor dealloc_generator, dealloc_coroutine, dealloc_async_generator;

/* Afterwards: one that waits runs its `finally` blocks first, in the activation that it had. */
static void
dies(PyObject *o, destructor dealloc)
{
    PyGenObject *generator = (PyGenObject *)o;
    _PyInterpreterFrame *frame = compat_generator_frame(generator);
    dealloc(o);
    if (generator == rule.generator)
        rule.generator = NULL;
    activation_forget(frame);
}

static void
generator_dies(PyObject *o)
{
    dies(o, dealloc_generator);
}

static void
coroutine_dies(PyObject *o)
{
    dies(o, dealloc_coroutine);
}

static void
async_generator_dies(PyObject *o)
{
    dies(o, dealloc_async_generator);
}

int
rule_prepare(void)
{
    rule.outer = memory_apart(MOST_OUTER * sizeof *rule.outer);
    dealloc_generator = PyGen_Type.tp_dealloc;
    dealloc_coroutine = PyCoro_Type.tp_dealloc;
    dealloc_async_generator = PyAsyncGen_Type.tp_dealloc;
    PyGen_Type.tp_dealloc = generator_dies;
    PyCoro_Type.tp_dealloc = coroutine_dies;
    PyAsyncGen_Type.tp_dealloc = async_generator_dies;
    return 0;
}

static uint64_t
started(_PyInterpreterFrame *frame)
{
    const Activation *a = activation_find(frame);
    return a ? a->started : 0;
}

/* Whether a `?` is a character or a byte depends on the locale, which is the program's to choose: not here. */
static bool
fits(const char *pattern, const char *file)
{
    static locale_t ours;
    if (ours == (locale_t)0)
        ours = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    locale_t before = ours ? uselocale(ours) : (locale_t)0;
    bool fit = fnmatch(pattern, file, FNM_NOESCAPE) == 0;
    if (ours)
        uselocale(before);
    return fit;
}

/* Of names that are no valid text fnmatch() would say nothing: what could not be decoded counts as one character. */
static void
hide_surrogates(uint8_t *file)
{
    for (; *file; file++)
        if (file[0] == 0xED && file[1] >= 0xA0)
            memcpy(file, "\xEF\xBF\xBD", 3);
}

static bool
decide_own(PyCodeObject *code)
{
    bool is_own = !code_is_library(code);
    char file[LONGEST_NAME];
    text_copy(file, sizeof file, code->co_filename);
    hide_surrogates((uint8_t *)file);
    for (int i = 0; i < rule.own.count; i++) {
        bool is_left_out = rule.own.patterns[i][0] == '!';
        const char *pattern = rule.own.patterns[i] + is_left_out;
        if (fits(pattern, file))
            is_own = !is_left_out;
    }
    return is_own;
}

bool
rule_is_own(_PyInterpreterFrame *frame)
{
    CodeFacts *facts = code_facts(compat_frame_code(frame));
    if (facts->own_order != rule.own_order) {
        facts->is_own = decide_own(facts->code);
        facts->own_order = rule.own_order;
    }
    return facts->is_own;
}

void
rule_begin(int kind, int lane, const OwnCode *own)
{
    rule.own = *own;
    rule.own_order += own->is_set;
    rule.tracked = 0;
    PyThreadState *ts = lane_tstate(lane);
    _PyInterpreterFrame *frame = ts ? compat_top_frame(ts) : NULL;
    /* a lane that has just begun has no frame yet */
    rule.kind = frame || kind == STEP || kind == TRACK ? kind : NO_RULE;
    rule.stopped = false;
    rule.lane = lane;
    rule.outer_count = 0;
    if (rule.kind <= STEP || rule.kind == TRACK)
        return;
    rule.here = (Standing){frame, started(frame)};
    rule.is_generator = frame->owner == FRAME_OWNED_BY_GENERATOR;
    rule.generator = rule.is_generator ? compat_frame_generator(frame) : NULL;
    while ((frame = compat_previous_frame(frame))) {
        if (rule.outer_count == MOST_OUTER)
            break;
        rule.outer[rule.outer_count++] = (Standing){frame, started(frame)};
    }
}

bool
rule_is_set(void)
{
    return rule.kind != NO_RULE;
}

/* A generator that waits has not ended, though its callers run. Any other frame has when one of its callers runs a
 * line. */
static bool
has_ended(void)
{
    return !rule.is_generator || rule.generator == NULL || rule.generator->gi_frame_state >= FRAME_COMPLETED;
}

static bool
is_outer(_PyInterpreterFrame *frame)
{
    for (int i = 0; i < rule.outer_count; i++)
        if (rule.outer[i].frame == frame && rule.outer[i].started == started(frame))
            return true;
    return false;
}

static bool
lane_has_ended(void)
{
    return rule.lane >= lanes.made || lanes.at[rule.lane] == NULL || lanes.at[rule.lane]->ended;
}

static bool
track(_PyInterpreterFrame *frame)
{
    if (core.lane == rule.lane && (!rule.own.is_set || rule_is_own(frame)))
        rule.tracked = stepclock.count;
    return false;
}

bool
rule_line(_PyInterpreterFrame *frame)
{
    if (rule.kind == NO_RULE)
        return false;
    if (rule.kind == TRACK)
        return track(frame);
    if (core.lane != rule.lane)
        rule.stopped = lane_has_ended();
    else if (rule.kind == STEP)
        rule.stopped = true;
    else if (frame == rule.here.frame && started(frame) == rule.here.started)
        rule.stopped = rule.kind == NEXT;
    else
        rule.stopped = is_outer(frame) && has_ended();
    if (rule.stopped && rule.own.is_set && !rule_is_own(frame)) {
        rule.stopped = false;
        rule.kind = STEP;
    }
    return rule.stopped;
}

bool
rule_has_stopped(void)
{
    return rule.stopped;
}

void
rule_report(Buf *b)
{
    report_key(b, "tracked");
    report_number(b, (int64_t)rule.tracked);
}
