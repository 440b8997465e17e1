/* A replay of a child that was forked runs its parent's part first. What is printed there is its parent's: until the
 * fork the output leads to nowhere. The debugger shows all of it, as it shows all lines. */
#define _GNU_SOURCE
#include "base/core.h"
#include "files/inside.h"
#include <fcntl.h>
#include <unistd.h>

static uint64_t fork_event;
static int real_fd[3];

void
streams_hold(uint64_t event)
{
    if (event == 0 || engine.is_on)
        return;
    fork_event = event;
    for (int i = 1; i <= 2; i++) {
        real_fd[i] = core.out_fd[i];
        core.out_fd[i] = fd_keep(dup(core.null_fd));
    }
}

void
streams_forked(void)
{
    /* edited code may have come there by another number of events */
    if (fork_event == 0 || (core.crossings != fork_event && !core.lenient))
        return;
    fork_event = 0;
    for (int i = 1; i <= 2; i++)
        core.out_fd[i] = real_fd[i];
    for (int fd = 0; fd < 4096; fd++) /* where C code prints by itself */
        if (fd_stream(fd))
            dup3(core.out_fd[fd_stream(fd)], fd, fd <= 2 ? 0 : O_CLOEXEC);
}

void
streams_expect_fork(void)
{
    if (fork_event && !core.lenient)
        diverge("corrupt", NULL, NULL, "the event at which it was forked is not a fork");
}
