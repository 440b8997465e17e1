/* Snapshots while a program is recorded: when the program asks (replaydbg.snapshot), when an exception ends it, at a
 * signal, every so many events or milliseconds.
 *
 * A copy of the process walks its heap and writes a file into the live directory, while the program goes on. The copy
 * is made by a bare clone() that sends no signal when it ends and that no wait() of the program's can see; nothing of
 * the program's runs in it, and nothing is made in the program for it: a replay need not know of it. It closes all
 * descriptors, so that nobody waits for an end of file. */
#include "base/core.h"
#include "heap/inside.h"
#include "identity/identity.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef SYS_read
#error "without <sys/syscall.h> what depends on the numbers of calls would be left out"
#endif

#define MOST_AT_ONCE 4
#define LONGEST 120 /* seconds that a copy may take: one that hangs in a lock of the C library ends then */
#define MOST_PIDS 64

/* The file `state` of the directory, which the copies and the launcher share: replaydbg/record/snapshots.py reads it.
 */
typedef struct {
    uint64_t taken, done, failed, left_out; /* left_out: were due, and would have cost too much */
    uint64_t pause_ns, longest_pause_ns;    /* of the program */
    uint64_t copies_ns;                     /* CPU time of the copies */
    uint64_t pids[MOST_PIDS];
} State;
static State *state;
static bool is_child; /* of the recorded program, and recorded itself */

static struct {
    uint64_t every_events, every_ns, share; /* share: millionths of the run that they may cost together */
    uint64_t next_event, next_ns, began_ns, number;
    bool at_exceptions;
    HeapLimits limits;
} order = {.limits = HEAP_LIMITS, .share = 20000};
static volatile sig_atomic_t signalled;

/* ---- the copy ---- */

static uint64_t
cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

_Noreturn static void
leave(bool failed)
{
    __atomic_fetch_add(&state->copies_ns, cpu_ns(), __ATOMIC_RELAXED);
    __atomic_fetch_add(failed ? &state->failed : &state->done, 1, __ATOMIC_RELEASE);
    leave_process(0);
}

static void
crashed(int signum)
{
    leave(true);
}

static void
be_apart(void)
{
    struct sigaction ours = {.sa_handler = crashed, .sa_flags = SA_ONSTACK};
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM};
    sigset_t all;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++) {
        sigaction(crashes[i], &ours, NULL);
        sigdelset(&all, crashes[i]);
    }
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, 8);
    setitimer(ITIMER_REAL, &(struct itimerval){.it_value.tv_sec = LONGEST}, NULL);
    setpriority(PRIO_PROCESS, 0, 10);
#ifdef SYS_close_range
    if (syscall(SYS_close_range, 0, ~0U, 0) == 0)
        return;
#endif
    for (int fd = 0; fd < 65536; fd++)
        close(fd);
}

_Noreturn static void
be_the_copy(uint64_t time_ns, const char *reason, const char *name, PyObject *exception)
{
    char partial[4300], path[4200];
    set_mode(OBSERVE);
    be_apart();
    snprintf(path, sizeof path, "%s/heap/%06llu", core.live_dir, (unsigned long long)order.number);
    snprintf(partial, sizeof partial, "%s.partial", path);
    HeapOccasion occasion = {.number = order.number,
                             .event = core.crossings,
                             .time_ns = time_ns,
                             .name = name,
                             .reason = reason,
                             .exception = exception};
    int fd = open(partial, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool failed = fd < 0 || heap_capture(fd, &order.limits, &occasion, NULL) < 0 || rename(partial, path) < 0;
    if (failed)
        unlink(partial);
    else
        heap_check(path);
    leave(failed);
}

/* ---- the program ---- */

static bool
open_state(void)
{
    char path[4200];
    if (state)
        return true;
    snprintf(path, sizeof path, "%s/heap", core.live_dir);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/heap/state", core.live_dir);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    void *at = MAP_FAILED;
    if (fd >= 0 && posix_fallocate(fd, 0, sizeof(State)) == 0) /* a page for which the disk has no room is a SIGBUS */
        at = mmap(NULL, sizeof(State), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    state = at == MAP_FAILED ? NULL : at;
    return state != NULL;
}

/* Those that have ended are taken away; a wait() of the program's would never see them. Returns how many are still at
 * work. */
static int
at_work(void)
{
    int n = 0;
    for (int i = 0; i < MOST_PIDS; i++) {
        if (state->pids[i] == 0)
            continue;
        if (waitpid((pid_t)state->pids[i], NULL, WNOHANG | __WALL) == 0)
            n++;
        else
            state->pids[i] = 0;
    }
    return n;
}

static void
take(const char *reason, const char *name, PyObject *exception)
{
    uint64_t began = monotonic_ns();
    order.number++;
    pid_t pid = clone_bare(0);
    if (pid == 0)
        be_the_copy(began - order.began_ns, reason, name, exception);
    uint64_t pause = monotonic_ns() - began;
    state->taken++;
    state->pause_ns += pause;
    state->longest_pause_ns = pause > state->longest_pause_ns ? pause : state->longest_pause_ns;
    if (pid < 0)
        state->failed++;
    for (int i = 0; pid > 0 && i < MOST_PIDS; i++)
        if (state->pids[i] == 0) {
            state->pids[i] = (uint64_t)pid;
            break;
        }
    since_begin(order.number + 1);
}

/* In a child that is recorded: snapshots are those of the first process. */
void
heap_record_forked(void)
{
    is_child = true;
    order.every_events = order.every_ns = 0;
    order.next_event = order.next_ns = core.heap_due = UINT64_MAX;
    signalled = 0;
}

static bool
can_take(void)
{
    return !is_child && core.mode == RECORD && core.tstate == compat_attached() && open_state();
}

/* One that is asked for is taken; who asks for many at once waits for the first of them. */
static void
take_for_certain(const char *reason, const char *name, PyObject *exception)
{
    int saved = errno;
    if (can_take()) {
        for (int i = 0; at_work() >= MOST_AT_ONCE && i < 1000 * LONGEST; i++)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        take(reason, name, exception);
    }
    errno = saved;
}

void
heap_await_copies(void)
{
    for (int i = 0; state && at_work() && i < 1000 * LONGEST; i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void
take_if_cheap(uint64_t now)
{
    uint64_t run = now - order.began_ns, cost = state->pause_ns + __atomic_load_n(&state->copies_ns, __ATOMIC_RELAXED);
    uint64_t next = state->taken ? cost / state->taken : 0;
    if (at_work() || (double)(cost + next) > (double)run * (double)order.share / 1e6)
        state->left_out++;
    else
        take("interval", "", NULL);
}

static void
plan(uint64_t now)
{
    order.next_event = order.every_events ? core.crossings + order.every_events : UINT64_MAX;
    order.next_ns = order.every_ns ? now + order.every_ns : UINT64_MAX;
    core.heap_due = order.every_ns ? 0 : order.next_event;
}

/* An event has been recorded, and something may be due. */
void
heap_crossed(void)
{
    int saved = errno;
    if (signalled) {
        signalled = 0;
        take_for_certain("signal", "", NULL);
    }
    uint64_t now = order.every_events || order.every_ns ? monotonic_ns() : 0;
    if (core.crossings >= order.next_event || now >= order.next_ns) {
        if (can_take())
            take_if_cheap(now);
        plan(now);
    }
    else
        core.heap_due = order.every_ns ? 0 : order.every_events ? order.next_event : UINT64_MAX;
    errno = saved;
}

/* The audit event by which replaydbg.snapshot() is heard: no module of ours need be in the program. */
void
heap_asked(PyObject *args)
{
    PyObject *given = args && PyTuple_CheckExact(args) && PyTuple_GET_SIZE(args) ? PyTuple_GET_ITEM(args, 0) : NULL;
    uint8_t name[256];
    name[given ? text_of_name(name, sizeof name - 1, given) : 0] = 0;
    /* With an exception: where it was raised is of interest, its frames are in its traceback. */
    PyObject *value = given && PyTuple_GET_SIZE(args) > 1 ? PyTuple_GET_ITEM(args, 1) : NULL;
    bool is_raised = value && PyExceptionInstance_Check(value);
    const char *reason = is_raised           ? "exception"
                         : value == Py_True  ? "consistent" /* whether the program's callbacks have worked */
                         : value == Py_False ? "inconsistent"
                                             : "named";
    take_for_certain(reason, (const char *)name, is_raised ? value : NULL);
}

uint64_t
heap_taken(void)
{
    return order.number;
}

static void
take_at_exception(PyObject *value)
{
    if (value && order.at_exceptions && PyExceptionInstance_Check(value))
        take_for_certain("exception", Py_TYPE(value)->tp_name, value);
}

void
heap_uncaught(PyObject *value)
{
    static PyObject *reported; /* only compared: the interpreter may say it twice */
    if (value == reported)
        return;
    reported = value;
    take_at_exception(value);
}

/* A thread is left by SystemExit on purpose. Others that end threads may lie where one lay before. */
static void
ends_thread(PyObject *value)
{
    if (value && !PyType_IsSubtype(Py_TYPE(value), (PyTypeObject *)PyExc_SystemExit))
        take_at_exception(value);
}

static newfunc hook_args_new;

/* What threading.excepthook is given is made for each exception that ends a thread, whoever has put a hook of its own
 * there. */
static PyObject *
new_hook_args(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *made = hook_args_new(type, args, kwargs);
    if (made && core.mode == RECORD && PyTuple_Check(made) && PyTuple_GET_SIZE(made) > 1)
        ends_thread(PyTuple_GET_ITEM(made, 1));
    return made;
}

static void
listen_to_threads(void)
{
    PyObject *modules = PyImport_GetModuleDict(), *module = modules ? PyDict_GetItemString(modules, "_thread") : NULL;
    PyObject *type = module ? PyDict_GetItemString(PyModule_GetDict(module), "_ExceptHookArgs") : NULL;
    if (type == NULL || !PyType_Check(type) || hook_args_new)
        return;
    hook_args_new = ((PyTypeObject *)type)->tp_new;
    ((PyTypeObject *)type)->tp_new = new_hook_args;
}

/* Of a thread that was started without the module threading, the interpreter says it as of what cannot be raised
 * anywhere. */
void
heap_unraisable(PyObject *args)
{
    PyObject *text = args && PyTuple_Check(args) && PyTuple_GET_SIZE(args) > 3 ? PyTuple_GET_ITEM(args, 3) : NULL;
    uint8_t message[100];
    message[text ? text_of_name(message, sizeof message - 1, text) : 0] = 0;
    if (strstr((const char *)message, "in thread started by"))
        ends_thread(PyTuple_GET_ITEM(args, 1));
}

static void
hear(int signum)
{
    signalled = 1;
    core.heap_due = 0;
}

static uint64_t
number(PyObject *asked, const char *key, uint64_t otherwise)
{
    PyObject *v = PyDict_GetItemString(asked, key);
    return v && PyLong_CheckExact(v) ? PyLong_AsUnsignedLongLongMask(v) : otherwise;
}

/* asked: a dict, or None; without it only the program asks. */
void
heap_record_begin(PyObject *asked)
{
    order.began_ns = monotonic_ns();
    order.next_event = order.next_ns = UINT64_MAX;
    if (asked == NULL || !PyDict_CheckExact(asked))
        return;
    heap_check_prepare(asked);
    order.every_events = number(asked, "every_events", 0);
    order.every_ns = number(asked, "every_ns", 0);
    order.share = number(asked, "share", order.share);
    order.at_exceptions = number(asked, "at_exceptions", 0);
    if (order.at_exceptions)
        listen_to_threads();
    order.limits.nodes = number(asked, "nodes", order.limits.nodes);
    order.limits.edges = number(asked, "edges", order.limits.edges);
    order.limits.items = number(asked, "items", order.limits.items);
    order.limits.text = (uint32_t)number(asked, "text", order.limits.text);
    order.limits.all = number(asked, "all", 0);
    int signum = (int)number(asked, "signal", 0);
    if (signum > 0 && signum < NSIG)
        sigaction(signum, &(struct sigaction){.sa_handler = hear, .sa_flags = SA_RESTART | SA_ONSTACK}, NULL);
    plan(order.began_ns);
}
