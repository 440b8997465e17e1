/* The step clock: counts the lines that a replay runs, in C, without running Python. From the count follow positions,
 * steps for each event, a digest of the path, hits for each line, breakpoints, and which activation of a frame ran
 * what.
 *
 * A line is what the interpreter calls one: a LINE event of its monitoring (3.12 and later) or of its tracing (3.11). A
 * place is a code object and the index of the instruction, not the line's number, which 3.11 would compute anew each
 * time (as dear as all the rest). The importer's own lines are not counted (see codes.c). Nothing here makes a Python
 * object. */
#include "base/core.h"
#include "clock/inside.h"
#include "code/code.h"
#include <stdlib.h>

#define BREAK_SHIFT 56 /* a cell: hits below, number of the breakpoint above */
#define MOST_BREAKS 255
#define ROOM (1u << 20)

typedef struct {
    const char *file;     /* "": any */
    const char *function; /* its beginning; "": a line */
    int line;
    uint64_t stop_at;           /* the hit at which to stop; 0: none */
    uint64_t hits, first, last; /* first, last: counts of lines */
    int also;                   /* another one at the same line: a cell names one alone; 0: there is none */
} Break;

bool course_is_on;

StepClock stepclock = {.stop_at = UINT64_MAX, .fd = -1, .steps_fd = -1};

static struct {
    uint64_t start_event, stop_event, stop_step;
    bool hits;
    Break breaks[MOST_BREAKS];
    int break_count;
} order;
static uint64_t counted; /* lines up to the last crossing */
static Buf steps;

/* ---- one line ---- */

static void
met_breakpoint(int number)
{
    Break *b = &order.breaks[number - 1];
    b->last = stepclock.count;
    if (b->hits++ == 0)
        b->first = stepclock.count;
    if (b->hits == b->stop_at || (stepclock.asks && clock_hooks.passage(number)))
        stepclock.broken = number;
}

static bool is_function(const CodeFacts *facts, const Break *b);

static void
met_function(const CodeFacts *facts)
{
    for (int i = 0; i < order.break_count; i++)
        if (is_function(facts, &order.breaks[i]))
            met_breakpoint(i + 1);
}

void
stepclock_start(_PyInterpreterFrame *frame)
{
    if (!activations_are_kept)
        return;
    code_facts(compat_frame_code(frame))->has_run = true;
    activation_start(frame);
    clock_hooks.function_starts(frame);
}

bool
stepclock_wants_starts(void)
{
    return activations_are_kept;
}

void
stepclock_line(_PyInterpreterFrame *frame)
{
    PyCodeObject *code = compat_frame_code(frame);
    CodeFacts *facts = code_facts(code);
    if (facts->is_importers)
        return;
    int unit = (int)((const _Py_CODEUNIT *)compat_frame_instr(frame) - _PyCode_CODE(code));
    stepclock.count++;
    stepclock.point = 0;
    facts->has_run = true;
    if (!facts->is_library) {
        stepclock.last_own = stepclock.count;
        if (course_is_on)
            clock_hooks.own_line(frame, facts, unit);
    }
    stepclock.digest = (stepclock.digest ^ (facts->hash + (uint64_t)unit)) * 0x9FB21C651E98DF25u;
    stepclock.digest ^= stepclock.digest >> 29;
    bool is_first = activations_are_kept && activation_line(frame, code, unit);
    if (facts->cells)
        for (int number = (int)(++facts->cells[unit] >> BREAK_SHIFT); number; number = order.breaks[number - 1].also)
            met_breakpoint(number);
    if (is_first && facts->breaks_at_start)
        met_function(facts);
    bool stands = stepclock.looks && clock_hooks.stands_at(frame);
    if (stands || stepclock.broken || stepclock.count >= stepclock.stop_at)
        stepclock.stop();
}

/* ---- one event ---- */

static void
begin(void)
{
    stepclock.digest = 0x5bd1e995;
    stepclock.is_on = true;
    if (listen_to(listening_to() | LISTEN_LINES | (engine.is_on ? LISTEN_RAISES : 0)) < 0)
        Py_FatalError("replaydbg: the step clock cannot be started");
    stepclock.count = counted = 0; /* last */
}

static void
aim(void)
{
    if (stepclock.is_on && order.stop_step && core.crossings == order.stop_event)
        stepclock.stop_at = stepclock.count + order.stop_step;
}

void
stepclock_crossed(void)
{
    if (stepclock.is_on) {
        buf_varint(&steps, stepclock.count - counted);
        counted = stepclock.count;
        if (steps.used > 60000)
            report_send(stepclock.steps_fd, &steps);
    }
    else if (core.crossings == order.start_event)
        begin();
    aim();
}

void
stepclock_begin(void)
{
    if (stepclock.fd >= 0 && order.start_event == 0) {
        begin();
        aim();
    }
}

/* ---- hits, kept when code dies ---- */

typedef struct HitCode {
    struct HitCode *next;
    uint64_t hash;
    Buf head; /* file, qualified name and first line, as values */
    int first, lines;
    uint64_t *hits; /* by line, from `first` on */
} HitCode;
static HitCode *hit_codes[1024];

typedef struct {
    CodeFacts *facts;
    HitCode *into;
    int low, high, breakpoint;
} Walk;

static void
find_bounds(void *to, int unit, int units, int line)
{
    Walk *w = to;
    if (line < 0)
        return;
    w->low = line < w->low ? line : w->low;
    w->high = line > w->high ? line : w->high;
}

static void
add_hits(void *to, int unit, int units, int line)
{
    Walk *w = to;
    int end = (int)Py_SIZE(w->facts->code);
    for (int i = unit; line >= 0 && i < unit + units && i < end; i++)
        w->into->hits[line - w->into->first] += w->facts->cells[i] & ((1ull << BREAK_SHIFT) - 1);
}

/* Made when the code is first met: at the end of the process its names may be gone before it. */
static HitCode *
hit_code(CodeFacts *facts)
{
    HitCode **slot = &hit_codes[facts->hash & 1023], *h;
    for (h = *slot; h; h = h->next)
        if (h->hash == facts->hash)
            return h;
    h = calloc(1, sizeof *h);
    if (h == NULL)
        Py_FatalError("replaydbg: out of memory for the step clock");
    h->hash = facts->hash;
    report_name(&h->head, facts->code->co_filename);
    report_name(&h->head, facts->code->co_qualname);
    report_number(&h->head, facts->code->co_firstlineno);
    h->next = *slot;
    return *slot = h;
}

/* Code objects with the same file, name and first line are one (a function inside a function, lambdas on one line). */
static void
fold(CodeFacts *facts)
{
    if (facts->cells == NULL || !order.hits)
        return;
    int units = (int)Py_SIZE(facts->code), i = 0;
    while (i < units && !(facts->cells[i] & ((1ull << BREAK_SHIFT) - 1)))
        i++;
    if (i == units)
        return;
    HitCode *h = hit_code(facts);
    Walk w = {.facts = facts,
              .into = h,
              .low = h->hits ? h->first : INT32_MAX,
              .high = h->hits ? h->first + h->lines - 1 : 0};
    code_lines(facts->code, find_bounds, &w);
    if (h->hits == NULL || w.low < h->first || w.high >= h->first + h->lines) {
        uint64_t *hits = calloc((size_t)(w.high - w.low + 1), sizeof *hits);
        if (hits == NULL)
            Py_FatalError("replaydbg: out of memory for the step clock");
        if (h->hits)
            memcpy(hits + (h->first - w.low), h->hits, (size_t)h->lines * sizeof *hits);
        free(h->hits);
        h->hits = hits;
        h->first = w.low;
        h->lines = w.high - w.low + 1;
    }
    code_lines(facts->code, add_hits, &w);
    memset(facts->cells, 0, (size_t)units * sizeof *facts->cells);
}

static void
mark(void *to, int unit, int units, int line)
{
    Walk *w = to;
    int end = (int)Py_SIZE(w->facts->code);
    for (int i = unit; line == w->low && i < unit + units && i < end; i++)
        w->facts->cells[i] |= (uint64_t)w->breakpoint << BREAK_SHIFT;
}

static bool
is_function(const CodeFacts *facts, const Break *b)
{
    return *b->function &&
           (text_is(facts->code->co_qualname, b->function) || text_is(facts->code->co_name, b->function));
}

static bool
is_in(const CodeFacts *facts, const Break *b)
{
    return *b->file ? text_is(facts->code->co_filename, b->file) : is_function(facts, b);
}

static bool
is_chained(int number)
{
    for (int i = 0; i < order.break_count; i++)
        if (order.breaks[i].also == number)
            return true;
    return false;
}

/* Hangs it at the one before it that is at the same line, if there is one. */
static void
chain(int number)
{
    const Break *b = &order.breaks[number - 1];
    for (int i = number - 2; i >= 0 && !*b->function; i--) {
        Break *other = &order.breaks[i];
        if (!*other->function && other->line == b->line && strcmp(other->file, b->file) == 0) {
            other->also = number;
            return;
        }
    }
}

/* Where breakpoint `number`, from 1, is met in this code. */
static void
mark_code(CodeFacts *facts, int number)
{
    const Break *b = &order.breaks[number - 1];
    if (facts->is_importers || !is_in(facts, b))
        return;
    if (*b->function) {
        facts->breaks_at_start |= is_function(facts, b);
        return;
    }
    if (is_chained(number))
        return;
    Walk w = {.facts = facts, .low = b->line, .breakpoint = number};
    code_lines(facts->code, mark, &w);
}

static void
code_is_new(CodeFacts *facts)
{
    bool wanted = order.hits;
    for (int i = 0; i < order.break_count; i++)
        wanted |= is_in(facts, &order.breaks[i]);
    if (!wanted || facts->is_importers)
        return;
    if (order.hits)
        hit_code(facts);
    facts->cells = calloc((size_t)Py_SIZE(facts->code), sizeof *facts->cells);
    if (facts->cells == NULL)
        Py_FatalError("replaydbg: out of memory for the step clock");
    for (int i = 0; i < order.break_count; i++)
        mark_code(facts, i + 1);
}

/* ---- breakpoints that come and go ---- */

static void
unmark(CodeFacts *facts)
{
    facts->breaks_at_start = false;
    for (Py_ssize_t i = 0; facts->cells && i < Py_SIZE(facts->code); i++)
        facts->cells[i] &= (1ull << BREAK_SHIFT) - 1;
}

void
stepclock_drop_breaks(void)
{
    if (order.break_count)
        codes_each(unmark);
    order.break_count = 0;
    stepclock.broken = 0;
}

static void
mark_last(CodeFacts *facts)
{
    mark_code(facts, order.break_count);
}

bool
stepclock_add_break(const char *file, const char *function, int line, uint64_t stop_at)
{
    if (order.break_count == MOST_BREAKS)
        return false;
    order.breaks[order.break_count++] = (Break){.file = file, .function = function, .line = line, .stop_at = stop_at};
    chain(order.break_count);
    codes_each(mark_last);
    return true;
}

/* ---- the report ---- */

static void
report_hits(Buf *b)
{
    uint64_t n = 0;
    codes_each(fold);
    for (int i = 0; i < 1024; i++)
        for (HitCode *h = hit_codes[i]; h; h = h->next)
            n += h->hits != NULL;
    report_key(b, "hits");
    report_list(b, n);
    for (int i = 0; i < 1024; i++)
        for (HitCode *h = hit_codes[i]; h; h = h->next) {
            uint64_t lines = 0;
            if (h->hits == NULL)
                continue;
            for (int k = 0; k < h->lines; k++)
                lines += h->hits[k] > 0;
            report_list(b, 3 + 2 * lines);
            buf_bytes(b, h->head.data, h->head.used);
            for (int k = 0; k < h->lines; k++)
                if (h->hits[k]) {
                    report_number(b, h->first + k);
                    report_number(b, (int64_t)h->hits[k]);
                }
        }
}

void
stepclock_report_breaks(Buf *b)
{
    report_key(b, "breakpoints");
    report_list(b, (uint64_t)order.break_count);
    for (int i = 0; i < order.break_count; i++) {
        report_list(b, 3);
        report_number(b, (int64_t)order.breaks[i].hits);
        report_number(b, (int64_t)order.breaks[i].first);
        report_number(b, (int64_t)order.breaks[i].last);
    }
}

/* Where the line before this one ran in the same activation; at an activation's first line, where its caller stands. */
static void
report_before(Buf *b)
{
    PyThreadState *thread = report_thread();
    _PyInterpreterFrame *frame = thread ? compat_top_frame(thread) : NULL;
    const Activation *a = frame ? activation_find(frame) : NULL;
    bool same = a && a->before;
    uint64_t step = same ? a->before : 0;
    int unit = same ? a->before_unit : 0;
    if (a && !same && (frame = compat_previous_frame(frame))) {
        a = activation_find(frame);
        step = a ? a->last : 0;
        unit = a ? a->last_unit : 0;
    }
    report_key(b, "before");
    report_list(b, step ? 5 : 0);
    if (step == 0)
        return;
    report_number(b, same);
    report_number(b, (int64_t)step);
    report_name(b, a->code->co_filename);
    report_number(b, PyCode_Addr2Line(a->code, unit * (int)sizeof(_Py_CODEUNIT)));
    report_name(b, a->code->co_qualname);
}

void
stepclock_report(bool stopped)
{
    if (stepclock.fd < 0)
        return;
    Buf b = {0};
    report_send(stepclock.steps_fd, &steps);
    report_dict(&b, 11);
    clock_hooks.report_uncaught(&b);
    report_key(&b, "is_on");
    report_number(&b, stepclock.is_on);
    report_key(&b, "lines");
    report_number(&b, (int64_t)stepclock.count);
    report_key(&b, "own");
    report_number(&b, (int64_t)stepclock.last_own);
    report_key(&b, "since");
    report_number(&b, (int64_t)(stepclock.count - counted));
    report_key(&b, "event");
    report_number(&b, (int64_t)core.crossings);
    report_key(&b, "digest");
    report_number(&b, (int64_t)stepclock.digest);
    report_hits(&b);
    stepclock_report_breaks(&b);
    report_key(&b, "stopped");
    report_number(&b, stopped ? stepclock.broken ? stepclock.broken : -1 : 0);
    if (stopped)
        report_before(&b);
    else {
        report_key(&b, "before");
        report_list(&b, 0);
    }
    report_send(stepclock.fd, &b);
    stepclock.fd = -1;
}

/* What is done at the place where the clock was ordered to stop; the debugger will stand still here. */
static void
stop_and_report(void)
{
    stepclock_report(true);
    diverge("stop", NULL, NULL, "");
}

/* ---- what the launcher asked for ---- */

static uint64_t
asked_number(PyObject *asked, const char *key, uint64_t otherwise)
{
    PyObject *v = PyDict_GetItemString(asked, key);
    return v && PyLong_Check(v) ? PyLong_AsUnsignedLongLong(v) : otherwise;
}

/* asked: a dictionary, or None for a replay without a clock */
int
stepclock_prepare(PyObject *asked)
{
    if (asked == Py_None || !PyDict_CheckExact(asked))
        return 0;
    stepclock.fd = fd_keep((int)asked_number(asked, "fd", 0));
    stepclock.steps_fd = fd_keep((int)asked_number(asked, "steps_fd", 0));
    stepclock.stop = stop_and_report;
    order.start_event = asked_number(asked, "start_event", 0);
    order.stop_event = asked_number(asked, "stop_event", 0);
    order.stop_step = asked_number(asked, "stop_step", 0);
    order.hits = PyDict_GetItemString(asked, "hits") == Py_True;
    activations_are_kept = PyDict_GetItemString(asked, "activations") == Py_True;
    PyObject *list = PyDict_GetItemString(asked, "breakpoints");
    Py_ssize_t n = list && PyList_CheckExact(list) ? PyList_GET_SIZE(list) : 0;
    order.break_count = n > MOST_BREAKS ? MOST_BREAKS : (int)n;
    for (int i = 0; i < order.break_count; i++) {
        const char *file;
        unsigned long long stop;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(list, i), "siK", &file, &order.breaks[i].line, &stop))
            return -1;
        order.breaks[i].file = strdup(file);
        order.breaks[i].function = "";
        order.breaks[i].stop_at = stop;
        chain(i + 1);
    }
    if (engine.is_on) {
        clock_hooks.take_clock();
        steps = (Buf){.data = memory_apart(ROOM), .size = ROOM, .is_fixed = true};
    }
    codes_watch((CodeWatcher){.born = code_is_new, .dies = fold});
    return listen_prepare();
}
