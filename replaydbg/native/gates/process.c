/* Selection; semaphores; processes, and the end of a process. */
#include "base/core.h"
#include "clock/clock.h"
#include "collector/collector.h"
#include "crossing/crossing.h"
#include "files/files.h"
#include "gates/inside.h"
#include "lanes/lanes.h"
#include "log/log.h"
#include "memory/memory.h"
#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <stdlib.h>
#include <structmember.h>
#include <unistd.h>

/* ---- select ---- */

/* Which of the objects given are ready is logged as their places in the lists given. */
static PyObject *
ready_places(PyObject *given, PyObject *ready)
{
    PyObject *items = PySequence_Fast(given, "select");
    PyObject *places = items ? PyList_New(0) : NULL;
    Py_ssize_t from = 0;
    for (Py_ssize_t i = 0; places && i < PyList_GET_SIZE(ready); i++) {
        while (from < PySequence_Fast_GET_SIZE(items) &&
               PySequence_Fast_GET_ITEM(items, from) != PyList_GET_ITEM(ready, i))
            from++;
        PyObject *place = PyLong_FromSsize_t(from++);
        PyList_Append(places, place);
        Py_XDECREF(place);
    }
    Py_XDECREF(items);
    return places;
}

static PyObject *
ready_objects(PyObject *given, PyObject *places)
{
    PyObject *items = PySequence_Fast(given, "select");
    PyObject *ready = items ? PyList_New(0) : NULL;
    for (Py_ssize_t i = 0; ready && i < PyList_GET_SIZE(places); i++) {
        Py_ssize_t place = PyLong_AsSsize_t(PyList_GET_ITEM(places, i));
        if (place >= 0 && place < PySequence_Fast_GET_SIZE(items))
            PyList_Append(ready, PySequence_Fast_GET_ITEM(items, place));
    }
    Py_XDECREF(items);
    return ready;
}

static bool
are_lists(PyObject *lists)
{
    bool are = PyTuple_Check(lists) && PyTuple_GET_SIZE(lists) == 3;
    for (int i = 0; are && i < 3; i++)
        are = PyList_Check(PyTuple_GET_ITEM(lists, i));
    return are;
}

static PyObject *
convert_ready(PyObject *const *args, PyObject *lists, PyObject *(*convert)(PyObject *, PyObject *))
{
    PyObject *out = lists ? PyTuple_New(3) : NULL;
    for (Py_ssize_t i = 0; out && i < 3; i++) {
        PyObject *part = convert(args[i], PyTuple_GET_ITEM(lists, i));
        if (part == NULL)
            Py_CLEAR(out);
        else
            PyTuple_SET_ITEM(out, i, part);
    }
    return out;
}

/* `fileno` may be program code: it runs before the crossing. */
static PyObject *
descriptor_of(PyObject *o)
{
    int fd = PyObject_AsFileDescriptor(o);
    return fd < 0 ? NULL : PyLong_FromLong(fd);
}

static PyObject *
descriptors_of(PyObject *items)
{
    PyObject *numbers = PyList_New(0);
    for (Py_ssize_t i = 0; numbers && i < PySequence_Fast_GET_SIZE(items); i++) {
        PyObject *number = descriptor_of(PySequence_Fast_GET_ITEM(items, i));
        if (number == NULL || PyList_Append(numbers, number) < 0)
            Py_CLEAR(numbers);
        Py_XDECREF(number);
    }
    return numbers;
}

static PyObject *
select_select(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    if (nargs < 3)
        return gate_call_original(g, self, args, nargs, kwnames);
    Crossing c;
    PyObject *copy[4] = {NULL}, *asked[4] = {NULL}; /* iterators would be used up by the first look */
    for (int i = 0; i < 3; i++) {
        copy[i] = PyErr_Occurred() ? NULL : PySequence_Fast(args[i], "arguments 1-3 must be sequences");
        asked[i] = copy[i] ? descriptors_of(copy[i]) : NULL;
    }
    if (nargs > 3)
        copy[3] = asked[3] = Py_NewRef(args[3]);
    PyObject *result = NULL;
    if (asked[0] && asked[1] && asked[2]) {
        cross_begin(&c, g, self, copy, nargs > 4 ? 4 : nargs, kwnames);
        PyObject *lists = c.perform ? gate_call_original(g, self, asked, nargs, kwnames) : NULL;
        PyObject *places = convert_ready(asked, lists, ready_places);
        Py_XDECREF(lists);
        places = cross_end(&c, places);
        cross_expect_outcome(&c, places == NULL || are_lists(places));
        result = places ? convert_ready(copy, places, ready_objects) : NULL;
        Py_XDECREF(places);
    }
    for (int i = 0; i < 4; i++) {
        Py_XDECREF(copy[i]);
        if (i < 3)
            Py_XDECREF(asked[i]);
    }
    return result;
}

/* pidfd_open(pid, flags): the place of `pid` among the arguments; -1: it is not there. */
static Py_ssize_t
place_of_pid(Py_ssize_t nargs, PyObject *kwnames)
{
    if (nargs > 0)
        return 0;
    for (Py_ssize_t i = 0; kwnames && i < PyTuple_GET_SIZE(kwnames); i++)
        if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, i), "pid") == 0)
            return i;
    return -1;
}

static PyObject *
pid_of_today(PyObject *recorded)
{
    int overflow;
    long pid = PyLong_AsLongAndOverflow(recorded, &overflow);
    return overflow || pid != (pid_t)pid ? Py_NewRef(recorded) : PyLong_FromLong(pid_today((pid_t)pid));
}

/* The program names a process by the id that it had when it was recorded. */
static PyObject *
os_pidfd_open(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    PyObject *asked[4];
    Py_ssize_t n = nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0), place = place_of_pid(nargs, kwnames);
    if (place < 0 || n > 4 || !PyLong_Check(args[place]))
        return gate_regular(g, self, args, nargs, kwnames);
    Crossing c;
    cross_begin(&c, g, self, args, nargs, kwnames);
    PyObject *result = NULL;
    if (c.perform) {
        memcpy(asked, args, (size_t)n * sizeof *asked);
        asked[place] = pid_of_today(args[place]);
        result = gate_call_original(g, self, asked, nargs, kwnames);
        Py_DECREF(asked[place]);
    }
    result = cross_end(&c, result);
    if (result)
        crossing_hooks.regular_done(g, result, args, nargs);
    return result;
}

/* epoll.register(fd, eventmask), modify, unregister: as above. */
static PyObject *
takes_descriptor(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    PyObject *copy[4];
    Py_ssize_t n = nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    if (nargs == 0 || n > 4 || PyLong_Check(args[0]))
        return gate_regular(g, self, args, nargs, kwnames);
    memcpy(copy, args, (size_t)n * sizeof *copy);
    if ((copy[0] = descriptor_of(args[0])) == NULL)
        return NULL;
    PyObject *result = gate_regular(g, self, copy, nargs, kwnames);
    Py_DECREF(copy[0]);
    return result;
}

static newfunc original_epoll;
static Gate *epoll_gate;

static PyObject *
epoll_new(PyTypeObject *type, PyObject *args, PyObject *kwds)
{
    if (gate_passes())
        return original_epoll(type, args, kwds);
    Crossing c;
    int fd = -1;
    cross_begin(&c, epoll_gate, NULL, NULL, 0, NULL);
    bool replayed = !c.perform;
    PyObject *epoll = original_epoll(type, args, kwds); /* harmless: in replay too the object is real */
    int *field = epoll ? (int *)((char *)epoll + sizeof(PyObject)) : NULL;
    PyObject *outcome = cross_end(&c, epoll ? PyLong_FromLong(*field) : NULL);
    if (outcome && replayed && epoll && (fd = (int)PyLong_AsLong(outcome)) != *field) {
        if (fd_is_ours(fd))
            diverge("descriptors", NULL, NULL, "the program uses a descriptor number that the replay needs for itself");
        cross_expect_outcome(&c, dup3(*field, fd, O_CLOEXEC) >= 0);
        close(*field);
        *field = fd;
    }
    if (outcome == NULL)
        Py_CLEAR(epoll);
    Py_XDECREF(outcome);
    own_work_gives(epoll);
    cross_settle();
    return epoll;
}

/* ---- semaphores of multiprocessing ---- */

static newfunc original_semlock;
static Gate *semlock_gate;

/* In replay an object without a semaphore: all that it is asked comes from the log. Its handle is the recorded one,
 * since programs see it (multiprocessing logs it, and pickles it for a child that is spawned); giving it back to the
 * system fails, in silence. */
static PyObject *
semlock_without_semaphore(PyTypeObject *type, PyObject *kind, PyObject *maxvalue, PyObject *handle, PyObject *name)
{
    own_work_begin();
    PyObject *rebuild = PyObject_GetAttrString((PyObject *)type, "_rebuild");
    PyObject *none = rebuild ? Py_BuildValue("(iOOO)", 0, kind, maxvalue, Py_None) : NULL;
    PyObject *semlock = none ? PyObject_CallObject(rebuild, none) : NULL;
    Py_XDECREF(none);
    Py_XDECREF(rebuild);
    own_work_end();
    Py_ssize_t at_name = member_offset(type, "name"), at_handle = member_offset(type, "handle");
    const char *text = semlock && PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;
    char *copy = text && at_name ? PyMem_Malloc(strlen(text) + 1) : NULL;
    if (copy)
        *(char **)((char *)semlock + at_name) = strcpy(copy, text);
    if (semlock && at_handle)
        *(void **)((char *)semlock + at_handle) = PyLong_AsVoidPtr(handle);
    return semlock;
}

/* Begins where the semaphore has been made or is to be; the outcome is its handle. */
static PyObject *
semlock_end(Crossing *c, PyTypeObject *type, PyObject *semlock, PyObject *kind, PyObject *maxvalue, PyObject *name,
            PyObject *value, PyObject *known_as)
{
    bool replayed = !c->perform;
    PyObject *outcome = cross_end(c, semlock ? PyObject_GetAttrString(semlock, "handle") : NULL);
    if (replayed && outcome) {
        semlock = semlock_without_semaphore(type, kind, maxvalue, outcome, name);
        semlock_note(semlock, value, known_as);
    }
    if (outcome == NULL)
        Py_CLEAR(semlock);
    Py_XDECREF(outcome);
    own_work_gives(semlock);
    return semlock;
}

/* In a group: other processes know it by its name, which may be gone from the file system already. */
static void
semlock_made(PyObject *semlock, PyObject *name, PyObject *value)
{
    int overflow;
    long made_with = value && PyLong_Check(value) ? PyLong_AsLongAndOverflow(value, &overflow) : -1;
    Py_ssize_t at = semlock && group_is_on() ? member_offset(Py_TYPE(semlock), "handle") : 0;
    if (at && PyUnicode_Check(name) && PyUnicode_IS_ASCII(name))
        endpoint_semaphore(*(void **)((char *)semlock + at), PyUnicode_DATA(name), made_with);
}

/* SemLock(kind, value, maxvalue, name, unlink) */
static PyObject *
semlock_new(PyTypeObject *type, PyObject *args, PyObject *kwds)
{
    static char *names[] = {"kind", "value", "maxvalue", "name", "unlink", NULL};
    PyObject *f[5];
    if (gate_passes())
        return original_semlock(type, args, kwds);
    if (!PyArg_ParseTupleAndKeywords(args, kwds, "OOOUO", names, &f[0], &f[1], &f[2], &f[3], &f[4])) {
        PyErr_Clear();
        return original_semlock(type, args, kwds); /* it says what is wrong with the arguments */
    }
    PyObject *fields = PyTuple_Pack(5, f[0], f[1], f[2], f[3], f[4]);
    if (fields == NULL)
        return NULL;
    Crossing c;
    cross_begin(&c, semlock_gate, NULL, f, 5, NULL);
    PyObject *semlock = c.perform ? original_semlock(type, args, kwds) : NULL;
    semlock = semlock_end(&c, type, semlock, f[0], f[2], PyObject_IsTrue(f[4]) ? Py_None : f[3], f[1], f[3]);
    semlock_made(semlock, f[3], f[1]);
    Py_DECREF(fields);
    cross_settle();
    return semlock;
}

/* SemLock._rebuild(handle, kind, maxvalue, name): one that exists already, out of a pickle. */
static PyObject *
semlock_rebuild(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    if (nargs != 4 || kwnames)
        return gate_call_original(g, self, args, nargs, kwnames);
    Crossing c;
    cross_begin(&c, g, self, args, nargs, NULL);
    PyObject *semlock = c.perform ? gate_call_original(g, self, args, nargs, NULL) : NULL;
    semlock = semlock_end(&c, (PyTypeObject *)self, semlock, args[1], args[2], args[3], NULL, args[3]);
    semlock_made(semlock, args[3], NULL);
    return semlock;
}

/* ---- processes ---- */

static pid_t
fork_only(int *master)
{
    return fork();
}

static pid_t
fork_with_terminal(int *master)
{
    return forkpty(master, NULL, NULL, NULL);
}

static void
log_child(PyObject *pid)
{
    uint64_t number = pid && PyLong_Check(pid) ? PyLong_AsUnsignedLongLong(pid) : 0;
    if (core.mode == RECORD && number)
        cross_control(CONTROL_CHILD, &number, 1);
}

/* Since 3.12 a fork of a program with threads warns. What the warning does, and the process id in it, is program work:
 * crossings. An error that it is turned into is lost, as it is without us. */
static void
warn_of_threads(const char *name)
{
#if PY_VERSION_HEX >= 0x030C0000
    Gate *getpid_gate = gate_named("posix", "getpid");
    if (core.mode == OBSERVE || lanes.alive < 2 || getpid_gate == NULL)
        return;
    PyObject *pid = gate_regular(getpid_gate, NULL, NULL, 0, NULL);
    if (pid)
        PyErr_WarnFormat(PyExc_DeprecationWarning, 1,
                         "This process (pid=%S) is multi-threaded, use of %s() may lead to deadlocks in the child.",
                         pid, name);
    Py_XDECREF(pid);
    PyErr_Clear();
#endif
}

static bool
is_zero(PyObject *pid)
{
    bool is = PyLong_Check(pid) && PyLong_AsLong(pid) == 0;
    PyErr_Clear();
    return is;
}

/* In a child that is recorded, and in its replay, which forks nothing: the process simply is the child from here on. */
static void
go_on_in_child(void)
{
    core.forks++;
    lanes_forget_others();
    if (core.mode == REPLAY)
        streams_forked();
    PyOS_AfterFork_Child();
}

/* Runs the program's own at-fork functions outside the crossing, before and after it: they are program code. In a child
 * that is not recorded the crossing never comes to its end; in one that is, the same crossing ends as in its parent,
 * with another outcome. */
static PyObject *
fork_by(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, pid_t (*make)(int *master))
{
    Crossing c;
    int master = -1;
    if (compat_refuses_to_fork())
        return gate_call_original(g, self, args, nargs, kwnames); /* it says so */
    PyOS_BeforeFork();
    shared_process_starts();
    stream_child_starts();
    cross_begin(&c, g, self, args, nargs, kwnames);
    pid_t pid = -1;
    PyObject *result = NULL;
    bool is_performed = c.perform, is_recorded = false; /* the child */
    if (is_performed) {
        group_fork_begins();
        is_recorded = group_will_record();
        pid = make(&master);
        if (pid == 0 && !group_is_child()) {
            upcall_enter();
            PyOS_AfterFork_Child();
            return make == fork_only ? PyLong_FromLong(0) : Py_BuildValue("(ii)", 0, master);
        }
        if (pid != 0)
            group_fork_ended(pid);
        else if (make != fork_only)
            for (int fd = 0; fd < 3; fd++) /* the C library has put the terminal there */
                endpoint_forget(fd);
        if (pid < 0)
            PyErr_SetFromErrno(PyExc_OSError);
        else
            result = make == fork_only ? PyLong_FromLong(pid) : Py_BuildValue("(ii)", (int)pid, master);
    }
    result = cross_end(&c, result);
    bool is_pair = result && PyTuple_Check(result) && PyTuple_GET_SIZE(result) == 2;
    cross_expect_outcome(&c, result == NULL || (make == fork_only ? PyLong_Check(result) : is_pair));
    if (result && (is_performed ? pid == 0 : is_zero(is_pair ? PyTuple_GET_ITEM(result, 0) : result))) {
        go_on_in_child();
        return result;
    }
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (result)
        warn_of_threads(g->name);
    PyOS_AfterFork_Parent();
    PyErr_Restore(type, value, traceback);
    if (result && make == fork_only && !is_recorded) /* the other one gives the child a terminal of its own */
        stream_child(0, fd_stream(1) != 0, fd_stream(2) != 0);
    log_child(result && PyTuple_Check(result) ? PyTuple_GET_ITEM(result, 0) : result);
    return result;
}

static PyObject *
os_fork(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    return fork_by(g, self, args, nargs, kwnames, fork_only);
}

static PyObject *
os_forkpty(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    PyObject *result = fork_by(g, self, args, nargs, kwnames, fork_with_terminal);
    long master = result && core.mode != OBSERVE ? PyLong_AsLong(PyTuple_GET_ITEM(result, 1)) : -1;
    if (master >= 0 && core.mode == REPLAY)
        fd_place((int)master, -1);
    if (master >= 0)
        fd_opened((int)master, -1);
    return result;
}

/* The stream that a child of fork_exec has as its own number `fd`: the descriptor in this argument, or the program's.
 */
enum { CHILD_OUT = 9, CHILD_ERR = 11 };
static bool
child_has(PyObject *const *args, Py_ssize_t nargs, Py_ssize_t at, int fd)
{
    long given = at < nargs && PyLong_Check(args[at]) ? PyLong_AsLong(args[at]) : -1;
    return fd_stream(given < 0 ? fd : (int)given) != 0;
}

/* The same of posix_spawn, whose file actions come in order: (POSIX_SPAWN_DUP2, from, to), or another action and a
 * descriptor. */
static bool
spawned_has(PyObject *actions, int fd)
{
    bool has = fd_stream(fd) != 0;
    for (Py_ssize_t i = 0; actions && PyList_Check(actions) && i < PyList_GET_SIZE(actions); i++) {
        PyObject *action = PyList_GET_ITEM(actions, i);
        int kind, first, second = -1;
        if (!PyTuple_Check(action) || PyTuple_GET_SIZE(action) < 2)
            continue;
        kind = (int)PyLong_AsLong(PyTuple_GET_ITEM(action, 0));
        first = (int)PyLong_AsLong(PyTuple_GET_ITEM(action, 1));
        if (kind == 2 && PyTuple_GET_SIZE(action) > 2)
            second = (int)PyLong_AsLong(PyTuple_GET_ITEM(action, 2));
        PyErr_Clear();
        if (kind == 2 ? second == fd : first == fd)
            has = kind == 2 && fd_stream(first) != 0;
    }
    return has;
}

static void
note_child(const Gate *g, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, unsigned row)
{
    PyObject *actions = NULL;
    if (strcmp(g->name, "fork_exec") == 0) {
        stream_child(row, child_has(args, nargs, CHILD_OUT, 1), child_has(args, nargs, CHILD_ERR, 2));
        return;
    }
    for (Py_ssize_t i = 0; kwnames && i < PyTuple_GET_SIZE(kwnames); i++)
        if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, i), "file_actions") == 0)
            actions = args[nargs + i];
    own_work_begin();
    actions = actions && actions != Py_None ? PySequence_List(actions) : NULL;
    PyErr_Clear();
    stream_child(row, spawned_has(actions, 1), spawned_has(actions, 2));
    Py_XDECREF(actions);
    own_work_end();
}

/* posix_spawn: nothing but what the table says, once the child's memory is thought of. */
static PyObject *
spawns_process(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    shared_process_starts();
    stream_child_starts();
    unsigned row = group_start_begins(false);
    lanes_vfork_begins();
    PyObject *pid = program_start(g, self, args, nargs, kwnames, row);
    lanes_vfork_ended();
    if (row)
        group_start_ended(row, pid ? (int)PyLong_AsLong(pid) : -1, 0);
    if (pid && core.mode == RECORD)
        note_child(g, args, nargs, kwnames, row);
    log_child(pid);
    return pid;
}

/* Its result is a status, not a process id. */
static PyObject *
os_system(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    shared_process_starts();
    stream_child_starts();
    unsigned row = group_start_begins(false);
    PyObject *status = program_start(g, self, args, nargs, kwnames, row);
    if (status && PyLong_Check(status))
        group_start_ended(row, 0, wait_exit_code((int)PyLong_AsLong(status)));
    else
        group_start_ended(row, -1, 0);
    if (status)
        stream_child(row, fd_stream(1) != 0, fd_stream(2) != 0);
    return status;
}

/* With a function to be run in the child, the program's own at-fork functions run in the parent: before and after the
 * crossing, and not in it. The interpreter's C function finds none. */
enum { PREEXEC_FUNCTION = 21 };

static void
run_at_fork(PyObject *functions, bool backwards)
{
    PyObject *copy = functions ? PyList_GetSlice(functions, 0, PyList_GET_SIZE(functions)) : NULL;
    Py_ssize_t n = copy ? PyList_GET_SIZE(copy) : 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *function = PyList_GET_ITEM(copy, backwards ? n - 1 - i : i), *done = PyObject_CallNoArgs(function);
        if (done == NULL)
            PyErr_WriteUnraisable(function);
        Py_XDECREF(done);
    }
    Py_XDECREF(copy);
}

static PyObject *
fork_exec(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    if (nargs <= PREEXEC_FUNCTION || args[PREEXEC_FUNCTION] == Py_None)
        return spawns_process(g, self, args, nargs, kwnames);
    PyInterpreterState *interp = PyInterpreterState_Get();
    run_at_fork(interp->before_forkers, true);
    PyObject *before = interp->before_forkers, *after = interp->after_forkers_parent;
    interp->before_forkers = interp->after_forkers_parent = NULL;
    PyObject *pid = spawns_process(g, self, args, nargs, kwnames);
    interp->before_forkers = before;
    interp->after_forkers_parent = after;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    run_at_fork(after, false);
    PyErr_Restore(type, value, traceback);
    return pid;
}

static PyObject *
os_exit(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    Crossing c;
    long status = nargs > 0 && PyLong_Check(args[0]) ? PyLong_AsLong(args[0]) : -1;
    if (status == -1 && (PyErr_Occurred() || nargs == 0 || kwnames)) {
        PyErr_Clear();
        if (nargs == 0 || !PyLong_Check(args[0]))
            return gate_call_original(g, self, args, nargs, kwnames);
    }
    cross_begin(&c, g, self, args, nargs, kwnames);
    PyObject *none = cross_end(&c, Py_NewRef(Py_None));
    Py_XDECREF(none);
    if (engine.diverting)
        base_hooks.exits_apart((int)status);
    stream_children_end();
    cross_ended((int)status);
    if (core.mode == REPLAY) {
        streams_expect_fork();
        cross_expect_exit();
        base_hooks.reports_ending();
    }
    else if (core.is_future)
        base_hooks.reports_ending();
    clocks_report();
    if (engine.is_on)
        base_hooks.exits_apart((int)status);
    leave_process((int)status);
}

static PyObject *
os_abort(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    Crossing c;
    cross_begin(&c, g, self, args, nargs, kwnames);
    PyObject *none = cross_end(&c, Py_NewRef(Py_None));
    Py_XDECREF(none);
    clocks_report();
    if (core.mode == REPLAY)
        base_hooks.reports_ending();
    return gate_call_original(g, self, args, nargs, kwnames);
}

/* If it succeeds nothing of this program is left: the recording ends before it. */
static PyObject *
os_exec(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    Crossing c;
    cross_begin(&c, g, self, args, nargs, kwnames);
    unsigned row = group_programs_join() ? group_start_begins(true) : 0;
    if (core.mode == RECORD) {
        note("exec",
             group_programs_join()
                 ? "the program replaced itself with another program, which is a process of its own in the group"
                 : "the program replaced itself with another program, which is not recorded");
        log_reason(5);
    }
    PyObject *result = c.perform ? program_perform(g, self, args, nargs, kwnames, row) : NULL;
    if (core.mode == RECORD)
        log_reason(0); /* it failed: the program goes on */
    group_start_ended(row, -1, 0);
    return cross_end(&c, result);
}

/* input(): with a terminal on both sides the interpreter reads the line in C, else it calls the streams' own methods.
 */
static PyObject *
builtin_input(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    PyObject *in = PySys_GetObject("stdin"), *out = PySys_GetObject("stdout");
    bool terminal =
        core.terminal_input && in && out && in == PySys_GetObject("__stdin__") && out == PySys_GetObject("__stdout__");
    if (!terminal)
        return gate_call_original(g, self, args, nargs, kwnames);
    PyObject *flushed = PyObject_CallMethod(out, "flush", NULL);
    Py_XDECREF(flushed);
    PyErr_Clear();
    Crossing c;
    cross_begin(&c, g, self, args, nargs, kwnames);
    bool replayed = !c.perform;
    PyObject *line = cross_end(&c, c.perform ? gate_call_original(g, self, args, nargs, kwnames) : NULL);
    if (replayed) { /* the interpreter asks on stderr, the readline module on stdout */
        int stream = PyDict_GetItemString(PyImport_GetModuleDict(), "readline") ? 1 : 2;
        PyObject *type, *value, *traceback; /* the end of the input is an exception that stays */
        PyErr_Fetch(&type, &value, &traceback);
        PyObject *prompt = nargs > 0 ? PyObject_Str(args[0]) : NULL;
        const char *text = prompt ? PyUnicode_AsUTF8(prompt) : NULL;
        const char *typed = line && PyUnicode_Check(line) ? PyUnicode_AsUTF8(line) : NULL;
        if (text)
            stream_show(stream, text, strlen(text));
        if (typed)
            stream_show(stream, typed, strlen(typed));
        stream_show(stream, "\n", 1);
        if (stream == 1 && line)
            readline_typed(line);
        Py_XDECREF(prompt);
        PyErr_Restore(type, value, traceback);
    }
    return line;
}

/* A collection runs finalizers, weak references' callbacks and gc.callbacks: program code, whose crossings come before
 * the outcome. */
static PyObject *
gc_collect(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    Crossing c;
    cross_begin(&c, g, self, args, nargs, kwnames);
    Upcall upcall = upcall_enter();
    PyObject *found = gate_call_original(g, self, args, nargs, kwnames);
    upcall_leave(upcall);
    return cross_end(&c, found);
}

/* With these flags, collections print times and addresses. */
static PyObject *
gc_set_debug(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    enum { STATS = 1, COLLECTABLE = 2, UNCOLLECTABLE = 4 };
    long flags = nargs == 1 && PyLong_CheckExact(args[0]) ? PyLong_AsLong(args[0]) : 0;
    PyErr_Clear(); /* too large a number: the function itself raises */
    if (flags & (STATS | COLLECTABLE | UNCOLLECTABLE))
        note("uncovered", "gc.set_debug: the collector prints times and addresses, which differ in a replay");
    return gate_call_original(g, self, args, nargs, kwnames);
}

const HandlerEntry process_handlers[] = {{"gc_collect", gc_collect},
                                         {"gc_set_debug", gc_set_debug},
                                         {"os_fork", os_fork},
                                         {"os_forkpty", os_forkpty},
                                         {"semlock_rebuild", semlock_rebuild},
                                         {"spawns_process", spawns_process},
                                         {"os_system", os_system},
                                         {"fork_exec", fork_exec},
                                         {"os_exit", os_exit},
                                         {"os_abort", os_abort},
                                         {"os_exec", os_exec},
                                         {"select_select", select_select},
                                         {"builtin_input", builtin_input},
                                         {"takes_descriptor", takes_descriptor},
                                         {"os_pidfd_open", os_pidfd_open},
                                         {NULL, NULL}};

int
process_module_loaded(PyObject *module, const char *name)
{
    PyObject *dict = PyModule_GetDict(module), *type;
    if (strcmp(name, "posix") == 0) {
        directories_install(module);
        waits_hear();
    }
    else if (strcmp(name, "_multiprocessing") == 0 && original_semlock == NULL &&
             (type = PyDict_GetItemString(dict, "SemLock"))) {
        if ((semlock_gate = gate_named("_multiprocessing", "SemLock.__new__"))) {
            original_semlock = ((PyTypeObject *)type)->tp_new;
            ((PyTypeObject *)type)->tp_new = semlock_new;
        }
    }
    else if (strcmp(name, "select") == 0 && original_epoll == NULL && (type = PyDict_GetItemString(dict, "epoll"))) {
        if ((epoll_gate = gate_named("select", "epoll.__new__"))) {
            original_epoll = ((PyTypeObject *)type)->tp_new;
            ((PyTypeObject *)type)->tp_new = epoll_new;
        }
    }
    return 0;
}
