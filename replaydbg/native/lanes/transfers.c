/* Functions of the C library that move data through descriptors, or wait until they can be used, as the interpreter and
 * extension modules call them: see libcalls.c, which has those that wait for anything else. */
#include "base/core.h"
#include "clock/clock.h"
#include "lanes/inside.h"
#include "log/log.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* ---- one descriptor ---- */

static bool
waits(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && !(flags & O_NONBLOCK);
}

/* It was not ready just now. 0: it may be; or -1 with EINTR. */
static int
await_change(int fd, short events, const char *waits_for)
{
    HubWait wait = {.fd = fd, .events = (unsigned)(unsigned short)events};
    if (hub_wait(&wait, 1, waits_for, NEVER) != INTERRUPTED)
        return 0;
    errno = EINTR;
    return -1;
}

static bool
is_ready(int fd, short events)
{
    struct pollfd p = {fd, events, 0};
    return poll(&p, 1, 0) != 0;
}

/* In a group of processes: what the program's call has moved. */
static inline ssize_t
counted(ssize_t rc)
{
    if (__builtin_expect(moved_bytes_count, 0) && on_lanes)
        cross_moved(rc);
    return rc;
}

/* Waits until the descriptor is ready: 0, or -1 with EINTR. A call on it does not wait then. */
int
await_ready(int fd, short events, const char *waits_for)
{
    while (!is_ready(fd, events))
        if (await_change(fd, events, waits_for) < 0)
            return -1;
    return 0;
}

/* The same, if a call on it would wait. */
static int
await_if_it_waits(int fd, short events, const char *waits_for)
{
    return is_ready(fd, events) || !waits(fd) ? 0 : await_ready(fd, events, waits_for);
}

static bool
must_await(int fd)
{
    return lanes_share() && waits(fd);
}

#define READ_FROM(fd, what, call)                                                                                      \
    if (lanes_share() && await_if_it_waits(fd, POLLIN, what) < 0)                                                      \
        return -1;                                                                                                     \
    return call

/* A call on a socket that has just said that it would have waited: is it made again? Else errno says why not. */
static bool
socket_again(int fd, short events, const char *waits_for)
{
    if (errno != EAGAIN)
        return false;
    if (!waits(fd)) {
        errno = EAGAIN;
        return false;
    }
    return await_change(fd, events, waits_for) == 0;
}

/* These flags are of calls that never wait, or that wait for more than there is. */
#define RECEIVES_AT_ONCE(flags) (((flags) & (MSG_DONTWAIT | MSG_ERRQUEUE | MSG_OOB)) || !lanes_share())
/* One that waits for all of them, on a stream: whoever is to send them may be another lane. */
#define WAITS_FOR_ALL(fd, flags) (((flags) & (MSG_WAITALL | MSG_PEEK)) == MSG_WAITALL && waits(fd) && sends_bytes(fd))
#define RECEIVE_FROM(fd, flags, call_with)                                                                             \
    ssize_t rc;                                                                                                        \
    if (RECEIVES_AT_ONCE(flags))                                                                                       \
        return call_with(flags);                                                                                       \
    if ((flags) & MSG_WAITALL) {                                                                                       \
        READ_FROM(fd, "data to receive", call_with(flags));                                                            \
    }                                                                                                                  \
    while ((rc = call_with((flags) | MSG_DONTWAIT)) < 0)                                                               \
        if (!socket_again(fd, POLLIN, "data to receive"))                                                              \
            return -1;                                                                                                 \
    return rc

static ssize_t
our_read(int fd, void *to, size_t n)
{
    READ_FROM(fd, "data to read", counted(read(fd, to, n)));
}
static ssize_t
our_readv(int fd, const struct iovec *to, int n)
{
    READ_FROM(fd, "data to read", readv(fd, to, n));
}
static bool
sends_bytes(int fd)
{
    int type = 0;
    socklen_t size = sizeof type;
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
}

static ssize_t
receive_all(int fd, void *to, size_t n, int flags)
{
    size_t done = 0;
    while (done < n) {
        ssize_t rc = recv(fd, (char *)to + done, n - done, (flags & ~MSG_WAITALL) | MSG_DONTWAIT);
        if (rc == 0 || (rc < 0 && !socket_again(fd, POLLIN, "data to receive")))
            return done || rc == 0 ? (ssize_t)done : -1;
        done += rc > 0 ? (size_t)rc : 0;
    }
    return (ssize_t)done;
}

static ssize_t
our_recv(int fd, void *to, size_t n, int flags)
{
    if (__builtin_expect(flags & MSG_WAITALL, 0) && !RECEIVES_AT_ONCE(flags) && WAITS_FOR_ALL(fd, flags))
        return receive_all(fd, to, n, flags);
#define CALL(flags) recv(fd, to, n, flags)
    RECEIVE_FROM(fd, flags, CALL);
#undef CALL
}
static ssize_t
our_recvfrom(int fd, void *to, size_t n, int flags, struct sockaddr *from, socklen_t *size)
{
    if (from == NULL)
        return our_recv(fd, to, n, flags);
#define CALL(flags) recvfrom(fd, to, n, flags, from, size)
    RECEIVE_FROM(fd, flags, CALL);
#undef CALL
}
static ssize_t
our_recvmsg(int fd, struct msghdr *to, int flags)
{
#define CALL(flags) recvmsg(fd, to, flags)
    RECEIVE_FROM(fd, flags, CALL);
#undef CALL
}
static int
accept_now(int fd, struct sockaddr *from, socklen_t *size, int flags)
{
    int result;
    return core.is_future && lanes_hooks.accepts(fd, from, size, flags, &result) ? result
                                                                                 : accept4(fd, from, size, flags);
}
static int
our_accept4(int fd, struct sockaddr *from, socklen_t *size, int flags)
{
    READ_FROM(fd, "a connection", accept_now(fd, from, size, flags));
}
static int
our_accept(int fd, struct sockaddr *from, socklen_t *size)
{
    return our_accept4(fd, from, size, 0);
}
static ssize_t
our_read_chk(int fd, void *to, size_t n, size_t room)
{
    return our_read(fd, to, n);
}
static ssize_t
our_recv_chk(int fd, void *to, size_t n, size_t room, int flags)
{
    return our_recv(fd, to, n, flags);
}
static ssize_t
our_recvfrom_chk(int fd, void *to, size_t n, size_t room, int flags, struct sockaddr *from, socklen_t *size)
{
    return our_recvfrom(fd, to, n, flags, from, size);
}

const char waits_for_room_to_send[] = "room to send";

/* ---- writing: a blocking call gives everything, in pieces ---- */

/* A pipe or terminal that is ready takes this much without waiting. */
#define PIECE 4096

static bool
is_stream(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode) || S_ISSOCK(st.st_mode));
}

static ssize_t
our_write(int fd, const void *from, size_t n)
{
    if (n <= PIECE && lanes_share())
        return await_if_it_waits(fd, POLLOUT, "room to write") < 0 ? -1 : write(fd, from, n);
    if (!must_await(fd) || !is_stream(fd))
        return write(fd, from, n);
    size_t done = 0;
    do {
        size_t piece = n - done < PIECE ? n - done : PIECE;
        ssize_t rc = await_ready(fd, POLLOUT, "room to write") < 0 ? -1 : write(fd, (const char *)from + done, piece);
        if (rc < 0)
            return done ? (ssize_t)done : -1;
        done += (size_t)rc;
        if (rc == 0)
            break;
    } while (done < n);
    return (ssize_t)done;
}

static ssize_t
our_writev(int fd, const struct iovec *from, int n)
{
    if (!must_await(fd) || !is_stream(fd))
        return writev(fd, from, n);
    ssize_t done = 0;
    for (int i = 0; i < n; i++) {
        ssize_t rc = our_write(fd, from[i].iov_base, from[i].iov_len);
        if (rc < 0)
            return done ? done : -1;
        done += rc;
        if ((size_t)rc < from[i].iov_len)
            break;
    }
    return done;
}

static inline ssize_t
sent_to(ssize_t rc, const struct sockaddr *to, socklen_t size)
{
    if (__builtin_expect(moved_bytes_count, 0) && on_lanes && to && rc >= 0)
        endpoint_sent_to(to, size);
    return counted(rc);
}

static ssize_t
our_sendto(int fd, const void *from, size_t n, int flags, const struct sockaddr *to, socklen_t size)
{
    if ((flags & MSG_DONTWAIT) || !lanes_share())
        return sent_to(sendto(fd, from, n, flags, to, size), to, size);
    size_t done = 0;
    for (;;) {
        ssize_t rc = sent_to(sendto(fd, (const char *)from + done, n - done, flags | MSG_DONTWAIT, to, size), to, size);
        if (rc > 0)
            done += (size_t)rc;
        if (rc >= 0 && (done >= n || !waits(fd)))
            return (ssize_t)done;
        if (rc < 0 && !socket_again(fd, POLLOUT, waits_for_room_to_send))
            return done ? (ssize_t)done : -1;
    }
}

static ssize_t
our_send(int fd, const void *from, size_t n, int flags)
{
    return our_sendto(fd, from, n, flags, NULL, 0);
}

static ssize_t
our_sendmsg(int fd, const struct msghdr *message, int flags)
{
    if (core.is_future && message->msg_name == NULL && message->msg_controllen == 0)
        return our_writev(fd, message->msg_iov, (int)message->msg_iovlen); /* the fence sees no address in a message */
    if ((flags & MSG_DONTWAIT) || !lanes_share())
        return sent_to(sendmsg(fd, message, flags), message->msg_name, message->msg_namelen);
    for (;;) {
        ssize_t rc = sent_to(sendmsg(fd, message, flags | MSG_DONTWAIT), message->msg_name, message->msg_namelen);
        if (rc >= 0 || !socket_again(fd, POLLOUT, waits_for_room_to_send))
            return rc;
    }
}

static ssize_t
our_sendfile(int to, int from, off_t *offset, size_t n)
{
    size_t done = 0;
    if (!must_await(to))
        return sendfile(to, from, offset, n);
    do {
        if (await_ready(to, POLLOUT, waits_for_room_to_send) < 0)
            return done ? (ssize_t)done : -1;
        /* there is room for something, not for everything, and the call has no flags of its own */
        int flags = fcntl(to, F_GETFL);
        fcntl(to, F_SETFL, flags | O_NONBLOCK);
        ssize_t rc = sendfile(to, from, offset, n - done);
        int error = errno;
        fcntl(to, F_SETFL, flags);
        if (rc < 0 && error == EAGAIN)
            continue;
        errno = error;
        if (rc < 0)
            return done ? (ssize_t)done : -1;
        if (rc == 0)
            break;
        done += (size_t)rc;
    } while (done < n);
    return (ssize_t)done;
}

/* ---- a number that will be another file's ---- */

int
our_close(int fd)
{
    hub_closing(fd);
    endpoint_forget(fd);
    return close(fd);
}

static int
our_dup2(int from, int to)
{
    hub_closing(to);
    endpoint_forget(to);
    return dup2(from, to);
}

static int
our_dup3(int from, int to, int flags)
{
    hub_closing(to);
    endpoint_forget(to);
    return dup3(from, to, flags);
}

/* ---- several descriptors ---- */

uint64_t
deadline_in(int64_t ns)
{
    return ns < 0 ? NEVER : time_now() + (uint64_t)ns;
}

#define FEW 32

static int
poll_until(struct pollfd *fds, nfds_t n, uint64_t deadline)
{
    HubWait few[FEW], *waits = n <= FEW ? few : malloc(n * sizeof *waits);
    int rc = 0;
    if (waits == NULL) {
        errno = ENOMEM;
        return -1;
    }
    for (;;) {
        rc = poll(fds, n, 0);
        if (rc != 0)
            break;
        for (nfds_t i = 0; i < n; i++)
            waits[i] = (HubWait){.fd = fds[i].fd, .events = (unsigned)(unsigned short)fds[i].events};
        Wake wake = hub_wait(waits, (int)n, "descriptors", deadline);
        if (wake == WOKEN)
            continue;
        rc = wake == INTERRUPTED ? -1 : poll(fds, n, 0);
        if (rc < 0)
            errno = EINTR;
        break;
    }
    if (waits != few)
        free(waits);
    return rc;
}

static int
our_poll(struct pollfd *fds, nfds_t n, int milliseconds)
{
    int rc = milliseconds == 0 || !lanes_share()
                 ? poll(fds, n, milliseconds)
                 : poll_until(fds, n, deadline_in(milliseconds < 0 ? -1 : milliseconds * 1000000LL));
    for (nfds_t i = 0; core.is_future && rc > 0 && i < n; i++)
        if (fds[i].revents & POLLHUP)
            fds[i].revents = (short)lanes_hooks.hung_up(fds[i].fd, (unsigned)fds[i].revents);
    return rc;
}

static int
our_poll_chk(struct pollfd *fds, nfds_t n, int milliseconds, size_t room)
{
    return our_poll(fds, n, milliseconds);
}

static int
our_select(int n, fd_set *reads, fd_set *writes, fd_set *exceptions, struct timeval *time)
{
    struct pollfd fds[FD_SETSIZE];
    nfds_t used = 0;
    if (!lanes_share() || (time && time->tv_sec == 0 && time->tv_usec == 0))
        return select(n, reads, writes, exceptions, time);
    for (int fd = 0; fd < n && fd < FD_SETSIZE; fd++) {
        short events =
            (short)((reads && FD_ISSET(fd, reads) ? POLLIN : 0) | (writes && FD_ISSET(fd, writes) ? POLLOUT : 0) |
                    (exceptions && FD_ISSET(fd, exceptions) ? POLLPRI : 0));
        if (events)
            fds[used++] = (struct pollfd){fd, events, 0};
    }
    int rc = poll_until(fds, used, deadline_in(time ? time->tv_sec * 1000000000LL + time->tv_usec * 1000LL : -1));
    if (rc < 0)
        return -1;
    struct timeval now = {0, 0}; /* the real one says what is ready, in its own words */
    return select(n, reads, writes, exceptions, &now);
}

/* The interpreter's `data` is the descriptor. */
static int
ready_now(struct epoll_event *events, int rc)
{
    for (int i = 0; core.is_future && i < rc; i++)
        if (events[i].events & EPOLLHUP)
            events[i].events = lanes_hooks.hung_up(events[i].data.fd, events[i].events);
    return schedule_ready(events, rc);
}

static int
our_epoll_wait(int epoll, struct epoll_event *events, int most, int milliseconds)
{
    schedule_pauses();
    if (milliseconds == 0 || !lanes_share())
        return ready_now(events, epoll_wait(epoll, events, most, milliseconds));
    uint64_t deadline = 0;
    for (;;) {
        int rc = epoll_wait(epoll, events, most, 0);
        if (rc != 0)
            return ready_now(events, rc);
        HubWait wait = {.fd = epoll, .events = POLLIN};
        if (deadline == 0)
            deadline = deadline_in(milliseconds < 0 ? -1 : milliseconds * 1000000LL);
        Wake wake = hub_wait(&wait, 1, "descriptors", deadline);
        if (wake == TIMED_OUT)
            return ready_now(events, epoll_wait(epoll, events, most, 0));
        if (wake == INTERRUPTED) {
            errno = EINTR;
            return -1;
        }
    }
}

const Relink transfer_functions[] = {OURS(read),
                                     OURS(readv),
                                     OURS(recv),
                                     OURS(recvfrom),
                                     OURS(recvmsg),
                                     OURS(accept),
                                     OURS(accept4),
                                     {"__read_chk", (void *)our_read_chk},
                                     {"__recv_chk", (void *)our_recv_chk},
                                     {"__recvfrom_chk", (void *)our_recvfrom_chk},
                                     OURS(write),
                                     OURS(writev),
                                     OURS(send),
                                     OURS(sendto),
                                     OURS(sendmsg),
                                     OURS(sendfile),
                                     {"sendfile64", (void *)our_sendfile},
                                     OURS(close),
                                     OURS(dup2),
                                     OURS(dup3),
                                     OURS(poll),
                                     {"__poll_chk", (void *)our_poll_chk},
                                     OURS(select),
                                     OURS(epoll_wait),
                                     {NULL, NULL}};
