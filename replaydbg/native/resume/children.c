/* Children of the process in whose place this one goes on are none of its own. In the place of each that nobody has
 * waited for there is one that is ended by SIGKILL once the program is live: so whatever asks for a child finds it, and
 * SIGCHLD comes. */
#include "base/core.h"
#include "log/log.h"
#include "resume/inside.h"
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static pid_t *lost;
static size_t lost_count;

/* With everything blocked: a handler of the program must not run here. */
_Noreturn static void
wait_for_the_end(pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        kill(getpid(), SIGKILL);
    syscall(SYS_close_range, 0, ~0u, 0); /* whoever reads from a pipe waits until nobody has it open for writing */
    for (;;)
        pause();
}

void
child_lost(pid_t recorded)
{
    pid_t parent = getpid(), pid;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); /* unlike fork() it runs no code of others */
    if (pid == 0)
        wait_for_the_end(parent);
    int error = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (pid < 0) {
        char text[200];
        snprintf(text, sizeof text, "no process can stand for its child %d: %s", (int)recorded, strerror(error));
        diverge("resume", NULL, NULL, text);
    }
    lost = grown(lost, lost_count + 1, sizeof *lost);
    lost[lost_count++] = pid;
    pid_stands_for(recorded, pid);
}

void
children_end(void)
{
    for (size_t i = 0; i < lost_count; i++)
        kill(lost[i], SIGKILL);
    free(lost);
    lost = NULL;
    lost_count = 0;
}
