/* What C code prints by itself in a replay that the debugger travels through: it goes to a memory file, and is taken
 * from there at each event, so that the debugger shows it where it was printed, with the lines of Python around it.
 * Only the process that runs the whole program first collects it; its clones write nowhere. */
#define _GNU_SOURCE
#include "base/core.h"
#include "files/inside.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool captures;

void
streams_capture(void)
{
    for (int i = 1; i <= 2; i++) {
        int fd = memfd_create("replaydbg-output", MFD_CLOEXEC);
        if (fd < 0)
            return;
        fcntl(fd, F_SETFL, O_APPEND);
        core.out_fd[i] = fd_keep(fd);
    }
    captures = true;
}

static void
lead_to(int i, int fd)
{
    syscall(SYS_dup3, fd, core.out_fd[i], O_CLOEXEC, own_token());
    for (int each = 0; each < 4096; each++)
        if (fd_stream(each) == i)
            syscall(SYS_dup3, fd, each, O_CLOEXEC, own_token());
}

bool
streams_are_collected(void)
{
    for (int i = 1; captures && i <= 2; i++)
        if (lseek(core.out_fd[i], 0, SEEK_END) > 0)
            return false;
    return true;
}

void
streams_join(void)
{
    captures = true;
    for (int i = 1; i <= 2; i++) {
        int fd = memfd_create("replaydbg-output", MFD_CLOEXEC);
        captures = captures && fd >= 0 && fcntl(fd, F_SETFL, O_APPEND) == 0;
        if (fd >= 0) {
            lead_to(i, fd);
            close(fd);
        }
    }
}

void
streams_collect(void)
{
    uint8_t piece[4096];
    for (int i = 1; captures && i <= 2; i++) {
        off_t size = lseek(core.out_fd[i], 0, SEEK_END), at = 0;
        while (at < size) {
            ssize_t k = pread(core.out_fd[i], piece, sizeof piece, at);
            if (k <= 0)
                break;
            files_hooks.written(i, piece, (size_t)k);
            at += k;
        }
        if (size > 0 && stream_cut(core.out_fd[i], 0) < 0)
            captures = false;
    }
}

void
streams_leave(void)
{
    if (!captures)
        return;
    captures = false;
    for (int fd = 0; fd < 4096; fd++)
        if (fd_stream(fd))
            syscall(SYS_dup3, core.null_fd, fd, O_CLOEXEC, own_token());
    for (int i = 1; i <= 2; i++)
        syscall(SYS_dup3, core.null_fd, core.out_fd[i], O_CLOEXEC, own_token());
}
