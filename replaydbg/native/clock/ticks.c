/* Ticks: a count of how far a program has computed, for the slices of its lanes. A tick is a call or a jump (3.12 and
 * later), a call or a line (3.11), or the end of a crossing. Nothing ticks inside a crossing, whose work differs
 * between recording and replay, nor in the importer's own Python, whose work depends on what is cached: so the count is
 * the same at each crossing of both. */
#include "base/core.h"
#include "clock/inside.h"
#include "code/code.h"

static struct {
    uint64_t count, left; /* left: until the slice is used up */
    TickHandler used_up;
} ticks;
static int report_fd = -1;
bool ticks_are_reported;
static Buf reported;

bool ticks_are_counted, ticks_slice_is_over, ticks_crossing_is_due, ticks_by_checks;

/* Not where the order for it comes: whoever gives way there has no lock of the interpreter. */
static bool lines_are_due;

static void
begin_lines(void)
{
    lines_are_due = false;
    if (ticks_on(ticks.left, true, ticks.used_up) < 0) /* the interpreter ends: it runs no lines any more */
        ticks_on(ticks.left, false, ticks.used_up);
}

static inline void
count(void)
{
    ticks.count++;
    if (__builtin_expect(lines_are_due, 0))
        begin_lines();
    if (--ticks.left == 0 || __builtin_expect(__atomic_load_n(&ticks_slice_is_over, __ATOMIC_RELAXED), 0))
        ticks.used_up();
}

/* A crossing ticks when it has ended: C code may cross again and again without a call or a jump of Python's. Another
 * lane may continue then. So it ticks only when its gate has done all that belongs to it: filled the buffer, put the
 * descriptor in its place, shown what was written. */
void
ticks_crossing(void)
{
    ticks_crossing_is_due = false;
    checks_go_on();
    if (ticks_are_counted)
        count();
}

void
ticks_tick(_PyInterpreterFrame *frame)
{
    if (core.depth > 0)
        return;
    CodeFacts *facts = code_facts(compat_frame_code(frame));
    if (facts->is_importers)
        return;
    if (ticks_crossing_is_due)
        ticks_crossing();
    if (trace_is_on)
        trace_tick(frame, facts);
    count();
}

int
ticks_on(uint64_t slice, bool by_line, TickHandler used_up)
{
    ticks.used_up = used_up;
    ticks.left = slice;
    ticks_are_counted = true;
    lines_are_due = false;
    if (ticks_by_checks && !by_line)
        return checks_hear(true);
    if (checks_are_heard && checks_hear(false) < 0)
        return -1;
    return listen_to(listening_to() | LISTEN_TICKS | (by_line ? LISTEN_LINE_TICKS : 0));
}

void
ticks_of_lines(void)
{
    lines_are_due = true;
}

void
ticks_slice(uint64_t slice)
{
    ticks.left = slice;
}

int
ticks_off(void)
{
    if (trace_is_asked)
        return 0;
    ticks_are_counted = lines_are_due = false;
    if (checks_are_heard)
        return checks_hear(false);
    /* whatever else is listened to is somebody else's */
    return listen_to(listening_to() & ~(unsigned)(LISTEN_TICKS | LISTEN_LINE_TICKS));
}

uint64_t
ticks_count(void)
{
    return ticks.count;
}

/* In a child of the program nobody counts. */
void
ticks_forked(void)
{
    if (checks_are_heard)
        checks_hear(false);
    ticks_are_counted = false;
}

static uint64_t at_event;
void (*ticks_heard)(void);

void
ticks_event(void)
{
    at_event = ticks.count;
    if (__builtin_expect(core.is_future, 0))
        simulated_computes(true);
    if (__builtin_expect(ticks_heard != NULL, 0))
        ticks_heard();
}

uint64_t
ticks_since(void)
{
    return ticks.count - at_event;
}

/* ---- for the tests: ticks from the first line on, and their count at each crossing ---- */

static uint64_t test_slice, slices;

static void
test_used_up(void)
{
    slices++;
    ticks_slice(test_slice);
}

void
ticks_load(uint64_t slice, int fd)
{
    report_fd = fd_keep(fd);
    test_slice = slice;
    ticks_are_reported = true;
    codes_watch((CodeWatcher){0});
}

void
ticks_begin(void)
{
    if (report_fd >= 0 && ticks_on(test_slice, false, test_used_up) < 0)
        Py_FatalError("replaydbg: ticks cannot be counted");
}

void
ticks_crossed(void)
{
    buf_varint(&reported, ticks.count);
    buf_varint(&reported, slices);
    if (reported.used > 60000)
        report_send(report_fd, &reported);
}

void
ticks_report(void)
{
    if (report_fd >= 0)
        report_send(report_fd, &reported);
}
