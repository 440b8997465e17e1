/* A replay that stands at a moment, and its copies. */
#include "base/core.h"
#include "clock/clock.h"
#include "ending/ending.h"
#include "files/files.h"
#include "future/inside.h"
#include "future/loopback.h"
#include "future/turns.h"
#include "gates/gates.h"
#include "lanes/lanes.h"
#include "log/log.h"
#include "memory/memory.h"
#include "resume/resume.h"
#include <errno.h>
#include <stddef.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The launcher's message; with it come the descriptors. */
typedef struct __attribute__((packed)) {
    uint64_t seed;
    uint32_t faults;
    Fault fault[MOST_FAULTS]; /* only as many as there are */
} Order;
enum { SHORTEST_ORDER = offsetof(Order, fault) };
enum { FOR_LOG, FOR_WORLD, FOR_REPORT, FOR_ENDING, FOR_OUTPUT, FOR_ERRORS, FOR_SCHEDULE, FILES };
enum { MOST_DESCRIPTORS = 253 }; /* that a message carries, see unix(7) */

/* The answers: the replay stands there, and in the place of each copy its process id. */
typedef struct {
    int64_t kind, number;
} Answer;
enum { STANDS = 1, NOTHING_FOLLOWS = 2, COPY = 3 };

typedef struct {
    int number;
    size_t n;
    int *fds;
    uint32_t *masks;
} Epoll;

static int launcher = -1;
static Epoll *epolls;
static size_t epoll_count;

static bool
read_epoll(PyObject *given, Epoll *epoll)
{
    PyObject *watched;
    if (!PyTuple_Check(given) || !PyArg_ParseTuple(given, "iO", &epoll->number, &watched) || !PyList_Check(watched))
        return false;
    epoll->n = (size_t)PyList_GET_SIZE(watched);
    epoll->fds = calloc(epoll->n + 1, sizeof *epoll->fds);
    epoll->masks = calloc(epoll->n + 1, sizeof *epoll->masks);
    for (size_t i = 0; epoll->fds && epoll->masks && i < epoll->n; i++)
        if (!PyArg_ParseTuple(PyList_GET_ITEM(watched, (Py_ssize_t)i), "iI", &epoll->fds[i], &epoll->masks[i]))
            return false;
    return epoll->fds && epoll->masks;
}

int
futures_prepare(PyObject *boot)
{
    PyObject *fd = PyDict_GetItemString(boot, "futures_fd"), *given = PyDict_GetItemString(boot, "epolls");
    if (fd == NULL || !PyLong_Check(fd))
        return 0;
    Py_ssize_t n = given && PyList_Check(given) ? PyList_GET_SIZE(given) : 0;
    core.has_futures = core.goes_live = true;
    core.live_at = boot_number(boot, "resume_at");
    core.live_switches = boot_number(boot, "resume_switches");
    event_log.max_size = boot_number(boot, "max_size");
    launcher = fd_keep((int)PyLong_AsLong(fd));
    epolls = calloc((size_t)n + 1, sizeof *epolls);
    for (Py_ssize_t i = 0; epolls && i < n; i++)
        if (read_epoll(PyList_GET_ITEM(given, i), &epolls[epoll_count++]) == 0 && !PyErr_Occurred())
            PyErr_SetString(PyExc_RuntimeError, "replaydbg: the epoll objects of a future cannot be read");
    sent_prepare(PyDict_GetItemString(boot, "written"));
    PyObject *known = PyDict_GetItemString(boot, "known_fd");
    if (known && PyLong_Check(known) && known_load((int)PyLong_AsLong(known)) < 0)
        PyErr_SetString(PyExc_RuntimeError, "replaydbg: what is known of the outside cannot be read");
    if (group_future_prepare(boot) < 0 && !PyErr_Occurred())
        PyErr_SetString(PyExc_RuntimeError, "replaydbg: what processes share in a future cannot be read");
    clones_prepare();
    return PyErr_Occurred() ? -1 : 0;
}

static void
answer(int64_t kind, int64_t number)
{
    Answer a = {kind, number};
    if (write(launcher, &a, sizeof a) != sizeof a)
        leave_process(0); /* nobody wants more */
}

_Noreturn void
future_has_nothing(void)
{
    answer(NOTHING_FOLLOWS, (int64_t)core.crossings);
    leave_process(0);
}

/* Returns false when nobody wants another one. */
static bool
receive(Order *order, int fds[MOST_DESCRIPTORS])
{
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(MOST_DESCRIPTORS * sizeof(int))];
    } control;
    struct iovec piece = {order, sizeof *order};
    struct msghdr message = {
        .msg_iov = &piece, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof control.room};
    ssize_t n;
    size_t wanted = FILES + (size_t)group_future_descriptors();
    while ((n = recvmsg(launcher, &message, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR)
        ;
    bool is_whole = n >= SHORTEST_ORDER && order->faults <= MOST_FAULTS &&
                    (size_t)n == SHORTEST_ORDER + order->faults * sizeof *order->fault;
    struct cmsghdr *c = is_whole ? CMSG_FIRSTHDR(&message) : NULL;
    if (c == NULL || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS ||
        c->cmsg_len != CMSG_LEN(wanted * sizeof(int)))
        return false;
    memcpy(fds, CMSG_DATA(c), wanted * sizeof(int));
    return true;
}

/* In the place of one of the core's own, which the fence lets nobody close. */
static void
put_own(int fd, int at)
{
    syscall(SYS_dup3, fd, at, O_CLOEXEC, own_token());
}

/* The program's standard output and error, and copies of these. */
static void
put_streams(const int fds[])
{
    enum { MOST = 4096 };
    for (int fd = 0; fd < MOST; fd++) {
        int stream = fd_is_ours(fd) ? 0 : fd_stream(fd), flags = stream ? fcntl(fd, F_GETFD) : -1;
        if (flags >= 0)
            dup3(fds[stream == 1 ? FOR_OUTPUT : FOR_ERRORS], fd, flags & FD_CLOEXEC ? O_CLOEXEC : 0);
    }
}

/* Returns a reason why it cannot, or NULL. */
static const char *
become(const Order *order, int fds[])
{
    core.is_future = true;
    put_own(core.null_fd, launcher);
    put_own(fds[FOR_REPORT], core.report_fd);
    ending_goes_to(fd_keep(fcntl(fds[FOR_ENDING], F_DUPFD_CLOEXEC, 0)));
    put_streams(fds);
    int log = fd_keep(fcntl(fds[FOR_LOG], F_DUPFD_CLOEXEC, 0));
    int world = fd_keep(fcntl(fds[FOR_WORLD], F_DUPFD_CLOEXEC, 0));
    int schedule = fcntl(fds[FOR_SCHEDULE], F_DUPFD_CLOEXEC, 0);
    for (int i = 0; i < FILES; i++)
        close(fds[i]);
    shared_part();
    group_future_take(fds + FILES);
    if (fd_has_lost(group_future_has))
        return "a connection with more bytes under way than it holds";
    loopback_part_begin();
    if (!fd_part())
        return "descriptors for its pipes";
    loopback_part_end();
    const char *problem = group_future_part(fds + FILES);
    if (problem)
        return problem;
    group_future_semaphores();
    for (size_t i = 0; i < epoll_count; i++)
        if (!fd_part_epoll(epolls[i].number, epolls[i].fds, epolls[i].masks, epolls[i].n))
            return "an epoll object that it had before the moment";
    if (logs_continue_in(log, world) < 0)
        return "memory for its log";
    uint64_t wall = log_begin() + cross_replayed_time(), last = clocks_last_wall();
    simulated_begins(lane_clock_latest(), wall < last ? last : wall, log_cpu_time());
    if (lanes_vary(order->seed, schedule) < 0)
        return "a schedule that can be read";
    closed_begin(order->seed);
    faults_begin(order->fault, order->faults);
    turns_begin(wall < last ? last : wall);
    return group_future_shares_memory() ? "memory that it shares with other processes" : NULL;
}

void
future_begins(void)
{
    static Order order; /* a copy has its own */
    int fds[MOST_DESCRIPTORS];
    fd_part_begin();
    socket_calls_relink();
    semlocks_relink();
    answer(STANDS, (int64_t)core.crossings);
    for (;;) {
        if (!receive(&order, fds))
            leave_process(0);
        pid_t pid = clone_here();
        if (pid == 0) {
            clone_begin();
            const char *missing = become(&order, fds);
            if (missing)
                diverge("outside", NULL, NULL, missing);
            return;
        }
        for (int i = 0; i < FILES + group_future_descriptors(); i++)
            close(fds[i]);
        answer(COPY, pid < 0 ? -errno : pid);
    }
}
