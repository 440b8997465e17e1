/* What the program sends to other processes of its group, and receives from them. A gate that does so is known when it
 * is loaded; its crossings come here when they begin, before anything is sent, and when they end, before their event is
 * written. Only while a group of processes is recorded, or where a replay computes digests anew: otherwise no gate has a
 * kind of move. */
#include "base/core.h"
#include "crossing/crossing.h"
#include "files/inside.h"
#include "log/log.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

/* Where what is moved can be found. */
typedef enum {
    RETURNS_BYTES, /* they are the result, or its first item */
    READS_ALL,     /* the same, by several calls of the kernel */
    FILLS_BUFFER,
    SENDS_BUFFER, /* the result is how many of them were taken */
    SENDS_ALL,
    SENDS_PIECES, /* a list of buffers */
    BY_KERNEL,    /* from one descriptor to another, past the program */
    ACQUIRES,     /* a semaphore, if the result is True */
    RELEASES,
    TAKES, /* a count of an eventfd */
    ADDS,
} How;

#define NOWHERE -1
#define OF_A_MESSAGE 3
typedef struct {
    const char *module, *name;
    How how;
    int flags;   /* index of the argument with MSG_PEEK and so on */
    int address; /* of a datagram: index among the arguments, or in what is returned */
} Move;

static const Move moves[] = {
    {"posix", "read", RETURNS_BYTES, NOWHERE, NOWHERE},
    {"posix", "readinto", FILLS_BUFFER, NOWHERE, NOWHERE},
    {"posix", "readv", FILLS_BUFFER, NOWHERE, NOWHERE},
    {"posix", "write", SENDS_BUFFER, NOWHERE, NOWHERE},
    {"posix", "writev", SENDS_PIECES, NOWHERE, NOWHERE},
    {"posix", "sendfile", BY_KERNEL, NOWHERE, NOWHERE},
    {"posix", "splice", BY_KERNEL, NOWHERE, NOWHERE},
    {"posix", "eventfd_read", TAKES, NOWHERE, NOWHERE},
    {"posix", "eventfd_write", ADDS, NOWHERE, NOWHERE},
    {"_io", "FileIO.read", RETURNS_BYTES, NOWHERE, NOWHERE},
    {"_io", "FileIO.readall", READS_ALL, NOWHERE, NOWHERE},
    {"_io", "FileIO.readinto", FILLS_BUFFER, NOWHERE, NOWHERE},
    {"_io", "FileIO.write", SENDS_BUFFER, NOWHERE, NOWHERE},
    {"_socket", "socket.recv", RETURNS_BYTES, 1, NOWHERE},
    {"_socket", "socket.recvfrom", RETURNS_BYTES, 1, 1},
    {"_socket", "socket.recvmsg", RETURNS_BYTES, 2, OF_A_MESSAGE},
    {"_socket", "socket.recv_into", FILLS_BUFFER, 2, NOWHERE},
    {"_socket", "socket.recvfrom_into", FILLS_BUFFER, 2, 1},
    {"_socket", "socket.recvmsg_into", FILLS_BUFFER, 2, OF_A_MESSAGE},
    {"_socket", "socket.send", SENDS_BUFFER, 1, NOWHERE},
    {"_socket", "socket.sendall", SENDS_ALL, 1, NOWHERE},
    {"_socket", "socket.sendto", SENDS_BUFFER, 1, 1}, /* (data, flags, address) or (data, address) */
    {"_socket", "socket.sendmsg", SENDS_PIECES, 2, OF_A_MESSAGE},
    {"_multiprocessing", "SemLock.acquire", ACQUIRES, NOWHERE, NOWHERE},
    {"_multiprocessing", "SemLock.__enter__", ACQUIRES, NOWHERE, NOWHERE},
    {"_multiprocessing", "SemLock.release", RELEASES, NOWHERE, NOWHERE},
    {"_multiprocessing", "SemLock.__exit__", RELEASES, NOWHERE, NOWHERE},
};

/* Calls that move no bytes, those with the highest numbers first. */
static const struct {
    uint8_t first;
    uint8_t (*of)(const Gate *g);
    void (*begins)(Crossing *c);
    void (*ends)(const Crossing *c, PyObject *result);
} others[] = {
    {LOCK_CALLS, lock_call_of, lock_call_begins, lock_call_ends},
    {CLOSE_CALLS, close_call_of, close_call_begins, close_call_ends},
    {FILE_CALLS, file_call_of, file_call_begins, file_call_ends},
    {MEMBER_CALLS, member_call_of, member_call_begins, member_call_ends},
};
#define OTHERS (sizeof others / sizeof *others)

static size_t
other_of(const Gate *g)
{
    size_t i = 0;
    while (i < OTHERS - 1 && g->moves < others[i].first)
        i++;
    return i;
}

void
channel_gate_loaded(Gate *g)
{
    bool is_group = core.mode == RECORD && group_is_on();
    if (!is_group && !redigest_is_on())
        return;
    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++)
        if (strcmp(moves[i].name, g->name) == 0 && strcmp(moves[i].module, g->module) == 0)
            g->moves = (uint8_t)(i + 1);
    for (size_t i = 0; is_group && i < OTHERS && g->moves == 0; i++)
        g->moves = others[i].of(g);
}

static const Move *
move_of(const Crossing *c)
{
    return &moves[c->gate->moves - 1];
}

static bool
receives(const Move *m)
{
    return m->how == RETURNS_BYTES || m->how == READS_ALL || m->how == FILLS_BUFFER || m->how == ACQUIRES ||
           m->how == TAKES;
}

/* What its outcome does not say has to be counted below the interpreter: how much was moved by a call that raises, and
 * to which address a name has led. */
static bool
is_counted(const Move *m)
{
    return m->how == SENDS_ALL || m->how == READS_ALL || (m->address >= 0 && !receives(m));
}

/* ---- it begins ---- */

static int
descriptor_of(const Crossing *c)
{
    int fd = c->gate->is_method ? file_fd(c->self) : -1;
    if (fd == -2)
        fd = socket_fd(c->self);
    if (c->gate->is_method || c->nargs == 0 || !PyLong_Check(c->args[0]))
        return fd;
    int overflow;
    long number = PyLong_AsLongAndOverflow(c->args[0], &overflow);
    return overflow || number < 0 || number > INT32_MAX ? -1 : (int)number;
}

/* In sendto(data, address) there are none. */
static long
message_flags(const Crossing *c, const Move *m)
{
    bool has_flags = m->flags >= 0 && m->flags < c->nargs && PyLong_Check(c->args[m->flags]);
    int overflow;
    return has_flags ? PyLong_AsLongAndOverflow(c->args[m->flags], &overflow) : 0;
}

static unsigned
flags_of_move(const Move *m, long given, int fd)
{
    unsigned flags = receives(m) ? TRANSFER_RECEIVES : 0;
    if (given & MSG_PEEK)
        flags |= TRANSFER_PEEKS;
    if (given & MSG_OOB)
        flags |= TRANSFER_URGENT;
    if (!receives(m) && fd_stream(fd))
        flags |= fd_stream(fd) == 1 ? TRANSFER_TO_OUTPUT : TRANSFER_TO_ERROR;
    return flags;
}

static Moving
begin(int fd, unsigned flags)
{
    int stream = flags & TRANSFER_TO_OUTPUT ? 1 : flags & TRANSFER_TO_ERROR ? 2 : 0;
    uint32_t endpoint = endpoint_of(fd, stream);
    return (Moving){endpoint ? transfer_begin(endpoint, flags, fd) : 0, fd, flags};
}

/* Until it has ended, it is known by this that it waits for the end of the stream. */
static Moving
begin_to_the_end(int fd, unsigned flags)
{
    Moving moving = begin(fd, flags | TRANSFER_PARTLY_KNOWN);
    moving.flags = flags;
    return moving;
}

static Moving
begin_with_semaphore(const Crossing *c, unsigned flags)
{
    static Py_ssize_t at;
    if (at == 0)
        at = member_offset(PyDescr_TYPE(c->gate->original), "handle");
    const void *handle = at ? *(void **)((char *)c->self + at) : NULL;
    return (Moving){handle ? transfer_begin(endpoint_of_semaphore(handle), flags, -1) : 0, -1, flags};
}

static void
begin_by_kernel(Crossing *c, const Move *m)
{
    int from, to;
    kernel_moves(c, &from, &to);
    Moving receive = begin(from, TRANSFER_RECEIVES), send = begin(to, flags_of_move(m, 0, to));
    c->transfers[0] = receive.number ? receive : send;
    c->transfers[1].number = receive.number ? send.number : 0;
    c->transfers[1].fd = to;
    c->transfers[1].flags = send.flags;
}

void
channels_begin(Crossing *c)
{
    c->transfers[1].number = 0;
    if (core.mode == REPLAY) {
        redigest_begins(c);
        return;
    }
    if (c->gate->moves >= MEMBER_CALLS) {
        others[other_of(c->gate)].begins(c);
        return;
    }
    const Move *m = move_of(c);
    if (m->how == BY_KERNEL)
        begin_by_kernel(c, m);
    else if (m->how == ACQUIRES || m->how == RELEASES)
        c->transfers[0] = begin_with_semaphore(c, receives(m) ? TRANSFER_RECEIVES : 0);
    else {
        int fd = descriptor_of(c);
        long given = message_flags(c, m);
        if (!(given & MSG_ERRQUEUE)) /* that is none of what was sent */
            c->transfers[0] = (m->how == READS_ALL ? begin_to_the_end : begin)(fd, flags_of_move(m, given, fd));
    }
    if (c->transfers[0].number == 0)
        return;
    c->given_digest = 0;
    c->given = 0;
    if (is_counted(m)) {
        c->moved_by_outer = cross_count_moved(0);
        moved_bytes_count++;
    }
    if (m->address >= 0 && !receives(m))
        endpoint_sends();
}

/* ---- the other end of a datagram ---- */

static bool
put_host(char text[ADDRESS_TEXT], const char *host, long port)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    char plain[64];
    snprintf(plain, sizeof plain, "%.*s", (int)strcspn(host, "%"), host); /* fe80::1%eth0 */
    if (inet_pton(AF_INET, plain, &v4.sin_addr) == 1)
        address_text(text, &v4, sizeof v4);
    else if (inet_pton(AF_INET6, plain, &v6.sin6_addr) == 1)
        address_text(text, &v6, sizeof v6);
    else
        return false;
    return true;
}

static bool
put_path(char text[ADDRESS_TEXT], const char *path, size_t n)
{
    for (size_t i = 0; i < n && i + 1 < ADDRESS_TEXT; i++) {
        text[i] = path[i] ? path[i] : '@'; /* it begins with a zero in the abstract namespace */
        text[i + 1] = 0;
    }
    return true;
}

/* As the interpreter has it: (host, port, ...), or the path of a unix socket. */
static bool
put_address(char text[ADDRESS_TEXT], PyObject *address)
{
    PyObject *first =
        address && PyTuple_Check(address) && PyTuple_GET_SIZE(address) >= 2 ? PyTuple_GET_ITEM(address, 0) : NULL;
    const char *host = first && PyUnicode_Check(first) && PyUnicode_IS_ASCII(first) ? PyUnicode_DATA(first) : NULL;
    int overflow;
    *text = 0;
    if (host && PyLong_Check(PyTuple_GET_ITEM(address, 1)))
        return put_host(text, host, PyLong_AsLongAndOverflow(PyTuple_GET_ITEM(address, 1), &overflow));
    if (address && PyUnicode_Check(address) && PyUnicode_IS_ASCII(address))
        return put_path(text, PyUnicode_DATA(address), (size_t)PyUnicode_GET_LENGTH(address));
    if (address && PyBytes_Check(address))
        return put_path(text, PyBytes_AS_STRING(address), (size_t)PyBytes_GET_SIZE(address));
    return false;
}

static const char *
address_of(const Crossing *c, const Move *m, PyObject *result, char text[ADDRESS_TEXT])
{
    PyObject *const *items = c->args;
    Py_ssize_t n = c->nargs, at = m->address;
    *text = 0;
    if (receives(m)) {
        bool is_tuple = PyTuple_Check(result);
        n = is_tuple ? PyTuple_GET_SIZE(result) : 0;
        items = is_tuple ? ((PyTupleObject *)result)->ob_item : NULL;
    }
    else if (m->how == SENDS_BUFFER)
        at = n - 1;
    if (at < n && items[at] != Py_None && !put_address(text, items[at]) && !receives(m))
        return endpoint_was_sent_to();
    return text;
}

/* ---- it ends ---- */

static int64_t
number_in(PyObject *result)
{
    PyObject *number = PyTuple_Check(result) && PyTuple_GET_SIZE(result) > 0 ? PyTuple_GET_ITEM(result, 0) : result;
    int overflow;
    int64_t n = PyLong_Check(number) ? PyLong_AsLongLongAndOverflow(number, &overflow) : -1;
    return n;
}

static void
took(const Crossing *c, const Move *m, PyObject *result, TransferEnd *end)
{
    PyObject *bytes = PyTuple_Check(result) && PyTuple_GET_SIZE(result) > 0 ? PyTuple_GET_ITEM(result, 0) : result;
    const void *data = NULL;
    if (m->how != FILLS_BUFFER && PyBytes_Check(bytes)) {
        data = PyBytes_AS_STRING(bytes);
        end->length = (uint64_t)PyBytes_GET_SIZE(bytes);
    }
    else if (m->how == FILLS_BUFFER) {
        int64_t n = number_in(result);
        data = c->fill;
        end->length = data ? c->fill_length : n < 0 ? 0 : (uint64_t)n;
    }
    end->digest = data ? stream_digest(0, data, (size_t)end->length) : 0;
}

/* A buffer that no program code is asked for; else its bytes are not looked at again. */
static bool
is_plain(PyObject *buffer)
{
    return PyBytes_Check(buffer) || PyByteArray_Check(buffer) || PyMemoryView_Check(buffer) ||
           !PyType_HasFeature(Py_TYPE(buffer), Py_TPFLAGS_HEAPTYPE) ||
           PyType_HasFeature(Py_TYPE(buffer), Py_TPFLAGS_IMMUTABLETYPE); /* such as array.array */
}

/* The digest goes on with the first bytes of one buffer; returns how many are left to be found in others. */
static size_t
digest_first(PyObject *buffer, size_t left, uint64_t *digest)
{
    Py_buffer view;
    if (!is_plain(buffer) || PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE) < 0)
        return SIZE_MAX;
    size_t n = left < (size_t)view.len ? left : (size_t)view.len;
    *digest = stream_digest(*digest, view.buf, n);
    PyBuffer_Release(&view);
    return left - n;
}

/* Of the part that was taken, where that is less than was given. 0: not known. */
static uint64_t
digest_of_part(const Crossing *c, const Move *m, uint64_t length)
{
    PyObject *type, *value, *traceback, *given = c->gate->buffer < c->nargs ? c->args[c->gate->buffer] : NULL;
    uint64_t digest = 0;
    size_t left = (size_t)length;
    PyErr_Fetch(&type, &value, &traceback);
    if (given && m->how == SENDS_PIECES && (PyList_Check(given) || PyTuple_Check(given)))
        for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(given) && left > 0 && left != SIZE_MAX; i++)
            left = digest_first(PySequence_Fast_GET_ITEM(given, i), left, &digest);
    else if (given && m->how != SENDS_PIECES)
        left = digest_first(given, left, &digest);
    PyErr_Restore(type, value, traceback); /* and one of ours is gone */
    return left == 0 ? digest : 0;
}

static void
gave(const Crossing *c, const Move *m, uint64_t length, TransferEnd *end)
{
    end->length = length;
    end->digest = length == c->given ? c->given_digest : length == 0 ? 0 : digest_of_part(c, m, length);
}

/* ---- descriptors that go with a message ---- */

static unsigned passed_count;

static void
passed(int fd)
{
    uint32_t endpoint = endpoint_of(fd, 0);
    lock_passed_on(fd);
    passed_count++;
    if (endpoint) /* it leads to a channel */
        transfer_passes(endpoint);
}

static void
passed_to_us(int fd)
{
    endpoint_forget(fd); /* the number is new, and may have led elsewhere */
    passed(fd);
}

/* What sendmsg() was given: pieces of (level, type, data). */
static void
each_sent(PyObject *ancillary, void (*take)(int))
{
    bool is_list = PyList_Check(ancillary) || PyTuple_Check(ancillary);
    for (Py_ssize_t i = 0; is_list && i < PySequence_Fast_GET_SIZE(ancillary); i++) {
        PyObject *piece = PySequence_Fast_GET_ITEM(ancillary, i), *const *items = NULL;
        Py_buffer view;
        if (PyTuple_Check(piece) && PyTuple_GET_SIZE(piece) == 3)
            items = ((PyTupleObject *)piece)->ob_item;
        if (items == NULL || !PyLong_Check(items[0]) || !PyLong_Check(items[1]) || !is_plain(items[2]) ||
            PyLong_AsLong(items[0]) != SOL_SOCKET || PyLong_AsLong(items[1]) != SCM_RIGHTS ||
            PyObject_GetBuffer(items[2], &view, PyBUF_SIMPLE) < 0)
            continue;
        for (Py_ssize_t at = 0; at + (Py_ssize_t)sizeof(int) <= view.len; at += sizeof(int)) {
            int fd;
            memcpy(&fd, (const char *)view.buf + at, sizeof fd);
            take(fd);
        }
        PyBuffer_Release(&view);
    }
    PyErr_Clear();
}

static bool
has_passed(const Crossing *c, const Move *m, PyObject *result)
{
    passed_count = 0;
    if (m->how == SENDS_PIECES)
        each_sent(c->args[1], passed);
    else
        each_received(PyTuple_GET_ITEM(result, 1), passed_to_us);
    return passed_count > 0;
}

/* Whether it has moved anything, or reached the end of a stream. `moved`: as the C library's functions counted. */
static bool
describe(const Crossing *c, const Move *m, PyObject *result, uint64_t moved, TransferEnd *end)
{
    if (result == NULL) { /* only these two go on after they have moved something, and may then raise */
        bool is_all = m->how == SENDS_ALL;
        if (!is_all && m->how != READS_ALL)
            return false;
        if (is_all)
            gave(c, m, moved, end);
        else
            end->length = moved; /* the bytes are lost */
        end->flags |= is_all && cross_has_moved() ? 0 : TRANSFER_PARTLY_KNOWN;
        return moved > 0 || !cross_has_moved();
    }
    if (m->how == ACQUIRES || m->how == RELEASES)
        return m->how == RELEASES || result == Py_True;
    if (m->how == TAKES || m->how == ADDS) {
        end->length = sizeof(uint64_t);
        return true;
    }
    if (m->how == SENDS_ALL)
        gave(c, m, c->given, end);
    else if (result == Py_None) /* a FileIO that does not wait */
        return false;
    else if (receives(m))
        took(c, m, result, end);
    else {
        int64_t n = number_in(result);
        if (m->how == BY_KERNEL)
            end->length = n < 0 ? 0 : (uint64_t)n;
        else
            gave(c, m, n < 0 ? 0 : (uint64_t)n, end);
    }
    bool has_more = m->address == OF_A_MESSAGE && (receives(m) ? PyTuple_Check(result) : c->nargs > 1);
    if (has_more && has_passed(c, m, result))
        end->flags |= TRANSFER_PASSES;
    return true;
}

static void
end_one(Moving moving, TransferEnd *end, bool has_moved)
{
    if (!has_moved) {
        transfer_undo(moving.number);
        return;
    }
    endpoint_settle(moving.fd);
    if (!transfer_is_own(moving.number)) /* a signal handler that ran inside it has forked, and this is the child */
        moving = begin(moving.fd, moving.flags);
    end->flags |= moving.flags;
    transfer_end(moving.number, end);
}

uint64_t
channel_digest(const Crossing *c, PyObject *result, uint64_t length)
{
    const Move *m = move_of(c);
    TransferEnd end = {.address = ""};
    if (m->how == SENDS_BUFFER || m->how == SENDS_ALL || m->how == SENDS_PIECES)
        gave(c, m, length, &end);
    else if (receives(m) && result)
        took(c, m, result, &end);
    return end.length == length ? end.digest : 0;
}

void
channels_end(Crossing *c, PyObject *result)
{
    if (core.mode == REPLAY) {
        redigest_ends(c, result);
        return;
    }
    if (c->gate->moves >= MEMBER_CALLS) {
        others[other_of(c->gate)].ends(c, result);
        return;
    }
    const Move *m = move_of(c);
    char text[ADDRESS_TEXT];
    TransferEnd end = {.address = ""};
    uint64_t moved = 0;
    if (m->how == ACQUIRES && result == NULL) { /* no argument of the event says which one it waited for */
        transfer_interrupted(c->transfers[0].number);
        return;
    }
    if (is_counted(m)) {
        moved = cross_count_moved(c->moved_by_outer);
        moved_bytes_count--;
    }
    bool has_moved = describe(c, m, result, moved, &end);
    if (has_moved && result && m->address >= 0 && endpoint_has_messages(c->transfers[0].fd))
        end.address = address_of(c, m, result, text);
    if (__builtin_expect(c->transfers[1].number != 0, 0)) {
        TransferEnd other = end;
        end_one(c->transfers[1], &other, has_moved);
    }
    end_one(c->transfers[0], &end, has_moved);
    if (result == NULL)
        stream_found_broken();
}
