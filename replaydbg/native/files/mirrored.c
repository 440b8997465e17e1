/* Pipes and pairs of sockets of a replay that is to become a recording: real ones. What the program sends to itself is
 * sent, and what it receives is taken out, so that whatever is under way when it goes live is in the kernel, as it was.
 * The other end of one that was a child's is closed by then, and the program finds it so. */
#include "base/core.h"
#include "crossing/crossing.h"
#include "files/files.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static ino_t placeholder; /* of sockets */
/* Ends of pairs of sockets, by their inodes. */
typedef struct {
    ino_t ends[2];
} SocketPair;
static SocketPair *pairs;
static size_t pair_count;

static int
number_in(PyObject *numbers, Py_ssize_t i)
{
    PyObject *v = PyTuple_CheckExact(numbers) && PyTuple_GET_SIZE(numbers) == 2 ? PyTuple_GET_ITEM(numbers, i) : NULL;
    int overflow;
    long fd = v && PyLong_CheckExact(v) ? PyLong_AsLongAndOverflow(v, &overflow) : -1;
    return fd < 0 || fd > INT32_MAX ? -1 : (int)fd;
}

void
fd_note_pair(const int *ends)
{
    struct stat st;
    if (fstat(core.socket_fd, &st) == 0)
        placeholder = st.st_ino;
    pairs = grown(pairs, pair_count + 1, sizeof *pairs);
    for (int i = 0; i < 2; i++)
        pairs[pair_count].ends[i] = fstat(ends[i], &st) == 0 ? st.st_ino : 0;
    pair_count++;
}

void
fd_made_pipe(PyObject *numbers, bool is_pair)
{
    int ends[2], first = number_in(numbers, 0), second = number_in(numbers, 1);
    if (core.is_planned || first < 0 || second < 0 || fd_is_ours(first) || fd_is_ours(second))
        return;
    if ((is_pair ? socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) : pipe2(ends, O_CLOEXEC)) < 0)
        return;
    if (is_pair)
        fd_note_pair(ends);
    /* it may have got one of the numbers, which are free for it no longer */
    int high[2] = {fcntl(ends[0], F_DUPFD_CLOEXEC, 512), fcntl(ends[1], F_DUPFD_CLOEXEC, 512)};
    close(ends[0]);
    close(ends[1]);
    dup3(high[0], first, O_CLOEXEC);
    dup3(high[1], second, O_CLOEXEC);
    close(high[0]);
    close(high[1]);
}

void
fd_widen(const int *ends)
{
    int most = 4 << 20;
    for (int i = 0; i < 2; i++)
        setsockopt(ends[i], SOL_SOCKET, SO_SNDBUF, &most, sizeof most);
}

/* Sockets, by their inodes, that could not take what was sent through them, and their other ends. */
static ino_t *lost;
static size_t lost_count;

static void
note_lost(ino_t inode)
{
    lost = grown(lost, lost_count + 1, sizeof *lost);
    lost[lost_count++] = inode;
}

bool
fd_has_lost(bool (*is_left_out)(int fd))
{
    struct stat st;
    for (int fd = 3; lost_count && fd < MOST_LOOKED_AT; fd++) {
        if (fstat(fd, &st) < 0 || is_left_out(fd))
            continue;
        for (size_t i = 0; i < lost_count; i++)
            if (lost[i] == st.st_ino)
                return true;
    }
    return false;
}

ino_t
fd_peer(ino_t inode)
{
    for (size_t i = 0; i < pair_count; i++)
        for (int end = 0; end < 2; end++)
            if (pairs[i].ends[end] == inode)
                return pairs[i].ends[1 - end];
    return inode;
}

bool
fd_is_real(int fd)
{
    struct stat st;
    int domain = 0;
    socklen_t size = sizeof domain;
    if (fd <= 2 || fstat(fd, &st) < 0)
        return false;
    return S_ISFIFO(st.st_mode) || (S_ISSOCK(st.st_mode) && placeholder && st.st_ino != placeholder &&
                                    getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX);
}

static void
send_on(int fd, const uint8_t *data, size_t n)
{
    int flags = fcntl(fd, F_GETFL);
    struct stat st;
    fcntl(fd, F_SETFL, flags | O_NONBLOCK);
    while (n > 0) {
        ssize_t k = write(fd, data, n);
        if (k <= 0)
            break; /* a child has the other end, and would have taken it out */
        data += k;
        n -= (size_t)k;
    }
    if (n > 0 && errno == EAGAIN && fstat(fd, &st) == 0 && fd_peer(st.st_ino) != st.st_ino) {
        note_lost(st.st_ino);
        note_lost(fd_peer(st.st_ino));
    }
    fcntl(fd, F_SETFL, flags);
}

static void
take_out(int fd, size_t n)
{
    char piece[4096];
    int flags = fcntl(fd, F_GETFL);
    fcntl(fd, F_SETFL, flags | O_NONBLOCK);
    while (n > 0) {
        ssize_t k = read(fd, piece, n < sizeof piece ? n : sizeof piece);
        if (k <= 0)
            break; /* it was a child's, or a signal's */
        n -= (size_t)k;
    }
    fcntl(fd, F_SETFL, flags);
}

int
fd_of_call(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    PyObject *objects[] = {self, nargs > 0 ? args[0] : NULL};
    for (int i = 0; i < 2; i++) {
        int fd = objects[i] ? file_fd(objects[i]) : -2, overflow;
        if (fd == -2 && objects[i])
            fd = socket_fd(objects[i]);
        if (fd != -2)
            return fd;
        if (i == 1 && objects[i] && PyLong_CheckExact(objects[i])) {
            long number = PyLong_AsLongAndOverflow(objects[i], &overflow);
            return overflow || number < 0 || number > INT32_MAX ? -1 : (int)number;
        }
    }
    return -1;
}

/* A call may send several pieces. */
void
fd_mirror_piece(const void *data, size_t n, bool is_first)
{
    Buf *sending = cross_sending();
    sending->used = is_first ? 0 : sending->used;
    buf_bytes(sending, data, n);
}

static size_t
count_in(PyObject *result, size_t all)
{
    int overflow;
    long long n = PyLong_CheckExact(result) ? PyLong_AsLongLongAndOverflow(result, &overflow) : (long long)all;
    return n < 0 ? 0 : (size_t)n < all ? (size_t)n : all;
}

/* The flags of a call that receives from a socket. */
static long
flags_of(const Crossing *c)
{
    const char *name = c->gate->name;
    Py_ssize_t place = strstr(name, "_into") || strstr(name, "recvmsg") ? 2 : 1;
    int overflow;
    return strstr(name, "recv") && c->nargs > place && PyLong_Check(c->args[place])
               ? PyLong_AsLongAndOverflow(c->args[place], &overflow)
               : 0;
}

static void
end_on(int fd, PyObject *how)
{
    int overflow;
    long number = PyLong_Check(how) ? PyLong_AsLongAndOverflow(how, &overflow) : -1;
    if (number >= 0 && fd >= 0 && fd_is_real(fd))
        shutdown(fd, (int)number);
}

/* Only a call that sends has a digest, only one that receives fills a buffer or returns bytes. A peek takes nothing. */
void
fd_mirror(const Crossing *c, PyObject *result)
{
    const char *name = c->gate->name;
    if (strcmp(name, "socket.shutdown") == 0 && c->nargs > 0)
        end_on(fd_of_call(c->self, c->args, c->nargs), c->args[0]);
    bool receives = strstr(name, "read") || strstr(name, "recv");
    int saved = errno, fd = c->digested || receives ? fd_of_call(c->self, c->args, c->nargs) : -1;
    if (fd < 0 || !fd_is_real(fd))
        return;
    if (c->digested)
        send_on(fd, cross_sending()->data, count_in(result, cross_sending()->used));
    else if (flags_of(c) & MSG_PEEK)
        ;
    else if (PyBytes_CheckExact(result))
        take_out(fd, (size_t)PyBytes_GET_SIZE(result));
    else if (c->fill_length)
        take_out(fd, c->fill_length);
    else if (PyLong_CheckExact(result))
        take_out(fd, count_in(result, SIZE_MAX / 2));
    errno = saved;
}
