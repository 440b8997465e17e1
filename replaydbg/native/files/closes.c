/* Calls by which the program ends a stream or begins a connection: it closes descriptors, shuts sockets down, connects
 * them. Each takes a ticket before it is made, and whoever finds a stream broken, or accepts a connection, one after
 * that: so every value of the group's clock is a cut that knows of ends, too. Which ends they are of, the event log has.
 * The close of a file is also what lets others read what was written to it (file_order.c), and releases its locks. */
#include "base/core.h"
#include "crossing/crossing.h"
#include "files/inside.h"
#include "log/log.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

typedef enum { CLOSES_ONE, CLOSES_SOCKET, CLOSES_RANGE, CLOSES_SECOND, ONLY_STREAM } Closing;

static const struct {
    const char *module, *name;
    Closing what;
} calls[] = {
    {"posix", "close", CLOSES_ONE},
    {"_io", "FileIO.close", CLOSES_ONE},
    {"_socket", "close", CLOSES_ONE},
    {"_socket", "socket.close", CLOSES_SOCKET},
    {"posix", "closerange", CLOSES_RANGE},
    {"posix", "dup2", CLOSES_SECOND},
    {"_socket", "socket.shutdown", ONLY_STREAM},
    {"_socket", "socket.connect", ONLY_STREAM},
    {"_socket", "socket.connect_ex", ONLY_STREAM},
};

uint8_t
close_call_of(const Gate *g)
{
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (strcmp(calls[i].name, g->name) == 0 && strcmp(calls[i].module, g->module) == 0)
            return (uint8_t)(CLOSE_CALLS + i);
    return 0;
}

static Closing
closing_of(const Crossing *c)
{
    return calls[c->gate->moves - CLOSE_CALLS].what;
}

static int
number_at(const Crossing *c, Py_ssize_t at)
{
    int overflow;
    PyObject *number = at < c->nargs ? c->args[at] : NULL;
    long fd = number && PyLong_Check(number) ? PyLong_AsLongAndOverflow(number, &overflow) : -1;
    return fd < 0 ? -1 : fd > INT32_MAX ? INT32_MAX : (int)fd;
}

static Moving
sends(uint32_t endpoint)
{
    return (Moving){endpoint ? transfer_begin(endpoint, 0, -1) : 0, -1, 0};
}

/* Of a file, if it could be written; of what may be a stream otherwise. */
static uint32_t
endpoint_closed(int fd)
{
    struct stat st;
    int saved = errno, flags = fd >= 0 ? fcntl(fd, F_GETFL) : -1;
    bool is_open = flags >= 0 && !(flags & O_PATH), is_written = (flags & O_ACCMODE) != O_RDONLY;
    uint32_t endpoint = 0;
    if (is_open && is_written && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        endpoint = st.st_nlink > 0 ? endpoint_of_file(st.st_dev, st.st_ino) : 0;
    else if (is_open && !endpoint_is_none(fd))
        endpoint = endpoint_of_streams();
    errno = saved;
    return endpoint;
}

static uint32_t
endpoint_ended(Closing what, int fd)
{
    if (group_is_alone()) /* what a process does before another one begins comes before all of that */
        return 0;
    if (what == CLOSES_ONE)
        return endpoint_closed(fd);
    return what == CLOSES_RANGE || what == ONLY_STREAM || fd >= 0 ? endpoint_of_streams() : 0;
}

/* -1: it closes none */
static int
descriptor(const Crossing *c, Closing what)
{
    if (what == CLOSES_SOCKET)
        return socket_fd(c->self);
    if (what == CLOSES_SECOND)
        return number_at(c, 1) == number_at(c, 0) ? -1 : number_at(c, 1);
    return what == ONLY_STREAM ? -1 : c->gate->is_method ? file_fd(c->self) : number_at(c, 0);
}

void
close_call_begins(Crossing *c)
{
    Closing what = closing_of(c);
    int fd = descriptor(c, what);
    uint32_t lock = what == CLOSES_ONE || what == CLOSES_SECOND ? lock_closed(fd) : 0;
    if (what == CLOSES_RANGE)
        locks_closed(number_at(c, 0), number_at(c, 1));
    Moving ends = sends(endpoint_ended(what, fd)), releases = sends(lock);
    c->transfers[0] = ends.number ? ends : releases;
    c->transfers[1].number = ends.number ? releases.number : 0;
}

void
close_call_ends(const Crossing *c, PyObject *result)
{
    TransferEnd end = {.address = ""};
    bool is_done = result || closing_of(c) == ONLY_STREAM; /* a connection may go on in the background */
    for (int i = 0; i < 2 && c->transfers[i].number; i++)
        if (is_done)
            transfer_end(c->transfers[i].number, &end);
        else
            transfer_undo(c->transfers[i].number);
    if (result == NULL)
        stream_found_broken();
}

void
stream_found_broken(void)
{
    if (!PyErr_ExceptionMatches(PyExc_BrokenPipeError) && !PyErr_ExceptionMatches(PyExc_ConnectionResetError))
        return;
    uint64_t number = transfer_begin(endpoint_of_streams(), TRANSFER_RECEIVES, -1);
    if (number)
        transfer_end(number, &(TransferEnd){.flags = TRANSFER_RECEIVES, .address = ""});
}
