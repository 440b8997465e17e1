/* Signal handlers. The interpreter is given a stub for each; the program's own handler stays in a table of ours. While recording,
 * the stub notes where it was called: inside a crossing (a sleep that was interrupted), or between two, at a place that is
 * described by a fingerprint of the stack. In replay no signal comes from outside: handlers run where the log says. A place
 * between crossings is found again at the same checks that the interpreter makes for signals anyway: one of ours is kept
 * pending, and its stub compares the fingerprint. */
#include "core.h"
#include <signal.h>

#define MOST_SIGNALS 65

static PyObject *handlers[MOST_SIGNALS]; /* what the program set; NULL: not known to it */
static Gate *signal_gate;
static struct {
    bool pending;
    int signum, lasti;
    uint64_t fingerprint, ticks;
} expected;

/* One of ours, which the interpreter keeps: not part of the program's collections. */
static PyObject *
own_function(PyMethodDef *def)
{
    PyObject *function = PyCFunction_NewEx(def, NULL, NULL);
    if (function)
        PyObject_GC_UnTrack(function);
    return function;
}

static int
watch_signal(void)
{
    return SIGRTMAX - 1;
}

static PyObject *
run_handler(int signum, PyObject *frame)
{
    PyObject *handler = signum > 0 && signum < MOST_SIGNALS ? handlers[signum] : NULL;
    if (handler == NULL || !PyCallable_Check(handler))
        Py_RETURN_NONE;
    Py_INCREF(handler);
    PyObject *result = PyObject_CallFunction(handler, "iO", signum, frame ? frame : Py_None);
    Py_DECREF(handler);
    return result;
}

/* ---- record ---- */

static PyObject *
stub(PyObject *self, PyObject *args)
{
    int signum;
    PyObject *frame;
    if (!PyArg_ParseTuple(args, "iO", &signum, &frame))
        return NULL;
    log_signal_handled();
    if (core.mode != RECORD)
        return run_handler(signum, frame);
    uint64_t numbers[4] = {(uint64_t)signum, 0, 0, lanes_place()};
    if (core.depth > 0) {
        shared_crossing(false, GATE_HEARS); /* what has changed in the crossing so far */
        cross_control(CONTROL_SIGNAL_INSIDE, numbers, 1);
        int depth = upcall_enter();
        PyObject *result = run_handler(signum, frame);
        upcall_leave(depth);
        return result;
    }
    int lasti;
    numbers[1] = stack_fingerprint(&lasti);
    numbers[2] = (uint64_t)lasti;
    cross_control(CONTROL_SIGNAL_BETWEEN, numbers, 4);
    return run_handler(signum, frame);
}

static PyMethodDef stub_def = {"handler", stub, METH_VARARGS, NULL};

/* ---- replay ---- */

void
signals_inside(int signum)
{
    PyObject *frame = (PyObject *)PyEval_GetFrame();
    /* both made inside the crossing, as the interpreter does it while recording, and alive while the handler runs */
    PyObject *args = Py_BuildValue("(iO)", signum, frame ? frame : Py_None);
    int depth = upcall_enter();
    PyObject *result = run_handler(signum, frame);
    upcall_leave(depth);
    Py_XDECREF(result);
    PyObject *type, *value, *traceback; /* of the handler, perhaps */
    PyErr_Fetch(&type, &value, &traceback);
    Py_XDECREF(args);
    PyErr_Restore(type, value, traceback);
}

void
signals_expect(int signum, uint64_t fingerprint, int lasti, uint64_t ticks)
{
    expected.pending = true;
    expected.signum = signum;
    expected.fingerprint = fingerprint;
    expected.lasti = lasti;
    expected.ticks = ticks;
    if (!lanes_expect_place(ticks))
        signals_look();
}

/* The place is near: from now on each check is looked at. */
void
signals_look(void)
{
    PyErr_SetInterruptEx(watch_signal());
}

/* Called at each of the interpreter's own checks for signals while a handler is due. */
static PyObject *
watch(PyObject *self, PyObject *args)
{
    int lasti, signum;
    PyObject *frame;
    if (!PyArg_ParseTuple(args, "iO", &signum, &frame))
        return NULL;
    if (!expected.pending)
        Py_RETURN_NONE;
    /* There may be no frame, as at the end of the program, when the streams are flushed. */
    _PyInterpreterFrame *top = compat_top_frame(core.tstate);
    int place = top ? frame_place(top) : 0;
    if (core.depth > 0 || lanes_place() != expected.ticks || place != expected.lasti || stack_fingerprint(&lasti) != expected.fingerprint) {
        signals_look();
        Py_RETURN_NONE;
    }
    expected.pending = false;
    signum = expected.signum;
    signal_delivered();
    return run_handler(signum, frame);
}

static PyMethodDef watch_def = {"handler", watch, METH_VARARGS, NULL};

/* ---- what the program calls ---- */

static PyObject *
set_really(PyObject *signum, PyObject *handler)
{
    PyObject *args[] = {signum, handler};
    own_work_begin();
    PyObject *result = gate_call_original(signal_gate, NULL, args, 2, NULL);
    own_work_end();
    return result;
}

static PyObject *
exchange_handler(long signum, PyObject *handler)
{
    PyObject *old = handlers[signum];
    handlers[signum] = Py_NewRef(handler);
    return old ? old : Py_NewRef(Py_None);
}

/* In a child, or when the recording has ended: the stubs are still in place, and the program must go on not to see them. */
static PyObject *
signal_unrecorded(PyObject *number, long signum, PyObject *handler, bool callable)
{
    bool known = signum > 0 && signum < MOST_SIGNALS;
    PyObject *installed = known && callable ? own_function(&stub_def) : Py_NewRef(handler);
    PyObject *done = installed ? set_really(number, installed) : NULL;
    Py_XDECREF(installed);
    if (done && known)
        Py_SETREF(done, exchange_handler(signum, handler));
    return done;
}

static PyObject *
signal_signal(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    if (nargs != 2 || kwnames || !PyLong_Check(args[0]))
        return gate_call_original(g, self, args, nargs, kwnames);
    long signum = PyLong_AsLong(args[0]);
    PyErr_Clear();
    bool callable = PyCallable_Check(args[1]);
    if (core.mode == OBSERVE)
        return signal_unrecorded(args[0], signum, args[1], callable);
    if (gate_passes())
        return gate_call_original(g, self, args, nargs, kwnames);
    Crossing c;
    PyObject *shown[] = {args[0], callable ? Py_None : args[1]}; /* which function it is, is the program's matter */
    cross_begin(&c, g, self, shown, 2, NULL);
    PyObject *done = NULL;
    if (c.perform) {
        PyObject *installed = callable ? own_function(&stub_def) : Py_NewRef(args[1]);
        done = installed ? set_really(args[0], installed) : NULL;
        Py_XDECREF(installed);
        if (done)
            Py_SETREF(done, Py_NewRef(Py_None));
    }
    done = cross_end(&c, done);
    if (done == NULL || signum < 1 || signum >= MOST_SIGNALS)
        return done;
    Py_DECREF(done);
    return exchange_handler(signum, args[1]);
}

static PyObject *
signal_getsignal(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    long signum = nargs == 1 && PyLong_Check(args[0]) ? PyLong_AsLong(args[0]) : -1;
    PyErr_Clear();
    if (signum < 1 || signum >= MOST_SIGNALS)
        return gate_call_original(g, self, args, nargs, kwnames);
    return Py_NewRef(handlers[signum] ? handlers[signum] : Py_None);
}

const HandlerEntry signal_handlers[] = {
    {"signal_signal", signal_signal}, {"signal_getsignal", signal_getsignal}, {NULL, NULL}};

/* Learns what is installed already, and puts the stub in place of the interpreter's own handler of Ctrl-C. */
int
signals_prepare(void)
{
    Gate *get = gate_named("_signal", "getsignal");
    signal_gate = gate_named("_signal", "signal");
    if (get == NULL || signal_gate == NULL || get->original == NULL || signal_gate->original == NULL)
        return 0;
    for (int i = 1; i < MOST_SIGNALS; i++) {
        PyObject *number = PyLong_FromLong(i);
        handlers[i] = gate_call_original(get, NULL, &number, 1, NULL);
        if (handlers[i] == NULL)
            PyErr_Clear();
        Py_DECREF(number);
    }
    PyObject *sigint = PyLong_FromLong(SIGINT), *replacement, *done = NULL;
    if (core.mode == REPLAY) {
        PyObject *number = PyLong_FromLong(watch_signal());
        replacement = own_function(&watch_def);
        done = set_really(number, replacement);
        Py_XDECREF(done);
        Py_XDECREF(replacement);
        Py_DECREF(number);
        replacement = PyLong_FromLong(0); /* SIG_DFL: Ctrl-C ends the replay */
    }
    else
        replacement = own_function(&stub_def);
    if (handlers[SIGINT] && PyCallable_Check(handlers[SIGINT]) && replacement) {
        done = set_really(sigint, replacement);
        Py_XDECREF(done);
    }
    Py_XDECREF(replacement);
    Py_DECREF(sigint);
    if (PyErr_Occurred())
        return -1;
    return 0;
}
