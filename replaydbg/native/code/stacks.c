/* Which entries of a frame's value stack hold objects at the instruction that it executes. The interpreter keeps how
 * deep the stack is only of frames that do not run; so it is computed from the bytecode, as the compiler does it. What
 * the instruction itself takes or leaves is not counted: it may be in the middle of it. */
#include "base/core.h"
#include "code/inside.h"
#include <opcode.h>
#include <stdlib.h>

#define CACHE_SIZE 512 /* a power of two; only frames that are there when a signal comes are looked up */
#define MOST_UNITS 200000
#define UNKNOWN (-1)

/* A code object that is new must not be taken for one that was at its address. Since 3.12 each has a version of its
 * own; on 3.11 we hear when one dies. */
static struct {
    PyCodeObject *code;
    uint32_t version;
    int unit;
    StackPlace found;
} cache[CACHE_SIZE];

typedef struct {
    const uint8_t *bytes; /* the general form of each instruction; what belongs to it otherwise is zero */
    int units;
    int *depth; /* before each instruction */
    bool changed, is_wrong;
} Walk;

static void
arrive(Walk *w, int unit, int depth)
{
    if (unit < 0 || unit >= w->units || depth < 0)
        w->is_wrong = true;
    else if (w->depth[unit] == UNKNOWN) {
        w->depth[unit] = depth;
        w->changed = true;
    }
    else if (w->depth[unit] != depth)
        w->is_wrong = true;
}

/* -1, 0, 1: it jumps back, not at all, forward. */
static int
jumps(int op)
{
    switch (op) {
    case JUMP_BACKWARD:
    case JUMP_BACKWARD_NO_INTERRUPT:
#ifdef POP_JUMP_BACKWARD_IF_TRUE
    case POP_JUMP_BACKWARD_IF_TRUE:
    case POP_JUMP_BACKWARD_IF_FALSE:
    case POP_JUMP_BACKWARD_IF_NONE:
    case POP_JUMP_BACKWARD_IF_NOT_NONE:
#endif
        return -1;
#ifdef POP_JUMP_FORWARD_IF_TRUE
    case POP_JUMP_FORWARD_IF_TRUE:
    case POP_JUMP_FORWARD_IF_FALSE:
    case POP_JUMP_FORWARD_IF_NONE:
    case POP_JUMP_FORWARD_IF_NOT_NONE:
    case JUMP_IF_TRUE_OR_POP:
    case JUMP_IF_FALSE_OR_POP:
#else
    case POP_JUMP_IF_TRUE:
    case POP_JUMP_IF_FALSE:
    case POP_JUMP_IF_NONE:
    case POP_JUMP_IF_NOT_NONE:
#endif
    case JUMP_FORWARD:
    case FOR_ITER:
    case SEND:
        return 1;
    default:
        return 0;
    }
}

static bool
goes_on(int op)
{
    switch (op) {
    case RETURN_VALUE:
#ifdef RETURN_CONST
    case RETURN_CONST:
#endif
    case RAISE_VARARGS:
    case RERAISE:
    case JUMP_FORWARD:
    case JUMP_BACKWARD:
    case JUMP_BACKWARD_NO_INTERRUPT:
        return false;
    default:
        return true;
    }
}

static void
follow(Walk *w)
{
    unsigned arg = 0;
    for (int unit = 0, next; unit < w->units && !w->is_wrong; unit = next) {
        int op = w->bytes[2 * unit], depth = w->depth[unit];
        arg = arg << 8 | w->bytes[2 * unit + 1];
        for (next = unit + 1; next < w->units && w->bytes[2 * next] == CACHE; next++)
            ;
        if (depth != UNKNOWN) {
            int direction = jumps(op), effect = PyCompile_OpcodeStackEffectWithJump(op, (int)arg, 0);
            if (direction) {
                int taken = PyCompile_OpcodeStackEffectWithJump(op, (int)arg, 1);
                arrive(w, next + direction * (int)arg, depth + taken);
            }
            if (op == RETURN_GENERATOR)
                arrive(w, next, 1); /* what is sent first */
            else if (goes_on(op))
                arrive(w, next, depth + effect);
        }
        if (op != EXTENDED_ARG)
            arg = 0;
    }
}

static int
table_number(const uint8_t **p, const uint8_t *end)
{
    int n = 0;
    for (uint8_t byte = 64; *p < end && byte & 64;) {
        byte = *(*p)++;
        n = n << 6 | (byte & 63);
    }
    return n;
}

static void
handlers(Walk *w, PyObject *table)
{
    const uint8_t *p = (const uint8_t *)PyBytes_AS_STRING(table), *end = p + PyBytes_GET_SIZE(table);
    while (p < end && !w->is_wrong) {
        table_number(&p, end); /* start: the byte's highest bit marks it, and is no part of the number */
        table_number(&p, end);
        int target = table_number(&p, end), rest = table_number(&p, end);
        arrive(w, target, (rest >> 1) + 1 + (rest & 1));
    }
}

/* Of the entries before the instruction, those that it does not touch. */
static int
untouched(Walk *w, int unit, unsigned arg)
{
    int op = w->bytes[2 * unit], before = w->depth[unit];
#ifdef PRECALL
    if (op == PRECALL) /* and its CALL */
        return before - (int)arg - 2;
    if (op == CALL)
        return before - 2;
#endif
    int effect = PyCompile_OpcodeStackEffectWithJump(op, (int)arg, jumps(op) == -1);
    int after = before + effect;
    switch (op) {
    case RESUME:
    case FOR_ITER:
        return before;
    case JUMP_BACKWARD:
    case POP_TOP:
    case STORE_FAST:
    case STORE_NAME:
    case STORE_GLOBAL:
    case STORE_DEREF:
    case STORE_ATTR:
    case STORE_SUBSCR:
    case DELETE_ATTR:
    case DELETE_SUBSCR:
        return after;
#ifdef LOAD_SUPER_ATTR
    case LOAD_SUPER_ATTR:
#endif
    case CHECK_EXC_MATCH:
    case CHECK_EG_MATCH:
    case MATCH_KEYS:
    case SEND:
        return (before < after ? before : after) - 2;
    default:
        if (jumps(op) == -1)
            return after;
        return (before < after ? before : after) - 1; /* true of all that leave at most one, or take at most one */
    }
}

static void
compute(PyCodeObject *code, int unit, StackPlace *found)
{
    Walk w = {.units = (int)Py_SIZE(code)};
    PyObject *bytes = PyCode_GetCode(code);
    *found = (StackPlace){unit, 0};
    w.depth = w.units <= MOST_UNITS ? malloc((size_t)w.units * sizeof *w.depth) : NULL;
    if (bytes && w.depth && unit < w.units) {
        w.bytes = (const uint8_t *)PyBytes_AS_STRING(bytes);
        for (int i = 0; i < w.units; i++)
            w.depth[i] = UNKNOWN;
        w.depth[0] = 0;
        do {
            w.changed = false;
            follow(&w);
            handlers(&w, code->co_exceptiontable);
        } while (w.changed && !w.is_wrong);
        while (unit > 0 && w.bytes[2 * unit] == CACHE)
            unit--;
        unsigned arg = w.bytes[2 * unit + 1], shift = 8;
        for (int i = unit - 1; i >= 0 && w.bytes[2 * i] == EXTENDED_ARG; i--, shift += 8)
            arg |= (unsigned)w.bytes[2 * i + 1] << shift;
        found->unit = unit;
        if (!w.is_wrong && w.depth[unit] != UNKNOWN)
            found->depth = untouched(&w, unit, arg);
        if (found->depth < 0 || found->depth > code->co_stacksize)
            found->depth = 0;
    }
    PyErr_Clear();
    free(w.depth);
    Py_XDECREF(bytes);
}

void
stacks_forget(void)
{
    memset(cache, 0, sizeof cache);
}

StackPlace
stack_place(_PyInterpreterFrame *frame)
{
    PyCodeObject *code = compat_frame_code(frame);
    int unit = frame_place(frame) / (int)sizeof(_Py_CODEUNIT);
    if (unit < 0)
        return (StackPlace){unit, 0};
    size_t slot = (((uintptr_t)code >> 5) * 31 + (size_t)unit) & (CACHE_SIZE - 1);
#if PY_VERSION_HEX >= 0x030C0000
    uint32_t version = code->co_version;
#else
    uint32_t version = site_hear_of_end(code);
#endif
    if (version == 0 || cache[slot].code != code || cache[slot].version != version || cache[slot].unit != unit) {
        compute(code, unit, &cache[slot].found);
        cache[slot].code = code;
        cache[slot].version = version;
        cache[slot].unit = unit;
    }
    return cache[slot].found;
}
