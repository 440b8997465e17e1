/* Which calls of sockets a future makes; and, in the replay that comes before it, what the program does with sockets: a
 * connection of one of its threads with another is a real pair there, so what is under way in it goes on in the future. */
#include "files/files.h"
#include "future/layer.h"
#include "future/loopback.h"
#include "future/turns.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static bool
is_tcp(int family, int type)
{
    return (family == AF_INET || family == AF_INET6) && (type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK)) == SOCK_STREAM;
}

/* ---- in a future ---- */

Taken
call_socket(Crossing *c)
{
    PyObject *given = argument_of(c, 3, "fileno");
    bool is_new = given == NULL || given == Py_None;
    long family = number_of(argument_of(c, 0, "family"), AF_INET),
         type = number_of(argument_of(c, 1, "type"), SOCK_STREAM);
    return is_new && is_tcp((int)(family < 0 ? AF_INET : family), (int)(type < 0 ? SOCK_STREAM : type)) ? IS_PERFORMED
                                                                                                        : NOT_HERE;
}

/* It was closed: the call says so. */
static bool
is_closed(const Crossing *c)
{
    return socket_fd(c->self) == -1;
}

Taken
call_bind(Crossing *c)
{
    Address address;
    int32_t n = socket_number(socket_fd(c->self));
    if (is_closed(c))
        return IS_PERFORMED;
    return n >= 0 && c->nargs > 0 && address_read(c->args[0], socket_at(n)->own.any.sa_family, &address) ? IS_PERFORMED
                                                                                                         : NOT_HERE;
}

/* Where a socket of the program's is or was, the answer is known. Elsewhere somebody else may listen. */
Taken
call_connect(Crossing *c)
{
    Address address;
    int32_t n = socket_number(socket_fd(c->self));
    if (n < 0 || c->nargs == 0)
        return is_closed(c) ? IS_PERFORMED : NOT_HERE;
    return socket_at(n)->state == IS_CONNECTED ||
                   (address_read(c->args[0], socket_at(n)->own.any.sa_family, &address) &&
                    (loopback_has(&address) || meetings_know(&address)))
               ? IS_PERFORMED
               : NOT_HERE;
}

Taken
call_listens(Crossing *c)
{
    int32_t n = socket_number(socket_fd(c->self));
    if (n >= 0 && socket_at(n)->state != LISTENS && strcmp(c->gate->name, "socket._accept") == 0)
        return fails_with(EINVAL, NULL, NULL); /* its pair would never become ready */
    return n >= 0 || is_closed(c) ? IS_PERFORMED : NOT_HERE;
}

/* The pair of one that is not connected would take bytes, and keep them. */
Taken
call_moves(Crossing *c)
{
    int32_t n = socket_number(socket_fd(c->self));
    if (n < 0 || socket_at(n)->state == IS_CONNECTED ||
        (socket_at(n)->state == LISTENS && strstr(c->gate->name, "shutdown")))
        return NOT_HERE;
    return fails_with(strstr(c->gate->name, "send") ? EPIPE : ENOTCONN, NULL, NULL);
}

static bool
add_address(PyObject *list, long family, long type, const char *host, long port)
{
    static const int protocols[] = {0, IPPROTO_TCP, IPPROTO_UDP, 0};
    PyObject *place =
        family == AF_INET6 ? Py_BuildValue("(slii)", host, port, 0, 0) : Py_BuildValue("(sl)", host, port);
    PyObject *row = place ? Py_BuildValue("(llisN)", family, type, type < 3 ? protocols[type] : 0, "", place) : NULL;
    int rc = row ? PyList_Append(list, row) : -1;
    Py_XDECREF(row);
    return rc == 0;
}

/* getaddrinfo(host, port, family=0, type=0, proto=0, flags=0): of a number nobody has to be asked. The machine's own name
 * is taken for 127.0.0.1 where the recorded run did not ask for it. */
Taken
call_getaddrinfo(Crossing *c)
{
    const uint8_t *end;
    bool is_raised;
    Address address;
    PyObject *host = argument_of(c, 0, "host"), *port = argument_of(c, 1, "port");
    long family = number_of(argument_of(c, 2, "family"), 0), type = number_of(argument_of(c, 3, "type"), 0);
    const char *text = host && PyUnicode_Check(host) ? PyUnicode_AsUTF8(host)
                       : host && PyBytes_Check(host) ? PyBytes_AS_STRING(host)
                                                     : NULL;
    if (known_answer(c, &end, &is_raised) || text == NULL || *text == 0 || port == NULL || !PyLong_Check(port)) {
        PyErr_Clear();
        return NOT_HERE;
    }
    PyObject *given = PyTuple_Pack(2, host, port), *list = PyList_New(0);
    bool is_v6 = strchr(text, ':') != NULL;
    bool is_known = given && list && (family == 0 || family == (is_v6 ? AF_INET6 : AF_INET)) &&
                    address_read(given, is_v6 ? AF_INET6 : AF_INET, &address);
    const char *shown = strcmp(text, "localhost") == 0 ? "127.0.0.1" : text;
    for (long each = 1; is_known && each <= 3; each++)
        if (type == 0 || type == each)
            is_known = add_address(list, is_v6 ? AF_INET6 : AF_INET, each, shown, PyLong_AsLong(port));
    Py_XDECREF(given);
    if (is_known)
        return answered(list);
    Py_XDECREF(list);
    PyErr_Clear();
    return NOT_HERE;
}

/* A connection that nobody has accepted ends with the socket that it waits at. */
void
sockets_performed(const Crossing *c)
{
    if (!(c->gate->flags & GATE_CLOSES) && strcmp(c->gate->name, "socket.close") != 0)
        return;
    meetings_closed();
    for (int32_t n = 0; (n = loopback_lost(n)) >= 0; n++) {
        close(socket_at(n)->kept);
        socket_at(n)->kept = -1;
        socket_at(n)->state = IS_CONNECTED;
    }
}

/* ---- in the replay before it ---- */

static bool
is_past(void)
{
    return core.has_futures && core.mode == REPLAY;
}

/* of files_hooks; false: a placeholder will do */
bool
past_socket_made(int fd, PyObject *fields)
{
    int family = (int)number_of(PyTuple_GET_ITEM(fields, 1), -1),
        type = (int)number_of(PyTuple_GET_ITEM(fields, 2), -1);
    return is_past() && is_tcp(family, type) && socket_make(family, type & SOCK_NONBLOCK, fd) == fd;
}

bool
past_socket_accepted(int listening, int fd, PyObject *address)
{
    int32_t listener = is_past() ? socket_number(listening) : -1, next = listener < 0 ? -1 : loopback_next(listener);
    if (listener < 0)
        return false;
    if (next < 0) {
        socket_at(listener)->strangers++;
        return false;
    }
    Socket *s = socket_at(next), *client = socket_at(s->partner);
    Address peer;
    int high = s->kept;
    s->kept = -1;
    s->state = IS_CONNECTED;
    if (address_read(address, s->own.any.sa_family, &peer)) {
        s->peer = peer;
        address_turn(&peer, client->own.any.sa_family, &client->own);
    }
    bool is_there = dup3(high, fd, O_CLOEXEC) == fd;
    close(high);
    return is_there;
}

static void
follow_connect(const Crossing *c, int32_t n, int fd)
{
    Address to;
    Socket *s = socket_at(n);
    if (s->state != IS_NEW && s->state != IS_BOUND)
        return;
    bool is_read = address_read(c->args[0], s->own.any.sa_family, &to);
    int32_t listener = is_read ? loopback_join(n, &to) : -1;
    if (listener >= 0)
        return;
    close(s->kept); /* it leads elsewhere */
    s->kept = -1;
    s->state = IS_CONNECTED;
    fd_place_socket(fd);
}

static void
follow_bind(Socket *s, const Address *to)
{
    address_turn(to, s->own.any.sa_family, &s->own);
    s->state = IS_BOUND;
}

static void
follow_option(Socket *s, const Crossing *c)
{
    if (c->nargs == 3 && number_of(c->args[0], -1) == IPPROTO_IPV6 && number_of(c->args[1], -1) == IPV6_V6ONLY)
        s->is_v6_only = number_of(c->args[2], 0) != 0;
}

static bool
has_connected(PyObject *result)
{
    if (result == NULL)
        return PyErr_ExceptionMatches(PyExc_BlockingIOError);
    long error = number_of(result, 0);
    return error == 0 || error == EINPROGRESS;
}

static void
follow(const Crossing *c, const char *name, int fd, int32_t n, PyObject *result, bool has_failed)
{
    Address address;
    Socket *s = socket_at(n);
    if (c->nargs > 0 && strncmp(name, "connect", 7) == 0 && !has_failed)
        follow_connect(c, n, fd);
    else if (result == NULL)
        return;
    else if (c->nargs > 0 && strcmp(name, "bind") == 0 && address_read(c->args[0], s->own.any.sa_family, &address))
        follow_bind(s, &address);
    else if (strcmp(name, "listen") == 0)
        s->state = LISTENS;
    else if (strcmp(name, "shutdown") == 0)
        s->has_shut |= c->nargs > 0 && number_of(c->args[0], SHUT_RD) != SHUT_RD;
    else if (strcmp(name, "setsockopt") == 0)
        follow_option(s, c);
    else if (strcmp(name, "getsockname") == 0 && address_read(result, s->own.any.sa_family, &address))
        s->own = address;
}

/* of crossing_hooks; `result` is NULL where an exception is set */
void
past_sockets_follow(const Crossing *c, PyObject *result)
{
    PyObject *type, *value, *traceback;
    int fd = strcmp(c->gate->module, "_socket") == 0 && c->self ? socket_fd(c->self) : -1;
    int32_t n = fd >= 0 ? socket_number(fd) : -1;
    if (n < 0 || strncmp(c->gate->name, "socket.", 7) != 0)
        return;
    bool has_failed = !has_connected(result);
    PyErr_Fetch(&type, &value, &traceback);
    follow(c, c->gate->name + 7, fd, n, result, has_failed);
    PyErr_Restore(type, value, traceback);
}
