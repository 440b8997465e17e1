/* Whether a replay runs a handler where it ran when it was recorded, or only at the first place that looks the same.
 *
 * Of each handler in pure computation the recording has the CPU time since the last record. A replay is never much
 * faster: if it comes to the place after less than half of that time, it was probably a later round of a loop, which
 * changes something that places.c and contents.c cannot see (the rows of a database in memory, the state of a C
 * object). What the looking itself takes is not counted. A loop that only reads changes nothing, in whatever round the
 * handler runs. */
#include "base/core.h"
#include "code/code.h"
#include "collector/collector.h"
#include "signals/inside.h"
#include <opcode.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NOISE 1000u         /* us: a difference below that means nothing */
#define LONGEST_LOOK 20000u /* ns: in what takes longer, another process has run */
/* In a short loop the looking takes many times as long as the program itself, and what is left after subtracting it says
 * nothing: on a virtual machine that others delay, a replay was doubted wrongly. So this part of the time always counts
 * as the program's. A smaller number doubts less. */
#define LOOKS_AT_MOST 8
#define OUTSIDE_A_LOOK 50u /* ns that the interpreter takes to call our handler, at least */

static struct {
    uint64_t start, looking; /* ns; looking: since the start */
    pid_t pid;
} run;
static struct {
    uint64_t event; /* 0: there was none */
    int signum;
    Buf place; /* values, as in a report */
} doubt;

static uint64_t
cpu_time(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* A handler is due somewhere after the record that was read last. */
void
doubt_begin(void)
{
    run.start = cpu_time();
    run.looking = 0;
    run.pid = getpid();
}

void
doubt_looked(uint64_t ns)
{
    run.looking += Py_MIN(ns, LONGEST_LOOK) + OUTSIDE_A_LOOK;
}

/* ---- loops that only read ---- */

/* The instruction of a[b]; since 3.14 it is one of the binary operations. */
static bool
is_subscript(int op, int arg)
{
#ifdef BINARY_SUBSCR
    return op == BINARY_SUBSCR;
#else
    return op == BINARY_OP && arg == NB_SUBSCR;
#endif
}

static bool
only_reads(int op, int arg)
{
    switch (op) {
    case CACHE:
    case NOP:
    case RESUME:
    case EXTENDED_ARG:
    case LOAD_CONST:
    case LOAD_FAST:
    case LOAD_GLOBAL:
    case LOAD_NAME:
    case LOAD_DEREF:
    case LOAD_ATTR:
    case POP_TOP:
    case COPY:
    case SWAP:
    case COMPARE_OP:
    case CONTAINS_OP:
    case IS_OP:
    case UNARY_NOT:
    case JUMP_FORWARD:
    case JUMP_BACKWARD:
#ifdef LOAD_FAST_CHECK
    case LOAD_FAST_CHECK:
#endif
#ifdef LOAD_FAST_LOAD_FAST
    case LOAD_FAST_LOAD_FAST:
#endif
#ifdef LOAD_FAST_BORROW
    case LOAD_FAST_BORROW:
    case LOAD_FAST_BORROW_LOAD_FAST_BORROW:
    case LOAD_SMALL_INT:
    case NOT_TAKEN:
#endif
#ifdef TO_BOOL
    case TO_BOOL:
#endif
#ifdef POP_JUMP_BACKWARD_IF_TRUE
    case POP_JUMP_BACKWARD_IF_TRUE:
    case POP_JUMP_BACKWARD_IF_FALSE:
    case POP_JUMP_BACKWARD_IF_NONE:
    case POP_JUMP_BACKWARD_IF_NOT_NONE:
    case POP_JUMP_FORWARD_IF_TRUE:
    case POP_JUMP_FORWARD_IF_FALSE:
    case POP_JUMP_FORWARD_IF_NONE:
    case POP_JUMP_FORWARD_IF_NOT_NONE:
#else
    case POP_JUMP_IF_TRUE:
    case POP_JUMP_IF_FALSE:
    case POP_JUMP_IF_NONE:
    case POP_JUMP_IF_NOT_NONE:
#endif
        return true;
    default:
        return is_subscript(op, arg);
    }
}

static bool
jumps_back(int op)
{
#ifdef POP_JUMP_BACKWARD_IF_TRUE
    if (op == POP_JUMP_BACKWARD_IF_TRUE || op == POP_JUMP_BACKWARD_IF_FALSE || op == POP_JUMP_BACKWARD_IF_NONE ||
        op == POP_JUMP_BACKWARD_IF_NOT_NONE)
        return true;
#endif
    return op == JUMP_BACKWARD;
}

/* The unit that the jump at `unit` leads to. */
static int
target_of(const uint8_t *bytes, int units, int unit)
{
    int arg = bytes[2 * unit + 1], next = unit + 1;
    for (int i = unit - 1, shift = 8; i >= 0 && bytes[2 * i] == EXTENDED_ARG && shift < 24; i--, shift += 8)
        arg |= bytes[2 * i + 1] << shift;
    while (next < units && bytes[2 * next] == CACHE)
        next++;
    return next - arg;
}

/* Of the innermost loop around an instruction. */
static bool
loop_only_reads(const uint8_t *bytes, int units, int here)
{
    for (int end = here; end < units; end++) {
        if (!jumps_back(bytes[2 * end]))
            continue;
        int begin = target_of(bytes, units, end);
        if (begin < 0 || begin > here)
            continue;
        for (int unit = begin; unit <= end; unit++) {
            if (!only_reads(bytes[2 * unit], bytes[2 * unit + 1]))
                return false;
        }
        return true;
    }
    return false; /* perhaps one of a caller */
}

static bool
is_reading(_PyInterpreterFrame *top)
{
    bool reads = false;
    own_work_begin();
    PyObject *bytes = PyCode_GetCode(compat_frame_code(top)); /* the general form of each instruction */
    if (bytes)
        reads = loop_only_reads((const uint8_t *)PyBytes_AS_STRING(bytes), (int)(PyBytes_GET_SIZE(bytes) / 2),
                                stack_place(top).unit);
    Py_XDECREF(bytes);
    own_work_end();
    return reads;
}

/* ---- the doubt ---- */

void
doubt_note(int signum)
{
    _PyInterpreterFrame *top = compat_top_frame(core.tstate);
    if (doubt.event || top == NULL)
        return;
    PyCodeObject *code = compat_frame_code(top);
    int line = PyCode_Addr2Line(code, frame_place(top));
    doubt.event = core.crossings + 1;
    doubt.signum = signum;
    buf_byte(&doubt.place, TAG_TUPLE);
    buf_varint(&doubt.place, 3);
    report_name(&doubt.place, code->co_filename);
    report_number(&doubt.place, line > 0 ? line : 0);
    report_name(&doubt.place, code->co_qualname);
}

/* The handler runs here. Not in a process that was copied from another one since: its CPU time began anew. */
void
doubt_judge(int signum, const Place *place)
{
    if (!place->has_contents || core.lenient || getpid() != run.pid)
        return;
    uint64_t used = cpu_time() - run.start;
    used = Py_MAX(used > run.looking ? used - run.looking : 0, used / LOOKS_AT_MOST) / 1000;
    _PyInterpreterFrame *top = compat_top_frame(core.tstate);
    if (2 * used < place->computed && used + NOISE < place->computed && top && !is_reading(top) &&
        !place_is_all_visible())
        doubt_note(signum);
}

uint64_t
signals_unsure(void)
{
    return doubt.event;
}

/* A list of the signal's number and the place, for a report; empty if there is no doubt. */
void
signals_report_unsure(Buf *b)
{
    report_list(b, doubt.event ? 2 : 0);
    if (doubt.event) {
        report_number(b, doubt.signum);
        buf_bytes(b, doubt.place.data, doubt.place.used);
    }
}
