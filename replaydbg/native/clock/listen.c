/* How the core hears of lines, calls and jumps, without the program seeing that anybody listens.
 *
 * 3.12 and later: C callbacks of `sys.monitoring`. The program has tool ids 0 to 5; the interpreter has two more, for
 * sys.setprofile (6) and sys.settrace (7), which no function of the module accepts. Ours is number 6 as long as the
 * program has no profile function: so every id stays free, and we are called before every tool of the program's. The
 * audit event of sys.setprofile comes before the change: then the listener moves to the highest id that the program
 * does not use, and moves on if it wants that one too. LINE is never listened to without PY_START: on 3.13 whether a
 * function on one line has a LINE event depends on whether anybody wants its PY_START.
 *
 * 3.11: a C trace function. The interpreter knows one for each thread; ours takes its place and calls the program's.
 * What sys.gettrace() returns is kept beside it and stays the program's. */
#include "base/core.h"
#include "clock/inside.h"
#include "code/code.h"
#include "collector/collector.h"
#include <dlfcn.h>
#include <opcode.h>
#include <stdlib.h>

bool signals_wait;

static unsigned listening; /* LISTEN_... */

/* Whether an exception has been in another frame before: one that ran Python. C libraries (Cython, pyexpat) put frames
 * into tracebacks that never ran, to name their own lines. The importer's own frames run no lines that count: what it
 * raises and handles itself is nobody's, and what comes out of it is the importing line's. */
static bool
comes_from_elsewhere(const PyTracebackObject *traceback)
{
    for (const PyTracebackObject *inner = traceback->tb_next; inner; inner = inner->tb_next) {
        const CodeFacts *facts = code_facts(compat_frame_code(inner->tb_frame->f_frame));
        if (facts->has_run && !facts->is_importers)
            return true;
    }
    return false;
}

/* An exception has come to the frame of its traceback's first entry: it is raised there, unless it passes from a
 * function that was called. One that comes from elsewhere and did not pass was kept, or handled, and is raised again.
 */
static void
tell_raised(_PyInterpreterFrame *frame, PyObject *type, PyObject *value, const PyTracebackObject *traceback)
{
    if (traceback->tb_frame->f_frame != frame || code_facts(compat_frame_code(frame))->is_importers)
        return; /* 3.11 also shows the StopIteration that ends a loop to the function with the loop */
    bool passes = activation_passes(frame), is_again = comes_from_elsewhere(traceback);
    if (!is_again || !passes)
        clock_hooks.raised(&(Raise){type, value, frame, traceback->tb_lasti, is_again});
}

#if PY_VERSION_HEX >= 0x030C0000
#define EVENT_COUNT _PY_MONITORING_UNGROUPED_EVENTS
#define RETURNS (1u << PY_MONITORING_EVENT_PY_RETURN | 1u << PY_MONITORING_EVENT_PY_YIELD)
#define RESUMES (1u << PY_MONITORING_EVENT_PY_RESUME)
#define BOTH                                                                                                           \
    (1u << PY_MONITORING_EVENT_PY_UNWIND |                                                                             \
     1u << PY_MONITORING_EVENT_PY_THROW) /* of functions that end or go on with an exception */
enum { PROFILE_SLOT = PY_MONITORING_SYS_PROFILE_ID, TOOLS = PY_MONITORING_SYS_PROFILE_ID };

static int slot = -1;                          /* the tool id that we have */
static PyObject *saved[_PY_MONITORING_EVENTS]; /* the profiler's own callbacks, while we have its place */
/* From before the program could replace them; when the interpreter ends they are gone from their modules. */
static PyObject *set_events, *set_local_events, *modules;

/* The callbacks are objects of a type of their own: 3 ns a line less than a builtin function. Type and objects are
 * static and the type is never made ready: the collector does not know it, nor does object.__subclasses__(). */
typedef struct {
    PyObject_HEAD vectorcallfunc call;
} Listener;

static PyTypeObject listener_type = {
    PyVarObject_HEAD_INIT(&PyType_Type, 0).tp_name = "listener",
    .tp_basicsize = sizeof(Listener),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(Listener, call),
    .tp_call = PyVectorcall_Call,
};

/* NULL: of a thread that is none of ours. */
static inline _PyInterpreterFrame *
current_frame(void)
{
    if (compat_attached() != core.tstate && !clock_hooks.adopt_thread())
        return NULL;
#if PY_VERSION_HEX >= 0x030D0000
    return core.tstate->current_frame;
#else
    return core.tstate->cframe->current_frame;
#endif
}

#if PY_VERSION_HEX >= 0x030D0000
/* Since we want PY_START of every function, a function on one line has a LINE event, which it would not have otherwise
 * on 3.13: a tool of the program's that asks for LINE alone must not get it. We are called first and take its callback
 * away for that one event. */
static struct {
    bool asked;                   /* the program has a callback for LINE */
    _PyInterpreterFrame *started; /* its RESUME is the instruction before */
    PyObject *callbacks[TOOLS];   /* taken away */
    bool is_on;
} mute;

static void
unmute(void)
{
    PyInterpreterState *interp = core.tstate->interp;
    for (int t = 0; mute.is_on && t < TOOLS; t++)
        if (mute.callbacks[t]) {
            interp->monitoring_callables[t][PY_MONITORING_EVENT_LINE] = mute.callbacks[t];
            mute.callbacks[t] = NULL;
        }
    mute.is_on = false;
}

static void
mute_if_unasked(_PyInterpreterFrame *frame)
{
    PyInterpreterState *interp = core.tstate->interp;
    bool started = mute.started == frame;
    mute.started = NULL;
    PyCodeObject *code = compat_frame_code(frame);
    int lasti = compat_frame_lasti(frame);
    unsigned others =
        code->_co_monitoring ? code->_co_monitoring->active_monitors.tools[PY_MONITORING_EVENT_PY_START] : 0;
    if (!started || (others & ~(1u << slot)) || lasti < (int)sizeof(_Py_CODEUNIT))
        return;
    if (PyCode_Addr2Line(code, lasti) != PyCode_Addr2Line(code, lasti - (int)sizeof(_Py_CODEUNIT)))
        return;
    for (int t = 0; t < TOOLS && t < slot; t++) {
        mute.callbacks[t] = interp->monitoring_callables[t][PY_MONITORING_EVENT_LINE];
        interp->monitoring_callables[t][PY_MONITORING_EVENT_LINE] = NULL;
    }
    mute.is_on = true;
}
#endif

static PyObject *
on_line(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    _PyInterpreterFrame *frame = current_frame();
    if (frame == NULL)
        Py_RETURN_NONE;
    if (listening & LISTEN_LINES)
        stepclock_line(frame);
    if (listening & LISTEN_LINE_TICKS)
        ticks_tick(frame);
#if PY_VERSION_HEX >= 0x030D0000
    if (mute.asked) {
        unmute();
        mute_if_unasked(frame);
    }
#endif
    Py_RETURN_NONE;
}

static PyObject *
on_start(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    _PyInterpreterFrame *frame = current_frame();
    if (frame == NULL)
        Py_RETURN_NONE;
#if PY_VERSION_HEX >= 0x030D0000
    if (mute.asked)
        unmute();
#endif
    if (listening & LISTEN_LINES)
        stepclock_start(frame);
    if (trace_is_on)
        trace_inside(frame);
    if (listening & LISTEN_TICKS)
        ticks_tick(frame);
#if PY_VERSION_HEX >= 0x030D0000
    mute.started = frame; /* after the tick, at which functions of other lanes may have started */
#endif
    Py_RETURN_NONE;
}

static PyObject *
on_jump(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    _PyInterpreterFrame *frame = current_frame();
    if (frame)
        ticks_tick(frame);
    Py_RETURN_NONE;
}

static PyObject *
on_raise(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    _PyInterpreterFrame *frame = current_frame();
    if (frame && PyVectorcall_NARGS(nargsf) == 3 && PyExceptionInstance_Check(args[2])) {
        PyObject *traceback = ((PyBaseExceptionObject *)args[2])->traceback;
        if (traceback)
            tell_raised(frame, (PyObject *)Py_TYPE(args[2]), args[2], (PyTracebackObject *)traceback);
    }
    Py_RETURN_NONE;
}

static PyObject *
on_unwind(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    _PyInterpreterFrame *frame = current_frame();
    if (frame && listening & LISTEN_RAISES)
        activation_pass(compat_previous_frame(frame));
    if (frame && listening & LISTEN_RETURNS) {
        clock_hooks.function_ends(frame, NULL);
    }
    Py_RETURN_NONE;
}

static PyObject *
on_throw(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    _PyInterpreterFrame *frame = current_frame();
    if (frame && listening & LISTEN_RAISES)
        activation_pass(frame);
    if (frame && listening & LISTEN_RETURNS)
        clock_hooks.function_resumes(frame);
    Py_RETURN_NONE;
}

static PyObject *
on_return(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    _PyInterpreterFrame *frame = current_frame();
    if (frame) {
        clock_hooks.function_ends(frame, PyVectorcall_NARGS(nargsf) == 3 ? args[2] : NULL);
    }
    Py_RETURN_NONE;
}

/* A generator waits. */
static PyObject *
on_leave(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    _PyInterpreterFrame *frame = current_frame();
    if (frame) {
        clock_hooks.function_ends(frame, NULL);
    }
    Py_RETURN_NONE;
}

static PyObject *
on_instruction(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    _PyInterpreterFrame *frame = current_frame();
    if (frame)
        clock_hooks.instruction(frame);
    Py_RETURN_NONE;
}

static PyObject *
on_resume(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    _PyInterpreterFrame *frame = current_frame();
    if (frame)
        clock_hooks.function_resumes(frame);
    Py_RETURN_NONE;
}

static Listener raise_listener = {PyObject_HEAD_INIT(&listener_type) on_raise};
static Listener unwind_listener = {PyObject_HEAD_INIT(&listener_type) on_unwind};
static Listener throw_listener = {PyObject_HEAD_INIT(&listener_type) on_throw};
static Listener return_listener = {PyObject_HEAD_INIT(&listener_type) on_return};
static Listener leave_listener = {PyObject_HEAD_INIT(&listener_type) on_leave};
static Listener instruction_listener = {PyObject_HEAD_INIT(&listener_type) on_instruction};
static Listener resume_listener = {PyObject_HEAD_INIT(&listener_type) on_resume};
static Listener line_listener = {PyObject_HEAD_INIT(&listener_type) on_line};
static Listener start_listener = {PyObject_HEAD_INIT(&listener_type) on_start};
static Listener jump_listener = {PyObject_HEAD_INIT(&listener_type) on_jump};

/* ---- places among the interpreter's tools ---- */

static unsigned
tool_events(int tool)
{
    unsigned events = 0;
    for (int e = 0; e < EVENT_COUNT; e++)
        events |= (unsigned)(core.tstate->interp->monitors.tools[e] >> tool & 1) << e;
    return events;
}

static int
set_tool_events(int tool, unsigned events)
{
    PyObject *result = PyObject_CallFunction(set_events, "iI", tool, events);
    Py_XDECREF(result);
    return result ? 0 : -1;
}

/* The interpreter looks at its tables of tools again, and puts what we wrote there into all code that is running. It
 * does so when a tool asks for another set of events: one does, for an event that changes no code, and back. */
static int
look_again(void)
{
    PyInterpreterState *interp = core.tstate->interp;
    int tool = TOOLS - 1;
    while (tool > 0 && interp->monitoring_tool_names[tool])
        tool--;
    PyObject *name = interp->monitoring_tool_names[tool];
    unsigned events = tool_events(tool), other = events ^ 1u << PY_MONITORING_EVENT_PY_THROW;
    if (name == NULL)
        interp->monitoring_tool_names[tool] = Py_None; /* it must seem to be in use */
    int rc = set_tool_events(tool, other) < 0 || set_tool_events(tool, events) < 0 ? -1 : 0;
    interp->monitoring_tool_names[tool] = name;
    return rc;
}

static void
leave_slot(void)
{
    PyInterpreterState *interp = core.tstate->interp;
    for (int e = 0; slot >= 0 && e < _PY_MONITORING_EVENTS; e++) {
        interp->monitoring_callables[slot][e] = saved[e]; /* ours are never freed */
        saved[e] = NULL;
        if (e < EVENT_COUNT)
            interp->monitors.tools[e] &= (uint8_t)~(1u << slot);
    }
    slot = -1;
}

static void
take_slot(int number)
{
    PyInterpreterState *interp = core.tstate->interp;
    unsigned events = 0;
    slot = number;
    memcpy(saved, interp->monitoring_callables[slot], sizeof saved);
    memset(interp->monitoring_callables[slot], 0, sizeof saved);
    if (listening & (LISTEN_LINES | LISTEN_LINE_TICKS))
        events |= 1u << PY_MONITORING_EVENT_LINE | 1u << PY_MONITORING_EVENT_PY_START;
    if (listening & LISTEN_TICKS)
        events |= 1u << PY_MONITORING_EVENT_JUMP | 1u << PY_MONITORING_EVENT_PY_START;
    if (listening & LISTEN_RAISES)
        events |= 1u << PY_MONITORING_EVENT_RAISE | BOTH;
    if (listening & LISTEN_RETURNS)
        events |= RETURNS | RESUMES | BOTH;
    interp->monitoring_callables[slot][PY_MONITORING_EVENT_LINE] = Py_NewRef((PyObject *)&line_listener);
    interp->monitoring_callables[slot][PY_MONITORING_EVENT_JUMP] = Py_NewRef((PyObject *)&jump_listener);
    interp->monitoring_callables[slot][PY_MONITORING_EVENT_RAISE] = Py_NewRef((PyObject *)&raise_listener);
    for (int e = 0; e < EVENT_COUNT; e++)
        if ((RETURNS | RESUMES) >> e & 1)
            interp->monitoring_callables[slot][e] =
                Py_NewRef((PyObject *)(RETURNS >> e & 1 ? &leave_listener : &resume_listener));
    interp->monitoring_callables[slot][PY_MONITORING_EVENT_PY_RETURN] = Py_NewRef((PyObject *)&return_listener);
    interp->monitoring_callables[slot][PY_MONITORING_EVENT_INSTRUCTION] = Py_NewRef((PyObject *)&instruction_listener);
    interp->monitoring_callables[slot][PY_MONITORING_EVENT_PY_UNWIND] = Py_NewRef((PyObject *)&unwind_listener);
    interp->monitoring_callables[slot][PY_MONITORING_EVENT_PY_THROW] = Py_NewRef((PyObject *)&throw_listener);
    if (listening & LISTEN_TICKS || stepclock_wants_starts() || PY_VERSION_HEX >= 0x030D0000)
        interp->monitoring_callables[slot][PY_MONITORING_EVENT_PY_START] = Py_NewRef((PyObject *)&start_listener);
#if PY_VERSION_HEX >= 0x030D0000
    for (int t = 0; t < TOOLS; t++)
        mute.asked |= t != slot && interp->monitoring_callables[t][PY_MONITORING_EVENT_LINE] != NULL;
    if (mute.asked && events & 1u << PY_MONITORING_EVENT_PY_START)
        events |= 1u << PY_MONITORING_EVENT_LINE;
#endif
    for (int e = 0; e < EVENT_COUNT; e++)
        interp->monitors.tools[e] |= (uint8_t)((events >> e & 1) << slot);
}

/* Nobody but us uses it, and `but` is not asked for. */
static int
free_slot(int but)
{
    PyInterpreterState *interp = core.tstate->interp;
    if (but != PROFILE_SLOT && !tool_events(PROFILE_SLOT))
        return PROFILE_SLOT;
    for (int t = TOOLS - 1; t >= 0; t--)
        if (t != but && t != slot && interp->monitoring_tool_names[t] == NULL && !tool_events(t))
            return t;
    return -1;
}

static void
move_from(int wanted)
{
    if (slot != wanted || !listening)
        return;
    int other = free_slot(wanted);
    if (other < 0)
        diverge("tools", NULL, NULL, "the program uses every tool id of sys.monitoring, and a profile function");
    own_work_begin();
    leave_slot();
    take_slot(other);
    if (look_again() < 0)
        Py_FatalError("replaydbg: sys.monitoring refuses");
    own_work_end();
}

/* ---- what the program must not see, or must not take from us ---- */
static PyMethodDef shown[3];
static PyCFunction original[3];
enum { USE_TOOL_ID, REGISTER_CALLBACK, ALL_EVENTS };

static void
asked_for(PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs > 0 && PyLong_Check(args[0]))
        move_from((int)PyLong_AsLong(args[0]));
    PyErr_Clear();
}

#if PY_VERSION_HEX >= 0x030D0000
/* The program will have a callback for LINE. */
static void
mute_from_now(void)
{
    uint8_t *tools = &core.tstate->interp->monitors.tools[PY_MONITORING_EVENT_LINE];
    bool hears_starts = slot >= 0 && tool_events(slot) & 1u << PY_MONITORING_EVENT_PY_START;
    mute.asked = true;
    if (!hears_starts || *tools >> slot & 1)
        return;
    own_work_begin();
    *tools |= (uint8_t)(1u << slot);
    if (look_again() < 0)
        Py_FatalError("replaydbg: sys.monitoring refuses");
    own_work_end();
}
#endif

static PyObject *
use_tool_id(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    asked_for(args, nargs);
    return ((_PyCFunctionFast)(void (*)(void))original[USE_TOOL_ID])(module, args, nargs);
}

static PyObject *
register_callback(PyObject *module, PyObject *const *args, Py_ssize_t nargs)
{
    asked_for(args, nargs);
#if PY_VERSION_HEX >= 0x030D0000
    unmute();
    if (nargs == 3 && PyLong_Check(args[1]) && PyLong_AsLong(args[1]) == 1 << PY_MONITORING_EVENT_LINE &&
        args[2] != Py_None)
        mute_from_now();
    PyErr_Clear();
#endif
    return ((_PyCFunctionFast)(void (*)(void))original[REGISTER_CALLBACK])(module, args, nargs);
}

static PyObject *
all_events(PyObject *module, PyObject *unused)
{
    PyObject *events = original[ALL_EVENTS](module, unused), *items = events && slot >= 0 ? PyDict_Items(events) : NULL;
    for (Py_ssize_t i = 0; items && i < PyList_GET_SIZE(items); i++) {
        PyObject *name = PyTuple_GET_ITEM(PyList_GET_ITEM(items, i), 0);
        long tools = PyLong_AsLong(PyTuple_GET_ITEM(PyList_GET_ITEM(items, i), 1)) & ~(1L << slot);
        PyObject *value = tools ? PyLong_FromLong(tools) : NULL;
        if (tools ? value == NULL || PyDict_SetItem(events, name, value) < 0 : PyDict_DelItem(events, name) < 0)
            PyErr_Clear();
        Py_XDECREF(value);
    }
    Py_XDECREF(items);
    return events;
}

static int
show_otherwise(PyObject *monitoring, int which, const char *name, PyCFunction function)
{
    PyObject *f = PyObject_GetAttrString(monitoring, name);
    if (f == NULL || !PyCFunction_Check(f)) {
        Py_XDECREF(f);
        return -1;
    }
    PyCFunctionObject *object = (PyCFunctionObject *)f;
    shown[which] = *object->m_ml;
    original[which] = object->m_ml->ml_meth;
    shown[which].ml_meth = function;
    object->m_ml = &shown[which];
    Py_DECREF(f);
    return 0;
}

/* 3.13 forgets who listens to single instructions of a code object if a second tool comes to any of its events later:
 * the list of tools that it makes then is empty. With ours there, sys.settrace is that second tool, and frames whose
 * f_trace_opcodes was set before (pdb does that) would never hear of an instruction. So the list is made before. */
static void
keep_opcode_tracing(void)
{
#if PY_VERSION_HEX >= 0x030D0000
    for (int e = 0; e < EVENT_COUNT; e++)
        if (core.tstate->interp->monitors.tools[e] & ~(1u << slot) & ((1u << TOOLS) - 1))
            return; /* the program has another tool: it is as forgetful without us */
    for (_PyInterpreterFrame *frame = compat_top_frame(core.tstate); frame; frame = compat_previous_frame(frame)) {
        PyCodeObject *code = compat_frame_code(frame);
        _PyCoMonitoringData *data = code->_co_monitoring;
        unsigned tools = data ? data->active_monitors.tools[PY_MONITORING_EVENT_INSTRUCTION] : 0;
        if (tools && data->per_instruction_tools == NULL) {
            data->per_instruction_tools = PyMem_Malloc((size_t)Py_SIZE(code));
            if (data->per_instruction_tools)
                memset(data->per_instruction_tools, (int)tools, (size_t)Py_SIZE(code));
        }
    }
#endif
}

static int
heard_of_change(const char *event, PyObject *args, void *unused)
{
    if (event[0] != 's' || event[1] != 'y' || slot < 0)
        return 0;
    if (slot == PROFILE_SLOT && strcmp(event, "sys.setprofile") == 0)
        move_from(PROFILE_SLOT);
    else if (strcmp(event, "sys.settrace") == 0)
        keep_opcode_tracing();
    return 0;
}

int
listen_prepare(void)
{
    PyObject *monitoring = PySys_GetObject("monitoring");
    if (set_events)
        return 0;
    modules = Py_NewRef(PyImport_GetModuleDict());
    if (monitoring == NULL)
        return -1;
    set_events = PyObject_GetAttrString(monitoring, "set_events");
    set_local_events = PyObject_GetAttrString(monitoring, "set_local_events");
    if (!set_events || !set_local_events || PySys_AddAuditHook(heard_of_change, NULL) < 0)
        return -1;
    if (show_otherwise(monitoring, USE_TOOL_ID, "use_tool_id", (PyCFunction)(void (*)(void))use_tool_id) < 0 ||
        show_otherwise(monitoring, REGISTER_CALLBACK, "register_callback",
                       (PyCFunction)(void (*)(void))register_callback) < 0)
        return -1;
    return show_otherwise(monitoring, ALL_EVENTS, "_all_events", all_events);
}

typedef struct {
    PyObject **at;
    size_t used, size;
} Functions;

static int
collect_function(PyObject *object, void *to)
{
    Functions *f = to;
    if (!PyFunction_Check(object))
        return 1;
    if (f->used == f->size) {
        f->size = f->size ? f->size * 2 : 4096;
        f->at = realloc(f->at, f->size * sizeof *f->at);
        if (f->at == NULL)
            Py_FatalError("replaydbg: out of memory for the step clock");
    }
    f->at[f->used++] = object;
    return 1;
}

static int
tell_code(int tool, PyCodeObject *code)
{
    unsigned local = 0;
    for (int e = 0; code->_co_monitoring && e < _PY_MONITORING_LOCAL_EVENTS; e++)
        local |= (unsigned)(code->_co_monitoring->local_monitors.tools[e] >> tool & 1) << e;
    unsigned turns[2] = {local ^ 1u << PY_MONITORING_EVENT_STOP_ITERATION, local};
    for (int t = 0; t < 2; t++) {
        PyObject *done = PyObject_CallFunction(set_local_events, "iOI", tool, code, turns[t]);
        if (done == NULL)
            return -1;
        Py_DECREF(done);
    }
    return 0;
}

/* The interpreter puts what changed into the code of frames that run, and of functions when they are called. The frames
 * of parked greenlets are neither, and go on in the middle of a call: their code is registered one by one. Each frame has a
 * function object, which the collector knows. */
static int
tell_parked(void)
{
    PyInterpreterState *interp = core.tstate->interp;
    int tool = TOOLS - 1, rc = 0;
    while (tool > 0 && interp->monitoring_tool_names[tool])
        tool--;
    PyObject *name = interp->monitoring_tool_names[tool];
    if (name == NULL)
        interp->monitoring_tool_names[tool] = Py_None;
    Functions functions = {0};
    PyUnstable_GC_VisitObjects(collect_function, &functions);
    for (size_t i = 0; rc == 0 && i < functions.used; i++)
        rc = tell_code(tool, (PyCodeObject *)PyFunction_GET_CODE(functions.at[i]));
    free(functions.at);
    interp->monitoring_tool_names[tool] = name;
    return rc;
}

/* The code is registered twice: the first time it gets the room in which the tools of each event are kept. */
int
listen_to_instructions(_PyInterpreterFrame *frame)
{
    PyInterpreterState *interp = core.tstate->interp;
    PyCodeObject *code = compat_frame_code(frame);
    int tool = TOOLS - 1;
    while (tool > 0 && interp->monitoring_tool_names[tool])
        tool--;
    PyObject *type, *value, *traceback, *name = interp->monitoring_tool_names[tool];
    PyErr_Fetch(&type, &value, &traceback);
    own_work_begin();
    if (name == NULL)
        interp->monitoring_tool_names[tool] = Py_None;
    int rc = tell_code(tool, code);
    if (rc == 0) {
#if PY_VERSION_HEX >= 0x030E0000
        /* The interpreter drops what a tool of another version asked for, and has set the version of `tool` alone. */
        code->_co_monitoring->tool_versions[slot] = interp->monitoring_tool_versions[slot];
#endif
        code->_co_monitoring->local_monitors.tools[PY_MONITORING_EVENT_INSTRUCTION] |= (uint8_t)(1u << slot);
        rc = tell_code(tool, code);
    }
    interp->monitoring_tool_names[tool] = name;
    own_work_end();
    PyErr_Restore(type, value, traceback);
    return rc;
}

int
listen_to(unsigned what)
{
    PyObject *type, *value, *traceback; /* of an event that raised */
    PyErr_Fetch(&type, &value, &traceback);
    own_work_begin();
    int rc = listen_prepare(), number = slot;
    if (rc == 0 && what != listening) {
        leave_slot();
        listening = what;
        number = number >= 0 ? number : free_slot(-1);
        if (number < 0)
            diverge("tools", NULL, NULL, "the program uses every tool id of sys.monitoring, and a profile function");
        if (what)
            take_slot(number);
        rc = look_again();
        if (rc == 0 && what && current_frame() && PyDict_GetItemString(modules, "greenlet._greenlet"))
            rc = tell_parked();
    }
    own_work_end();
    PyErr_Restore(type, value, traceback);
    return rc;
}

int
listen_module_loaded(PyObject *module, const char *name)
{
    return 0; /* whoever calls PyEval_SetTrace has a place of its own */
}

/* The interpreter's tools are the same for all threads. */
void
listen_switch(void **leaves, void **comes)
{
}

void
listen_started(PyThreadState *ts)
{
}

#else /* ---- 3.11 ---- */

static Py_tracefunc program_function; /* the program's own, or NULL; its object is where the interpreter keeps it */
static PyMethodDef settrace_def;
static PyCFunction settrace;
static void (*really_set)(Py_tracefunc, PyObject *);

static int trace(PyObject *object, PyFrameObject *f, int what, PyObject *arg);

/* Whoever set a trace function has it called by ours from now on. */
static void
adopt(PyThreadState *ts)
{
    if (ts->c_tracefunc == trace)
        return;
    program_function = ts->c_tracefunc;
    ts->c_tracefunc = listening ? trace : program_function;
    _PyThreadState_UpdateTracingState(ts);
}

/* Whether a call is an activation's first: a generator that goes on is called at a RESUME with another argument, one
 * that an exception is thrown into where it waits, or at its RETURN_GENERATOR if it has not begun. */
static inline bool
is_first_call(const _PyInterpreterFrame *frame)
{
    int opcode = _Py_OPCODE(*frame->prev_instr);
    return opcode == RETURN_GENERATOR ||
           ((opcode == RESUME || opcode == RESUME_QUICK) && _Py_OPARG(*frame->prev_instr) == 0);
}

/* Tracing makes a frame object for each frame, which the collector counts while the frame runs, and a program that is
 * not traced does not make. (One that asks for its frame, or raises an exception, makes it as well: then a collection
 * may come one allocation late until that frame ends. A collection that begins in the making of a frame object comes
 * one allocation early.) */
static inline void
hide_frame_object(_PyInterpreterFrame *frame, int what, PyObject *arg)
{
    int *count = &core.tstate->interp->gc.generations[0].count;
    if (what == PyTrace_CALL)
        *count -= is_first_call(frame);
    else if (what == PyTrace_RETURN)
        *count += arg == NULL || _Py_OPCODE(*frame->prev_instr) != YIELD_VALUE; /* NULL: an exception ends it */
}

/* An exception, or where one goes on. arg: type, value, traceback of an event that is an exception */
static void
hear_of_exception(_PyInterpreterFrame *frame, int what, PyObject *arg)
{
    if (what == PyTrace_EXCEPTION && PyTraceBack_Check(PyTuple_GET_ITEM(arg, 2)))
        tell_raised(frame, PyTuple_GET_ITEM(arg, 0), PyTuple_GET_ITEM(arg, 1),
                    (PyTracebackObject *)PyTuple_GET_ITEM(arg, 2));
    else if (what == PyTrace_RETURN && arg == NULL)
        activation_pass(compat_previous_frame(frame));
    else if (what == PyTrace_CALL && !is_first_call(frame))
        activation_pass(frame); /* perhaps one is thrown into it; otherwise its next line comes before any */
}

/* If the program no longer traces, and the core does not need it, remove our trace function. */
static void
stop_when_untraced(PyThreadState *ts)
{
    if (listening || program_function || ts->c_profilefunc || ts->c_tracefunc != trace)
        return;
    ts->c_tracefunc = NULL;
    _PyThreadState_UpdateTracingState(ts);
}

static int
trace(PyObject *object, PyFrameObject *f, int what, PyObject *arg)
{
    _PyInterpreterFrame *frame = f->f_frame;
    hide_frame_object(frame, what, arg);
    checks_announced(what == PyTrace_CALL ? frame : NULL);
    if (signals_wait)
        clock_hooks.signals_go_on();
    if (what == PyTrace_LINE) {
        /* First the tick: where it is preempted, lines of other lanes run before this one, and count before it. */
        if (listening & LISTEN_TICKS)
            ticks_tick(frame);
        if (listening & LISTEN_LINES)
            stepclock_line(frame);
    }
    else if (what == PyTrace_CALL) {
        if (is_first_call(frame)) {
            if (listening & LISTEN_LINES)
                stepclock_start(frame);
            if (trace_is_on && !checks_are_heard)
                trace_inside(frame);
        }
        else if (listening & LISTEN_RETURNS)
            clock_hooks.function_resumes(frame);
        if (listening & LISTEN_TICKS)
            ticks_tick(frame);
    }
    else if (what == PyTrace_RETURN && listening & LISTEN_RETURNS) {
        clock_hooks.function_ends(frame, _Py_OPCODE(*frame->prev_instr) == YIELD_VALUE ? NULL : arg);
    }
    else if (what == PyTrace_OPCODE && listening & LISTEN_RETURNS)
        clock_hooks.instruction(frame);
    if (listening & LISTEN_RAISES)
        hear_of_exception(frame, what, arg);
    if (program_function == NULL) {
        stop_when_untraced(core.tstate);
        return 0;
    }
    int rc = program_function(object, f, what, arg);
    adopt(core.tstate); /* it may have set another one, or have failed: then the interpreter took it away */
    checks_announced(what == PyTrace_CALL && rc == 0 ? frame : NULL); /* it may have run other functions */
    return rc;
}

static PyObject *
set_and_adopt(PyObject *module, PyObject *function)
{
    PyThreadState *ts = PyThreadState_Get();
    PyObject *result = settrace(module, function);
    if (ts == core.tstate)
        adopt(ts);
    return result;
}

/* PyEval_SetTrace(), which C libraries call */
static void
set_from_c(Py_tracefunc function, PyObject *object)
{
    PyThreadState *ts = PyThreadState_Get();
    really_set(function, object);
    if (ts == core.tstate)
        adopt(ts);
}

int
listen_module_loaded(PyObject *module, const char *name)
{
    static const Relink functions[] = {{"PyEval_SetTrace", (void *)set_from_c}, {NULL, NULL}};
    static Relinking tracing = {.functions = functions};
    if (settrace)
        relink(&tracing);
    return 0;
}

int
listen_prepare(void)
{
    if (settrace)
        return 0;
    really_set = (void (*)(Py_tracefunc, PyObject *))dlsym(RTLD_DEFAULT, "PyEval_SetTrace");
    PyObject *f = PySys_GetObject("settrace");
    if (f == NULL || !PyCFunction_Check(f))
        return -1;
    settrace_def = *((PyCFunctionObject *)f)->m_ml;
    settrace = settrace_def.ml_meth;
    settrace_def.ml_meth = set_and_adopt;
    ((PyCFunctionObject *)f)->m_ml = &settrace_def;
    listen_module_loaded(NULL, NULL);
    return 0;
}

/* Each thread has a trace function of its own. */
void
listen_switch(void **leaves, void **comes)
{
    *leaves = (void *)program_function;
    program_function = (Py_tracefunc)*comes;
}

/* Checks must know when the trace function of the program is called for the beginning of a function. */
void
listen_when_traced(PyThreadState *ts)
{
    if (ts->c_tracefunc == trace || listen_prepare() < 0)
        return;
    program_function = ts->c_tracefunc;
    ts->c_tracefunc = trace;
    _PyThreadState_UpdateTracingState(ts);
}

void
listen_started(PyThreadState *ts)
{
    if (ts && listening) {
        ts->c_tracefunc = trace;
        _PyThreadState_UpdateTracingState(ts);
    }
}

/* The program's own trace function would hear of them as well: then nothing is followed. */
int
listen_to_instructions(_PyInterpreterFrame *frame)
{
    if (frame->frame_obj == NULL || program_function)
        return 0;
    frame->frame_obj->f_trace_opcodes = 1;
    return 0;
}

int
listen_to(unsigned what)
{
    PyThreadState *ts = core.tstate;
    if (listen_prepare() < 0)
        return -1;
    if (what && !listening) { /* the frames that run have theirs now, uncounted */
        own_work_begin();
        for (PyFrameObject *f = PyThreadState_GetFrame(ts), *back; f; f = back) {
            back = PyFrame_GetBack(f);
            Py_DECREF(f);
        }
        own_work_end();
    }
    listening = what;
    if (what)
        adopt(ts);
    else if (ts->c_tracefunc == trace) {
        ts->c_tracefunc = program_function;
        _PyThreadState_UpdateTracingState(ts);
    }
    return 0;
}
#endif

unsigned
listening_to(void)
{
    return listening;
}
