/* Pipes, pairs of sockets and epoll objects of a replay of which copies go on: each copy gets its own, with what is under
 * way in them. A copy would otherwise read what another one has written. */
#include "base/core.h"
#include "files/files.h"
#include "files/inside.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ABOVE = 512, PIECE = 65536 };

/* One direction: what the descriptors of one inode are to read. */
typedef struct {
    ino_t inode, peer; /* of a pipe the same */
    Buf under_way;
    int room;      /* of a socket */
    bool is_ended; /* the other side sends no more */
    int made[2];   /* in a copy: its own ends, that of `inode` first, of a pipe that which reads; -1: not made */
} Channel;
static Channel *channels;
static size_t channel_count;

static Channel *
channel_of(ino_t inode)
{
    for (size_t i = 0; i < channel_count; i++)
        if (channels[i].inode == inode)
            return &channels[i];
    return NULL;
}

static bool
reads(int fd, const struct stat *st)
{
    return S_ISSOCK(st->st_mode) || (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY;
}

static void
take_all(int fd, Buf *to)
{
    static char piece[PIECE];
    int flags = fcntl(fd, F_GETFL);
    ssize_t n;
    fcntl(fd, F_SETFL, flags | O_NONBLOCK);
    while ((n = read(fd, piece, sizeof piece)) > 0)
        buf_bytes(to, piece, (size_t)n);
    fcntl(fd, F_SETFL, flags);
}

static void
add_channel(ino_t inode, ino_t peer)
{
    if (channel_of(inode))
        return;
    channels = grown(channels, channel_count + 1, sizeof *channels);
    channels[channel_count++] = (Channel){.inode = inode, .peer = peer, .made = {-1, -1}};
}

/* As it is set: the kernel doubles it. */
static int
room_of(int fd)
{
    int room = 0;
    socklen_t size = sizeof room;
    return getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, &size) == 0 ? room / 2 : 0;
}

static bool
is_ended(int fd)
{
    struct pollfd p = {fd, POLLRDHUP, 0};
    return poll(&p, 1, 0) > 0 && (p.revents & POLLRDHUP);
}

void
fd_part_begin(void)
{
    struct stat st;
    for (int fd = 3; fd < MOST_LOOKED_AT; fd++)
        if (!fd_is_ours(fd) && fd_is_real(fd) && fstat(fd, &st) == 0) {
            add_channel(st.st_ino, fd_peer(st.st_ino));
            channel_of(st.st_ino)->room = room_of(fd);
            channel_of(st.st_ino)->is_ended = is_ended(fd);
            if (reads(fd, &st))
                take_all(fd, &channel_of(st.st_ino)->under_way);
        }
}

static void
fill(int fd, const Buf *data)
{
    int flags = fcntl(fd, F_GETFL);
    fcntl(fd, F_SETFL, flags | O_NONBLOCK);
    for (size_t done = 0; done < data->used;) {
        ssize_t n = write(fd, data->data + done, data->used - done);
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    fcntl(fd, F_SETFL, flags);
}

int
fd_moved(int fd)
{
    int high = fcntl(fd, F_DUPFD_CLOEXEC, ABOVE);
    close(fd);
    return high;
}

static bool
make_channel(Channel *c)
{
    int ends[2];
    Channel *other = c->peer == c->inode ? NULL : channel_of(c->peer);
    if (c->made[0] >= 0)
        return true;
    if ((c->peer == c->inode ? pipe2(ends, O_CLOEXEC) : socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) < 0)
        return false;
    if (c->peer != c->inode)
        setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &c->room, sizeof c->room);
    if (other)
        setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &other->room, sizeof other->room);
    c->made[0] = fd_moved(ends[0]);
    c->made[1] = fd_moved(ends[1]);
    if (other) {
        other->made[0] = c->made[1];
        other->made[1] = c->made[0];
        fill(c->made[0], &other->under_way);
    }
    fill(c->made[1], &c->under_way);
    if (c->is_ended)
        shutdown(c->made[1], SHUT_WR);
    if (other && other->is_ended)
        shutdown(c->made[0], SHUT_WR);
    return c->made[0] >= 0 && c->made[1] >= 0;
}

static bool
replace(int fd)
{
    struct stat st;
    if (fd_is_ours(fd) || !fd_is_real(fd) || fstat(fd, &st) < 0)
        return true;
    Channel *c = channel_of(st.st_ino);
    int flags = fcntl(fd, F_GETFL), closes = fcntl(fd, F_GETFD) & FD_CLOEXEC;
    if (c == NULL || !make_channel(c))
        return false;
    int own = c->made[reads(fd, &st) ? 0 : 1];
    return dup3(own, fd, closes ? O_CLOEXEC : 0) == fd && fcntl(fd, F_SETFL, flags & O_NONBLOCK) == 0;
}

bool
fd_part(void)
{
    bool is_done = true;
    bool is_channel[MOST_LOOKED_AT] = {false}; /* of the new ones nothing is replaced again */
    for (int fd = 3; fd < MOST_LOOKED_AT; fd++)
        is_channel[fd] = !fd_is_ours(fd) && fd_is_real(fd);
    for (int fd = 3; fd < MOST_LOOKED_AT && is_done; fd++)
        is_done = !is_channel[fd] || replace(fd);
    for (size_t i = 0; i < channel_count; i++)
        for (int end = 0; end < 2; end++)
            close(channels[i].made[end]); /* a pair's are there twice, which does no harm */
    return is_done;
}

bool
fd_part_epoll(int number, const int *fds, const uint32_t *masks, size_t n)
{
    int own = epoll_create1(EPOLL_CLOEXEC);
    if (own < 0 || dup3(own, number, O_CLOEXEC) < 0)
        return false;
    close(own);
    for (size_t i = 0; i < n; i++) {
        struct epoll_event event = {.events = masks[i], .data.fd = fds[i]};
        if (epoll_ctl(number, EPOLL_CTL_ADD, fds[i], &event) < 0)
            return false;
    }
    return true;
}
