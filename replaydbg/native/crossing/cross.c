/* One crossing: recorded as an event, or answered by the next event after it has been checked against what the program asks. */
#include "collector/garbage.h"
#include "lenient/lenient.h"
#include "files/streams.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#define LARGEST_EVENT (200u << 20) /* readers take no record beyond 256 MiB: a length is not believed without limit */

#define DECODING_CALLS 50

static Buf args_buf, out_buf;
static IdMap args_ids;
static uint32_t args_defined;
static uint64_t *recorded_args;
static size_t recorded_args_size;
/* upcall_error is compared by address only: the exception that a handler raised inside a crossing; raised_*: the same in replay. */
static CrossState state;
#define upcall_error state.upcall_error
#define raised_type state.raised_type
#define raised_value state.raised_value
#define raised_traceback state.raised_traceback
static uint64_t serials;       /* replay: the next one was that, where the program has made a mark */
static bool armed;             /* replay: a handler between crossings is due before the next one */
static int exit_code_seen = -1;
static struct {
    uint64_t event; /* before which the collector was first seen to stand elsewhere; 0: never */
    char detail[120];
} drift;

/* ---- arguments ---- */

static void
encode_arguments(Crossing *c, PyObject *kwnames)
{
    Buf *b = &args_buf;
    bool with_self = c->gate->flags & GATE_SELF;
    Py_ssize_t nkw = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
    b->used = 0;
    buf_byte(b, 0x08);
    buf_varint(b, (uint64_t)(c->nargs + with_self + (nkw > 0)));
    if (with_self)
        value_encode(b, c->self, ENCODE_ARGUMENT, &event_types, NULL, 0);
    for (Py_ssize_t i = 0; i < c->nargs; i++) {
        if ((c->gate->flags & (GATE_DIGEST | GATE_FILLS)) && i == c->gate->buffer)
            buf_byte(b, c->gate->flags & GATE_DIGEST ? 0x18 : 0x19); /* its bytes are digested or filled in, see format.md */
        else if (value_encode(b, c->args[i], ENCODE_ARGUMENT, &event_types, NULL, 0) < 0)
            buf_byte(b, 0x00);
    }
    if (nkw) {
        buf_byte(b, 0x0A);
        buf_varint(b, (uint64_t)nkw);
        for (Py_ssize_t i = 0; i < nkw; i++) {
            value_encode(b, PyTuple_GET_ITEM(kwnames, i), ENCODE_ARGUMENT, &event_types, NULL, 0);
            if (value_encode(b, c->args[c->nargs + i], ENCODE_ARGUMENT, &event_types, NULL, 0) < 0)
                buf_byte(b, 0x00);
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
            *p = 2u << 2 | 3u;
            memcpy(p + 1, args_buf.data, args_buf.used);
            log_commit(&event_log, p + 1 + args_buf.used);
        }
    }
    c->args_id = *slot;
}

int
upcall_enter(void)
{
    int depth = core.depth;
    if (depth > 0)
        collector_resume();
    core.depth = 0;
    if (core.mode == REPLAY && depth > 0)
        cross_read_ahead(); /* a preemption or a handler may be due before the first crossing in it */
    return depth;
}

void
upcall_leave(int depth)
{
    upcall_error = NULL;
    if (PyErr_Occurred()) {
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        PyErr_NormalizeException(&type, &value, &traceback);
        upcall_error = value;
        PyErr_Restore(type, value, traceback);
    }
    core.depth = depth;
    if (depth > 0)
        collector_pause(false);
}

/* ---- the two ends, mode by mode ---- */

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

static void report(const char *kind, Gate *gate, Crossing *c, const char *detail);

static void
record_time(void)
{
    static uint64_t start;
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
    lanes_crossed();
    clocks_crossed();
    log_commit(&event_log, end);
    if ((core.crossings & 255) == 1)
        record_time();
    if (__builtin_expect(core.crossings >= heap_due, 0))
        heap_crossed();
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
        bool of_upcall = upcall_error && value == upcall_error;
        PyErr_Restore(type, value, traceback);
        c->raised_by_program = of_upcall;
        if (of_upcall)
            buf_byte(b, 0x00); /* replay raises what its own handler raised */
        else if (value_encode_exception(b, &event_types, c->args, c->nargs) < 0) {
            buf_byte(b, 0x14);
            buf_str(b, "exception", 9);
        }
    }
    else if (PyBytes_CheckExact(result) && content_encode(b, source_fd(c), PyBytes_AS_STRING(result), (size_t)PyBytes_GET_SIZE(result))) {
        /* a piece of a large file: a reference has been written */
    }
    else if (value_encode(b, result, ENCODE_RESULT, &event_types, c->args, c->nargs) < 0) {
        const char *name = Py_TYPE(result)->tp_name;
        note("unrecordable", name);
        b->used = 0;
        buf_byte(b, 0x14);
        buf_str(b, name, strlen(name));
    }
    if (c->gate->flags & GATE_FILLS) {
        if (result == NULL || !content_encode(b, source_fd(c), c->fill, c->fill_length)) {
            buf_byte(b, 0x07);
            buf_str(b, (const char *)c->fill, result ? c->fill_length : 0);
        }
    }
}

static void
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
                *p++ = 0x05;
                memcpy(p, &d, 8);
                record_commit(p + 8);
            }
            return;
        }
        if (result == Py_None || PyBool_Check(result)) {
            if ((p = log_room(&event_log, 40))) {
                p = put_head(c, p, false);
                *p++ = result == Py_None ? 0x00 : result == Py_True ? 0x02 : 0x01;
                record_commit(p);
            }
            return;
        }
    }
    record_value(c, result);
    if (out_buf.used > LARGEST_EVENT) {
        note("large", "a call returned more than 200 MiB that are not a regular file's");
        log_fail(4);
        return;
    }
    if ((p = log_room(&event_log, out_buf.used + 40))) {
        p = put_head(c, p, result == NULL);
        memcpy(p, out_buf.data, out_buf.used);
        record_commit(p + out_buf.used);
    }
}

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
cross_signal_between(int signum, const Place *place)
{
    uint8_t *p = log_room(&event_log, 48 + sizeof place->state);
    if (p == NULL)
        return;
    p = put_varint(p, CONTROL_SIGNAL_BETWEEN << 2 | 2u);
    p = put_varint(p, (uint64_t)signum);
    memcpy(p, &place->fingerprint, 8);
    p = put_varint(p + 8, (uint64_t)place->lasti);
    p = put_varint(p, place->ticks);
    p = put_varint(p, (uint64_t)place->levels);
    memcpy(p, place->state, (size_t)place->levels * 8);
    log_commit(&event_log, p + place->levels * 8);
}

void
cross_ended(int exit_code)
{
    uint64_t n = (uint64_t)(exit_code & 0xFF);
    if (core.mode == RECORD) {
        cross_control(CONTROL_END, &n, 1);
        log_memory();
    }
}

/* Notes also go to a small file: the launcher shows them without reading the whole log. */
static void
note_in_file(const char *kind, const char *text)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/notes", core.live_dir);
    int saved = errno, fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd >= 0) {
        Buf b = {0};
        buf_bytes(&b, kind, strlen(kind));
        buf_byte(&b, '\t');
        for (; *text; text++)
            buf_byte(&b, *text == '\n' ? '\v' : (uint8_t)*text); /* one line each */
        buf_byte(&b, '\n');
        report_send(fd, &b);
        close(fd);
    }
    errno = saved;
}

void
note(const char *kind, const char *text)
{
    static IdMap said;
    uint64_t key = hash_bytes(text, strlen(text), hash_bytes(kind, strlen(kind), 1));
    uint32_t *slot = idmap_slot(&said, key);
    if (*slot || core.mode != RECORD)
        return;
    *slot = 1;
    Buf b = {0};
    buf_varint(&b, CONTROL_NOTE << 2 | 2u);
    buf_byte(&b, 0x08);
    buf_byte(&b, 2);
    buf_byte(&b, 0x06);
    buf_str(&b, kind, strlen(kind));
    buf_byte(&b, 0x06);
    buf_str(&b, text, strlen(text));
    uint8_t *p = log_room(&event_log, b.used);
    if (p) {
        memcpy(p, b.data, b.used);
        log_commit(&event_log, p + b.used);
    }
    free(b.data);
    note_in_file(kind, text);
}

/* ---- reading the next event ---- */

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

static void
read_definition(uint64_t rest)
{
    const uint8_t **p = &event_log.rp, *end = event_log.rend;
    int rc = -1;
    if (rest == 0)
        rc = code_define(p, end);
    else if (rest == 1)
        rc = site_define(p, end);
    else if (rest == 3)
        rc = types_define(&event_types, p, end);
    else if (rest == 2) {
        read_args();
        rc = 0;
    }
    if (rc < 0)
        diverge("corrupt", NULL, NULL, "a definition cannot be read");
}

static uint64_t
read_number(void)
{
    bool ok = true;
    uint64_t v = read_varint(&event_log.rp, event_log.rend, &ok);
    if (!ok)
        diverge("corrupt", NULL, NULL, "a number cannot be read");
    return v;
}

/* Is the collector where it was when this was recorded? If not, what the program has done is still as recorded, as far as anybody could
 * see; but finalizers may run elsewhere from now on. It is remembered, and said at the end, or with the divergence that comes of it. */
static void
check_collector(void)
{
    uint64_t recorded[4];
    for (int i = 0; i < 4; i++)
        recorded[i] = read_number();
    if (drift.event || core.current_source || core.tstate == NULL || collector_agrees(recorded, drift.detail, sizeof drift.detail))
        return;
    drift.event = core.crossings + 1;
    if (core.strict)
        diverge("collector", NULL, NULL, drift.detail);
}

static void
read_lane(uint64_t numbers[3])
{
    for (int i = 0; i < 3; i++)
        numbers[i] = read_number();
}

/* What a handler raised, kept apart while more records are read. */
static void
keep_raised(void)
{
    if (!PyErr_Occurred())
        return;
    Py_CLEAR(raised_type);
    Py_CLEAR(raised_value);
    Py_CLEAR(raised_traceback);
    PyErr_Fetch(&raised_type, &raised_value, &raised_traceback);
}

static void
read_raw(void *to, size_t n)
{
    if ((size_t)(event_log.rend - event_log.rp) < n)
        diverge("corrupt", NULL, NULL, "a signal cannot be read");
    memcpy(to, event_log.rp, n);
    event_log.rp += n;
}

static int
read_signal(void)
{
    uint64_t signum = read_number();
    if (signum == 0 || signum >= NSIG)
        diverge("corrupt", NULL, NULL, "the number of a signal is invalid");
    return (int)signum;
}

static void
read_signal_between(void)
{
    Place place = {0};
    int signum = read_signal();
    read_raw(&place.fingerprint, sizeof place.fingerprint);
    place.lasti = (int)read_number();
    place.ticks = read_number();
    uint64_t levels = read_number();
    if (levels > PLACE_LEVELS)
        diverge("corrupt", NULL, NULL, "a signal cannot be read");
    place.levels = (int)levels;
    read_raw(place.state, (size_t)levels * sizeof *place.state);
    armed = true;
    signals_expect(signum, &place);
}

/* A program's function that C code called, or a warning that it issued. */
static void
called_back(Crossing *c, PyObject *recorded)
{
    PyObject *kind = PyTuple_Check(recorded) && PyTuple_GET_SIZE(recorded) > 0 ? PyTuple_GET_ITEM(recorded, 0) : NULL;
    long number = kind && PyLong_Check(kind) ? PyLong_AsLong(kind) : -1;
    if (number < 0 || number > INT32_MAX)
        diverge("corrupt", c ? c->gate : NULL, c, "a callback cannot be read");
    if (number == CALLBACK_WARNING)
        warned_again(c, recorded);
    else if (number >= CALLBACK_READLINE)
        readline_called_back((int)number, recorded);
    else
        tls_called_back(c, recorded);
}

/* Reads the control record whose head has just been read; `c` is the crossing that is open, if one is. */
static void
read_control(uint64_t rest, Crossing *c)
{
    switch (rest) {
    case CONTROL_SIGNAL_INSIDE:
        signals_inside(read_signal());
        keep_raised();
        break;
    case CONTROL_CALLBACK: {
        PyObject *recorded = value_decode(&event_log.rp, event_log.rend, &event_types, NULL, 0);
        if (recorded == NULL)
            diverge("corrupt", NULL, NULL, "a callback cannot be read");
        called_back(c, recorded);
        keep_raised();
        Py_DECREF(recorded);
        break;
    }
    case CONTROL_SIGNAL_BETWEEN:
        read_signal_between();
        break;
    case CONTROL_END:
        exit_code_seen = (int)read_number();
        break;
    case CONTROL_SERIALS:
        serials = read_number(); /* not yet: what runs until the next crossing has serials of its own */
        break;
    case CONTROL_COLLECTOR:
        check_collector();
        break;
    case CONTROL_NOTE:
    case CONTROL_MARK:
        if (!value_skip(&event_log.rp, event_log.rend))
            diverge("corrupt", NULL, NULL, "a note cannot be read");
        break;
    case CONTROL_MEMORY:
        if (!shared_change(&event_log.rp, event_log.rend))
            diverge("corrupt", NULL, NULL, "a change of memory cannot be read");
        break;
    case CONTROL_NO_MEMORY: {
        uint64_t size = read_number();
        shortage_expect(size, read_number());
        break;
    }
    case CONTROL_STREAM:
        stream_change();
        break;
    case CONTROL_TIME:
    case CONTROL_CHILD:
        read_number();
        break;
    case CONTROL_LANE: { /* the lane that is to cross next gave up in the middle of it */
        uint64_t numbers[3];
        read_lane(numbers);
        lane_switch_inside(numbers);
        break;
    }
    default:
        diverge("corrupt", NULL, NULL, "an unknown record");
    }
}

/* The next record is about a switch: if it is a preemption, the lane that runs must be told. It is read where it happens. */
static void
look_at_switch(void)
{
    enum { PREEMPTED = 2 };
    const uint8_t *here = event_log.rp++;
    uint64_t numbers[3];
    read_lane(numbers);
    event_log.rp = here;
    if ((numbers[1] & 3) == PREEMPTED)
        lanes_expect_preemption(numbers[2]);
}

/* After a crossing: what the log says must happen before the next one is read now. Handlers inside the next crossing wait for it. */
static void
read_ahead(void)
{
    if (__builtin_expect(core.follows, 0))
        log_follow();
    bool is_within = false; /* the next crossing has begun there, and program code may run in it */
    while (event_log.rp < event_log.rend && !armed) {
        uint8_t head = *event_log.rp;
        if ((head & 0x83) == 3) {
            event_log.rp++;
            read_definition(head >> 2);
            is_within = true;
            continue;
        }
        if (is_within && head != (CONTROL_LANE << 2 | 2u) && head != (CONTROL_SIGNAL_BETWEEN << 2 | 2u))
            return;
        if ((head & 0x83) != 2 || head >> 2 == CONTROL_SIGNAL_INSIDE || head >> 2 == CONTROL_CALLBACK || head >> 2 == CONTROL_COLLECTOR ||
            head >> 2 == CONTROL_LANE_STARTED || head >> 2 == CONTROL_STREAM)
            return; /* what belongs to the next crossing, or the next lane, is read in it */
        if (head >> 2 == CONTROL_MEMORY && event_log.rp + 1 < event_log.rend && (event_log.rp[1] & 1))
            return; /* written until then, perhaps by the program itself */
        if (head >> 2 == CONTROL_LANE) {
            look_at_switch();
            return;
        }
        event_log.rp++;
        read_control(head >> 2, NULL);
    }
}

void
cross_read_ahead(void)
{
    core.lenient ? lenient_read_ahead() : read_ahead();
}

/* ---- for lenient.c, which looks for what the log says in another order ---- */

void
cross_forget_definitions(void)
{
    args_defined = 0;
    event_types.defined = 0;
}

void
cross_read_definition(uint64_t rest)
{
    read_definition(rest);
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

void
cross_keep_raised(void)
{
    keep_raised();
}

bool
cross_give_raised(void)
{
    if (raised_type == NULL)
        return false;
    PyErr_Restore(raised_type, raised_value, raised_traceback);
    raised_type = raised_value = raised_traceback = NULL;
    return true;
}

const Buf *
cross_arguments(const Crossing *c)
{
    return c && (c->gate->flags & GATE_ARGS) && hash_bytes(args_buf.data, args_buf.used, 0) == c->args_hash ? &args_buf : NULL;
}

/* The next record that is no definition, time or note: its head, not yet read. Ends the replay where the log ends. */
static uint64_t
next_record(void)
{
    for (;;) {
        if (event_log.rp >= event_log.rend && core.follows)
            log_follow();
        if (event_log.rp >= event_log.rend)
            diverge("end", NULL, NULL, exit_code_seen >= 0 ? "after the recorded end of the program" : "");
        const uint8_t *here = event_log.rp;
        uint64_t head = read_number();
        if ((head & 3) == 3)
            read_definition(head >> 2);
        else if ((head & 3) == 2 && head >> 2 != CONTROL_LANE && head >> 2 != CONTROL_LANE_STARTED && head >> 2 != CONTROL_SIGNAL_INSIDE &&
                 head >> 2 != CONTROL_COLLECTOR && head >> 2 != CONTROL_CALLBACK && head >> 2 != CONTROL_STREAM)
            read_control(head >> 2, NULL);
        else {
            event_log.rp = here;
            identity_reach(serials);
            serials = 0;
            return head;
        }
    }
}

bool
cross_read_switch(unsigned why, uint64_t numbers[3])
{
    if (next_record() != (CONTROL_LANE << 2 | 2u))
        return false;
    event_log.rp++;
    read_lane(numbers);
    if ((numbers[1] & 3) != why)
        diverge("lane", NULL, NULL, "in the recording it gave way to another lane, for another reason");
    return true;
}

void
cross_lane_started(int id, PyObject *name)
{
    Buf b = {0};
    buf_varint(&b, CONTROL_LANE_STARTED << 2 | 2u);
    buf_varint(&b, (uint64_t)id);
    report_name(&b, name);
    if (core.lenient)
        lenient_lane_started(id, name);
    else if (core.mode == REPLAY) {
        if (next_record() != (CONTROL_LANE_STARTED << 2 | 2u))
            diverge("lane", NULL, NULL, "a thread is started here, and in the recording none was");
        if ((size_t)(event_log.rend - event_log.rp) < b.used || memcmp(event_log.rp, b.data, b.used) != 0)
            diverge("lane", NULL, NULL, "another thread is started here than in the recording");
        event_log.rp += b.used;
    }
    uint8_t *p = core.mode == RECORD ? log_room(&event_log, b.used) : NULL;
    if (p) {
        memcpy(p, b.data, b.used);
        log_commit(&event_log, p + b.used);
    }
    free(b.data);
}

Gate *
cross_open(void)
{
    return state.open;
}

void
cross_state_swap(CrossState *leaves, const CrossState *comes)
{
    *leaves = state;
    state = *comes;
}

void
signal_delivered(void)
{
    armed = false;
    cross_read_ahead();
}

bool
cross_at_end(void)
{
    return core.lenient ? lenient_is_used_up() : event_log.rp >= event_log.rend;
}

bool
cross_ends_unannounced(void)
{
    return cross_at_end() && exit_code_seen < 0;
}

/* The program ends: a replay that has not used up the log has gone another way. Definitions and notes may be left over. */
void
cross_expect_exit(void)
{
    if (core.lenient) {
        lenient_ended();
        return;
    }
    if (core.follows)
        log_follow();
    while (event_log.rp < event_log.rend) {
        uint64_t head = read_number();
        if ((head & 3) == 3)
            read_definition(head >> 2);
        else if ((head & 3) == 2 && head >> 2 != CONTROL_SIGNAL_INSIDE && head >> 2 != CONTROL_SIGNAL_BETWEEN &&
                 head >> 2 != CONTROL_CALLBACK && head >> 2 != CONTROL_LANE && head >> 2 != CONTROL_LANE_STARTED)
            read_control(head >> 2, NULL);
        else
            diverge("early", NULL, NULL, "the program ended earlier than when it was recorded");
    }
    if (drift.event || signals_unsure() || streams_mix())
        report("drift", NULL, NULL, drift.detail);
    else if (!engine.is_on) {
        Buf b = {0};
        buf_bytes(&b, "whole", 5);
        report_send(core.report_fd, &b);
    }
}

static uint64_t
read_head(Crossing *c)
{
    if (core.stop_at && core.crossings + 1 >= core.stop_at)
        diverge("stop", c->gate, c, "");
    for (;;) {
        if (event_log.rp >= event_log.rend)
            diverge("end", c->gate, c, exit_code_seen >= 0 ? "after the recorded end of the program" : "");
        uint64_t head = read_number();
        if ((head & 3) == 3)
            read_definition(head >> 2);
        else if ((head & 3) == 2)
            read_control(head >> 2, c);
        else {
            identity_reach(serials);
            serials = 0;
            return head;
        }
    }
}

static void
check_event(Crossing *c, uint64_t head)
{
    uint32_t site = (uint32_t)(head >> 2);
    if (site_recorded_gate(site) != c->gate->id)
        diverge("gate", c->gate, c, "");
    if (!core.current_source && site_recorded_hash(site) != c->site_hash)
        diverge("site", c->gate, c, "");
    unsigned shape = site_recorded_shape(site);
    if (shape & GATE_ARGS) {
        uint64_t id = read_number();
        if (id == 0 || id > args_defined || recorded_args[id] != c->args_hash)
            diverge("arguments", c->gate, c, "");
    }
    if (shape & GATE_DIGEST) {
        uint32_t digest;
        if (event_log.rend - event_log.rp < 4)
            diverge("corrupt", c->gate, c, "a digest cannot be read");
        memcpy(&digest, event_log.rp, 4);
        event_log.rp += 4;
        if (digest != c->digest)
            diverge("bytes", c->gate, c, "");
    }
}

static void
read_fill(Crossing *c)
{
    if (event_log.rp < event_log.rend && *event_log.rp == 0x13) {
        event_log.rp++;
        uint64_t offset = read_number(), n = read_number();
        c->fill = content_at(offset, n);
        c->fill_length = n;
        if (c->fill == NULL)
            diverge("content", c->gate, c, "the content of a file that was read is missing from the recording");
        return;
    }
    event_log.rp++;
    uint64_t n = read_number();
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
    PyObject *type = raised_type, *value = raised_value, *traceback = raised_traceback, *result = NULL;
    raised_type = raised_value = raised_traceback = NULL;
    if (checked)
        check_event(c, head);
    if ((head & 3) == 1 && event_log.rp < event_log.rend && *event_log.rp == 0x00 && type) {
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

static PyObject *
replay_end(Crossing *c)
{
    if (armed)
        diverge("signal", c->gate, c, "the place where a signal handler ran was not met again");
    upcall_error = NULL;
    uint64_t head = read_head(c); /* may run handlers, and one of them may have raised */
    PyObject *result = outcome(c, head, true);
    core.crossings++;
    lanes_crossed();
    clocks_crossed();
    if (__builtin_expect(engine.is_on, 0))
        streams_collect();
    read_ahead();
    return result;
}

/* ---- the crossing ---- */

void
cross_begin(Crossing *c, Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    shared_crossing(true, g->flags);
    if (core.depth++ == 0)
        collector_pause((g->flags & GATE_MAKES_NOTHING) && nargs == 0 && kwnames == NULL); /* else it makes an exception */
    perturb();
    c->gate = g;
    c->outer = state.open;
    state.open = g;
    c->self = self;
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
    c->site = site_here(g, &c->site_hash);
    if (g->flags & GATE_ARGS) {
        encode_arguments(c, kwnames);
        intern_arguments(c);
    }
    c->perform = core.mode != REPLAY || (g->flags & GATE_BOTH);
}

void
cross_digest(Crossing *c, const void *data, size_t n)
{
    uint64_t h = hash_bytes(data, n, c->digested ? c->digest : 0);
    c->digest = (uint32_t)(h ^ h >> 32);
    c->left = c->digested ? c->left + n : n;
    c->digested = true;
    c->leaving = data;
    c->leaving_length = n;
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
cross_end(Crossing *c, PyObject *result)
{
    if (__builtin_expect(engine.diverting, 0)) {
        if (!c->perform)
            result = engine_outcome(c->gate);
    }
    else if (core.mode == REPLAY && __builtin_expect(core.lenient, 0))
        result = draws_changed(c->gate, lenient_end(c, result));
    else if (core.mode == REPLAY) {
        Py_XDECREF(result);
        if (PyErr_Occurred()) /* of program code that ran inside (an opener): kept until the log says whether it came out */
            PyErr_Fetch(&raised_type, &raised_value, &raised_traceback);
        result = replay_end(c);
    }
    else if (core.mode == RECORD) {
        if (__builtin_expect(c->gate->stream_act != ACT_NONE, 0))
            streams_recorded(c, result);
        record_end(c, result);
        shared_crossing(false, c->gate->flags);
    }
    if (__builtin_expect(warned_inside, 0))
        warned_crossed();
    if (result == NULL || PyType_IS_GC(Py_TYPE(result)))
        give_outcome(c, result);
    state.open = c->outer;
    if (__builtin_expect(draws_are_kept, 0))
        draws_crossed(c->gate);
    own_work_end();
    if (ticks_are_counted && core.depth == 0)
        ticks_crossing();
    if (__builtin_expect(points_are_due, 0) && core.depth == 0)
        points_stand();
    return result;
}

bool
native_begin_encoded(NativeCrossing *n, Gate *g, const Buf *arguments, const void *data, size_t ndata)
{
    Crossing *c = &n->cross;
    own_work_begin();
    memset(c, 0, sizeof *c);
    c->gate = g;
    c->outer = state.open;
    state.open = g;
    c->site = site_here(g, &c->site_hash);
    if (g->flags & GATE_ARGS) {
        args_buf.used = 0;
        buf_bytes(&args_buf, arguments->data, arguments->used);
        intern_arguments(c);
    }
    if (g->flags & GATE_DIGEST)
        cross_digest(c, data, ndata);
    c->perform = core.mode != REPLAY;
    return c->perform;
}

bool
native_begin(NativeCrossing *n, Gate *g, const char *text, int64_t a, int64_t b, const void *data, size_t ndata)
{
    static Buf arguments;
    Buf *buf = &arguments;
    buf->used = 0;
    buf_byte(buf, 0x08);
    buf_varint(buf, 3);
    buf_byte(buf, 0x06);
    buf_str(buf, text, strlen(text));
    for (int i = 0; i < 2; i++) {
        int64_t v = i ? b : a;
        buf_byte(buf, 0x03);
        buf_varint(buf, ((uint64_t)v << 1) ^ (uint64_t)(v >> 63));
    }
    return native_begin_encoded(n, g, buf, data, ndata);
}

int64_t
native_end_filled(NativeCrossing *n, int64_t rc, const void **out, size_t *nout)
{
    Crossing *c = &n->cross;
    if (core.mode == REPLAY) {
        PyObject *result = engine.diverting ? engine_outcome(c->gate) : core.lenient ? lenient_end(c, NULL) : replay_end(c);
        rc = result && PyLong_Check(result) ? PyLong_AsLongLong(result) : -1;
        Py_XDECREF(result);
        *out = c->fill;
        *nout = c->fill_length;
        if (__builtin_expect(draws_are_kept, 0))
            draws_crossed(c->gate);
    }
    else if (core.mode == RECORD) {
        PyObject *result = PyLong_FromLongLong(rc);
        c->fill = *out;
        c->fill_length = *nout;
        record_end(c, result);
        Py_XDECREF(result);
    }
    state.open = c->outer;
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
        memcpy(out, filled, nout);
    }
    return rc;
}

/* ---- divergence ---- */

static void
put_text(Buf *b, const char *key, const char *text)
{
    report_key(b, key);
    report_text(b, text, strlen(text));
}

static void
report(const char *kind, Gate *gate, Crossing *c, const char *detail)
{
    Buf b = {0};
    bool with_args = c && gate && (gate->flags & GATE_ARGS), with_bytes = c && c->leaving && strcmp(kind, "bytes") == 0;
    char name[160] = "";
    if (gate)
        snprintf(name, sizeof name, "%s.%s", gate->module, gate->name);
    report_dict(&b, 13u + with_args + with_bytes);
    put_text(&b, "kind", kind);
    put_text(&b, "detail", detail);
    put_text(&b, "gate", name);
    report_key(&b, "event");
    report_number(&b, (int64_t)core.crossings + 1);
    report_key(&b, "count");
    report_number(&b, (int64_t)stepclock.count);
    engine_report_written(&b);
    report_key(&b, "lane");
    report_number(&b, lane_number());
    report_key(&b, "drift");
    report_number(&b, (int64_t)drift.event);
    report_key(&b, "unsure");
    report_number(&b, (int64_t)signals_unsure());
    report_key(&b, "mixed");
    report_number(&b, streams_mix());
    report_key(&b, "memory");
    report_number(&b, (int64_t)shared_written);
    report_key(&b, "stack");
    report_stack(&b);
    if (with_args) { /* handlers inside the crossing may have used the buffer since: then the digest differs and it is left out */
        report_key(&b, "arguments");
        if (hash_bytes(args_buf.data, args_buf.used, 0) == c->args_hash)
            buf_bytes(&b, args_buf.data, args_buf.used);
        else
            buf_byte(&b, 0x00);
    }
    if (with_bytes) {
        report_key(&b, "bytes");
        buf_byte(&b, 0x07);
        buf_str(&b, (const char *)c->leaving, c->leaving_length < 400 ? c->leaving_length : 400);
    }
    if (engine.is_on)
        engine_report(&b);
    else
        report_send(core.report_fd, &b);
}

void
cross_expect_outcome(const Crossing *c, bool has_its_type)
{
    if (!has_its_type)
        diverge("corrupt", c->gate, NULL, "the recorded result of a call has an invalid type");
}

_Noreturn void
diverge(const char *kind, Gate *gate, Crossing *c, const char *detail)
{
    clocks_report();
    report(kind, gate, c, detail);
    ending_report();
    leave_process(EXIT_DIVERGED);
}
