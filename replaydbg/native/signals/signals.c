/* Signal handlers. The interpreter is given a stub for each; the program's own handler stays in a table of ours. While
 * recording, the stub notes where it was called: inside a crossing (a sleep that was interrupted), or between two, at a
 * place that is described by fingerprints (places.c). In replay no signal comes from outside: handlers run where the
 * log says. A place between crossings is found again at the same checks that the interpreter makes for signals anyway:
 * one of ours is kept pending, and its stub compares the fingerprints. */
#include "base/core.h"
#include "clock/clock.h"
#include "collector/collector.h"
#include "crossing/crossing.h"
#include "lanes/lanes.h"
#include "log/log.h"
#include "signals/inside.h"
#include <signal.h>

static PyObject *handlers[MOST_SIGNALS]; /* what the program set; NULL: not known to it */
static Gate *signal_gate;
static struct {
    bool pending;
    int signum;
    Place place;
} expected;
/* Whether a handler's place is distinguishable from the program's next passage there: looked at when it comes by again. */
static struct {
    bool active;
    uint64_t event; /* the last one before it */
    Place place;    /* as the handler left it */
    int signum;
    bool after_importing; /* the next check at this instruction is the second one of the same passage */
} again;
#define MOST_FRAMES 1024
static struct {
    const void *at[MOST_FRAMES];
    int count;
} had_frame; /* the frame objects that there were when one began to look */

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

static void
put_contents(Buf *b, const Place *place)
{
    const Contents *each[] = {&place->near, &place->all};
    buf_varint(b, place->computed);
    for (int i = 0; i < 2; i++) {
        buf_varint(b, each[i]->size);
        buf_varint(b, (uint64_t)each[i]->count);
        buf_bytes(b, each[i]->chunks, (size_t)each[i]->count * 8);
    }
}

static void
record_between(int signum, const Place *place)
{
    Buf b = {0};
    buf_varint(&b, CONTROL_SIGNAL_BETWEEN << 2 | 2u);
    buf_varint(&b, (uint64_t)signum);
    buf_bytes(&b, &place->fingerprint, 8);
    buf_varint(&b, (uint64_t)place->lasti);
    buf_varint(&b, place->ticks);
    buf_varint(&b, (uint64_t)(place->has_contents ? PLACE_WITH_CONTENTS : place->levels));
    buf_bytes(&b, place->state, (size_t)place->levels * 8);
    if (place->has_contents)
        put_contents(&b, place);
    log_append(&event_log, &b);
}

/* ---- record ---- */

static bool waiting[MOST_SIGNALS]; /* for the end of what the importer does */

/* Whether the launcher may get the signal as well, and forward it: it looks whether the program has handled one. */
static bool
is_forwarded(int signum)
{
    return signum == SIGTERM || signum == SIGHUP || signum == SIGUSR1 || signum == SIGUSR2 || signum == SIGINT ||
           signum == SIGQUIT;
}

static PyObject *
stub(PyObject *self, PyObject *args)
{
    int signum;
    PyObject *frame;
    if (!PyArg_ParseTuple(args, "iO", &signum, &frame))
        return NULL;
    if (core.mode == RECORD && core.importing && signum > 0 && signum < MOST_SIGNALS) {
        waiting[signum] = true;
        Py_RETURN_NONE;
    }
    if (is_forwarded(signum))
        log_signal_handled();
    if (core.mode != RECORD)
        return run_handler(signum, frame);
    sender_known(signum);
    if (core.depth > 0) {
        shared_crossing(false, GATE_HEARS); /* what has changed in the crossing so far */
        uint64_t number = (uint64_t)signum;
        cross_control(CONTROL_SIGNAL_INSIDE, &number, 1);
        Upcall upcall = upcall_enter();
        PyObject *result = run_handler(signum, frame);
        upcall_leave(upcall);
        return result;
    }
    Place place;
    place_here(&place, log_computed());
    record_between(signum, &place);
    return run_handler(signum, frame);
}

static PyMethodDef stub_def = {"handler", stub, METH_VARARGS, NULL};

/* Once a handler has raised, those after it run at the interpreter's next check, as they do without us. */
static bool
run_waiting(void)
{
    bool is_well = true;
    for (int signum = 1; signum < MOST_SIGNALS; signum++) {
        if (!waiting[signum])
            continue;
        waiting[signum] = false;
        if (!is_well) {
            PyErr_SetInterruptEx(signum);
            continue;
        }
        PyObject *frame = (PyObject *)PyEval_GetFrame();
        PyObject *args = Py_BuildValue("(iO)", signum, frame ? frame : Py_None);
        PyObject *result = args ? stub(NULL, args) : NULL;
        is_well = result != NULL;
        Py_XDECREF(result);
        Py_XDECREF(args);
    }
    return is_well;
}

/* ---- replay ---- */

void
signals_inside(int signum)
{
    PyObject *frame = (PyObject *)PyEval_GetFrame();
    /* both made inside the crossing, as the interpreter does it while recording, and alive while the handler runs */
    PyObject *args = Py_BuildValue("(iO)", signum, frame ? frame : Py_None);
    Upcall upcall = upcall_enter();
    PyObject *result = run_handler(signum, frame);
    upcall_leave(upcall);
    Py_XDECREF(result);
    PyObject *type, *value, *traceback; /* of the handler, perhaps */
    PyErr_Fetch(&type, &value, &traceback);
    Py_XDECREF(args);
    PyErr_Restore(type, value, traceback);
}

/* For each look the interpreter makes a frame object, which the collector counts for as long as the frame runs. One
 * that was not there when the looking began, and that nobody else has, is taken away again: the program would not have
 * made it. */
static void
frames_note(void)
{
    had_frame.count = 0;
    for (_PyInterpreterFrame *f = compat_top_frame(core.tstate); f && had_frame.count < MOST_FRAMES;
         f = compat_previous_frame(f))
        if (f->frame_obj)
            had_frame.at[had_frame.count++] = f->frame_obj;
}

static void
frame_forget(PyObject *frame)
{
    _PyInterpreterFrame *top = compat_top_frame(core.tstate);
    if (top == NULL || (PyObject *)top->frame_obj != frame || Py_REFCNT(frame) != 2 || listening_to())
        return; /* 2: its frame, and the arguments of this call */
    for (int i = had_frame.count - 1; i >= 0; i--)
        if ((PyObject *)had_frame.at[i] == frame)
            return;
    top->frame_obj = NULL;
    Py_DECREF(frame);
}

#define MOST_LOOKS 1000000u /* some seconds */
#define FEW_LOOKS 2000u     /* once a place was not met: those after it have probably gone too */
static uint64_t looks;
static bool place_has_gone;

/* Code that was edited may never come by the place, and may wait for the handler without asking for anything. */
static bool
looked_long_enough(void)
{
    bool passed = expected.place.ticks && lanes_place() > expected.place.ticks;
    if (!core.lenient || core.depth > 0 ||
        (!passed && (!core.edited || ++looks < (place_has_gone ? FEW_LOOKS : MOST_LOOKS))))
        return false;
    place_has_gone = true;
    signals_hooks.handler_is_late(expected.signum);
    return true;
}

void
signals_expect(int signum, const Place *place)
{
    expected.pending = true;
    expected.signum = signum;
    expected.place = *place;
    looks = 0;
    doubt_begin();
    frames_note();
    if (!lanes_expect_place(place->ticks))
        signals_look();
}

/* ---- replay: what the log says of handlers ---- */

static int
read_signal(void)
{
    uint64_t signum = cross_read_number();
    if (signum == 0 || signum >= NSIG)
        diverge("corrupt", NULL, NULL, "the number of a signal is invalid");
    return (int)signum;
}

void
signal_inside(Crossing *open)
{
    signals_inside(read_signal());
    cross_keep_raised();
}

static void
read_contents(Contents *contents)
{
    contents->size = cross_read_number();
    uint64_t count = cross_read_number();
    if (count > MOST_CHUNKS || contents->size == 0)
        diverge("corrupt", NULL, NULL, "a signal cannot be read");
    contents->count = (int)count;
    cross_read_raw(contents->chunks, (size_t)count * sizeof *contents->chunks);
}

void
signal_between(Crossing *open)
{
    Place place = {0};
    int signum = read_signal();
    cross_read_raw(&place.fingerprint, sizeof place.fingerprint);
    place.lasti = (int)cross_read_number();
    place.ticks = cross_read_number();
    uint64_t levels = cross_read_number();
    place.has_contents = levels == PLACE_WITH_CONTENTS;
    if (place.has_contents)
        levels = PLACE_LEVELS;
    if (levels > PLACE_LEVELS)
        diverge("corrupt", NULL, NULL, "a signal cannot be read");
    place.levels = (int)levels;
    cross_read_raw(place.state, (size_t)levels * sizeof *place.state);
    if (place.has_contents) {
        place.computed = cross_read_number();
        read_contents(&place.near);
        read_contents(&place.all);
    }
    cross_expect_signal();
    signals_expect(signum, &place);
}

/* The place is near: from now on each check is looked at. */
void
signals_look(void)
{
    PyErr_SetInterruptEx(watch_signal());
}

bool
signals_are_due(void)
{
    return expected.pending;
}

int
signals_expected_no_more(void)
{
    expected.pending = false;
    return expected.signum;
}

static bool looks_after_importing; /* in a call, at whose end the interpreter makes a check of its own */

/* A handler has run, and the program goes on. If it comes by again and nothing seems to have changed, then the
 * fingerprints do not know what this loop changes, and the handler may have run in another round than when it was
 * recorded. It is seen only while the next handler is due already: to look at places for this alone would make objects
 * that the recording did not. */
static void
look_again(int signum)
{
    again.active = !signals_unsure() && expected.pending;
    again.event = core.crossings;
    again.signum = signum;
    again.after_importing = looks_after_importing;
    if (again.active)
        place_here(&again.place, expected.place.computed);
}

static void
compare_again(void)
{
    if (again.event != core.crossings)
        again.active = false;
    else if (core.depth == 0 && place_is_same_instruction(&again.place)) {
        if (looks_after_importing || again.after_importing) {
            again.after_importing = looks_after_importing;
            return;
        }
        if (place_is_here(&again.place))
            doubt_note(again.signum);
        again.active = false;
    }
}

void
signals_go_on(void)
{
    signals_wait = false;
    if (expected.pending)
        signals_look();
}

/* Called at each of the interpreter's own checks for signals while a handler is due. */
static PyObject *
watch(PyObject *self, PyObject *args)
{
    int signum;
    PyObject *frame, *result;
    if (!PyArg_ParseTuple(args, "iO", &signum, &frame))
        return NULL;
    limit_check();
    if (again.active)
        compare_again();
    uint64_t since = monotonic_ns();
    bool frame_is_wanted = false;
    result = Py_NewRef(Py_None);
    while (result && expected.pending) { /* several may have come at once */
        if (core.depth > 0 || (!place_is_here(&expected.place) && !looked_long_enough())) {
            /* With a signal pending all the time the interpreter would repeat the check for ever. The trace function
             * makes it pending again. */
            signals_wait = checks_are_repeated();
            if (signals_wait)
                break;
            if (expected.place.ticks && lanes_place() > expected.place.ticks)
                diverge("signal", NULL, NULL, "the replay never reached the point at which a signal handler ran");
            signals_look();
            break;
        }
        frame_is_wanted = true;
        bool counted = expected.place.ticks;
        expected.pending = again.active = false;
        signum = expected.signum;
        doubt_judge(signum, &expected.place);
        signal_delivered();
        Py_SETREF(result, run_handler(signum, frame));
        frames_note();
        if (result && !counted)
            look_again(signum);
    }
    if (!frame_is_wanted) {
        frame_forget(frame);
        doubt_looked(monotonic_ns() - since);
    }
    return result;
}

static PyMethodDef watch_def = {"handler", watch, METH_VARARGS, NULL};

/* ---- both ---- */

/* Handlers that waited for the end of the importer's work run, in replay at the same place: there the interpreter makes
 * no check of its own. What a handler raises takes the place of the result. */
PyObject *
signals_after_importing(PyObject *result)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    bool is_well = true;
    if (core.mode != REPLAY) /* also if the recording has ended meanwhile */
        is_well = run_waiting();
    else if (expected.pending && (!expected.place.ticks || lanes_place() >= expected.place.ticks)) {
        bool before = looks_after_importing; /* a handler may import, too */
        signals_look();
        looks_after_importing = true;
        is_well = PyErr_CheckSignals() == 0;
        looks_after_importing = before;
    }
    if (is_well) {
        PyErr_Restore(type, value, traceback);
        return result;
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    Py_XDECREF(result);
    return NULL;
}

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

static bool was_set[MOST_SIGNALS]; /* by the program */

static PyObject *
exchange_handler(long signum, PyObject *handler)
{
    was_set[signum] = true;
    PyObject *old = handlers[signum];
    handlers[signum] = Py_NewRef(handler);
    return old ? old : Py_NewRef(Py_None);
}

/* In a child, or when the recording has ended: the stubs are still in place, and the program must go on not to see
 * them. */
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
        log_is_timed |= callable;
        done = installed ? set_really(args[0], installed) : NULL;
        Py_XDECREF(installed);
        if (done)
            Py_SETREF(done, Py_NewRef(Py_None));
        if (done && callable)
            sender_asked_for((int)signum);
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

/* In a replay none of them was. The GIL must be held. */
void
signals_continue(void)
{
    for (int i = 1; signal_gate && i < MOST_SIGNALS; i++) {
        bool is_callable = handlers[i] && PyCallable_Check(handlers[i]), is_ours = i == SIGINT || i == watch_signal();
        if (handlers[i] == NULL || handlers[i] == Py_None || (!is_callable && !was_set[i] && !is_ours))
            continue;
        PyObject *number = PyLong_FromLong(i);
        PyObject *installed = is_callable ? own_function(&stub_def) : Py_NewRef(handlers[i]);
        PyObject *done = number && installed ? set_really(number, installed) : NULL;
        log_is_timed |= is_callable && i != SIGINT;
        if (done && is_callable)
            sender_asked_for(i);
        Py_XDECREF(done);
        Py_XDECREF(installed);
        Py_XDECREF(number);
        PyErr_Clear();
    }
    raised_continue();
}

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
        sender_asked_for(SIGINT);
    }
    Py_XDECREF(replacement);
    Py_DECREF(sigint);
    if (PyErr_Occurred())
        return -1;
    raised_prepare();
    return warned_prepare();
}
