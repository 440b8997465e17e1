/* A standby of which images are made, by CRIU. An image cannot contain a connection to the launcher, nor a pidfd of the
 * program that is followed. So the process has neither until it is due to go live: it shares a page of a file with its
 * launcher, and connects to it then. The file of a process that comes out of an image is another one, with other
 * contents; it is mapped by whoever restores the image. */
#include "base/core.h"
#include "log/log.h"
#include "resume/inside.h"
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* Bringing a process back, CRIU has some 80 descriptors of its own above the highest number. Without CAP_SYS_RESOURCE it
 * cannot raise the limit for that. */
enum { ROOM = 256 };

static StandbyPage *page; /* never unmapped: it is not much, and only of a standby */

int
standby_page_open(int fd)
{
    struct stat st;
    if (fd < 0)
        return 0;
    if (fstat(fd, &st) < 0 || (size_t)st.st_size < sizeof *page)
        return -1;
    void *p = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (p == MAP_FAILED)
        return -1;
    page = p;
    fd_leave_room(ROOM);
    log_follow_page(page);
    return 0;
}

/* The other end of what stood for the standard input is the launcher's: no image can contain that. The interpreter has
 * seen by now what kind of a stream it is. */
void
standby_hide_input(void)
{
    if (page)
        dup2(core.null_fd, 0);
}

/* The launcher may be another one than at the start. */
void
standby_page_directory(void)
{
    if (page == NULL)
        return;
    free(core.live_dir);
    core.live_dir = strndup(page->live_dir, sizeof page->live_dir - 1);
}

int
standby_page_connect(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (page == NULL)
        return -1;
    memcpy(address.sun_path, page->socket, sizeof address.sun_path - 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) < 0) {
        close(fd);
        return -1;
    }
    return fd < 0 ? -1 : fd_keep(fd);
}
