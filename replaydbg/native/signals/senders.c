/* Who has sent a signal. In a group of processes a handler of the program's may run because another one of them has sent
 * its signal, or has ended. The interpreter's own C handler notes only that a signal has come: ours is called by the
 * kernel in its place, notes the process, and calls it. Recordings of one process have none of this. */
#include "base/core.h"
#include "log/log.h"
#include "signals/inside.h"
#include <signal.h>

static struct {
    void (*handler)(int); /* the interpreter's */
    volatile sig_atomic_t pid, has_ended;
} senders[MOST_SIGNALS];

static void
caught(int signum, siginfo_t *info, void *context)
{
    int code = info->si_code;
    bool has_ended = signum == SIGCHLD && (code == CLD_EXITED || code == CLD_KILLED || code == CLD_DUMPED);
    bool is_sent = code == SI_USER || code == SI_QUEUE || code == SI_TKILL;
    senders[signum].has_ended = has_ended;
    senders[signum].pid = has_ended || is_sent ? info->si_pid : 0;
    senders[signum].handler(signum);
}

/* The interpreter has just set its handler. */
void
sender_asked_for(int signum)
{
    struct sigaction now;
    if (!group_is_on() || core.mode != RECORD || signum <= 0 || signum >= MOST_SIGNALS)
        return;
    if (sigaction(signum, NULL, &now) < 0 || (now.sa_flags & SA_SIGINFO) || now.sa_handler == SIG_DFL ||
        now.sa_handler == SIG_IGN)
        return;
    senders[signum].handler = now.sa_handler;
    senders[signum].pid = 0;
    now.sa_sigaction = caught;
    now.sa_flags |= SA_SIGINFO;
    sigaction(signum, &now, NULL);
}

/* Of several that came before the handler could run, the last one is known. */
void
sender_known(int signum)
{
    if (signum <= 0 || signum >= MOST_SIGNALS || senders[signum].pid == 0)
        return;
    int pid = (int)senders[signum].pid;
    bool has_ended = senders[signum].has_ended;
    senders[signum].pid = 0;
    member_signalled(signum, pid, has_ended);
}
