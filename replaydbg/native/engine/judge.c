/* A question of the user's that is asked at each line of a stretch: is it bad here? Python of theirs is run for it, in
 * the program's own process, which is a throw-away one. It is run as the tool's own work is, where it asks the outside
 * it is refused, and its lines are not counted; but it may change what it looks at. So whoever finds something by it
 * asks again in a process that has not been asked before. */
#include "base/core.h"
#include "clock/clock.h"
#include "collector/collector.h"
#include "engine/inside.h"
#include "lanes/lanes.h"
#include <stdlib.h>

static PyObject *judging;

/* ---- Python of the user's in the program's process ---- */

Asking
asking_begin(void)
{
    PyThreadState *ts = core.tstate;
    Asking asking = {.is_heard = ts->tracing == 0}; /* not within a callback, where the interpreter is deaf */
    own_work_begin();
    set_diverting(true);
    core.ground = core.depth;
    asking.room = compat_room_make(ts);
    if (asking.is_heard)
        PyThreadState_EnterTracing(ts);
    return asking;
}

void
asking_end(Asking asking)
{
    if (asking.is_heard)
        PyThreadState_LeaveTracing(core.tstate);
    compat_room_end(core.tstate, asking.room);
    core.ground = 0;
    set_diverting(false);
    own_work_end();
}

/* `by` is a function of an earlier order, or NULL. */
void
asking_forget(PyObject **by)
{
    if (*by == NULL)
        return;
    Asking asking = asking_begin();
    Py_CLEAR(*by);
    asking_end(asking);
}

bool
asking_prepare(PyObject **by, const uint8_t *p, const uint8_t *end)
{
    Asking asking = asking_begin();
    PyObject *type, *value, *traceback, *globals = PyDict_New();
    PyErr_Fetch(&type, &value, &traceback);
    Py_CLEAR(*by);
    engine_probe(globals, p, end);
    PyErr_Clear();
    PyErr_Restore(type, value, traceback);
    asking_end(asking);
    return *by != NULL;
}

/* ---- the question ---- */

/* judge_lines_by(function): what the probe answers by. */
PyObject *
judge_lines_by(PyObject *self, PyObject *function)
{
    Py_XSETREF(judging, Py_NewRef(function));
    Py_RETURN_NONE;
}

bool
judge_begin(const uint8_t *p, const uint8_t *end)
{
    return asking_prepare(&judging, p, end);
}

uint64_t
judge(uint64_t before)
{
    enum { GOOD, BAD, UNDECIDED };
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    Asking asking = asking_begin();
    PyObject *said = PyObject_CallNoArgs(judging);
    long verdict = said ? PyLong_AsLong(said) : UNDECIDED;
    Py_XDECREF(said);
    PyErr_Clear();
    asking_end(asking);
    PyErr_Restore(type, value, traceback);
    return verdict == BAD || verdict == GOOD ? (uint64_t)verdict + 1 : before ? before : GOOD + 1;
}

/* ---- the call whose variables are meant ---- */

typedef struct {
    PyObject *function;
    uint64_t started; /* 0: whichever call it is */
} Call;

static bool
is_called(_PyInterpreterFrame *frame, PyObject *function)
{
    PyCodeObject *code = compat_frame_code(frame);
    return PyUnicode_Compare(code->co_qualname, function) == 0 || PyUnicode_Compare(code->co_name, function) == 0;
}

static bool
is_meant(_PyInterpreterFrame *frame, Call call)
{
    if (!is_called(frame, call.function))
        return false;
    const Activation *a = call.started ? activation_find(frame) : NULL;
    return call.started == 0 || (a && a->started == call.started);
}

static _PyInterpreterFrame *
call_on_stack(_PyInterpreterFrame *frame, Call call)
{
    while (frame && !is_meant(frame, call))
        frame = compat_previous_frame(frame);
    return frame;
}

_PyInterpreterFrame *
programs_frame(PyThreadState *ts)
{
    _PyInterpreterFrame *frame = compat_top_frame(ts);
    while (frame && PyUnicode_CompareWithASCIIString(compat_frame_code(frame)->co_filename, "<probe>") == 0)
        frame = compat_previous_frame(frame);
    return frame;
}

/* Until there is one, nothing is made that the program might find in its place: sys._current_frames() makes a
 * dictionary. */
static PyObject *
frame_on_stack(PyThreadState *ts, const _PyInterpreterFrame *wanted)
{
    PyFrameObject *frame = PyThreadState_GetFrame(ts), *back;
    while (frame && frame->f_frame != wanted) {
        back = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = back;
    }
    return (PyObject *)frame;
}

/* ---- generators and coroutines that wait: they are on no stack ---- */

/* All of the functions of one name, also those that run and some that have ended. It is made once and added to: a look
 * at all activations before each line would take too long. */
static struct {
    PyObject *function;
    _PyInterpreterFrame **at;
    size_t size, used;
} generators;

static bool
may_wait(const Activation *a)
{
    return a && a->code && a->is_generator && is_called(a->frame, generators.function);
}

static void
add_generator(_PyInterpreterFrame *frame)
{
    size_t place = generators.used;
    for (size_t i = 0; i < generators.used; i++) {
        if (generators.at[i] == frame)
            return;
        if (!may_wait(activation_at(generators.at[i])))
            place = i;
    }
    if (place == generators.size) {
        generators.size = generators.size * 2 + 16;
        generators.at = realloc(generators.at, generators.size * sizeof *generators.at);
        if (generators.at == NULL)
            Py_FatalError("replaydbg: out of memory for a question");
    }
    generators.at[place] = frame;
    generators.used += place == generators.used;
}

void
judge_start(_PyInterpreterFrame *frame)
{
    if (generators.function && may_wait(activation_at(frame)))
        add_generator(frame);
}

static void
list_generators(PyObject *function)
{
    if (generators.function && PyUnicode_Compare(generators.function, function) == 0)
        return;
    Py_XSETREF(generators.function, Py_NewRef(function));
    generators.used = 0;
    for (const Activation *a = activation_next(NULL); a; a = activation_next(a))
        if (may_wait(a))
            add_generator(a->frame);
}

static bool
waits(const _PyInterpreterFrame *frame, Call call)
{
    const Activation *a = activation_at(frame);
    return may_wait(a) && is_meant(a->frame, call) &&
           compat_frame_generator(a->frame)->gi_frame_state < FRAME_EXECUTING;
}

static PyObject *
frame_of_generator(_PyInterpreterFrame *frame)
{
    PyObject *generator = (PyObject *)compat_frame_generator(frame);
    return PyObject_GetAttrString(generator, PyCoro_CheckExact(generator)       ? "cr_frame"
                                             : PyAsyncGen_CheckExact(generator) ? "ag_frame"
                                                                                : "gi_frame");
}

/* call_of(function, started): the frame of its innermost call in this lane, else of the one call in another lane or
 * that waits; None: there is none, False: there are several. */
PyObject *
judge_call_of(PyObject *self, PyObject *args)
{
    Call call;
    unsigned long long started;
    if (!PyArg_ParseTuple(args, "UK", &call.function, &started))
        return NULL;
    call.started = started;
    PyThreadState *here = PyThreadState_Get(), *runs_in = NULL;
    _PyInterpreterFrame *found = call_on_stack(programs_frame(here), call), *other;
    if (found)
        return frame_on_stack(here, found);
    for (int i = 0; lanes.is_on && i < lanes.made; i++) {
        Lane *lane = lanes.at[i];
        if (lane == NULL || lane->ended || lane == lanes.running || lane->tstate == NULL)
            continue;
        if ((other = call_on_stack(compat_top_frame(lane->tstate), call)) == NULL)
            continue;
        if (found)
            Py_RETURN_FALSE;
        found = other;
        runs_in = lane->tstate;
    }
    list_generators(call.function);
    for (size_t i = 0; i < generators.used; i++) {
        if (!waits(generators.at[i], call))
            continue;
        if (found)
            Py_RETURN_FALSE;
        found = generators.at[i];
    }
    PyObject *frame = runs_in ? frame_on_stack(runs_in, found) : found ? frame_of_generator(found) : Py_NewRef(Py_None);
    return frame ? frame : Py_NewRef(Py_None);
}

/* stands_at(file, line, function): whether a line of the program's is about to run there; the function's first one if
 * `line` is 0. No frame object is made for it: the program might find it, and most lines are elsewhere. */
PyObject *
judge_stands_at(PyObject *self, PyObject *args)
{
    PyObject *file, *function;
    int line;
    if (!PyArg_ParseTuple(args, "UiU", &file, &line, &function))
        return NULL;
    _PyInterpreterFrame *frame = programs_frame(PyThreadState_Get());
    PyCodeObject *code = frame ? compat_frame_code(frame) : NULL;
    if (code == NULL || (PyUnicode_GET_LENGTH(file) && PyUnicode_Compare(code->co_filename, file) != 0))
        Py_RETURN_FALSE;
    if (line > 0)
        return PyBool_FromLong(PyCode_Addr2Line(code, compat_frame_lasti(frame)) == line);
    const Activation *a = is_called(frame, function) ? activation_find(frame) : NULL;
    return PyBool_FromLong(a && a->started == stepclock.count);
}
