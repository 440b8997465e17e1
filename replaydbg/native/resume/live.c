/* A replay becomes a recording.
 *
 * It does so where its log has no answer any more, in two steps. The first one can come anywhere, also where no lane
 * has the interpreter's lock: from then on the log is written on, and lanes are chosen as while recording. The second
 * one makes objects, and waits for the launcher; it comes with the first call that leaves the process, so that no call
 * is made before the files are there again.
 *
 * Lanes that had given way within a call are in their handlers then, which do not make the call in a replay. They get an
 * exception when they come back, which nobody sees, and begin anew: see cross_again(). */
#include "base/core.h"
#include "code/code.h"
#include "collector/collector.h"
#include "files/files.h"
#include "gates/gates.h"
#include "log/log.h"
#include "resume/inside.h"
#include "signals/signals.h"
#include "sqlite/sqlite.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

static int lane_at_call = -1; /* which found the log used up at a call; -1: at none */

static PyObject *
item(PyObject *boot, const char *key)
{
    PyObject *v = PyDict_GetItemString(boot, key);
    return v ? v : Py_None;
}

int
resume_prepare(PyObject *boot)
{
    PyObject *at = item(boot, "resume_at"), *fd = item(boot, "resume_fd"), *directory = item(boot, "live_dir");
    if (item(boot, "resumes") != Py_True || !PyLong_Check(fd) || !PyBytes_Check(directory))
        return 0;
    core.goes_live = true;
    core.is_planned = item(boot, "resume_dry") == Py_True;
    core.live_at = PyLong_Check(at) ? PyLong_AsUnsignedLongLong(at) : 0;
    core.live_dir = strdup(PyBytes_AS_STRING(directory));
    PyObject *most = item(boot, "max_size");
    event_log.max_size = PyLong_Check(most) ? PyLong_AsUnsignedLongLong(most) : 0;
    orders_begin((int)PyLong_AsLong(fd));
    PyObject *page = item(boot, "standby_page_fd");
    if (PyLong_Check(page) && standby_page_open((int)PyLong_AsLong(page)) < 0)
        PyErr_SetString(PyExc_RuntimeError, "replaydbg: the page of the standby cannot be mapped");
    group_prepare(boot);
    return PyErr_Occurred() ? -1 : 0;
}

static void
go_on_recording(void)
{
    set_mode(RECORD);
    sites_continue();
    lanes_continue();
    core.is_resumed = true;
}

static void
become_recording(void)
{
    standby_page_directory();
    if (logs_continue() < 0 || durable_continue() < 0 || content_continue() < 0) {
        char text[200];
        snprintf(text, sizeof text, "the log of the new recording cannot be written: %s", strerror(errno));
        diverge("resume", NULL, NULL, text);
    }
    go_on_recording();
}

/* The first step. At a call, `lane` makes it. */
static void
begin(int lane)
{
    lane_at_call = lane;
    core.live_since = core.crossings;
    if (core.has_futures) {
        resume_hooks.become_future(); /* this process is a copy of the one that stays here */
        go_on_recording();
        return;
    }
    calls_of_others();
    if (core.is_planned)
        orders_report(core.live_since, lane_at_call);
    become_recording();
}

bool
live_inside(void)
{
    if (core.mode == RECORD)
        return true;
    if (core.mode != REPLAY || !cross_is_used_up())
        return false;
    begin(-1);
    return true;
}

void
live_follow(const Crossing *c, PyObject *result)
{
    clocks_follow(c, result);
    fd_mirror(c, result);
    sent_follow(c);
    semlock_follow(c, result);
    process_follow(c);
    contexts_follow(c);
}

PyObject *
live_end(Crossing *c, PyObject *result, bool *is_again)
{
    if (core.is_future && c->is_answered)
        return resume_hooks.answer(c);
    if (c->perform) {
        if (core.is_future)
            result = resume_hooks.performed(c, result);
        return clocks_shifted(c, result);
    }
    *is_again = !live_is_settled(); /* it began in the replay */
    if (*is_again)
        return NULL;
    Py_XDECREF(result);
    return call_outcome();
}

PyObject *
live_passed(Gate *g, PyObject *const *args, Py_ssize_t nargs, PyObject *result)
{
    Crossing c = {.gate = g, .args = args, .nargs = nargs};
    return core.mode == OBSERVE ? clocks_unlogged(&c, result) : result;
}

static bool handlers_wait;

/* The interpreter installs handlers in its main thread alone, whose call need not be the first one. */
void
live_install_handlers(void)
{
    if (handlers_wait && lanes.running == lanes.main) {
        handlers_wait = false;
        own_work_begin();
        signals_continue();
        own_work_end();
    }
}

bool
live_handlers_wait(void)
{
    return handlers_wait || core.goes_live;
}

/* The second step. */
static void
complete(void)
{
    core.goes_live = false;
    own_work_begin();
    cross_continue();
    clocks_continue();
    if (core.is_future) {
        group_hears();
        handlers_wait = true;
        live_install_handlers();
        process_continue();
        streams_continue();
        own_work_end();
        return;
    }
    const char *problem = group_goes_live();
    if (problem)
        diverge("resume", NULL, NULL, problem);
    orders_follow(core.live_since, lane_at_call);
    streams_continue();
    problem = sqlite_continue();
    problem = problem ? problem : contexts_continue();
    problem = problem ? problem : orders_map();
    problem = problem ? problem : semlocks_continue();
    if (problem)
        diverge("resume", NULL, NULL, problem);
    prctl(PR_SET_PDEATHSIG, 0); /* a replay ends with its launcher; a program need not, nor with its parent */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* who is live already may send one that has no handler here yet */
    orders_await_go(); /* nothing can fail after it, so of a group none goes live unless each can */
    signals_continue();
    children_end();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    process_continue();
    orders_end();
    own_work_end();
}

void
live_at_call(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    if (core.mode == REPLAY && cross_is_used_up()) {
        if (!core.has_futures)
            call_of_running(g, self, args, nargs, kwnames);
        begin(lanes.running->id);
    }
    if (core.mode == RECORD)
        complete();
}

/* Nothing is made or opened for a process that makes no call any more, and the interpreter is gone. It waits all the
 * same: of a group, its end is seen by others, and must not come unless all go live. */
void
live_at_end(void)
{
    if (!core.goes_live || (core.mode == REPLAY && !cross_is_used_up()))
        return;
    core.goes_live = false;
    if (core.has_futures) {
        if (core.mode == REPLAY)
            resume_hooks.nothing_follows();
        return;
    }
    if (core.mode == REPLAY) {
        core.live_since = core.crossings;
        if (core.is_planned)
            orders_report_end(core.live_since);
        become_recording();
    }
    const char *problem = group_process_ends();
    if (problem)
        diverge("resume", NULL, NULL, problem);
    orders_await_end(core.live_since);
}
