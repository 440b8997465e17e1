/* A crossing is replayed: the next event answers it, after it has been checked against what the program asks. */
#include "base/core.h"
#include "clock/clock.h"
#include "code/code.h"
#include "collector/collector.h"
#include "crossing/inside.h"
#include "log/log.h"
#include "values/values.h"
#include <stdlib.h>

#define DECODING_CALLS 50
#define LONGEST_NOTE (1 << 20) /* of a deadlock, with all stacks */

static uint32_t args_defined;
static uint64_t *recorded_args;
static size_t recorded_args_size;
/* the next one was that, where the program has made a mark; 0: it has made none since the last event */
static uint64_t serials;
static bool armed; /* a handler between crossings is due before the next one */
static int exit_code_seen = -1;
Drift drift;
uint64_t replay_time;

/* ---- definitions ---- */

static void
read_args(void)
{
    const uint8_t *start = event_log.rp;
    if (!value_skip(&event_log.rp, event_log.rend))
        diverge("corrupt", NULL, NULL, "arguments cannot be read");
    if (args_defined + 1 >= recorded_args_size) {
        recorded_args_size = recorded_args_size ? recorded_args_size * 2 : 1024;
        recorded_args = grown(recorded_args, recorded_args_size, sizeof *recorded_args);
    }
    recorded_args[++args_defined] = hash_bytes(start, (size_t)(event_log.rp - start), 0);
}

void
cross_read_definition(uint64_t rest)
{
    const uint8_t **p = &event_log.rp, *end = event_log.rend;
    int rc = -1;
    if (rest == DEFINES_CODE)
        rc = code_define(p, end);
    else if (rest == DEFINES_SITE)
        rc = site_define(p, end);
    else if (rest == DEFINES_TYPE)
        rc = types_define(&event_types, p, end);
    else if (rest == DEFINES_ARGUMENTS) {
        read_args();
        rc = 0;
    }
    if (rc < 0)
        diverge("corrupt", NULL, NULL, "a definition cannot be read");
}

/* ---- control records: what follows their heads ---- */

uint64_t
cross_read_number(void)
{
    bool ok = true;
    uint64_t v = read_varint(&event_log.rp, event_log.rend, &ok);
    if (!ok)
        diverge("corrupt", NULL, NULL, "a number cannot be read");
    return v;
}

void
cross_read_raw(void *to, size_t n)
{
    if ((size_t)(event_log.rend - event_log.rp) < n)
        diverge("corrupt", NULL, NULL, "a signal cannot be read");
    memcpy(to, event_log.rp, n);
    event_log.rp += n;
}

/* A number that a replay has no use for. */
void
replay_number(Crossing *open)
{
    cross_read_number();
}

void
replay_passed(Crossing *open)
{
    replay_time = cross_read_number();
}

uint64_t
cross_replayed_time(void)
{
    return replay_time;
}

/* A note, or a mark. */
void
replay_text(Crossing *open)
{
    if (!value_skip(&event_log.rp, event_log.rend))
        diverge("corrupt", NULL, NULL, "a note cannot be read");
}

/* Of what was on the disk when the power was cut: whoever opens the log has compared it. */
void
replay_checksum(Crossing *open)
{
    if (!checksum_skip(&event_log.rp, event_log.rend))
        diverge("corrupt", NULL, NULL, "a checksum cannot be read");
}

void
replay_exit(Crossing *open)
{
    exit_code_seen = (int)cross_read_number();
}

void
replay_serials(Crossing *open)
{
    serials = cross_read_number(); /* not yet: what runs until the next crossing has serials of its own */
}

/* Is the collector where it was when this was recorded? If not, what the program has done is still as recorded, as far
 * as anybody could see; but finalizers may run elsewhere from now on. It is remembered, and said at the end, or with
 * the divergence that comes of it. */
void
replay_collector(Crossing *open)
{
    uint64_t recorded[4];
    for (int i = 0; i < 4; i++)
        recorded[i] = cross_read_number();
    if (drift.event || core.current_source || core.tstate == NULL ||
        collector_agrees(recorded, drift.detail, sizeof drift.detail))
        return;
    drift.event = core.crossings + 1;
    if (core.strict)
        diverge("collector", NULL, NULL, drift.detail);
}

/* What a handler raised, kept apart while more records are read. */
void
cross_keep_raised(void)
{
    if (!PyErr_Occurred())
        return;
    Py_CLEAR(cross_state.raised_type);
    Py_CLEAR(cross_state.raised_value);
    Py_CLEAR(cross_state.raised_traceback);
    PyErr_Fetch(&cross_state.raised_type, &cross_state.raised_value, &cross_state.raised_traceback);
}

/* A program's function that C code called, or a warning that it issued. */
static void
call_back(Crossing *c, PyObject *recorded)
{
    PyObject *kind = PyTuple_Check(recorded) && PyTuple_GET_SIZE(recorded) > 0 ? PyTuple_GET_ITEM(recorded, 0) : NULL;
    long number = kind && PyLong_Check(kind) ? PyLong_AsLong(kind) : -1;
    if (number < 0 || number > INT32_MAX)
        diverge("corrupt", c ? c->gate : NULL, c, "a callback cannot be read");
    const CallbackReader *reader = callback_readers;
    while (number < reader->from)
        reader++;
    reader->read((int)number, c, recorded);
}

void
replay_callback(Crossing *open)
{
    if (core.depth > 0 && !collector.has_levels) { /* the gate alone would have made nothing */
        collector_resume();
        collector_pause(false);
    }
    PyObject *recorded = value_decode(&event_log.rp, event_log.rend, &event_types, NULL, 0);
    if (recorded == NULL)
        diverge("corrupt", NULL, NULL, "a callback cannot be read");
    call_back(open, recorded);
    cross_keep_raised();
    Py_DECREF(recorded);
}

/* Reads the control record whose head has just been read; `open` is the crossing that is open, if one is. */
static void
read_control(uint64_t rest, Crossing *open)
{
    if (rest >= CONTROL_KINDS || control_records[rest].read == NULL)
        diverge("corrupt", NULL, NULL, "an unknown record");
    control_records[rest].read(open);
}

/* ---- looking ahead ---- */

_Static_assert((CONTROL_KINDS & (CONTROL_KINDS - 1)) == 0, "replay_read_ahead() takes its number less one as a mask");

/* After a crossing: what the log says must happen before the next one is read now. Handlers inside the next crossing
 * wait for it. */
void
replay_read_ahead(void)
{
    if (__builtin_expect(core.follows, 0))
        log_follow();
    bool is_within = false; /* the next crossing has begun there, and program code may run in it */
    while (event_log.rp < event_log.rend && !armed) {
        uint8_t head = *event_log.rp;
        if ((head & 0x83) == 3) {
            event_log.rp++;
            cross_read_definition(head >> 2);
            is_within = true;
            continue;
        }
        const ControlRecord *record = &control_records[head >> 2 & (CONTROL_KINDS - 1)];
        if ((head & 0x83) != 2 || (is_within && !(record->place & WITHIN_A_CROSSING)) ||
            record->place & OF_NEXT_CROSSING)
            return; /* what belongs to the next crossing, or the next lane, is read in it */
        if (record->look_ahead && record->look_ahead())
            return;
        event_log.rp++;
        read_control(head >> 2, NULL);
    }
}

void
cross_read_ahead(void)
{
    crossing_ways[core.way].read_ahead();
}

/* ---- for lenient/, which looks for what the log says in another order ---- */

void
cross_forget_definitions(void)
{
    args_defined = 0;
    event_types.defined = 0;
}

uint64_t
cross_recorded_arguments(uint64_t id)
{
    return id > 0 && id <= args_defined ? recorded_args[id] : 0;
}

uint32_t
cross_arguments_defined(void)
{
    return args_defined;
}

void
cross_read_control_at(const uint8_t *at, unsigned rest, Crossing *c)
{
    event_log.rp = at;
    read_control(rest, c);
}

bool
cross_signal_is_due(void)
{
    return armed;
}

void
cross_signal_is_due_no_more(void)
{
    armed = false;
}

bool
cross_give_raised(void)
{
    if (cross_state.raised_type == NULL)
        return false;
    PyErr_Restore(cross_state.raised_type, cross_state.raised_value, cross_state.raised_traceback);
    cross_state.raised_type = cross_state.raised_value = cross_state.raised_traceback = NULL;
    return true;
}

void
cross_expect_signal(void)
{
    armed = true;
}

/* ---- the next record ---- */

static void
reach_serials(void)
{
    if (serials)
        crossing_hooks.reach_serial(serials);
    serials = 0;
}

static void
hold_little(void)
{
    if (event_log.rp - (event_log.base + event_log.released) > MOST_READ)
        log_release_read();
}

/* The next record that is no definition, time or note: its head, not yet read. Ends the replay where the log ends. */
static uint64_t
next_record(void)
{
    hold_little();
    for (;;) {
        if (event_log.rp >= event_log.rend && core.follows)
            log_follow();
        if (event_log.rp >= event_log.rend)
            diverge("end", NULL, NULL, exit_code_seen >= 0 ? "after the recorded end of the program" : "");
        const uint8_t *here = event_log.rp;
        uint64_t head = cross_read_number();
        if ((head & 3) == 3)
            cross_read_definition(head >> 2);
        else if ((head & 3) == 2 &&
                 !(head >> 2 < CONTROL_KINDS && control_records[head >> 2].place & (OF_NEXT_CROSSING | ENDS_A_STRETCH)))
            read_control(head >> 2, NULL);
        else {
            event_log.rp = here;
            reach_serials();
            return head;
        }
    }
}

static bool skip_idle(const uint8_t **p, const uint8_t *end);

/* Of a program that was ended because all of its lanes waited: this one is the last that came to wait. */
static bool
waits_at_deadlock(unsigned why)
{
    const uint8_t *p = event_log.rp, *end = event_log.rend;
    enum { PREEMPTED = 2 };
    while (p < end && *p != (CONTROL_END << 2 | 2u) && skip_idle(&p, end))
        ;
    bool is_next = end - p == 2 && *p == (CONTROL_END << 2 | 2u) && p[1] == EXIT_DEADLOCK;
    return why < PREEMPTED && (is_next || (p == end && exit_code_seen == EXIT_DEADLOCK)); /* it may be read already */
}

bool
cross_read_switch(unsigned why, uint64_t numbers[3])
{
    if (__builtin_expect(event_log.rend - event_log.rp < LONGEST_NOTE, 0) && waits_at_deadlock(why))
        diverge("end", NULL, NULL, "");
    if (next_record() != (CONTROL_LANE << 2 | 2u))
        return false;
    event_log.rp++;
    for (int i = 0; i < 3; i++)
        numbers[i] = cross_read_number();
    if ((numbers[1] & 3) != why)
        diverge("thread", NULL, NULL, "in the recording another thread continued here, for another reason");
    return true;
}

/* As a LANE_STARTED record has it. */
static Buf
lane_record(int id, PyObject *name)
{
    Buf b = {0};
    buf_varint(&b, CONTROL_LANE_STARTED << 2 | 2u);
    buf_varint(&b, (uint64_t)id);
    report_name(&b, name);
    return b;
}

void
observed_lane_started(int id, PyObject *name)
{
}

void
recorded_lane_started(int id, PyObject *name)
{
    Buf b = lane_record(id, name);
    log_append(&event_log, &b);
}

void
replayed_lane_started(int id, PyObject *name)
{
    Buf b = lane_record(id, name);
    if (next_record() != (CONTROL_LANE_STARTED << 2 | 2u))
        diverge("thread", NULL, NULL, "a thread is started here, but not in the recording");
    if ((size_t)(event_log.rend - event_log.rp) < b.used || memcmp(event_log.rp, b.data, b.used) != 0)
        diverge("thread", NULL, NULL, "a different thread is started in the recording");
    event_log.rp += b.used;
    free(b.data);
}

void
cross_lane_started(int id, PyObject *name)
{
    if (__builtin_expect(core.goes_live, 0))
        crossing_hooks.live_inside(); /* one that was killed before it started the thread */
    crossing_ways[core.way].lane_started(id, name);
}

void
signal_delivered(void)
{
    armed = false;
    cross_read_ahead();
}

bool
replayed_is_used_up(void)
{
    return event_log.rp >= event_log.rend;
}

/* Of records that do nothing by themselves, what follows their heads: n a number, t a text, v a value. */
static const char *
idle_form(uint64_t head)
{
    static const char *const definitions[] = {
        [DEFINES_CODE] = "ttn", [DEFINES_SITE] = "nnnnn", [DEFINES_TYPE] = "tt", [DEFINES_ARGUMENTS] = "v"};
    static const char *const controls[CONTROL_KINDS] = {
        [CONTROL_TIME] = "n",  [CONTROL_CHILD] = "n",        [CONTROL_SERIALS] = "n", [CONTROL_COLLECTOR] = "nnnn",
        [CONTROL_CHAOS] = "n", [CONTROL_STREAM] = "nnnnnnt", [CONTROL_NOTE] = "v",    [CONTROL_MARK] = "v"};
    uint64_t kind = head >> 2;
    if ((head & 3) == 3)
        return kind < sizeof definitions / sizeof *definitions ? definitions[kind] : NULL;
    return (head & 3) == 2 && kind < CONTROL_KINDS ? controls[kind] : NULL;
}

static bool
skip_idle(const uint8_t **p, const uint8_t *end)
{
    bool ok = true;
    uint64_t head = read_varint(p, end, &ok);
    if (ok && head == (CONTROL_CHECKSUM << 2 | 2u))
        return checksum_skip(p, end);
    const char *form = ok ? idle_form(head) : NULL;
    for (const char *part = form; ok && part && *part; part++) {
        uint64_t n = *part == 'v' ? 0 : read_varint(p, end, &ok);
        if (*part == 'v')
            ok = value_skip(p, end);
        else if (*part == 't') {
            ok = ok && n <= (uint64_t)(end - *p);
            *p += ok ? n : 0;
        }
    }
    return ok && form;
}

bool
cross_is_used_up(void)
{
    if (armed || (core.live_at && core.crossings + 1 < core.live_at))
        return false; /* a handler is due first */
    if (core.live_at)
        return core.crossings + 1 > core.live_at || core.switches_passed >= core.live_switches;
    if (exit_code_seen >= 0)
        return false; /* it has ended by itself, and is at its end here, too */
    for (;;) {
        const uint8_t *p = event_log.rp, *end = event_log.rend;
        while (p < end)
            if (!skip_idle(&p, end))
                return false;
        if (!core.follows)
            return true;
        log_follow(); /* until there is more, or its program has ended */
    }
}

bool
cross_at_end(void)
{
    return crossing_ways[core.way].is_used_up();
}

bool
cross_ends_unannounced(void)
{
    return cross_at_end() && exit_code_seen < 0 && !armed;
}

/* The program ends: a replay that has not used up the log has gone another way. Definitions and notes may be left over.
 */
void
replayed_ended(void)
{
    if (core.follows)
        log_follow();
    while (event_log.rp < event_log.rend) {
        uint64_t head = cross_read_number();
        if ((head & 3) == 3)
            cross_read_definition(head >> 2);
        else if ((head & 3) == 2 && !(head >> 2 < CONTROL_KINDS && control_records[head >> 2].place & NOT_AT_THE_END))
            read_control(head >> 2, NULL);
        else
            diverge("early", NULL, NULL, "the program ended earlier than when it was recorded");
    }
    crossing_hooks.replay_is_whole();
}

void
cross_expect_exit(void)
{
    crossing_ways[core.way].ended();
}

/* ---- the event ---- */

#define NO_HEAD UINT64_MAX /* the replay has become a recording */

static uint64_t
read_head(Crossing *c)
{
    if (core.stop_at && core.crossings + 1 >= core.stop_at)
        diverge("stop", c->gate, c, "");
    hold_little();
    for (;;) {
        if (__builtin_expect(core.goes_live || core.is_resumed, 0) && crossing_hooks.live_inside())
            return NO_HEAD;
        if (event_log.rp >= event_log.rend) {
            /* in a deadlock it waits in this call, if it was one of a future, to which nothing comes from outside */
            bool has_ended = exit_code_seen >= 0 && exit_code_seen != EXIT_DEADLOCK;
            diverge("end", c->gate, c, has_ended ? "after the recorded end of the program" : "");
        }
        uint64_t head = cross_read_number();
        if ((head & 3) == 3)
            cross_read_definition(head >> 2);
        else if ((head & 3) == 2)
            read_control(head >> 2, c);
        else {
            reach_serials();
            return head;
        }
    }
}

static void
check_event(Crossing *c, uint64_t head)
{
    uint32_t site = (uint32_t)(head >> 2);
    if (site_recorded_gate(site) != c->gate->id)
        diverge("call", c->gate, c, "");
    if (!core.current_source && site_recorded_hash(site) != c->site_hash)
        diverge("site", c->gate, c, "");
    unsigned shape = site_recorded_shape(site);
    if (shape & GATE_ARGS) {
        uint64_t id = cross_read_number();
        if (id == 0 || id > args_defined ||
            (recorded_args[id] != c->args_hash && !cross_argued_before(c, recorded_args[id])))
            diverge("arguments", c->gate, c, "");
    }
    if (shape & GATE_DIGEST) {
        uint32_t digest;
        if (event_log.rend - event_log.rp < 4)
            diverge("corrupt", c->gate, c, "a digest cannot be read");
        memcpy(&digest, event_log.rp, 4);
        if (core.redigests) /* the log is a copy that is mapped for writing */
            memcpy((uint8_t *)event_log.rp, &c->digest, 4);
        else if (digest != c->digest)
            diverge("bytes", c->gate, c, "");
        event_log.rp += 4;
    }
}

static void
read_fill(Crossing *c)
{
    if (event_log.rp < event_log.rend && *event_log.rp == TAG_CONTENT) {
        event_log.rp++;
        uint64_t offset = cross_read_number(), n = cross_read_number();
        c->fill = content_at(offset, n);
        c->fill_length = n;
        if (c->fill == NULL)
            diverge("content", c->gate, c, "the content of a file that was read is missing from the recording");
        return;
    }
    event_log.rp++;
    uint64_t n = cross_read_number();
    if (n > (uint64_t)(event_log.rend - event_log.rp))
        diverge("corrupt", c->gate, c, "bytes cannot be read");
    c->fill = event_log.rp;
    c->fill_length = n;
    event_log.rp += n;
}

/* What came of a crossing, from the log; that of program code inside it if the log says so. */
static PyObject *
outcome(Crossing *c, uint64_t head, bool checked)
{
    PyObject *type = cross_state.raised_type, *value = cross_state.raised_value,
             *traceback = cross_state.raised_traceback, *result = NULL;
    cross_state.raised_type = cross_state.raised_value = cross_state.raised_traceback = NULL;
    if (checked)
        check_event(c, head);
    if ((head & 3) == 1 && event_log.rp < event_log.rend && *event_log.rp == TAG_NONE && type) {
        event_log.rp++;
        c->raised_by_program = true;
        PyErr_Restore(type, value, traceback);
    }
    else {
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(traceback);
        compat_call_credit(core.tstate, DECODING_CALLS); /* at the program's recursion limit too */
        result = value_decode(&event_log.rp, event_log.rend, &event_types, c->args, c->nargs);
        compat_call_credit(core.tstate, -DECODING_CALLS);
        if (result == NULL && content_is_missing)
            diverge("content", c->gate, c, "the content of a file that was read is missing from the recording");
        if (result == NULL && !PyErr_Occurred())
            diverge("unrecordable", c->gate, c, "the outcome could not be recorded");
    }
    if (site_recorded_shape((uint32_t)(head >> 2)) & GATE_FILLS)
        read_fill(c);
    return result;
}

PyObject *
cross_outcome_at(const uint8_t *at, Crossing *c, uint64_t head)
{
    event_log.rp = at;
    return outcome(c, head, false);
}

PyObject *
replay_end(Crossing *c)
{
    if (armed)
        diverge("signal", c->gate, c, "the replay never reached the point at which a signal handler ran");
    cross_state.upcall_error = NULL;
    uint64_t head = read_head(c); /* may run handlers, and one of them may have raised */
    if (__builtin_expect(head == NO_HEAD, 0)) {
        PyErr_Clear();
        return cross_made_again();
    }
    PyObject *result = outcome(c, head, true);
    core.crossings++;
    ticks_event();
    clocks_crossed();
    if (__builtin_expect(core.redigests && c->gate->moves, 0))
        crossing_hooks.transfer_ends(c, result);
    if (__builtin_expect(core.goes_live, 0) && result)
        crossing_hooks.live_follow(c, result);
    if (__builtin_expect(core.has_futures, 0))
        crossing_hooks.past_follow(c, result);
    if (__builtin_expect(engine.is_on, 0))
        crossing_hooks.collect_output();
    replay_read_ahead();
    return result;
}

PyObject *
replayed_end(Crossing *c, PyObject *result)
{
    Py_XDECREF(result);
    if (PyErr_Occurred()) /* of program code that ran inside (an opener): kept until the log says whether it came out */
        PyErr_Fetch(&cross_state.raised_type, &cross_state.raised_value, &cross_state.raised_traceback);
    return replay_end(c);
}
