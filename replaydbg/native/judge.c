/* A question of the user's that is asked at each line of a stretch: is it bad here? Python of theirs is run for it, in the program's own
 * process, which is a throw-away one. It is run as the tool's own work is, where it asks the outside it is refused, and its lines are not
 * counted; but it may change what it looks at. So whoever finds something by it asks again in a process that has not been asked before. */
#include "engine.h"
#include "lanes.h"

static PyObject *judging;

static void
begin_to_ask(void)
{
    own_work_begin();
    engine.diverting = true;
    core.ground = core.depth;
}

static void
end_asking(void)
{
    core.ground = 0;
    engine.diverting = false;
    own_work_end();
}

bool
judge_begin(const uint8_t *p, const uint8_t *end)
{
    begin_to_ask();
    PyObject *type, *value, *traceback, *globals = PyDict_New();
    PyErr_Fetch(&type, &value, &traceback);
    if (globals && engine_inside(globals, p, end))
        judging = Py_XNewRef(PyDict_GetItemString(globals, "judge_line"));
    PyErr_Clear();
    PyErr_Restore(type, value, traceback);
    end_asking();
    return judging != NULL;
}

uint64_t
judge(uint64_t before)
{
    enum { GOOD, BAD, UNDECIDED };
    PyObject *type, *value, *traceback;
    PyThreadState *ts = core.tstate;
    bool is_heard = ts->tracing == 0; /* not within a callback, where the interpreter is deaf */
    PyErr_Fetch(&type, &value, &traceback);
    begin_to_ask();
    if (is_heard)
        PyThreadState_EnterTracing(ts);
    PyObject *said = PyObject_CallNoArgs(judging);
    long verdict = said ? PyLong_AsLong(said) : UNDECIDED;
    Py_XDECREF(said);
    if (is_heard)
        PyThreadState_LeaveTracing(ts);
    PyErr_Clear();
    end_asking();
    PyErr_Restore(type, value, traceback);
    return verdict == BAD || verdict == GOOD ? (uint64_t)verdict + 1 : before ? before : GOOD + 1;
}

/* ---- calls in other lanes ---- */

static bool
is_called(_PyInterpreterFrame *frame, PyObject *name)
{
    PyCodeObject *code = compat_frame_code(frame);
    return PyUnicode_Compare(code->co_qualname, name) == 0 || PyUnicode_Compare(code->co_name, name) == 0;
}

static PyThreadState *
calls(Lane *lane, PyObject *name)
{
    if (lane == NULL || lane->ended || lane == lanes.running || lane->tstate == NULL)
        return NULL;
    for (_PyInterpreterFrame *frame = compat_top_frame(lane->tstate); frame; frame = compat_previous_frame(frame))
        if (is_called(frame, name))
            return lane->tstate;
    return NULL;
}

/* A new reference to the frame of the innermost call of a function in the one lane besides this one in which it runs; None: it runs in none,
 * False: in several. Until there is one, nothing is made that the program might find in its place: sys._current_frames() makes a dictionary. */
PyObject *
judge_call_elsewhere(PyObject *self, PyObject *name)
{
    PyThreadState *found = NULL;
    for (int i = 0; lanes.is_on && PyUnicode_Check(name) && i < lanes.made; i++) {
        PyThreadState *ts = calls(lanes.at[i], name);
        if (ts && found)
            Py_RETURN_FALSE;
        found = ts ? ts : found;
    }
    PyFrameObject *frame = found ? PyThreadState_GetFrame(found) : NULL, *back;
    while (frame && !is_called(frame->f_frame, name)) {
        back = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = back;
    }
    return frame ? (PyObject *)frame : Py_NewRef(Py_None);
}
