/* Count calls and jumps on 3.11 without a trace function. While one is set, the interpreter runs each instruction in its
 * general form, and the program takes twice as long.
 *
 * At the beginning of each function and at each jump backwards the evaluation loop reads one number (the "eval
 * breaker"). Only if it is set, the loop looks for work: signals, calls that C code has requested (Py_AddPendingCall),
 * exceptions from other threads. So two flags stay set (set_flags()): one that keeps the number set, and one that
 * there are calls. Only the main thread makes them, so make_pending_calls() first asks for the running thread by
 * pthread_self(), which is ours (lanes/threads.c). So we see each check. We return a thread that is not the main one,
 * unless there are calls.
 *
 * There are many calls of pthread_self(). One that means a check is recognised by a return address on the stack, in
 * make_pending_calls(), or wherever a build has inlined that function. The address is learnt from some lines of ours
 * whose checks are known: the first address that calls for other reasons do not have.
 *
 * The loop also checks after some calls of C functions; after which ones depends on the current form of an instruction.
 * So only the checks that come in each run count, however it is traced: where a function begins, and where an
 * instruction has jumped backwards. */
#include "base/core.h"
#include "clock/inside.h"
#include "collector/collector.h"

#if PY_VERSION_HEX < 0x030C0000
#include <opcode.h>
#include <unwind.h>

enum { FARTHEST = 32 /* words of the stack */, DEPTH = 16, MOST = 4 * DEPTH };

CheckCaller checks_caller;
bool checks_are_heard;
static enum { UNKNOWN, LEARNING_OTHERS, LEARNING_CALLER, KNOWN, UNKNOWABLE } knowledge;
typedef struct {
    uintptr_t at[MOST];
    int count;
} Addresses;
static Addresses others; /* return addresses of calls that mean no check */
static int heard;
static bool calls_are_made; /* those that C code has requested */
_PyInterpreterFrame *checks_frame;

/* ---- the flags ---- */

static void
set_flags(void)
{
    struct _ceval_state *state = &_PyRuntime.interpreters.main->ceval;
    state->pending.async_exc = 1; /* the interpreter computes the number anew at times: this keeps it set */
    _Py_atomic_store_relaxed(&state->pending.calls_to_do, 1);
    _Py_atomic_store_relaxed(&state->eval_breaker, 1);
}

/* Whether there are calls that nobody has begun to make. */
static inline bool
has_calls(void)
{
    const struct _pending_calls *pending = &_PyRuntime.interpreters.main->ceval.pending;
    return pending->first != pending->last && !calls_are_made;
}

/* Set the number to what it would be without us. */
static void
clear_flags(void)
{
    struct _ceval_state *state = &_PyRuntime.interpreters.main->ceval;
    bool is_main = core.lane == 0, signals = _Py_atomic_load_relaxed(&_PyRuntime.ceval.signals_pending);
    state->pending.async_exc = core.tstate && core.tstate->async_exc;
    _Py_atomic_store_relaxed(&state->pending.calls_to_do, has_calls());
    _Py_atomic_store_relaxed(&state->eval_breaker, _Py_atomic_load_relaxed(&state->gil_drop_request) ||
                                                       (is_main && (signals || has_calls())) ||
                                                       state->pending.async_exc);
}

/* ---- calls that C code has requested ---- */

/* The first and the last call in the queue are ours: the interpreter clears the flags before it makes the calls, and
 * these may run program code, whose checks count, too. */
static int
calls_begin(void *unused)
{
    if (checks_are_heard)
        set_flags();
    return 0;
}

static int
calls_end(void *unused)
{
    calls_are_made = false;
    return 0;
}

/* If there is no room in the queue for ours, the next crossing sets the flags. */
static void
enclose_calls(void)
{
    struct _pending_calls *pending = &_PyRuntime.interpreters.main->ceval.pending;
    if (Py_AddPendingCall(calls_end, NULL) < 0)
        return;
    calls_are_made = true;
    PyThread_acquire_lock(pending->lock, WAIT_LOCK);
    int before = (pending->first + NPENDINGCALLS - 1) % NPENDINGCALLS;
    if (before != pending->last) {
        pending->calls[before].func = calls_begin;
        pending->calls[before].arg = NULL;
        pending->first = before;
    }
    PyThread_release_lock(pending->lock);
}

/* ---- learn the caller ---- */

static _Unwind_Reason_Code
note_address(struct _Unwind_Context *context, void *to)
{
    Addresses *addresses = to;
    if (addresses->count % DEPTH == DEPTH - 1 || addresses->count == MOST)
        return _URC_END_OF_STACK;
    addresses->at[addresses->count++] = _Unwind_GetIP(context);
    return _URC_NO_REASON;
}

static bool
is_among(uintptr_t address, const Addresses *addresses)
{
    for (int i = 0; i < addresses->count; i++)
        if (addresses->at[i] == address)
            return true;
    return false;
}

static __attribute__((no_sanitize("address"))) void
learn_caller(void *const *frame)
{
    Addresses here = {0};
    int i = 0, at = 1;
    _Unwind_Backtrace(note_address, &here);
    while (i < here.count && here.at[i] != code_address(frame[1])) /* the frames of the core */
        i++;
    while (i < here.count && is_among(here.at[i], &others))
        i++;
    while (i < here.count && at < FARTHEST && code_address(frame[at]) != here.at[i])
        at++;
    if (i == here.count || at == FARTHEST)
        return;
    checks_caller = (CheckCaller){at, here.at[i]};
    heard = 1;
}

bool __attribute__((noinline))
checks_learn(void *const *frame)
{
    if (knowledge == LEARNING_OTHERS) {
        _Unwind_Backtrace(note_address, &others);
        others.count = (others.count + DEPTH - 1) / DEPTH * DEPTH; /* the next call begins its own row */
    }
    else if (knowledge == LEARNING_CALLER)
        learn_caller(frame);
    return true;
}

/* pthread_self() is also called for the thread's identity, for signals, and where the interpreter takes its lock. */
static void
ask_for_other_reasons(void)
{
    PyThread_get_thread_ident();
    PyErr_CheckSignals(); /* handles none: the answer is no thread */
    PyEval_RestoreThread(PyEval_SaveThread());
}

/* The program's own trace function is not called for these lines. */
static void
run_known_lines(PyObject *code, PyObject *globals)
{
    PyThreadState_EnterTracing(core.tstate);
    set_flags();
    knowledge = LEARNING_OTHERS;
    ask_for_other_reasons();
    knowledge = LEARNING_CALLER;
    Py_XDECREF(PyEval_EvalCode(code, globals, globals));
    clear_flags();
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

/* A traced function begins with a check before the trace function is called, which the interpreter repeats until there
 * is nothing to do. Then it calls the trace function, and makes the check that an untraced function has as well. */
static bool
is_repeated(PyThreadState *ts, _PyInterpreterFrame *frame)
{
    if (!ts->cframe->use_tracing || !begins(frame) || frame == checks_frame)
        return false;
    listen_when_traced(ts);
    return true;
}

/* Code that runs in a trace function is not traced. */
bool
checks_are_repeated(void)
{
    _PyInterpreterFrame *frame = compat_top_frame(core.tstate);
    return frame && !core.tstate->tracing && frame->prev_instr >= _PyCode_CODE(frame->f_code) &&
           is_repeated(core.tstate, frame);
}

/* Code that runs in a trace function is not counted: a trace function of ours would not see it, either. */
static void
check(void)
{
    PyThreadState *ts = _PyThreadState_GET();
    _PyInterpreterFrame *frame = ts ? ts->cframe->current_frame : NULL;
    if (frame == NULL || ts->tracing || (ts != core.tstate && !clock_hooks.adopt_thread()))
        return;
    if (is_repeated(ts, frame)) {
        clear_flags(); /* there is nothing to do: the next one counts */
        return;
    }
    if (!counts(frame))
        return;
    checks_frame = NULL;
    if (trace_is_on && begins(frame) && _Py_OPARG(*frame->prev_instr) == 0)
        trace_inside(frame);
    ticks_tick(frame);
}

bool
checks_met(void)
{
    heard += knowledge == LEARNING_CALLER;
    check();
    if (core.lane != 0 || !has_calls())
        return true;
    enclose_calls();
    return false;
}

/* A thread of C code that is traced would repeat its check for ever. With the other flags as they are, the interpreter
 * sets the number again when a lane takes the lock. */
void
checks_met_elsewhere(void *const *frame)
{
    if (checks_caller.at == 0 || !check_asks(frame))
        return;
    PyThreadState *ts = _PyThreadState_GET();
    if (ts == NULL || !ts->cframe->use_tracing || !begins(ts->cframe->current_frame))
        return;
    struct _ceval_state *state = &_PyRuntime.interpreters.main->ceval;
    _Py_atomic_store_relaxed(&state->eval_breaker, _Py_atomic_load_relaxed(&state->gil_drop_request));
}

int
checks_hear(bool on)
{
    if (on && knowledge != KNOWN && (knowledge == UNKNOWABLE || !learn()))
        return -1;
    checks_are_heard = on;
    on ? set_flags() : clear_flags();
    return 0;
}

void
checks_go_on(void)
{
    if (checks_are_heard)
        set_flags();
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
