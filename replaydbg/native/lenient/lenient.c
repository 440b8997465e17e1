/* A crossing of an edited program, and where in the log its answer is. See lenient.h. In this order:
 *
 *   the lane's next event, if gate, arguments and bytes agree;
 *   a later one that nobody has asked for (what lies between is skipped, and stays there), then an earlier one. What is read from a file
 *   or socket comes in its order: the earliest first, and never from another file that had the same number;
 *   an event behind the recorded end, which somebody has put there;
 *   what follows from the recording about a path (lenient/facts.c);
 *   then what the gate's row allows (replaydbg/gates/lenient.py): a clock stands still, output counts as written, what closes is done.
 *
 * A clock is asked everywhere, and any answer is as good: one from further on is taken only if the same function asked then, and not far from
 * here. To go on there would leave out all that lies between. */
#include "base/core.h"
#include "clock/clock.h"
#include "code/code.h"
#include "crossing/crossing.h"
#include "lanes/lanes.h"
#include "lenient/inside.h"
#include "log/log.h"
#include "signals/signals.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#define MOST_REPEATS 1000000u /* of clocks, with nothing else between: who waits for them to go on waits for ever */
#define SOME_REPEATS 1000u    /* then a reading from anywhere is taken */
#define FAR 200 /* items: what was left out before is a better answer than one for which all these would be left out */
#define NEAR 24 /* items: in a test suite one function read the clock for all tests, thousands of events apart */

typedef struct {
    Item *item;
    Stream *of;
    LibertyKind how;
} Answer;

static IdMap last_ids; /* of gates that may repeat themselves: by gate and arguments */
static struct {
    uint64_t at, head;
} *last;
static size_t last_count, last_size;
static uint64_t repeats; /* since an event answered */

/* ---- looking ---- */

Item *
stream_next(Stream *s)
{
    while (s->cursor < s->count && s->items[s->cursor].used)
        s->cursor++;
    return s->cursor < s->count ? &s->items[s->cursor] : NULL;
}

static bool
is_usable(const Item *item, uint64_t function)
{
    return !item->used && (item->fd < 0 || item->epoch == *index_epoch(item->fd)) &&
           (function == 0 || index_function_of_site(item->site) == function);
}

static Item *
find_later(Stream *s, Chain *chain, uint64_t function)
{
    while (chain->after && (chain->after - 1 < s->cursor || s->items[chain->after - 1].used))
        chain->after = s->items[chain->after - 1].next;
    for (uint32_t i = chain->after; i && (function == 0 || i - 1 - s->cursor < NEAR); i = s->items[i - 1].next)
        if (is_usable(&s->items[i - 1], function))
            return &s->items[i - 1];
    return NULL;
}

static Item *
find_earlier(Stream *s, Chain *chain)
{
    while (chain->first && s->items[chain->first - 1].used)
        chain->first = s->items[chain->first - 1].next;
    for (uint32_t i = chain->first; i && i - 1 < s->cursor; i = s->items[i - 1].next)
        if (is_usable(&s->items[i - 1], 0))
            return &s->items[i - 1];
    return NULL;
}

static uint64_t
function_here(void)
{
    PyThreadState *thread = report_thread();
    _PyInterpreterFrame *frame = thread ? compat_top_frame(thread) : NULL;
    PyCodeObject *code = frame ? compat_frame_code(frame) : NULL;
    return code ? hash_text(code->co_qualname, hash_text(code->co_filename, 0)) : 0;
}

static Answer
find_in_stream(Stream *s, Crossing *c, uint64_t key)
{
    Item *next = stream_next(s);
    bool is_clock = c->gate->flags & GATE_REPEATS;
    if (next && next->kind == ITEM_EVENT && next->key == key && is_usable(next, 0))
        return (Answer){next, s, SKIPPED};
    Chain *chain = stream_chain(s, key);
    Item *later = chain ? find_later(s, chain, is_clock ? function_here() : 0) : NULL;
    Item *earlier = chain && !is_clock ? find_earlier(s, chain) : NULL;
    bool is_input = earlier && earlier->fd >= 0 && !(c->gate->flags & GATE_DIGEST);
    bool is_far = earlier && later && (size_t)(later - s->items) - s->cursor > FAR;
    if (later && !is_input && !is_far)
        return (Answer){later, s, SKIPPED};
    return earlier ? (Answer){earlier, s, REORDERED} : (Answer){0};
}

static Answer
find_spare(Crossing *c, uint64_t key, bool anywhere)
{
    Stream *s = &lenient_index.spare;
    Chain *chain = stream_chain(s, key);
    Item *item = chain && (anywhere || chain->after) ? find_later(s, chain, anywhere ? 0 : function_here()) : NULL;
    return item ? (Answer){item, s, SPARE} : (Answer){0};
}

/* The descriptor that is asked, or -1. */
static int
descriptor_asked(Crossing *c)
{
    int overflow;
    if (c->gate->flags & GATE_SELF && c->self)
        return file_fd(c->self) != -2 ? file_fd(c->self) : socket_fd(c->self);
    if (!(c->gate->flags & GATE_DESCRIPTOR) || c->nargs == 0 || !PyLong_Check(c->args[0]))
        return -1;
    return (int)PyLong_AsLongAndOverflow(c->args[0], &overflow);
}

static uint32_t *
last_of(Crossing *c)
{
    uint64_t file = *index_epoch(descriptor_asked(c));
    return c->gate->flags & GATE_REPEATS
               ? idmap_slot(&last_ids, hash_bytes(&file, sizeof file, index_loose(c->gate, c->args_hash)))
               : NULL;
}

static Answer
find(Stream *s, Crossing *c)
{
    uint64_t key = index_exact(c->gate, c->args_hash, c->digest);
    bool is_clock = c->gate->flags & GATE_REPEATS;
    Answer answer = s ? find_in_stream(s, c, key) : (Answer){0};
    if (answer.item == NULL && lenient_index.spare.count)
        answer = find_spare(c, key, !is_clock);
    uint32_t *given = answer.item ? NULL : last_of(c);
    if (answer.item || !is_clock || (*given && repeats < SOME_REPEATS))
        return answer;
    Chain *chain = s ? stream_chain(s, key) : NULL; /* it has never been asked before, or again and again */
    Item *later = chain ? find_later(s, chain, 0) : NULL;
    if (later == NULL && chain && *given == 0)
        later = find_earlier(s, chain);
    return later ? (Answer){later, s, SKIPPED} : find_spare(c, key, true);
}

/* ---- what lies between two events ---- */

/* What a handler raises comes out of the crossing if the log says so; of one that runs elsewhere than recorded it does
 * anyway. */
static bool
run_handler(int signum, Crossing *c, bool is_liberty)
{
    if (is_liberty)
        liberty(SIGNALLED, 0, c, strsignal(signum));
    signals_inside(signum);
    if (is_liberty && PyErr_Occurred())
        return false;
    cross_keep_raised();
    return true;
}

static int
signal_of(const Item *item)
{
    bool ok = true;
    const uint8_t *p = event_log.base + item->at;
    return (int)read_varint(&p, event_log.rend, &ok);
}

static void
apply_memory(const Item *item)
{
    cross_read_control_at(event_log.base + item->at, CONTROL_MEMORY, NULL);
}

static void
pass_switch(Stream *s, Item *item, Crossing *c)
{
    item->used = true;
    if (item->why == INSIDE_A_CROSSING) {
        Item *next = stream_next(s);
        lenient_let_others(next ? next->order : NEVER);
        return;
    }
    if (item->why == PREEMPTED)
        lanes_expect_nothing();
    liberty(item->why == PREEMPTED ? PREEMPTION : LANE, 0, c,
            item->why == PREEMPTED ? "" : "it does not wait here, and did when it was recorded");
}

/* What was left out before one answer. */
typedef struct {
    bool any;
    uint64_t first, last, count; /* of those not reported before */
} Skipped;

/* The program has gone by `item` without asking for it. False: a handler has raised. */
static bool
pass(Stream *s, Item *item, Crossing *c, Skipped *skipped)
{
    s->cursor = (size_t)(item - s->items) + 1;
    switch ((ItemKind)item->kind) {
    case ITEM_EVENT:
        if (!item->reported && !liberty_fold(item->number, item->loose)) {
            skipped->first = skipped->count++ ? skipped->first : item->number;
            skipped->last = item->number;
        }
        item->reported = skipped->any = true;
        break;
    case ITEM_SIGNAL:
        return run_handler(signal_of(item), c, skipped->any);
    case ITEM_BETWEEN:
        return run_handler(signal_of(item), c, true);
    case ITEM_CALLBACK:
        if (!skipped->any && strcmp(c->gate->module, "_ssl") == 0)
            cross_read_control_at(event_log.base + item->at, CONTROL_CALLBACK, c);
        break;
    case ITEM_SWITCH:
        pass_switch(s, item, c);
        break;
    case ITEM_MEMORY:
        apply_memory(item);
        break;
    case ITEM_START: /* may be looked for later */
        break;
    }
    return true;
}

void
lenient_read_ahead(void)
{
    Stream *s = lenient_stream_of(core.lane);
    for (Item *item; s && !cross_signal_is_due() && (item = stream_next(s));) {
        if (__builtin_expect(lenient_index.lines_from && item->order > lenient_index.lines_from, 0)) {
            lenient_index.lines_from = 0;
            lanes_begin_lines();
        }
        if (item->kind == ITEM_MEMORY && !item->within) {
            item->used = true;
            apply_memory(item);
        }
        else if (item->kind == ITEM_BETWEEN && lanes.running == lanes.main) {
            item->used = true;
            cross_read_control_at(event_log.base + item->at, CONTROL_SIGNAL_BETWEEN, NULL);
            return;
        }
        else {
            if (item->kind == ITEM_SWITCH && item->why == PREEMPTED && !stream_reads_clock(s))
                lanes_expect_preemption(item->loose);
            return;
        }
    }
}

void
lenient_lane_started(int id, PyObject *name)
{
    Buf b = {0};
    report_name(&b, name);
    uint64_t hash = hash_bytes(b.data, b.used, 0);
    free(b.data);
    Stream *own = lenient_stream_of(core.lane);
    Item *found = NULL;
    for (size_t at = own ? own->cursor : 0; own && at < own->count && !found; at++) /* the next one of that name */
        if (own->items[at].kind == ITEM_START && !own->items[at].used && own->items[at].loose == hash)
            found = &own->items[at];
    for (size_t lane = 0; lane < lenient_index.stream_count && !found; lane++) {
        Stream *s = lenient_index.streams[lane];
        for (size_t at = 0; s && at < s->count && !found; at++)
            if (s->items[at].kind == ITEM_START && !s->items[at].used && s->items[at].loose == hash)
                found = &s->items[at];
    }
    if (found)
        found->used = true;
    else
        liberty(LANE, 0, NULL, "a thread is started that the recording does not have");
    lenient_lane_made(id, found ? index_stream(found->site) : NULL);
}

/* ---- answering ---- */

/* A number that the recording gives to one file after the other can be two files' at a time now: then nobody could tell
 * them apart. */
static void
check_descriptors(const Item *item, Crossing *c)
{
    int fds[8], n = item->raised ? 0 : index_opened(event_log.base + item->at, c->gate->flags, fds, 8);
    if (index_adopts(c->gate) && c->nargs > 0 && PyLong_Check(c->args[0]))
        return;
    /* dup2(), socket(fileno=) */
    bool is_given =
        c->gate->flags & GATE_COPIES || (c->gate->flags & GATE_OPENS_FIRST && c->nargs > 3 && PyLong_Check(c->args[3]));
    int own = c->self ? file_fd(c->self) : -1; /* a file that a function of the program's has opened for it */
    for (int i = 0; i < n; i++) {
        if (liberties_taken() && !is_given && fds[i] != own && fcntl(fds[i], F_GETFD) >= 0) {
            char text[160];
            snprintf(text, sizeof text,
                     "descriptor %d is open here, but in the recording it was closed before its number was used again",
                     fds[i]);
            diverge("unanswered", c->gate, c, text);
        }
        *index_epoch(fds[i]) = item->number;
    }
}

static PyObject *
give_event(Stream *s, Answer answer, Crossing *c)
{
    Item *item = answer.item;
    bool forward = answer.of == s && (size_t)(item - s->items) >= s->cursor;
    uint64_t head = (uint64_t)item->site << 2 | item->raised;
    item->used = true;
    repeats = 0;
    if (forward) {
        s->cursor = (size_t)(item - s->items) + 1;
        if (lanes.alive > 1)
            lenient_let_others(item->order);
    }
    else
        liberty(answer.how, item->number, c, "");
    uint32_t *given = last_of(c);
    if (given) {
        if (*given == 0) {
            if (last_count == last_size)
                last = realloc(last, (last_size = last_size ? last_size * 2 : 64) * sizeof *last);
            if (last == NULL)
                Py_FatalError("replaydbg: out of memory for answers");
            *given = (uint32_t)++last_count;
        }
        last[*given - 1].at = item->at;
        last[*given - 1].head = head;
    }
    check_descriptors(item, c);
    PyObject *result = cross_outcome_at(event_log.base + item->at, c, head);
    core.crossings++;
    if (result)
        facts_done(c);
    if (forward)
        ticks_event();
    clocks_crossed();
    lenient_read_ahead();
    return result;
}

bool
lenient_is_used_up(void)
{
    for (size_t i = 0; i < lenient_index.stream_count; i++)
        if (lenient_index.streams[i] && stream_next(lenient_index.streams[i]))
            return false;
    return true;
}

_Noreturn static void
cannot_answer(Crossing *c, const char *detail)
{
    if (!lenient_index.has_ended && lenient_is_used_up())
        diverge("end", c->gate, c, "");
    diverge("unanswered", c->gate, c, detail);
}

/* What no event answers. */
static PyObject *
give_otherwise(Crossing *c, PyObject *own)
{
    unsigned flags = c->gate->flags;
    uint32_t *given = last_of(c);
    bool is_known;
    PyObject *fact = facts_answer(c, &is_known);
    if (is_known) {
        liberty(FOLLOWS, 0, c, "");
        if (fact)
            facts_done(c);
        return fact;
    }
    if (given && *given) {
        if (++repeats > MOST_REPEATS)
            cannot_answer(c, "it is called again and again, and the recording has no other result");
        liberty(REPEATED, 0, c, "");
        return cross_outcome_at(event_log.base + last[*given - 1].at, c, last[*given - 1].head);
    }
    if (flags & GATE_WRITTEN && c->digested) {
        liberty_written(c, index_loose(c->gate, c->args_hash));
        return flags & GATE_ACCEPTED ? Py_NewRef(Py_None) : PyLong_FromSize_t(c->left);
    }
    if (c->perform) {
        liberty(ACCEPTED, 0, c, "");
        if (own == NULL && !cross_give_raised())
            cannot_answer(c, "");
        return Py_XNewRef(own);
    }
    if (flags & GATE_ACCEPTED) {
        liberty(ACCEPTED, 0, c, "");
        return Py_NewRef(Py_None);
    }
    if (!core.outcome_is_known)
        cannot_answer(c, "");
    if (strcmp(c->gate->module, "_sqlite3") == 0)
        return PyLong_FromLong(10); /* SQLITE_IOERR */
    errno = EIO; /* the outcome is known; what it says about it (a traceback with lines of files) may be incomplete */
    return PyErr_SetFromErrno(PyExc_OSError);
}

static bool
tell_skipped(const Skipped *skipped, Crossing *c, bool goes_on)
{
    char text[80] = "";
    if (skipped->count > 1)
        snprintf(text, sizeof text, "and %llu more up to event %llu", (unsigned long long)skipped->count - 1,
                 (unsigned long long)skipped->last);
    if (skipped->count)
        liberty(SKIPPED, skipped->first, c, text);
    return goes_on;
}

/* Goes by what was recorded before the answer. False: a handler has raised. */
static bool
come_to_answer(Stream *s, Crossing *c, Answer *answer)
{
    Skipped skipped = {0};
    if (cross_signal_is_due() && lanes.running == lanes.main) { /* at a place that was not met */
        lanes_expect_nothing();
        cross_signal_is_due_no_more();
        if (!run_handler(signals_expected_no_more(), c, true))
            return false;
    }
    for (;;) {
        *answer = find(s, c);
        Item *next = s ? stream_next(s) : NULL;
        if (answer->of != s || answer->item == NULL || (size_t)(answer->item - s->items) < s->cursor ||
            next == answer->item)
            return tell_skipped(&skipped, c, true);
        if (!pass(s, next, c, &skipped))
            return tell_skipped(&skipped, c, false);
    }
}

/* The lane was in a crossing when the program ended: that is the last thing known of it. */
static bool
is_never_answered(Stream *s)
{
    Item *next = s ? stream_next(s) : NULL;
    return next && next->kind == ITEM_SWITCH && next->why == INSIDE_A_CROSSING && next == &s->items[s->count - 1];
}

/* Steals `own`: what the real thing gave where it is done in a replay too. */
static PyObject *
lenient_end(Crossing *c, PyObject *own)
{
    Stream *s = lenient_stream_of(core.lane);
    Answer answer;
    PyObject *result = NULL;
    cross_keep_raised();
    if (!come_to_answer(s, c, &answer))
        c->raised_by_program = true;
    else if (answer.item == NULL && is_never_answered(s))
        lenient_stay();
    else
        result = answer.item ? give_event(s, answer, c) : give_otherwise(c, own);
    Py_XDECREF(own);
    return result;
}

PyObject *
lenient_cross_end(Crossing *c, PyObject *own)
{
    return draws_changed(c->gate, lenient_end(c, own));
}

PyObject *
lenient_answer(Crossing *c)
{
    return lenient_end(c, NULL);
}

/* ---- the end ---- */

void
lenient_ended(void)
{
    uint64_t unused = 0, first = 0;
    for (size_t i = 0; i < lenient_index.stream_count; i++) {
        Stream *s = lenient_index.streams[i];
        for (size_t at = 0; s && at < s->count; at++) {
            Item *item = &s->items[at];
            if (item->kind != ITEM_EVENT || item->used || item->reported || liberty_fold(item->number, item->loose))
                continue;
            unused++;
            first = first == 0 || item->number < first ? item->number : first;
        }
    }
    if (unused) {
        char text[32];
        snprintf(text, sizeof text, "%llu", (unsigned long long)unused);
        liberty(UNUSED, first, NULL, text);
    }
    base_hooks.reports_ending();
}
