/* The functions of the C library that the module _socket calls, for sockets of a future. Arguments are read, and errors
 * raised, by Python's own code; what moves bytes is the kernel's, on the ends of pairs. */
#include "future/future.h"
#include "future/loopback.h"
#include "future/turns.h"
#include "gates/gates.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

static int
failed(int error)
{
    errno = error;
    return error ? -1 : 0;
}

/* Of the program's socket; NULL: it is none of these. */
static Socket *
socket_of(int fd)
{
    int32_t number = core.is_future ? socket_number(fd) : -1;
    return number < 0 ? NULL : socket_at(number);
}

static int
give_address(const Address *a, struct sockaddr *to, socklen_t *size)
{
    socklen_t whole = a->any.sa_family == AF_INET6 ? sizeof a->v6 : sizeof a->v4;
    if (to && size) {
        memcpy(to, a, *size < whole ? *size : whole);
        *size = whole;
    }
    return 0;
}

static bool
take_address(const struct sockaddr *from, socklen_t size, Address *to)
{
    *to = (Address){0};
    memcpy(to, from, size < sizeof *to ? size : sizeof *to);
    return to->any.sa_family == AF_INET || to->any.sa_family == AF_INET6;
}

static int
our_socket(int family, int type, int protocol)
{
    bool is_stream = (type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK)) == SOCK_STREAM;
    if (core.is_future && is_stream && (family == AF_INET || family == AF_INET6))
        return socket_make(family, type, -1);
    return socket(family, type, protocol);
}

static int
our_bind(int fd, const struct sockaddr *to, socklen_t size)
{
    Address address;
    if (socket_of(fd) == NULL)
        return bind(fd, to, size);
    return failed(take_address(to, size, &address) ? socket_bind(socket_number(fd), &address) : EAFNOSUPPORT);
}

static int
our_listen(int fd, int backlog)
{
    Socket *s = socket_of(fd);
    if (s == NULL)
        return listen(fd, backlog);
    Address any = {.any.sa_family = s->own.any.sa_family};
    int error = s->state == IS_NEW ? socket_bind(socket_number(fd), &any) : s->state == IS_CONNECTED ? EINVAL : 0;
    if (error == 0 && s->state != LISTENS) {
        s->state = LISTENS;
        meetings_listens(socket_number(fd));
    }
    return failed(error);
}

static int
our_getsockname(int fd, struct sockaddr *to, socklen_t *size)
{
    Socket *s = socket_of(fd);
    return s ? give_address(&s->own, to, size) : getsockname(fd, to, size);
}

static int
our_getpeername(int fd, struct sockaddr *to, socklen_t *size)
{
    Socket *s = socket_of(fd);
    if (s && s->state != IS_CONNECTED)
        return failed(ENOTCONN);
    return s ? give_address(&s->peer, to, size) : getpeername(fd, to, size);
}

static int
our_shutdown(int fd, int how)
{
    Socket *s = socket_of(fd);
    int rc = shutdown(fd, how);
    if (s && rc == 0 && how != SHUT_RD)
        s->has_shut = true;
    return rc;
}

/* What a pair has too is set for it; an option of TCP is only remembered, since it changes no bytes. */
static int
our_setsockopt(int fd, int level, int name, const void *value, socklen_t size)
{
    Socket *s = socket_of(fd);
    bool is_real = s == NULL || (level == SOL_SOCKET && name != SO_SNDBUF); /* a pair has less room than TCP */
    int rc = is_real ? setsockopt(fd, level, name, value, size) : 0;
    if (s == NULL || (is_real && (rc == 0 || errno != EOPNOTSUPP)))
        return rc;
    if (level == IPPROTO_IPV6 && name == IPV6_V6ONLY && size >= sizeof(int))
        s->is_v6_only = *(const int *)value != 0;
    int i = 0;
    while (i < s->option_count && (s->options[i].level != level || s->options[i].name != name))
        i++;
    if (i == MOST_OPTIONS || size < sizeof(int))
        return 0;
    s->options[i].level = level;
    s->options[i].name = name;
    memcpy(&s->options[i].value, value, sizeof(int));
    s->option_count = i == s->option_count ? i + 1 : s->option_count;
    return 0;
}

static int
option_of(const Socket *s, int level, int name)
{
    if (level == SOL_SOCKET && name == SO_DOMAIN)
        return s->own.any.sa_family;
    if (level == SOL_SOCKET && (name == SO_PROTOCOL || name == SO_ACCEPTCONN))
        return name == SO_PROTOCOL ? IPPROTO_TCP : s->state == LISTENS;
    for (int i = 0; i < s->option_count; i++)
        if (s->options[i].level == level && s->options[i].name == name)
            return s->options[i].value;
    return 0;
}

static int
our_getsockopt(int fd, int level, int name, void *value, socklen_t *size)
{
    Socket *s = socket_of(fd);
    bool is_ours = level != SOL_SOCKET || name == SO_DOMAIN || name == SO_PROTOCOL || name == SO_ACCEPTCONN ||
                   name == SO_REUSEPORT || (name == SO_ERROR && s && s->error);
    if (s == NULL || !is_ours || *size < sizeof(int))
        return getsockopt(fd, level, name, value, size);
    bool is_error = level == SOL_SOCKET && name == SO_ERROR;
    int found = is_error ? s->error : option_of(s, level, name);
    s->error = is_error ? 0 : s->error;
    memcpy(value, &found, sizeof found);
    *size = sizeof found;
    return 0;
}

void
socket_calls_relink(void)
{
    static const Relink functions[] = {{"socket", (void *)our_socket},
                                       {"bind", (void *)our_bind},
                                       {"listen", (void *)our_listen},
                                       {"getsockname", (void *)our_getsockname},
                                       {"getpeername", (void *)our_getpeername},
                                       {"shutdown", (void *)our_shutdown},
                                       {"setsockopt", (void *)our_setsockopt},
                                       {"getsockopt", (void *)our_getsockopt},
                                       {NULL, NULL}};
    static Relinking module = {.functions = functions, .only_named = "_socket"};
    relink(&module);
}

/* ---- of lanes_hooks ---- */

void
future_library_loaded(void)
{
    if (core.is_future) {
        socket_calls_relink();
        semlocks_relink();
    }
}

bool
loopback_connects(int fd, const struct sockaddr *to, socklen_t size, int *result)
{
    Socket *s = socket_of(fd);
    Address address;
    if (s == NULL)
        return false;
    int error = s->state == IS_CONNECTED || s->state == LISTENS ? EISCONN : 0;
    if (error == 0 && !take_address(to, size, &address))
        error = EAFNOSUPPORT;
    bool is_met = error == 0 && meetings_connect(fd, &address);
    int32_t listener = error || is_met ? -1 : loopback_join(socket_number(fd), &address);
    if (error == 0 && listener < 0 && !is_met)
        error = ECONNREFUSED;
    else if (listener >= 0)
        send(socket_at(listener)->kept, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    if ((error == 0 || error == ECONNREFUSED) && fcntl(fd, F_GETFL) & O_NONBLOCK) {
        socket_of(fd)->error = error; /* as by TCP, which has not heard from the other side yet */
        error = EINPROGRESS;
    }
    *result = failed(error);
    return true;
}

/* A pair says that it hung up where the other side has only sent its last. Where nothing else is to be said it stays, or
 * the caller would look again and again. */
unsigned
loopback_hung_up(int fd, unsigned events)
{
    Socket *s = socket_of(fd);
    bool goes_on = s && s->state == IS_CONNECTED && !s->has_shut && (events & ~(unsigned)POLLHUP);
    return goes_on ? events & ~(unsigned)POLLHUP : events;
}

/* It is ready, or the program does not wait. */
bool
loopback_accepts(int fd, struct sockaddr *from, socklen_t *size, int flags, int *result)
{
    char byte;
    Socket *s = socket_of(fd);
    if (s == NULL && fcntl(fd, F_GETFD) >= 0)
        return false;
    if (s == NULL) { /* it was closed while it waited */
        *result = failed(EBADF);
        return true;
    }
    int32_t next = s->state == LISTENS ? loopback_next(socket_number(fd)) : -1;
    if (next < 0 || recv(fd, &byte, 1, MSG_DONTWAIT) != 1) {
        bool waits = s->state == LISTENS && next < 0 && recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) != 0;
        *result = failed(waits ? EAGAIN : EINVAL); /* it was shut down */
        return true;
    }
    Socket *server = socket_at(next);
    int own = fcntl(server->kept, flags & SOCK_CLOEXEC ? F_DUPFD_CLOEXEC : F_DUPFD, 0);
    if (own >= 0) {
        fcntl(own, F_SETFL, O_RDWR | (flags & SOCK_NONBLOCK ? O_NONBLOCK : 0));
        close(server->kept);
        server->kept = -1;
        server->state = IS_CONNECTED;
        give_address(&server->peer, from, size);
    }
    *result = own;
    return true;
}
