/* Functions of the C library that wait for the outside, as the interpreter and extension modules call them. While recording, and while
 * there are several lanes, whoever would wait lets others run until the hub says that there is something. Otherwise they are the
 * real ones; so they are for whoever waits with the interpreter's lock in hand, for whom everybody waits without us too. */
#include "lanes.h"
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
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

/* Waits until the descriptor is ready: 0, or -1 with EINTR. A call on it does not wait then. */
static int
await(int fd, short events, const char *waits_for)
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
    return is_ready(fd, events) || !waits(fd) ? 0 : await(fd, events, waits_for);
}

static bool
must_await(int fd)
{
    return lanes_share() && waits(fd);
}

#define READ_FROM(fd, what, call) \
    if (lanes_share() && await_if_it_waits(fd, POLLIN, what) < 0) \
        return -1; \
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
#define RECEIVE_FROM(fd, flags, call_with) \
    ssize_t rc; \
    if (RECEIVES_AT_ONCE(flags)) \
        return call_with(flags); \
    if ((flags) & MSG_WAITALL) { \
        READ_FROM(fd, "data to receive", call_with(flags)); \
    } \
    while ((rc = call_with((flags) | MSG_DONTWAIT)) < 0) \
        if (!socket_again(fd, POLLIN, "data to receive")) \
            return -1; \
    return rc

static ssize_t our_read(int fd, void *to, size_t n) { READ_FROM(fd, "data to read", read(fd, to, n)); }
static ssize_t our_readv(int fd, const struct iovec *to, int n) { READ_FROM(fd, "data to read", readv(fd, to, n)); }
static ssize_t our_recv(int fd, void *to, size_t n, int flags)
{
#define CALL(flags) recv(fd, to, n, flags)
    RECEIVE_FROM(fd, flags, CALL);
#undef CALL
}
static ssize_t our_recvfrom(int fd, void *to, size_t n, int flags, struct sockaddr *from, socklen_t *size)
{
#define CALL(flags) recvfrom(fd, to, n, flags, from, size)
    RECEIVE_FROM(fd, flags, CALL);
#undef CALL
}
static ssize_t our_recvmsg(int fd, struct msghdr *to, int flags)
{
#define CALL(flags) recvmsg(fd, to, flags)
    RECEIVE_FROM(fd, flags, CALL);
#undef CALL
}
static int our_accept(int fd, struct sockaddr *from, socklen_t *size) { READ_FROM(fd, "a connection", accept(fd, from, size)); }
static int our_accept4(int fd, struct sockaddr *from, socklen_t *size, int flags)
{
    READ_FROM(fd, "a connection", accept4(fd, from, size, flags));
}
static ssize_t our_read_chk(int fd, void *to, size_t n, size_t room) { return our_read(fd, to, n); }
static ssize_t our_recv_chk(int fd, void *to, size_t n, size_t room, int flags) { return our_recv(fd, to, n, flags); }
static ssize_t our_recvfrom_chk(int fd, void *to, size_t n, size_t room, int flags, struct sockaddr *from, socklen_t *size)
{
    return our_recvfrom(fd, to, n, flags, from, size);
}

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
        ssize_t rc = await(fd, POLLOUT, "room to write") < 0 ? -1 : write(fd, (const char *)from + done, piece);
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

static ssize_t
our_sendto(int fd, const void *from, size_t n, int flags, const struct sockaddr *to, socklen_t size)
{
    if ((flags & MSG_DONTWAIT) || !lanes_share())
        return sendto(fd, from, n, flags, to, size);
    size_t done = 0;
    for (;;) {
        ssize_t rc = sendto(fd, (const char *)from + done, n - done, flags | MSG_DONTWAIT, to, size);
        if (rc > 0)
            done += (size_t)rc;
        if (rc >= 0 && (done >= n || !waits(fd)))
            return (ssize_t)done;
        if (rc < 0 && !socket_again(fd, POLLOUT, "room to send"))
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
    if ((flags & MSG_DONTWAIT) || !lanes_share())
        return sendmsg(fd, message, flags);
    for (;;) {
        ssize_t rc = sendmsg(fd, message, flags | MSG_DONTWAIT);
        if (rc >= 0 || !socket_again(fd, POLLOUT, "room to send"))
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
        if (await(to, POLLOUT, "room to send") < 0)
            return done ? (ssize_t)done : -1;
        int flags = fcntl(to, F_GETFL); /* there is room for something, not for everything, and the call has no flags of its own */
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

static int
our_close(int fd)
{
    hub_closed(fd);
    return close(fd);
}

static int
our_dup2(int from, int to)
{
    hub_closed(to);
    return dup2(from, to);
}

static int
our_dup3(int from, int to, int flags)
{
    hub_closed(to);
    return dup3(from, to, flags);
}

/* ---- several descriptors ---- */

static uint64_t
deadline_in(int64_t ns)
{
    return ns < 0 ? NEVER : monotonic_ns() + (uint64_t)ns;
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
    if (milliseconds == 0 || !lanes_share())
        return poll(fds, n, milliseconds);
    return poll_until(fds, n, deadline_in(milliseconds < 0 ? -1 : milliseconds * 1000000LL));
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
        short events = (short)((reads && FD_ISSET(fd, reads) ? POLLIN : 0) | (writes && FD_ISSET(fd, writes) ? POLLOUT : 0) |
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

static int
our_epoll_wait(int epoll, struct epoll_event *events, int most, int milliseconds)
{
    if (milliseconds == 0 || !lanes_share())
        return epoll_wait(epoll, events, most, milliseconds);
    uint64_t deadline = 0;
    for (;;) {
        int rc = epoll_wait(epoll, events, most, 0);
        if (rc != 0)
            return rc;
        HubWait wait = {.fd = epoll, .events = POLLIN};
        if (deadline == 0)
            deadline = deadline_in(milliseconds < 0 ? -1 : milliseconds * 1000000LL);
        Wake wake = hub_wait(&wait, 1, "descriptors", deadline);
        if (wake == TIMED_OUT)
            return epoll_wait(epoll, events, most, 0);
        if (wake == INTERRUPTED) {
            errno = EINTR;
            return -1;
        }
    }
}

/* ---- time ---- */

static int
our_clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left)
{
    struct timespec now;
    if (!lanes_share() || time->tv_sec < 0 || time->tv_nsec < 0 || time->tv_nsec > 999999999)
        return clock_nanosleep(clock, flags, time, left);
    int64_t ns = time->tv_sec > INT32_MAX ? INT64_MAX / 4 : time->tv_sec * 1000000000LL + time->tv_nsec;
    if (flags & TIMER_ABSTIME) {
        clock_gettime(clock, &now);
        ns -= now.tv_sec * 1000000000LL + now.tv_nsec;
    }
    if (ns <= 0) {
        lane_yield();
        return 0;
    }
    uint64_t deadline = deadline_in(ns);
    Wake wake = lane_wait(NULL, "a time", deadline, true);
    if (wake == INTERRUPTED && left && !(flags & TIMER_ABSTIME)) {
        uint64_t at = monotonic_ns(), rest = deadline > at ? deadline - at : 0;
        *left = (struct timespec){(time_t)(rest / 1000000000), (long)(rest % 1000000000)};
    }
    return wake == INTERRUPTED ? EINTR : 0;
}

static int
our_nanosleep(const struct timespec *time, struct timespec *left)
{
    int rc = our_clock_nanosleep(CLOCK_MONOTONIC, 0, time, left);
    if (rc)
        errno = rc;
    return rc ? -1 : 0;
}

static int
our_sched_yield(void)
{
    if (lanes_share())
        lane_yield();
    return sched_yield();
}

/* ---- children ---- */

typedef struct {
    idtype_t type;
    id_t id;
    siginfo_t *info;
    int options;
} WaitId;

static long
wait_in_helper(void *argument)
{
    WaitId *w = argument;
    return waitid(w->type, w->id, w->info, w->options);
}

/* Until there is something to know of such children; it is left for the call that follows. */
static int
await_child(pid_t pid, int options)
{
    siginfo_t info;
    int which = WEXITED | (options & WUNTRACED ? WSTOPPED : 0) | (options & WCONTINUED);
    WaitId w = {pid > 0 ? P_PID : pid == -1 ? P_ALL : P_PGID, (id_t)(pid > 0 ? pid : pid < -1 ? -pid : getpgrp()), &info, which | WNOWAIT};
    if ((options & WNOHANG) || !lanes_share())
        return 0;
    if (pid > 0 && which == WEXITED) {
        int fd = (int)syscall(SYS_pidfd_open, pid, 0);
        if (fd >= 0) {
            int rc = await(fd, POLLIN, "a child process");
            int error = errno;
            our_close(fd);
            errno = error;
            return rc;
        }
    }
    return (int)hub_help(wait_in_helper, &w, "a child process") < 0 && errno == EINTR ? -1 : 0;
}

static pid_t
our_waitpid(pid_t pid, int *status, int options)
{
    return await_child(pid, options) < 0 ? -1 : waitpid(pid, status, options);
}

static pid_t
our_wait(int *status)
{
    return our_waitpid(-1, status, 0);
}

static pid_t
our_wait4(pid_t pid, int *status, int options, struct rusage *usage)
{
    return await_child(pid, options) < 0 ? -1 : wait4(pid, status, options, usage);
}

static pid_t
our_wait3(int *status, int options, struct rusage *usage)
{
    return our_wait4(-1, status, options, usage);
}

static int
our_waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
    WaitId w = {type, id, info, options};
    return (options & WNOHANG) || !lanes_share() ? waitid(type, id, info, options) : (int)hub_help(wait_in_helper, &w, "a child process");
}

/* ---- signals that are taken like messages ---- */

/* Until one of them is pending; it is left for the call that follows. */
static Wake
await_signal(const sigset_t *set, uint64_t deadline)
{
    HubWait wait = {.fd = signalfd(-1, set, SFD_CLOEXEC | SFD_NONBLOCK), .events = POLLIN};
    Wake wake = hub_wait(&wait, 1, "a signal", deadline);
    if (wait.fd >= 0)
        our_close(wait.fd);
    return wake;
}

static int
our_sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *time)
{
    const struct timespec none = {0, 0};
    uint64_t deadline = time ? deadline_in(time->tv_sec * 1000000000LL + time->tv_nsec) : NEVER;
    if (!lanes_share())
        return sigtimedwait(set, info, time);
    for (;;) {
        int signum = sigtimedwait(set, info, &none);
        if (signum > 0 || errno != EAGAIN)
            return signum;
        Wake wake = await_signal(set, deadline);
        if (wake != WOKEN) {
            errno = wake == TIMED_OUT ? EAGAIN : EINTR;
            return -1;
        }
    }
}

static int
our_sigwaitinfo(const sigset_t *set, siginfo_t *info)
{
    return our_sigtimedwait(set, info, NULL);
}

static int
our_sigwait(const sigset_t *set, int *signum)
{
    if (!lanes_share())
        return sigwait(set, signum);
    do
        *signum = our_sigtimedwait(set, NULL, NULL);
    while (*signum < 0 && errno == EINTR);
    return *signum < 0 ? errno : 0;
}

/* ---- what can only be waited for by calling it ---- */

typedef struct {
    long a[8];
} Words;

static long help_flock(void *w) { return flock((int)((Words *)w)->a[0], (int)((Words *)w)->a[1]); }
static long help_lockf(void *w) { return lockf((int)((Words *)w)->a[0], (int)((Words *)w)->a[1], (off_t)((Words *)w)->a[2]); }
static long help_fcntl(void *w) { return fcntl((int)((Words *)w)->a[0], (int)((Words *)w)->a[1], ((Words *)w)->a[2]); }
static long help_open(void *w)
{
    Words *words = w;
    return openat((int)words->a[0], (const char *)words->a[1], (int)words->a[2], (mode_t)words->a[3]);
}
static long help_connect(void *w)
{
    Words *words = w;
    return connect((int)words->a[0], (const struct sockaddr *)words->a[1], (socklen_t)words->a[2]);
}
static long help_addresses(void *w)
{
    Words *words = w;
    return getaddrinfo((const char *)words->a[0], (const char *)words->a[1], (const struct addrinfo *)words->a[2], (struct addrinfo **)words->a[3]);
}
static long help_name(void *w)
{
    Words *words = w;
    return getnameinfo((const struct sockaddr *)words->a[0], (socklen_t)words->a[1], (char *)words->a[2], (socklen_t)words->a[3],
                       (char *)words->a[4], (socklen_t)words->a[5], (int)words->a[6]);
}
static long help_sem_wait(void *w) { return sem_wait((sem_t *)((Words *)w)->a[0]); }
static long help_sem_timedwait(void *w)
{
    return sem_timedwait((sem_t *)((Words *)w)->a[0], (const struct timespec *)((Words *)w)->a[1]);
}

#define W(...) &(Words){{__VA_ARGS__}}

static int
our_flock(int fd, int operation)
{
    if ((operation & LOCK_NB) || !lanes_share() || flock(fd, operation | LOCK_NB) == 0)
        return (operation & LOCK_NB) || !lanes_share() ? flock(fd, operation) : 0;
    return errno == EWOULDBLOCK ? (int)hub_help(help_flock, W(fd, operation), "a file lock") : -1;
}

static int
our_lockf(int fd, int command, off_t size)
{
    if (command != F_LOCK || !lanes_share())
        return lockf(fd, command, size);
    return (int)hub_help(help_lockf, W(fd, command, size), "a file lock");
}

static int
our_fcntl(int fd, int command, ...)
{
    va_list args;
    va_start(args, command);
    long argument = va_arg(args, long);
    va_end(args);
    if ((command == F_SETLKW || command == F_OFD_SETLKW) && lanes_share())
        return (int)hub_help(help_fcntl, W(fd, command, argument), "a file lock");
    return fcntl(fd, command, argument);
}

/* A named pipe is open when somebody has opened its other end. */
static int
open_at(int dir, const char *path, int flags, mode_t mode)
{
    struct stat st;
    if ((flags & O_NONBLOCK) || !lanes_share() || fstatat(dir, path, &st, 0) < 0 || !S_ISFIFO(st.st_mode))
        return openat(dir, path, flags, mode);
    return (int)hub_help(help_open, W(dir, (long)path, flags, mode), "the other end of a named pipe");
}

static int
our_open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    int mode = va_arg(args, int);
    va_end(args);
    return open_at(AT_FDCWD, path, flags, (mode_t)mode);
}

static int
our_openat(int dir, const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    int mode = va_arg(args, int);
    va_end(args);
    return open_at(dir, path, flags, (mode_t)mode);
}

/* Begun without waiting, as on a socket that does not wait, and waited for in the hub; only for what cannot be begun so (a Unix socket whose
 * listener is busy) a helper waits. */
static int
our_connect(int fd, const struct sockaddr *to, socklen_t size)
{
    int flags = lanes_share() ? fcntl(fd, F_GETFL) : -1, error = 0;
    if (flags < 0 || (flags & O_NONBLOCK))
        return connect(fd, to, size);
    socklen_t length = sizeof error;
    fcntl(fd, F_SETFL, flags | O_NONBLOCK);
    int rc = connect(fd, to, size), failed = errno;
    fcntl(fd, F_SETFL, flags);
    if (rc < 0 && failed == EAGAIN)
        return (int)hub_help(help_connect, W(fd, (long)to, size), "a connection");
    if (rc == 0 || failed != EINPROGRESS) {
        errno = failed;
        return rc;
    }
    if (await(fd, POLLOUT, "a connection") < 0)
        return -1; /* interrupted: it goes on being made, as it does when the kernel says so */
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0 || error == 0)
        return 0;
    errno = error;
    return -1;
}

static int
our_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **found)
{
    if (!lanes_share())
        return getaddrinfo(node, service, hints, found);
    struct addrinfo numeric = hints ? *hints : (struct addrinfo){.ai_flags = AI_V4MAPPED | AI_ADDRCONFIG};
    numeric.ai_flags |= AI_NUMERICHOST; /* nobody is asked about a number */
    if (getaddrinfo(node, service, &numeric, found) == 0)
        return 0;
    return (int)hub_help(help_addresses, W((long)node, (long)service, (long)hints, (long)found), "an address");
}

static int
our_getnameinfo(const struct sockaddr *of, socklen_t size, char *host, socklen_t host_size, char *service, socklen_t service_size, int flags)
{
    if (!lanes_share())
        return getnameinfo(of, size, host, host_size, service, service_size, flags);
    return (int)hub_help(help_name, W((long)of, size, (long)host, host_size, (long)service, service_size, flags), "a name");
}

static int
our_sem_wait(sem_t *semaphore)
{
    if (!lanes_share())
        return sem_wait(semaphore);
    return sem_trywait(semaphore) == 0 ? 0 : (int)hub_help(help_sem_wait, W((long)semaphore), "a semaphore");
}

static int
our_sem_timedwait(sem_t *semaphore, const struct timespec *time)
{
    if (!lanes_share())
        return sem_timedwait(semaphore, time);
    return sem_trywait(semaphore) == 0 ? 0 : (int)hub_help(help_sem_timedwait, W((long)semaphore, (long)time), "a semaphore");
}

#define ROW(name) {#name, (void *)our_##name}

static const Relink functions[] = {
    ROW(read), ROW(readv), ROW(recv), ROW(recvfrom), ROW(recvmsg), ROW(accept), ROW(accept4), {"__read_chk", (void *)our_read_chk},
    {"__recv_chk", (void *)our_recv_chk}, {"__recvfrom_chk", (void *)our_recvfrom_chk}, ROW(write), ROW(writev), ROW(send),
    ROW(sendto), ROW(sendmsg), ROW(sendfile), {"sendfile64", (void *)our_sendfile}, ROW(poll), {"__poll_chk", (void *)our_poll_chk},
    ROW(select), ROW(epoll_wait), ROW(clock_nanosleep), ROW(nanosleep), ROW(sched_yield), ROW(wait), ROW(waitpid), ROW(wait3),
    ROW(wait4), ROW(waitid), ROW(flock), ROW(lockf), {"lockf64", (void *)our_lockf}, ROW(fcntl), {"fcntl64", (void *)our_fcntl},
    ROW(open), {"open64", (void *)our_open}, ROW(openat), {"openat64", (void *)our_openat}, ROW(connect), ROW(getaddrinfo),
    ROW(getnameinfo), ROW(close), ROW(dup2), ROW(dup3), ROW(sigwait), ROW(sigwaitinfo), ROW(sigtimedwait), {"pthread_sigmask", (void *)our_sigmask},
    ROW(sigprocmask), {NULL, NULL}};

/* Semaphores of modules: those of `_multiprocessing`, which other processes share. The interpreter's own are in threads.c. */
static const Relink semaphores[] = {ROW(sem_wait), ROW(sem_timedwait), {NULL, NULL}};

static void
relink_waiting(void)
{
    static Relinking waiting = {.functions = functions}, ending = {.functions = locals_functions};
    relink(&waiting);
    relink(&ending);
    locals_library_loaded();
}

/* With it C libraries may have come that it needs. */
void
libcalls_module_loaded(const char *name)
{
    static Relinking shared = {.functions = semaphores, .only_named = "_multiprocessing"};
    clones_library_loaded();
    if (!lanes.is_on)
        return;
    relink_waiting();
    threads_module_loaded(name);
    if (strcmp(name, shared.only_named) == 0)
        relink(&shared);
}

void
libcalls_install(void)
{
    clones_library_loaded();
    relink_waiting();
}
