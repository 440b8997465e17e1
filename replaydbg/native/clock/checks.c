/* Calls and jumps counted on 3.11 without a trace function. While one is set, the interpreter runs each instruction in
 * its general form, and the program takes twice as long.
 *
 * At the beginning of each function and at each jump backwards the evaluation loop looks at one number (the "eval
 * breaker"), and only if it is set at what there may be to do: signals, calls that C code has asked for
 * (Py_AddPendingCall), exceptions from other threads. So two notes are left for ever: one that keeps the number set, and
 * one that says that there are calls. The main thread alone makes them, so make_pending_calls() asks for the running
 * thread first, by pthread_self(), which is ours (lanes/threads.c): that is how each check is heard of. The answer is a
 * thread that is not the main one, unless there are calls.
 *
 * Many ask for the running thread. The one that means a check is known by its return address, which is learnt from some
 * lines of ours whose checks are known.
 *
 * The loop also checks after some calls of C functions; after which ones depends on the form that an instruction has at
 * the moment. Only those checks count that come in each run, however it is traced: where a function begins, or where an
 * instruction has jumped backwards. */
#include "base/core.h"
#include "clock/inside.h"
#include "collector/collector.h"

#if PY_VERSION_HEX < 0x030C0000
#include <opcode.h>

enum { FARTHEST = 16 /* words of the stack */, LONGEST = 128 /* bytes of ask() */ };

CheckCaller checks_caller;
bool checks_are_heard;
static enum { UNKNOWN, LEARNING_DISTANCE, LEARNING_CALLER, KNOWN, UNKNOWABLE } knowledge;
static int distance;    /* from whom pthread_self() is called for to whom it returns */
static uint64_t direct; /* the address to which pthread_self() returns then */
static int heard;
static bool notes_come_again;          /* after the calls that there are */
static _PyInterpreterFrame *announced; /* the trace function knows that it begins: its check comes now */

/* ---- the notes ---- */

static void
leave_notes(void)
{
    struct _ceval_state *state = &_PyRuntime.interpreters.main->ceval;
    state->pending.async_exc = 1; /* the interpreter computes the number anew at times: this keeps it set */
    _Py_atomic_store_relaxed(&state->pending.calls_to_do, 1);
    _Py_atomic_store_relaxed(&state->eval_breaker, 1);
}

static inline bool
has_calls(void)
{
    const struct _pending_calls *pending = &_PyRuntime.interpreters.main->ceval.pending;
    return pending->first != pending->last;
}

/* The number becomes what it would be without us. */
static void
take_notes(void)
{
    struct _ceval_state *state = &_PyRuntime.interpreters.main->ceval;
    bool is_main = core.lane == 0, signals = _Py_atomic_load_relaxed(&_PyRuntime.ceval.signals_pending);
    state->pending.async_exc = core.tstate && core.tstate->async_exc;
    _Py_atomic_store_relaxed(&state->pending.calls_to_do, has_calls());
    _Py_atomic_store_relaxed(&state->eval_breaker, _Py_atomic_load_relaxed(&state->gil_drop_request) ||
                                                       (is_main && (signals || has_calls())) ||
                                                       state->pending.async_exc);
}

/* The interpreter has taken the notes away to make the calls; the last of them is this one. */
static int
leave_notes_again(void *unused)
{
    notes_come_again = false;
    if (checks_are_heard)
        leave_notes();
    return 0;
}

/* ---- who asks ---- */

static void __attribute__((noinline))
ask(void)
{
    PyThread_get_thread_ident();
    __asm__ volatile("" ::: "memory"); /* the call must return here */
}

/* PyThread_get_thread_ident() calls pthread_self(), in builds in which it is not inlined where it is used. */
static __attribute__((no_sanitize("address"))) void
learn_distance(void *const *frame)
{
    direct = code_address(frame[1]);
    for (distance = 1; distance < FARTHEST; distance++)
        if (code_address(frame[distance]) - code_address((void *)ask) < LONGEST)
            break;
}

static __attribute__((no_sanitize("address"))) void
learn_caller(void *const *frame)
{
    checks_caller.at = code_address(frame[1]) == direct ? distance : 1;
    checks_caller.address = code_address(frame[checks_caller.at]);
    heard = 1;
}

bool
checks_learn(void *const *frame)
{
    if (knowledge == LEARNING_DISTANCE)
        learn_distance(frame);
    else if (knowledge == LEARNING_CALLER)
        learn_caller(frame);
    return knowledge == LEARNING_CALLER;
}

/* The program's own trace function does not hear of it. */
static void
run_known_lines(PyObject *code, PyObject *globals)
{
    knowledge = LEARNING_DISTANCE;
    ask();
    knowledge = LEARNING_CALLER;
    PyThreadState_EnterTracing(core.tstate);
    leave_notes();
    Py_XDECREF(PyEval_EvalCode(code, globals, globals));
    take_notes();
    PyThreadState_LeaveTracing(core.tstate);
}

static bool
learn(void)
{
    enum { CHECKS = 4 /* one at the beginning, and three jumps */ };
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    own_work_begin();
    checks_are_heard = true;
    PyObject *code = Py_CompileString("for n in (1, 2, 3): pass", "<replaydbg>", Py_file_input),
             *globals = PyDict_New();
    if (code && globals)
        run_known_lines(code, globals);
    Py_XDECREF(code);
    Py_XDECREF(globals);
    checks_are_heard = false;
    own_work_end();
    PyErr_Restore(type, value, traceback);
    knowledge = heard == CHECKS ? KNOWN : UNKNOWABLE;
    return knowledge == KNOWN;
}

/* ---- a check ---- */

/* Whether the instruction that has just run begins a function, or has jumped backwards. */
static bool
counts(_PyInterpreterFrame *frame)
{
    switch (_Py_OPCODE(*frame->prev_instr)) {
    case RESUME:
    case RESUME_QUICK:
    case JUMP_BACKWARD:
    case JUMP_BACKWARD_QUICK:
    case POP_JUMP_BACKWARD_IF_NOT_NONE:
    case POP_JUMP_BACKWARD_IF_NONE:
    case POP_JUMP_BACKWARD_IF_FALSE:
    case POP_JUMP_BACKWARD_IF_TRUE:
        return true;
    case COMPARE_OP_FLOAT_JUMP: /* a comparison and the jump after it in one */
    case COMPARE_OP_INT_JUMP:
    case COMPARE_OP_STR_JUMP:
        frame->prev_instr += 1 + INLINE_CACHE_ENTRIES_COMPARE_OP; /* where it is if they are two */
        return true;
    default:
        return false;
    }
}

static bool
begins(const _PyInterpreterFrame *frame)
{
    int opcode = _Py_OPCODE(*frame->prev_instr);
    return opcode == RESUME || opcode == RESUME_QUICK;
}

/* A function that is traced begins with a check, before the trace function is called, and the interpreter repeats that
 * until there is nothing to do. Then the trace function is called, and the check comes that is made without it, too. */
static bool
is_repeated(PyThreadState *ts, _PyInterpreterFrame *frame)
{
    if (!ts->cframe->use_tracing || !begins(frame) || frame == announced)
        return false;
    listen_when_traced(ts);
    return true;
}

/* What runs within a trace function is not traced. */
bool
checks_are_repeated(void)
{
    _PyInterpreterFrame *frame = compat_top_frame(core.tstate);
    return frame && !core.tstate->tracing && frame->prev_instr >= _PyCode_CODE(frame->f_code) &&
           is_repeated(core.tstate, frame);
}

void
checks_announced(_PyInterpreterFrame *frame)
{
    announced = frame;
    if (frame && checks_are_heard)
        leave_notes();
}

/* What a trace function does is not counted, as nobody would hear of it if there were a trace function of ours. */
static void
check(void)
{
    PyThreadState *ts = _PyThreadState_GET();
    _PyInterpreterFrame *frame = ts ? ts->cframe->current_frame : NULL;
    if (frame == NULL || ts->tracing || (ts != core.tstate && !clock_hooks.adopt_thread()))
        return;
    if (is_repeated(ts, frame)) {
        take_notes(); /* there is nothing to do: the next one counts */
        return;
    }
    if (!counts(frame))
        return;
    announced = NULL;
    if (trace_is_on && begins(frame) && _Py_OPARG(*frame->prev_instr) == 0)
        trace_inside(frame);
    ticks_tick(frame);
}

bool
checks_met(void)
{
    heard += knowledge == LEARNING_CALLER;
    check();
    if (!has_calls())
        return true;
    if (!notes_come_again) /* if there is no room, the next crossing leaves them */
        notes_come_again = Py_AddPendingCall(leave_notes_again, NULL) == 0;
    return false;
}

int
checks_hear(bool on)
{
    if (on && knowledge != KNOWN && (knowledge == UNKNOWABLE || !learn()))
        return -1;
    checks_are_heard = on;
    on ? leave_notes() : take_notes();
    return 0;
}

void
checks_go_on(void)
{
    if (checks_are_heard)
        leave_notes();
}

#else

bool checks_are_heard;

int
checks_hear(bool on)
{
    return on ? -1 : 0;
}

bool
checks_are_repeated(void)
{
    return false;
}

void
checks_go_on(void)
{
}

#endif
