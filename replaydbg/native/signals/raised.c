/* Signals that C code of the program sends to the process itself: raise(), kill(), pthread_kill(), alarms of a library.
 *
 * While recording they are like any other: what came of them (a handler of the program's, or its end) is in the log. In
 * a replay the same C code runs and sends them again, but handlers run where the log says. So a signal from this
 * process is taken for done, unless the log ends here without an end of the program: then it was this signal that ended
 * it, which is reported before. One from elsewhere (Ctrl-C, a supervisor) does what it does to any program. */
#include "base/core.h"
#include "crossing/crossing.h"
#include "log/log.h"
#include "signals/inside.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static pid_t recorded_pid; /* replay: what os.getpid() has given */

static void
raised(int signum, siginfo_t *info, void *context)
{
    int saved = errno;
    /* SI_USER, SI_TKILL, SI_QUEUE; a copy of the debugger's sends it by a timer (guard/refused.c) */
    bool by_itself = info->si_code == SI_TIMER ? engine.is_on : info->si_code <= 0 && info->si_pid == getpid();
    if (!by_itself || cross_ends_unannounced()) {
        if (by_itself)
            signals_hooks.is_killed(signum);
        signal(signum, SIG_DFL);
        if (info->si_code <= 0 || signum == SIGXCPU)
            kill(getpid(), signum); /* it is blocked until this handler returns */
    }
    errno = saved;
}

/* Faults are left alone: they come again by themselves where the program has none of its own for them. So is what
 * somebody else has taken, and what nobody notices. */
static bool
is_left_alone(int signum)
{
    static const int some[] = {SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGFPE,   SIGILL,
                               SIGTRAP, SIGSYS,  SIGCHLD, SIGURG, SIGWINCH, SIGCONT};
    struct sigaction now;
    for (size_t i = 0; i < sizeof some / sizeof *some; i++)
        if (some[i] == signum)
            return true;
    return sigaction(signum, NULL, &now) < 0 || now.sa_handler != SIG_DFL;
}

void
raised_prepare(void)
{
    struct sigaction ours = {.sa_sigaction = raised, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
    if (core.mode != REPLAY)
        return;
    for (int signum = 1; signum <= SIGRTMAX; signum++)
        if (!is_left_alone(signum))
            sigaction(signum, &ours, NULL);
}

/* A replay becomes a recording: where the program has set no handler, there is none. */
void
raised_continue(void)
{
    struct sigaction now;
    for (int signum = 1; signum <= SIGRTMAX; signum++)
        if (sigaction(signum, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) && now.sa_sigaction == raised)
            signal(signum, SIG_DFL);
}

/* ---- a process that is named by its number ---- */

static PyObject *
os_getpid(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    PyObject *pid = gate_regular(g, self, args, nargs, kwnames);
    if (pid && (core.mode == REPLAY || core.is_future) && PyLong_Check(pid))
        recorded_pid = (pid_t)PyLong_AsLong(pid);
    return pid;
}

/* A copy of a process of the debugger believes that it is the first one, and a future that it is the recorded one. */
static pid_t
today(pid_t pid)
{
    bool is_own = (core.mode == REPLAY || core.is_future) && pid > 0 && (pid == recorded_pid || pid == clones_pid());
    return is_own ? getpid() : pid_today(pid);
}

static pid_t
today_of(PyObject *pid)
{
    int overflow;
    long number = PyLong_Check(pid) ? PyLong_AsLongAndOverflow(pid, &overflow) : 0;
    return number > 0 && number == (pid_t)number ? today((pid_t)number) : 0;
}

bool
signals_names_itself(PyObject *pid)
{
    return today_of(pid) == getpid();
}

/* kill(pid, signal): the program of a future has the id of the recorded run. */
static PyObject *
os_kill(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    if (!core.is_future || nargs != 2 || kwnames || !signals_names_itself(args[0]))
        return gate_regular(g, self, args, nargs, kwnames);
    Crossing c;
    cross_begin(&c, g, self, args, nargs, kwnames);
    PyObject *result = NULL;
    if (c.perform) {
        PyObject *asked[] = {PyLong_FromLong(getpid()), args[1]};
        result = asked[0] ? gate_call_original(g, self, asked, nargs, NULL) : NULL;
        Py_XDECREF(asked[0]);
    }
    return cross_end(&c, result);
}

const HandlerEntry raised_handlers[] = {{"os_getpid", os_getpid}, {"os_kill", os_kill}, {NULL, NULL}};

/* ---- signals that no handler of ours sees ---- */

static bool interpreter_has_ended;

void
signals_interpreter_has_ended(void)
{
    interpreter_has_ended = true;
}

/* SIGSYS is refused.c's: the kernel never sees that it has no handler. */
static bool
is_harmless(int signum)
{
    static const int some[] = {0, SIGSYS, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU, SIGCHLD, SIGURG, SIGWINCH, SIGCONT};
    for (size_t i = 0; i < sizeof some / sizeof *some; i++)
        if (some[i] == signum)
            return true;
    return false;
}

/* Whether sending it to this thread ends the process, before the call returns. */
static bool
ends_at_once(int signum)
{
    struct sigaction now;
    sigset_t blocked;
    if (signum == SIGKILL)
        return true;
    return !is_harmless(signum) && sigaction(signum, NULL, &now) == 0 && now.sa_handler == SIG_DFL &&
           pthread_sigmask(SIG_BLOCK, NULL, &blocked) == 0 && !sigismember(&blocked, signum);
}

static void
sends_to_itself(int signum)
{
    if (core.mode == REPLAY && ends_at_once(signum))
        signals_hooks.is_killed(signum);
}

/* Process groups are not restored: the number of one is that of another one's today, or of none. */
static bool
is_past_group(pid_t group)
{
    if (group <= 1 || !pid_is_past(group))
        return false;
    errno = ESRCH;
    return true;
}

static int
our_killpg(pid_t group, int signum)
{
    return is_past_group(group) ? -1 : killpg(group, signum);
}

/* The interpreter's own last act, if KeyboardInterrupt has ended a module or a command. */
static int
our_kill(pid_t pid, int signum)
{
    if (today(pid) == getpid() && signum == SIGINT && interpreter_has_ended)
        signals_hooks.is_interrupted();
    if (today(pid) == getpid())
        sends_to_itself(signum);
    return is_past_group(-pid) ? -1 : kill(today(pid), signum);
}

static int
our_raise(int signum)
{
    sends_to_itself(signum);
    return raise(signum);
}

_Noreturn static void
our_abort(void)
{
    if (core.mode == REPLAY)
        signals_hooks.is_killed(SIGABRT);
    abort();
}

static int
our_sigqueue(pid_t pid, int signum, const union sigval value)
{
    if (today(pid) == getpid())
        sends_to_itself(signum);
    return sigqueue(today(pid), signum, value);
}

static const Relink functions[] = {{"kill", (void *)our_kill},         {"killpg", (void *)our_killpg},
                                   {"sigqueue", (void *)our_sigqueue}, {"raise", (void *)our_raise},
                                   {"abort", (void *)our_abort},       {NULL, NULL}};

void *
raising_call(const char *name)
{
    for (const Relink *r = functions; r->name; r++)
        if (strcmp(r->name, name) == 0)
            return r->function;
    return NULL;
}

void
raising_calls_relink(void)
{
    static Relinking all = {.functions = functions};
    relink(&all);
}
