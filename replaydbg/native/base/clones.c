/* Copies of a process of the engine that the program in them does not notice. */
#include "base/core.h"
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static pid_t keeper, root;

/* Nothing of the program runs at it, as at os.fork(), and no wait() of the program could know of it: no signal is sent
 * at its end. */
pid_t
clone_bare(unsigned long flags)
{
    int *tid = NULL;
    flags |= CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID;
    prctl(PR_GET_TID_ADDRESS, &tid); /* the C library's note of who it is, for raise() */
#ifdef __x86_64__
    pid_t pid = (pid_t)syscall(SYS_clone, flags, NULL, NULL, tid, 0, own_token());
#else
    pid_t pid = (pid_t)syscall(SYS_clone, flags, NULL, NULL, 0, tid, own_token());
#endif
    if (pid == 0)
        base_hooks.copied();
    return pid;
}

/* A sibling: it is the keeper's child. */
pid_t
clone_here(void)
{
    return clone_bare(ENGINE_CLONE); /* the filter knows it */
}

void
clone_begin(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != keeper)
        leave_process(0); /* it has ended already */
}

/* C libraries look at it to learn whether they have been copied: asyncio would lose its running loop, OpenSSL and
 * SQLite their state. */
static pid_t
same_pid(void)
{
    return root;
}

pid_t
clones_pid(void)
{
    return engine.is_on || core.has_futures ? root : 0;
}

void *
clones_getpid(void)
{
    return engine.is_on || core.has_futures ? (void *)same_pid : NULL;
}

void
clones_library_loaded(void)
{
    static const Relink functions[] = {{"getpid", (void *)same_pid}, {NULL, NULL}};
    static Relinking everywhere = {.functions = functions};
    if (engine.is_on || core.has_futures)
        relink(&everywhere);
}

void
clones_prepare(void)
{
    keeper = getppid();
    root = getpid();
    clone_begin();
}
