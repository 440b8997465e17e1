/* Functions of the C library that wait for the outside, as the interpreter and extension modules call them. While
 * recording, and while there are several lanes, whoever would wait lets others run until the hub says that there is
 * something. Otherwise they are the real ones; so they are for whoever waits with the interpreter's lock in hand, for
 * whom everybody waits without us too. Those that move data are in transfers.c; here are time, children, signals, and
 * what can only be waited for by calling it. */
#include "base/core.h"
#include "clock/clock.h"
#include "lanes/inside.h"
#include "log/log.h"
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- time ---- */

static int
our_clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left)
{
    struct timespec now, real;
    if ((flags & TIMER_ABSTIME) && clock == CLOCK_MONOTONIC && lane_clock_shift() != 0) {
        uint64_t deadline = lane_clock_deadline((uint64_t)time->tv_sec * 1000000000u + (uint64_t)time->tv_nsec);
        real = (struct timespec){(time_t)(deadline / 1000000000), (long)(deadline % 1000000000)};
        time = &real;
    }
    if (!lanes_share() || time->tv_sec < 0 || time->tv_nsec < 0 || time->tv_nsec > 999999999)
        return clock_nanosleep(clock, flags, time, left);
    int64_t ns = time->tv_sec > INT32_MAX ? INT64_MAX / 4 : time->tv_sec * 1000000000LL + time->tv_nsec;
    if (flags & TIMER_ABSTIME) {
        clock_gettime(clock, &now);
        bool is_simulated = core.is_future && clock == CLOCK_MONOTONIC;
        ns -= is_simulated ? (int64_t)time_now() : now.tv_sec * 1000000000LL + now.tv_nsec;
    }
    if (ns <= 0) {
        lane_yield();
        return 0;
    }
    uint64_t deadline = deadline_in(ns);
    Wake wake = lane_wait(NULL, "a time", deadline, true);
    if (wake == INTERRUPTED && left && !(flags & TIMER_ABSTIME)) {
        uint64_t at = time_now(), rest = deadline > at ? deadline - at : 0;
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

/* SQLite, for one, waits with these for a database that somebody else has locked. */
static int
our_usleep(useconds_t microseconds)
{
    return our_nanosleep(&(struct timespec){microseconds / 1000000, (long)(microseconds % 1000000) * 1000}, NULL);
}

static unsigned
our_sleep(unsigned seconds)
{
    struct timespec left = {0};
    return our_nanosleep(&(struct timespec){.tv_sec = seconds}, &left) < 0
               ? (unsigned)(left.tv_sec + (left.tv_nsec > 0))
               : 0;
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
    WaitId w = {pid > 0     ? P_PID
                : pid == -1 ? P_ALL
                            : P_PGID,
                (id_t)(pid > 0    ? pid
                       : pid < -1 ? -pid
                                  : getpgrp()),
                &info, which | WNOWAIT};
    if ((options & WNOHANG) || !lanes_share())
        return 0;
    if (pid > 0 && which == WEXITED) {
        int fd = (int)syscall(SYS_pidfd_open, pid, 0);
        if (fd >= 0) {
            /* Other threads run meanwhile: what they open gets the numbers that it gets without us. */
            fd = fd_keep(fd);
            int rc = await_ready(fd, POLLIN, "a child process");
            int error = errno;
            hub_closed(fd);
            fd_forget(fd);
            errno = error;
            return rc;
        }
    }
    return (int)hub_help(wait_in_helper, &w, "a child process") < 0 && errno == EINTR ? -1 : 0;
}

/* `found` has come of waiting with `status`; returns the id that the program knows. */
static pid_t
known_as(pid_t found, int status)
{
    pid_t recorded = pid_recorded(found);
    if (found > 0 && (WIFEXITED(status) || WIFSIGNALED(status)))
        pid_reaped(found);
    return recorded;
}

/* Of a future with several processes. */
static pid_t
await_member(pid_t pid, int *status, int options)
{
    enum { MOST = 64 };
    HubWait waits[MOST];
    int fds[MOST], n;
    pid_t found;
    while ((found = lanes_hooks.child_ended(pid, status, fds, &n)) == 0 && !(options & WNOHANG)) {
        for (int i = 0; i < n; i++)
            waits[i] = (HubWait){.fd = fds[i], .events = POLLIN};
        if (hub_wait(waits, n, "a child process", NEVER) == INTERRUPTED) {
            errno = EINTR;
            return -1;
        }
    }
    return found;
}

static pid_t
our_wait4(pid_t pid, int *status, int options, struct rusage *usage)
{
    int own = 0;
    if (core.is_future && lanes_hooks.knows_children()) {
        pid_t ended = await_member(pid, &own, options);
        if (status && ended > 0)
            *status = own;
        if (usage)
            *usage = (struct rusage){0};
        return ended;
    }
    pid_t today = pid_today(pid), found = -1;
    if (pid < -1 && pid_is_past(-pid))
        errno = ECHILD;
    else if (await_child(today, options) >= 0)
        found = wait4(today, &own, options, usage);
    if (status && found > 0)
        *status = own;
    return known_as(found, own);
}

static pid_t
our_waitpid(pid_t pid, int *status, int options)
{
    return our_wait4(pid, status, options, NULL);
}

static pid_t
our_wait(int *status)
{
    return our_waitpid(-1, status, 0);
}

static pid_t
our_wait3(int *status, int options, struct rusage *usage)
{
    return our_wait4(-1, status, options, usage);
}

static int
our_waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
    WaitId w = {type, type == P_PID ? (id_t)pid_today((pid_t)id) : id, info, options};
    int rc = (options & WNOHANG) || !lanes_share() ? waitid(w.type, w.id, info, options)
                                                   : (int)hub_help(wait_in_helper, &w, "a child process");
    if (rc == 0 && info) {
        pid_t found = info->si_pid;
        info->si_pid = pid_recorded(found);
        if (!(options & WNOWAIT) && info->si_code >= CLD_EXITED && info->si_code <= CLD_DUMPED)
            pid_reaped(found);
    }
    return rc;
}

static pid_t
our_getpid(void)
{
    return pid_recorded(getpid());
}

static pid_t
our_getppid(void)
{
    return pid_recorded(getppid());
}

void
lanes_relink_pids(void)
{
    static const Relink asking[] = {OURS(getpid), OURS(getppid), {NULL, NULL}};
    static Relinking interpreter = {.functions = asking, .only_interpreter = true};
    relink(&interpreter);
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

static long
help_flock(void *w)
{
    return flock((int)((Words *)w)->a[0], (int)((Words *)w)->a[1]);
}
static long
help_lockf(void *w)
{
    return lockf((int)((Words *)w)->a[0], (int)((Words *)w)->a[1], (off_t)((Words *)w)->a[2]);
}
static long
help_fcntl(void *w)
{
    return fcntl((int)((Words *)w)->a[0], (int)((Words *)w)->a[1], ((Words *)w)->a[2]);
}
static long
help_open(void *w)
{
    Words *words = w;
    return openat((int)words->a[0], (const char *)words->a[1], (int)words->a[2], (mode_t)words->a[3]);
}
static long
help_connect(void *w)
{
    Words *words = w;
    return connect((int)words->a[0], (const struct sockaddr *)words->a[1], (socklen_t)words->a[2]);
}
static long
help_addresses(void *w)
{
    Words *words = w;
    return getaddrinfo((const char *)words->a[0], (const char *)words->a[1], (const struct addrinfo *)words->a[2],
                       (struct addrinfo **)words->a[3]);
}
static long
help_name(void *w)
{
    Words *words = w;
    return getnameinfo((const struct sockaddr *)words->a[0], (socklen_t)words->a[1], (char *)words->a[2],
                       (socklen_t)words->a[3], (char *)words->a[4], (socklen_t)words->a[5], (int)words->a[6]);
}
static long
help_sem_wait(void *w)
{
    return sem_wait((sem_t *)((Words *)w)->a[0]);
}
static long
help_sem_timedwait(void *w)
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

/* Begun without waiting, as on a socket that does not wait, and waited for in the hub; only for what cannot be begun so
 * (a Unix socket whose listener is busy) a helper waits. */
static int
our_connect(int fd, const struct sockaddr *to, socklen_t size)
{
    int result;
    if (core.is_future && lanes_hooks.connects(fd, to, size, &result))
        return result;
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
    if (await_ready(fd, POLLOUT, "a connection") < 0)
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
    if (core.is_future && node && strcmp(node, "localhost") == 0)
        node = "127.0.0.1"; /* nobody can be asked */
    struct addrinfo numeric = hints ? *hints : (struct addrinfo){.ai_flags = AI_V4MAPPED | AI_ADDRCONFIG};
    numeric.ai_flags |= AI_NUMERICHOST; /* nobody is asked about a number */
    if (getaddrinfo(node, service, &numeric, found) == 0)
        return 0;
    return (int)hub_help(help_addresses, W((long)node, (long)service, (long)hints, (long)found), "an address");
}

static int
our_getnameinfo(const struct sockaddr *of, socklen_t size, char *host, socklen_t host_size, char *service,
                socklen_t service_size, int flags)
{
    if (!lanes_share())
        return getnameinfo(of, size, host, host_size, service, service_size, flags);
    return (int)hub_help(help_name, W((long)of, size, (long)host, host_size, (long)service, service_size, flags),
                         "a name");
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
    return sem_trywait(semaphore) == 0
               ? 0
               : (int)hub_help(help_sem_timedwait, W((long)semaphore, (long)time), "a semaphore");
}

static const Relink functions[] = {OURS(clock_nanosleep),
                                   OURS(nanosleep),
                                   OURS(usleep),
                                   OURS(sleep),
                                   OURS(sched_yield),
                                   OURS(wait),
                                   OURS(waitpid),
                                   OURS(wait3),
                                   OURS(wait4),
                                   OURS(waitid),
                                   OURS(flock),
                                   OURS(lockf),
                                   {"lockf64", (void *)our_lockf},
                                   OURS(fcntl),
                                   {"fcntl64", (void *)our_fcntl},
                                   OURS(open),
                                   {"open64", (void *)our_open},
                                   OURS(openat),
                                   {"openat64", (void *)our_openat},
                                   OURS(connect),
                                   OURS(getaddrinfo),
                                   OURS(getnameinfo),
                                   OURS(sigwait),
                                   OURS(sigwaitinfo),
                                   OURS(sigtimedwait),
                                   {"pthread_sigmask", (void *)our_sigmask},
                                   OURS(sigprocmask),
                                   {NULL, NULL}};

/* Semaphores of modules: those of `_multiprocessing`, which other processes share. The interpreter's own are in
 * threads.c. */
static const Relink semaphores[] = {OURS(sem_wait), OURS(sem_timedwait), {NULL, NULL}};

void *
libcalls_ours(const char *name)
{
    const Relink *tables[] = {functions, transfer_functions, locals_functions};
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const Relink *r = tables[t]; r->name; r++)
            if (strcmp(r->name, name) == 0)
                return r->function;
    return NULL;
}

void
lanes_relink(void)
{
    static Relinking waiting = {.functions = functions}, transfers = {.functions = transfer_functions},
                     ending = {.functions = locals_functions};
    relink(&waiting);
    relink(&transfers);
    relink(&ending);
    locals_library_loaded();
}

/* With it C libraries may have come that it needs. */
int
libcalls_module_loaded(PyObject *module, const char *name)
{
    static Relinking shared = {.functions = semaphores, .only_named = "_multiprocessing"};
    clones_library_loaded();
    if (!lanes.is_on)
        return 0;
    lanes_relink();
    threads_module_loaded(name);
    mutexes_library_loaded();
    if (strcmp(name, shared.only_named) == 0)
        relink(&shared);
    lanes_hooks.library_loaded();
    return 0;
}

void
libcalls_install(void)
{
    clones_library_loaded();
    lanes_relink();
    lanes_hooks.install_libc();
}
