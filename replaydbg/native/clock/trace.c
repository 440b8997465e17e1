/* A trace of a run, to be compared with that of another one: every tick (lane, code object, instruction), every event,
 * and, apart from them, every Python function that begins inside a crossing. Only when it is asked for, and then ticks
 * are counted from the first line on.
 *
 * Two files, written with a buffer of our own. `ticks` is what must be equal in both runs, byte for byte: blocks of one
 * size, each with the state at its beginning, so that a reader finds the first difference without decoding what lies
 * before it. `codes` says what the numbers of code objects mean, and has the functions inside crossings, which may
 * differ. See replaydbg/trace/trace_files.py. */
#include "base/core.h"
#include "clock/inside.h"
#include "code/code.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum { BLOCK = 1 << 16, HEAD = 32, LONGEST = 48 /* of a record, with a change of lane before it */ };
enum { TICK, EVENT, LANE, END };          /* the low two bits of a record */
enum { CODE, CODE_INSIDE, BEGUN_INSIDE }; /* records of `codes` */
enum { WHOLE, AT_THE_LIMIT, NO_ROOM };    /* why a trace ends */

bool trace_is_asked, trace_is_on;
static struct {
    int ticks_fd, codes_fd;
    uint64_t limit, written; /* of each file, in bytes; of `ticks` */
    uint64_t codes_written;
    uint64_t ticks, events;
    uint32_t lane, codes, codes_inside;
    size_t used;
    uint8_t block[BLOCK];
    Buf definitions;
} trace;

static bool
write_all(int fd, const uint8_t *data, size_t n)
{
    int saved = errno;
    while (n > 0) {
        ssize_t done = write(fd, data, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            break;
        data += done;
        n -= (size_t)done;
    }
    errno = saved;
    return n == 0;
}

static void
put_varint(uint64_t v)
{
    while (v >= 0x80) {
        trace.block[trace.used++] = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    trace.block[trace.used++] = (uint8_t)v;
}

static void
begin_block(void)
{
    memset(trace.block, 0, sizeof trace.block);
    memcpy(trace.block, &trace.ticks, 8);
    memcpy(trace.block + 8, &trace.events, 8);
    memcpy(trace.block + 16, &trace.lane, 4);
    memcpy(trace.block + 20, &trace.codes, 4);
    trace.used = HEAD;
}

static bool
write_definitions(void)
{
    bool fine = write_all(trace.codes_fd, trace.definitions.data, trace.definitions.used);
    trace.codes_written += trace.definitions.used;
    trace.definitions.used = 0;
    return fine;
}

static bool
write_block(void)
{
    uint32_t used = (uint32_t)trace.used;
    memcpy(trace.block + 24, &used, 4);
    trace.written += sizeof trace.block;
    /* definitions first: whoever reads a block knows its code objects */
    return write_definitions() && write_all(trace.ticks_fd, trace.block, sizeof trace.block);
}

static void
end_with(unsigned why)
{
    if (!trace_is_on)
        return;
    trace_is_on = false;
    put_varint((uint64_t)core.lanes_made << 4 | why << 2 | END);
    write_block();
}

/* Room for one more record: false when the trace has ended. */
static bool
room(void)
{
    if (trace.used + LONGEST <= BLOCK)
        return true;
    if (trace.written + 2 * BLOCK > trace.limit)
        end_with(AT_THE_LIMIT);
    else if (!write_block())
        end_with(NO_ROOM);
    else
        begin_block();
    return trace_is_on;
}

static void
put_lane(void)
{
    uint32_t lane = (uint32_t)core.lane;
    if (lane != trace.lane) {
        trace.lane = lane;
        put_varint((uint64_t)lane << 2 | LANE);
    }
}

/* ---- code objects ---- */

static Buf lines; /* of the code object that is being defined: units and line, for each run */
static int line_before;

static void
put_line(void *unused, int unit, int units, int line)
{
    buf_varint(&lines, (uint64_t)units);
    int64_t step = (line < 0 ? 0 : line) - line_before;
    buf_varint(&lines, (uint64_t)step << 1 ^ (uint64_t)(step >> 63));
    line_before += (int)step;
}

static void
put_record(Buf *record)
{
    buf_varint(&trace.definitions, record->used);
    buf_bytes(&trace.definitions, record->data, record->used);
    record->used = 0;
    if (trace.definitions.used > BLOCK && !write_definitions())
        end_with(NO_ROOM);
}

static void
define(int kind, PyCodeObject *code)
{
    static Buf record;
    report_list(&record, 5);
    report_number(&record, kind);
    report_name(&record, code->co_filename);
    report_name(&record, code->co_qualname);
    report_number(&record, code->co_firstlineno);
    line_before = 0;
    code_lines(code, put_line, NULL);
    buf_byte(&record, TAG_BYTES);
    buf_str(&record, (const char *)lines.data, lines.used);
    lines.used = 0;
    put_record(&record);
}

/* ---- what is traced ---- */

void
trace_tick(_PyInterpreterFrame *frame, CodeFacts *facts)
{
    if (!room())
        return;
    put_lane();
    bool is_new = facts->trace_id == 0;
    if (is_new) {
        facts->trace_id = ++trace.codes;
        define(CODE, facts->code);
    }
    trace.ticks++;
    put_varint((uint64_t)facts->trace_id << 2 | TICK);
    put_varint((uint64_t)((unsigned)compat_frame_lasti(frame) / sizeof(_Py_CODEUNIT)));
    if (is_new) { /* the number alone would not differ if it meant another code object */
        memcpy(trace.block + trace.used, &facts->hash, 8);
        trace.used += 8;
    }
}

void
trace_crossed(void)
{
    if (!trace_is_on || !room())
        return;
    put_lane();
    trace.events++;
    int gate = clock_hooks.open_gate();
    put_varint((uint64_t)(gate) << 2 | EVENT);
}

/* A Python function begins. */
void
trace_inside(_PyInterpreterFrame *frame)
{
    static Buf record;
    if (core.depth == 0 || trace.codes_written > trace.limit)
        return;
    CodeFacts *facts = code_facts(compat_frame_code(frame));
    if (facts->is_importers)
        return;
    if (facts->inside_id == 0) {
        facts->inside_id = ++trace.codes_inside;
        define(CODE_INSIDE, facts->code);
    }
    int gate = clock_hooks.open_gate();
    report_list(&record, 5);
    report_number(&record, BEGUN_INSIDE);
    report_number(&record, facts->inside_id);
    report_number(&record, gate);
    report_number(&record, (int64_t)trace.events);
    report_number(&record, core.lane);
    put_record(&record);
}

/* ---- beginning and end ---- */

static int
create(const char *directory, const char *name)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    return fd < 0 ? fd : fd_keep(fd);
}

static void
stop_in_child(void)
{
    trace_is_on = false;
}

int
trace_load(const char *directory, uint64_t limit)
{
    trace.ticks_fd = create(directory, "ticks");
    trace.codes_fd = create(directory, "codes");
    if (trace.ticks_fd < 0 || trace.codes_fd < 0) {
        PyErr_SetFromErrnoWithFilename(PyExc_OSError, directory);
        return -1;
    }
    trace.limit = limit;
    codes_watch((CodeWatcher){0});
    pthread_atfork(NULL, NULL, stop_in_child);
    trace_is_asked = true;
    return 0;
}

void
trace_begin(void)
{
    if (!trace_is_asked)
        return;
    begin_block();
    trace_is_on = true;
}

void
trace_report(void)
{
    end_with(WHOLE);
}
