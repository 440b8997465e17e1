/* How deep calls may nest: the program's limit, and room beyond it for the tool's own work. */
#ifndef REPLAYDBG_RECURSION_H
#define REPLAYDBG_RECURSION_H
#include "base/compat.h"

/* Bytes of the stack. The limit of 3.14 for calls of C functions is the end of the stack, whose length above the program
 * depends on the environment: so the program gets a multiple of STACK_STEP, counted from where it begins, and fails at the
 * same depth in its replay. What is below is for the tool. A thread with a small stack keeps all of it. */
enum { STACK_RESERVE = 64 << 10, STACK_STEP = 256 << 10, STACK_OF_LEVEL = 512 };

static inline void
compat_limit_stack(PyThreadState *ts)
{
#if PY_VERSION_HEX >= 0x030E0000
    uintptr_t here = (uintptr_t)__builtin_frame_address(0), base = ((_PyThreadStateImpl *)ts)->c_stack_init_base;
    size_t room = here - base;
    if (base && room > STACK_RESERVE + STACK_STEP) {
        room = (room - STACK_RESERVE) / STACK_STEP * STACK_STEP;
        PyUnstable_ThreadState_SetStackProtection(ts, (void *)(here - room), room);
    }
#endif
}

/* For calls of C functions; the tool's own do not count. Since 3.14 the limit is an address of the stack. */
static inline void
compat_call_credit(PyThreadState *ts, int levels)
{
#if PY_VERSION_HEX >= 0x030E0000
    ((_PyThreadStateImpl *)ts)->c_stack_soft_limit -= (uintptr_t)((intptr_t)levels * STACK_OF_LEVEL);
#elif PY_VERSION_HEX >= 0x030C0000
    ts->c_recursion_remaining += levels;
#else
    ts->recursion_remaining += levels;
#endif
}

static inline void
compat_recursion_credit(PyThreadState *ts, int levels)
{
#if PY_VERSION_HEX >= 0x030C0000
    ts->py_recursion_remaining += levels;
#else
    ts->recursion_remaining += levels;
#endif
}

/* So many levels there are at least for Python of the tool's and what the user asks, wherever the program stands: also
 * where it has none left. Those of C are room on the stack, too. 3.11 has one count for both. */
#define ROOM_LEVELS 1000
#define ROOM_C_LEVELS 500

typedef struct {
    int levels, c_levels, headroom;
    uintptr_t soft_limit, hard_limit; /* since 3.14, in the place of c_levels */
} CompatRoom;

static inline int
compat_levels_to(int *remaining, int wanted)
{
    int more = *remaining < wanted ? wanted - *remaining : 0;
    *remaining += more;
    return more;
}

/* The limit itself stays what the program has set. */
static inline CompatRoom
compat_room_make(PyThreadState *ts)
{
    CompatRoom room = {.headroom = ts->recursion_headroom};
    /* while an exception is made there is no limit, and too deep is the end of the process */
    ts->recursion_headroom = 0;
#if PY_VERSION_HEX >= 0x030C0000
    room.levels = compat_levels_to(&ts->py_recursion_remaining, ROOM_LEVELS);
#if PY_VERSION_HEX >= 0x030E0000
    _PyThreadStateImpl *stack = (_PyThreadStateImpl *)ts;
    room.soft_limit = stack->c_stack_soft_limit;
    room.hard_limit = stack->c_stack_hard_limit;
    PyUnstable_ThreadState_ResetStackProtection(ts);
#else
    room.c_levels = compat_levels_to(&ts->c_recursion_remaining, ROOM_C_LEVELS);
#endif
#else
    room.levels = compat_levels_to(&ts->recursion_remaining, ROOM_LEVELS);
#endif
    return room;
}

static inline void
compat_room_end(PyThreadState *ts, CompatRoom room)
{
    ts->recursion_headroom = room.headroom;
    compat_recursion_credit(ts, -room.levels);
#if PY_VERSION_HEX >= 0x030E0000
    ((_PyThreadStateImpl *)ts)->c_stack_soft_limit = room.soft_limit;
    ((_PyThreadStateImpl *)ts)->c_stack_hard_limit = room.hard_limit;
#elif PY_VERSION_HEX >= 0x030C0000
    compat_call_credit(ts, -room.c_levels);
#endif
}

#endif
