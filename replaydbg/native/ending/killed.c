/* The end of the process by a signal: a crash of C code, one that C code sends to the process, and the interrupt by which
 * the interpreter ends itself. The kernel runs no exit handler then, so what is counted is reported before. */
#include "base/core.h"
#include "clock/clock.h"
#include "ending/ending.h"
#include "engine/engine.h"
#include "log/log.h"
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

void
process_is_killed(int signum)
{
    if (engine.is_on && process_end_is_reported)
        leave_process(128 + signum); /* it has crashed since */
    if (engine.is_on)
        engine_is_killed(signum);
    if (process_end_is_reported)
        return;
    process_end_is_reported = true;
    clocks_report();
    told_end("signal", signum);
}

/* ---- the interpreter's own end ---- */

/* As the interpreter does, so that whoever started it knows that it was Ctrl-C. */
_Noreturn void
process_ends_by_interrupt(void)
{
    if (!process_end_is_reported)
        process_has_ended(128 + SIGINT, NULL);
    if (engine.is_on)
        leave_process(128 + SIGINT);
    set_mode(OBSERVE);
    signal(SIGINT, SIG_DFL);
    group_ends(-SIGINT);
    kill(getpid(), SIGINT);
    exit(128 + SIGINT);
}

/* ---- crashes ---- */

/* The default action is back (SA_RESETHAND), and the signal is blocked until this returns. */
static void
crashed(int signum)
{
    process_is_killed(signum);
    kill(getpid(), signum);
}

/* A handler that the program installs later comes before this one, which is called if it raises the signal again. */
void
crashes_prepare(void)
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP}; /* of abort(): see raised.c */
    static char stack[1 << 18];
    stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_handler = crashed, .sa_flags = SA_ONSTACK | SA_RESETHAND};
    if (!engine.is_on && stepclock.fd < 0 && !ticks_are_reported && !trace_is_asked && !core.tells)
        return; /* nothing is counted, and nothing told */
    sigaltstack(&own, NULL);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaction(signals[i], &action, NULL);
}
