/* The exceptions of a run, written down for the index by the process that runs the whole program; its clones write
 * nothing.
 *
 * A file of lists: what a type inherits from (texts), a code object (its first line, file and name), and an exception,
 * which names both by their numbers, from 1. Of a run with very many exceptions the first ones and the last ones are
 * kept, and how many there were between. Nothing here makes a Python object. */
#include "base/core.h"
#include "clock/clock.h"
#include "code/code.h"
#include "engine/inside.h"
#include <stdio.h>

#define ROOM (1u << 20)
#define SENT_AT 60000u
#define MOST_FIRST (16u << 20) /* bytes; the reader takes 64 MiB in all */
#define MOST_NAMES (24u << 20) /* bytes of types and code objects besides: a program may make any number of them */
#define MOST_LAST (2u << 20)   /* bytes of the last ones, twice: while one half is filled the other one is kept */
enum { RAISED, RAISED_AGAIN, UNCAUGHT };

static int fd = -1;
static Buf names, first, uncaught;
static size_t names_sent, first_sent;

/* Of the last exceptions: those of half `now` are later than those of the other one. */
static struct {
    Buf text;
    uint64_t number, first_line, last_line;
} last[2], left_out;
static int now;

/* Where the last exceptions were raised, by their address: for those that end the program, at once, whatever was raised
 * before. */
static struct {
    PyObject *type, *value; /* only compared */
    uint64_t line;
    int lane;
} raised_last[1024];

/* Lines of instructions that raised: the interpreter decodes its table from the beginning for each. */
static struct {
    const PyCodeObject *code; /* only compared, as is what tells it from another one at the same address */
    uint64_t hash;
    int lasti, line;
} lines[1024];

void
raises_prepare(int to)
{
    fd = to;
    names = (Buf){.data = memory_apart(ROOM), .size = ROOM, .is_fixed = true};
    first = (Buf){.data = memory_apart(ROOM), .size = ROOM, .is_fixed = true};
    uncaught = (Buf){.data = memory_apart(1u << 16), .size = 1u << 16, .is_fixed = true};
    for (int half = 0; half < 2; half++)
        last[half].text = (Buf){.data = memory_apart(MOST_LAST), .size = MOST_LAST, .is_fixed = true};
}

void
raises_leave(void)
{
    fd = -1;
}

int
raises_leads_to(void)
{
    return fd;
}

void
raises_join(int to)
{
    fd = to;
}

static size_t
place_of(PyObject *value)
{
    return (uintptr_t)value >> 4 & 1023;
}

static int
source_line(const CodeFacts *facts, int lasti)
{
    size_t at = (facts->hash ^ (uint64_t)lasti * 0x9E3779B97F4A7C15u) >> 7 & 1023;
    if (lines[at].code != facts->code || lines[at].hash != facts->hash || lines[at].lasti != lasti) {
        int line = PyCode_Addr2Line(facts->code, lasti);
        lines[at].code = facts->code;
        lines[at].hash = facts->hash;
        lines[at].lasti = lasti;
        lines[at].line = line > 0 ? line : 0;
    }
    return lines[at].line;
}

/* ---- names ---- */

static void
send_names(void)
{
    names_sent += names.used;
    report_send(fd, &names);
}

/* 0: it has none. */
static uint32_t
lineage_of(PyObject *type)
{
    if (!PyType_Check(type) || names_sent > MOST_NAMES)
        return 0;
    uint32_t number = lineage_number(&names, (PyTypeObject *)type);
    if (names.used > SENT_AT)
        send_names();
    return number;
}

static uint32_t
code_number(CodeFacts *facts)
{
    static uint32_t numbers;
    if (facts->raise_id || names_sent > MOST_NAMES)
        return facts->raise_id;
    report_list(&names, 3);
    report_number(&names, facts->code->co_firstlineno > 0 ? facts->code->co_firstlineno : 0);
    report_name(&names, facts->code->co_filename);
    report_name(&names, facts->code->co_qualname);
    if (names.used > SENT_AT)
        send_names();
    return facts->raise_id = ++numbers;
}

/* ---- exceptions ---- */

static void
report_exception(Buf *b, uint64_t line, int lane, PyObject *type, PyObject *value)
{
    const char *name = PyType_Check(type) ? ((PyTypeObject *)type)->tp_name : "?";
    PyObject *args = value && PyExceptionInstance_Check(value) ? ((PyBaseExceptionObject *)value)->args : value;
    PyObject *argument = args && PyTuple_CheckExact(args) && PyTuple_GET_SIZE(args) ? PyTuple_GET_ITEM(args, 0) : NULL;
    report_number(b, (int64_t)line);
    report_number(b, lane);
    report_text(b, name, strlen(name));
    int overflow = 0;
    if (argument && PyUnicode_CheckExact(argument) && PyUnicode_GET_LENGTH(argument) < 500)
        report_name(b, argument);
    else if (argument && PyLong_CheckExact(argument)) { /* a status, say, or a key */
        char digits[24];
        int n = snprintf(digits, sizeof digits, "%lld", PyLong_AsLongLongAndOverflow(argument, &overflow));
        report_text(b, digits, overflow ? 0 : (size_t)n);
    }
    else
        report_text(b, "", 0);
    report_number(b, (int64_t)(uintptr_t)value);
}

/* The last line of a frame that raises; others may have run since, in functions that it called and in other lanes. */
static uint64_t
line_that_raises(_PyInterpreterFrame *frame)
{
    const Activation *a = activation_find(frame);
    return a && a->last ? a->last : lane_lines ? lane_lines->last : stepclock.count;
}

/* Where the next exception is written. */
static Buf *
room_for(uint64_t line)
{
    if (first_sent + first.used < MOST_FIRST) {
        if (first.used > SENT_AT) {
            send_names(); /* they come before what names them */
            first_sent += first.used;
            report_send(fd, &first);
        }
        return &first;
    }
    if (last[now].text.used > MOST_LAST - (1u << 15)) { /* one is shorter */
        now = !now;
        if (last[now].number) {
            left_out.first_line = left_out.number ? left_out.first_line : last[now].first_line;
            left_out.last_line = last[now].last_line;
            left_out.number += last[now].number;
        }
        last[now].number = last[now].text.used = 0;
    }
    last[now].first_line = last[now].number ? last[now].first_line : line;
    last[now].last_line = line;
    last[now].number++;
    return &last[now].text;
}

static void
write_one(uint64_t line, PyObject *type, PyObject *value, uint32_t code, int at, int kind)
{
    uint32_t lineage = lineage_of(type);
    Buf *b = room_for(line);
    report_list(b, 9);
    report_exception(b, line, core.lane, type, value);
    report_number(b, lineage);
    report_number(b, code);
    report_number(b, at);
    report_number(b, kind);
}

void
raises_write(const Raise *raise)
{
    if (fd < 0)
        return;
    uint64_t line = line_that_raises(raise->frame);
    CodeFacts *facts = code_facts(compat_frame_code(raise->frame));
    int at = source_line(facts, raise->lasti);
    write_one(line, raise->type, raise->value, code_number(facts), at, raise->is_again ? RAISED_AGAIN : RAISED);
    if (raise->is_again)
        return; /* whoever asks what ended the program means where it came from */
    size_t slot = place_of(raise->value);
    raised_last[slot].type = raise->type;
    raised_last[slot].value = raise->value;
    raised_last[slot].line = line;
    raised_last[slot].lane = core.lane;
}

void
engine_uncaught(PyObject *type, PyObject *value)
{
    static PyObject *known; /* only compared: a script's comes twice */
    if (fd < 0 || value == known)
        return;
    known = value;
    /* One that the compiler raised was raised in no frame. */
    write_one(line_that_raises(compat_top_frame(core.tstate)), type, value, 0, 0, UNCAUGHT);
    size_t at = place_of(value);
    uncaught.used = 0;
    if (raised_last[at].value == value && raised_last[at].type == type)
        report_exception(&uncaught, raised_last[at].line, raised_last[at].lane, type, value);
}

/* The exception that ended the program: a list of five, or an empty one where the table above has forgotten it. */
void
engine_report_uncaught(Buf *b)
{
    report_key(b, "uncaught");
    report_list(b, uncaught.used ? 5 : 0);
    if (uncaught.used)
        buf_bytes(b, uncaught.data, uncaught.used);
}

/* At the end of the run. */
void
raises_send(void)
{
    send_names();
    report_send(fd, &first);
    if (left_out.number) {
        report_list(&first, 3);
        report_number(&first, (int64_t)left_out.number);
        report_number(&first, (int64_t)left_out.first_line);
        report_number(&first, (int64_t)left_out.last_line);
        report_send(fd, &first);
    }
    report_send(fd, &last[!now].text);
    report_send(fd, &last[now].text);
}
