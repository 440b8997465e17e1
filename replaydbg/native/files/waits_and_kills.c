/* Calls by which the program waits for the end of other processes of its group, or sends them signals. They move no
 * bytes; their begin and their end are written down as those of other transfers are (channels.c). Of those that wait for
 * anything else only the begin is, and taken back at the end: who is killed in one leaves what it was. */
#include "base/core.h"
#include "crossing/crossing.h"
#include "files/inside.h"
#include "log/log.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef P_PIDFD /* older headers do not have it */
#define P_PIDFD 3
#endif
#define NONE -1

typedef enum { WAITS, WAITS_BY_ID, SENDS, SENDS_TO_GROUP, SENDS_BY_PIDFD, LASTS, ACCEPTS } Relation;

static const struct {
    const char *module, *name;
    Relation what;
    int target; /* index of the argument that names the process; NONE: any child. LASTS: of the timeout; NONE: it has none */
} calls[] = {
    {"posix", "wait", WAITS, NONE},          {"posix", "wait3", WAITS, NONE},
    {"posix", "waitpid", WAITS, 0},          {"posix", "wait4", WAITS, 0},
    {"posix", "waitid", WAITS_BY_ID, 1},     {"posix", "kill", SENDS, 0},
    {"posix", "killpg", SENDS_TO_GROUP, 0},  {"_signal", "pidfd_send_signal", SENDS_BY_PIDFD, 0},
    {"select", "epoll.poll", LASTS, 0},      {"select", "poll().poll", LASTS, 0},
    {"select", "select", LASTS, 3},          {"_socket", "socket._accept", ACCEPTS, NONE},
    {"_signal", "pause", LASTS, NONE},       {"_signal", "sigwait", LASTS, NONE},
    {"_signal", "sigwaitinfo", LASTS, NONE}, {"builtins", "input", LASTS, NONE},
};

uint8_t
member_call_of(const Gate *g)
{
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (strcmp(calls[i].name, g->name) == 0 && strcmp(calls[i].module, g->module) == 0)
            return (uint8_t)(MEMBER_CALLS + i);
    return 0;
}

static long
number_of(PyObject *const *items, Py_ssize_t n, Py_ssize_t at)
{
    int overflow;
    return at >= 0 && at < n && PyLong_Check(items[at]) ? PyLong_AsLongAndOverflow(items[at], &overflow) : -1;
}

/* 0: unknown */
static int
pid_behind(long pidfd)
{
    char text[1024];
    int saved = errno;
    snprintf(text, sizeof text, "/proc/self/fdinfo/%ld", pidfd);
    int fd = open(text, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = 0;
    const char *at = strstr(text, "\nPid:");
    long pid = at ? strtol(at + sizeof "\nPid:" - 1, NULL, 10) : 0;
    errno = saved;
    return pid > 0 && pid <= INT32_MAX ? (int)pid : 0;
}

/* ---- it begins ---- */

/* 0: it waits for a process that is none of the group */
static uint32_t
endpoint_awaited(const Crossing *c, Relation what, int at)
{
    long id = number_of(c->args, c->nargs, at);
    if (what == WAITS_BY_ID) {
        long type = number_of(c->args, c->nargs, 0);
        id = type == P_PID ? id : type == P_PIDFD ? pid_behind(id) : -1;
    }
    if (id <= 0) /* any child */
        return endpoint_of_process(0);
    unsigned number = id <= INT32_MAX ? member_with((int)id) : 0;
    return number ? endpoint_of_process(number) : 0;
}

static uint32_t
endpoint_signalled(const Crossing *c, Relation what, int at)
{
    long target = number_of(c->args, c->nargs, at), signum = number_of(c->args, c->nargs, 1);
    if (c->nargs < 2 || signum <= 0 || signum > INT32_MAX || target < INT32_MIN || target > INT32_MAX)
        return 0;
    if (what == SENDS_TO_GROUP)
        target = target > 0 ? -target : 0;
    else if (what == SENDS_BY_PIDFD && (target = pid_behind(target)) == 0)
        return 0;
    return endpoint_of_signal((int)target, (int)signum);
}

/* Whether it ends by itself: a timeout is a number that is not negative. */
static bool
is_timed(const Crossing *c, int at)
{
    PyObject *timeout = at >= 0 && at < c->nargs ? c->args[at] : Py_None;
    if (c->has_keywords) /* one of them may be it */
        return true;
    return PyFloat_Check(timeout) ? PyFloat_AS_DOUBLE(timeout) >= 0
                                  : PyLong_Check(timeout) && number_of(c->args, c->nargs, at) >= 0;
}

static Moving
begin(const Crossing *c)
{
    Relation what = calls[c->gate->moves - MEMBER_CALLS].what;
    int at = calls[c->gate->moves - MEMBER_CALLS].target;
    if (what == LASTS && group_is_alone()) /* nobody could let it go on */
        return (Moving){0, -1, 0};
    if (what >= LASTS) {
        unsigned place = c->gate->moves - MEMBER_CALLS;
        uint32_t called = endpoint_of_call(place, c->gate->module, c->gate->name, is_timed(c, at));
        return (Moving){transfer_begin(called, TRANSFER_RECEIVES, -1), -1, 0};
    }
    bool waits = what <= WAITS_BY_ID;
    unsigned flags = waits ? TRANSFER_RECEIVES : 0;
    uint32_t endpoint = waits ? endpoint_awaited(c, what, at) : endpoint_signalled(c, what, at);
    return (Moving){endpoint ? transfer_begin(endpoint, flags, -1) : 0, -1, flags};
}

void
member_call_begins(Crossing *c)
{
    c->transfers[0] = begin(c);
}

/* ---- it ends ---- */

int
wait_exit_code(int status)
{
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

/* The result of waitid() is (pid, uid, signal, status, code), those of the others begin with (pid, status). */
int
wait_result(PyObject *result, bool by_id, int *exit_code)
{
    Py_ssize_t n = result && PyTuple_Check(result) ? PyTuple_GET_SIZE(result) : 0;
    PyObject *const *items = n ? ((PyTupleObject *)result)->ob_item : NULL;
    long pid = number_of(items, n, 0), status = number_of(items, n, by_id ? 3 : 1);
    if (pid <= 0 || pid > INT32_MAX || status < 0)
        return 0;
    if (by_id) {
        long code = number_of(items, n, 4);
        *exit_code = code == CLD_EXITED ? (int)status : -(int)status;
        return code == CLD_EXITED || code == CLD_KILLED || code == CLD_DUMPED ? (int)pid : 0;
    }
    *exit_code = wait_exit_code((int)status);
    return WIFEXITED((int)status) || WIFSIGNALED((int)status) ? (int)pid : 0;
}

void
member_call_ends(const Crossing *c, PyObject *result)
{
    Relation what = calls[c->gate->moves - MEMBER_CALLS].what;
    const Moving *moving = &c->transfers[0];
    TransferEnd end = {.flags = moving->flags, .address = ""};
    bool has_moved = result != NULL && what != LASTS;
    int exit_code;
    if (what == ACCEPTS) { /* after its connect() */
        end.endpoint = endpoint_of_streams();
        end.flags = TRANSFER_RECEIVES;
    }
    if (what <= WAITS_BY_ID) {
        unsigned number = member_with(wait_result(result, what == WAITS_BY_ID, &exit_code));
        has_moved = number != 0;
        end.endpoint = number ? endpoint_of_process(number) : 0;
    }
    if (has_moved)
        transfer_end(moving->number, &end);
    else
        transfer_undo(moving->number);
}
