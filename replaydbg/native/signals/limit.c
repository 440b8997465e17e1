/* A replay always ends. A program that was killed while it computed asks for nothing after its last event, and would
 * compute for ever; so would one that waits in a loop for something that never comes in a replay. The recording knows
 * how long the program computed between two events, and after the last one: a timer of CPU time looks whether a replay
 * takes much longer than that.
 *
 * What ends it comes in two steps. At the interpreter's next check for signals the place in the program is known, and
 * the replay ends as at the end of its log. C code may compute for ever without such a check: after some more time the
 * timer's own handler ends it.
 *
 * In a replay that the debugger travels through, the process that runs the whole program first is the one that is
 * timed. Where it ends is the end for all its clones, which have no timer: see engine.c. */
#include "base/core.h"
#include "log/log.h"
#include "signals/inside.h"
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LOOK 50000000               /* ns of CPU time between two looks */
#define GRACE 1000000000u           /* ns for the interpreter to come to a check */
#define DUE_FACTOR 10               /* a replay that looks for the place of a handler computes so much longer */
#define WATCH_SIGNAL (SIGRTMAX - 1) /* the one of signals.c: its handler asks limit_is_due() */

static struct {
    uint64_t after, between; /* ns of CPU time; 0: no limit */
    const uint8_t *read;     /* how far the log was read when it was looked last */
    uint64_t since;          /* the CPU time then */
    volatile sig_atomic_t due;
    uint64_t due_since;
} limit;

static uint64_t
cpu_time(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

_Noreturn static void
end_here(void)
{
    if (engine.is_on)
        signals_hooks.ends_here();
    if (log_is_read())
        diverge("computing", NULL, NULL, "");
    diverge("endless", NULL, NULL, "");
}

static void
look(int signum)
{
    int saved = errno;
    uint64_t now = cpu_time();
    if (event_log.rp != limit.read) {
        limit.read = event_log.rp;
        limit.since = now;
        limit.due = false;
    }
    uint64_t most = limit.after && log_is_read() ? limit.after : limit.between;
    if (signals_are_due())
        most *= DUE_FACTOR;
    if (core.followed && limit.after == 0 && log_has_stopped())
        limit.after = 2 * log_cpu_time() + GRACE; /* its program has just been killed, perhaps */
    else if (limit.due) {
        if (now - limit.due_since > GRACE)
            end_here();
        PyErr_SetInterruptEx(WATCH_SIGNAL);
    }
    else if (most && now - limit.since > most && core.mode == REPLAY && !engine.diverting) {
        limit.due = true;
        limit.due_since = now;
        PyErr_SetInterruptEx(WATCH_SIGNAL);
    }
    errno = saved;
}

/* Called where the interpreter has come to a check for signals. */
void
limit_check(void)
{
    if (limit.due && event_log.rp == limit.read)
        end_here();
}

/* ms of CPU time without a record of the log being used up; `after`: once all has been read, 0: as before that. Comes
 * before the filter, which lets nobody make a timer. */
void
limit_begin(uint64_t after, uint64_t between)
{
    limit.after = after * 1000000u;
    limit.between = between * 1000000u;
    if (core.lenient || (limit.after == 0 && limit.between == 0 && (!core.followed || core.goes_live)))
        return;
    struct sigaction action = {.sa_handler = look, .sa_flags = SA_RESTART | SA_ONSTACK};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMAX - 2};
    struct itimerspec every = {.it_interval = {0, LOOK}, .it_value = {0, LOOK}};
    int timer;
    sigaction(SIGRTMAX - 2, &action, NULL);
    if (syscall(SYS_timer_create, CLOCK_PROCESS_CPUTIME_ID, &event, &timer) == 0)
        syscall(SYS_timer_settime, timer, 0, &every, NULL);
}
