/* The sockets of a future, or of the replay that comes before it. They are found by the inode of their program's end: it
 * has copies with other numbers, and a number that was closed is soon another file's. */
#include "future/loopback.h"
#include "files/files.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FIRST_PORT = 49152, LAST_PORT = 65535 };

static Socket *sockets;
static int32_t socket_count;
static IdMap by_inode; /* 1 more than the number */
static int next_port = FIRST_PORT;

static ino_t
inode_of(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode) ? st.st_ino : 0;
}

int32_t
socket_number(int fd)
{
    ino_t inode = fd < 0 ? 0 : inode_of(fd);
    return inode ? (int32_t)*idmap_slot(&by_inode, inode) - 1 : -1;
}

Socket *
socket_at(int32_t number)
{
    return &sockets[number];
}

static int32_t
add(ino_t inode, int kept, int family, SocketState state)
{
    sockets = grown(sockets, (size_t)socket_count + 1, sizeof *sockets);
    Socket *s = &sockets[socket_count++];
    *s = (Socket){.state = state, .kept = kept, .listener = -1, .partner = -1};
    s->own.any.sa_family = s->peer.any.sa_family = (sa_family_t)family;
    *idmap_slot(&by_inode, inode) = (uint32_t)socket_count;
    return socket_count - 1;
}

int
socket_make(int family, int flags, int at)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | (flags & SOCK_CLOEXEC), 0, ends) < 0)
        return -1;
    fd_note_pair(ends);
    fd_widen(ends);
    int fd = ends[0], kept = fd_moved(ends[1]);
    if (at >= 0 && fd != at) {
        int high = fd_moved(fd);
        fd = dup3(high, at, O_CLOEXEC);
        close(high);
    }
    if (fd < 0 || kept < 0)
        return -1;
    if (flags & SOCK_NONBLOCK)
        fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK);
    add(inode_of(fd), kept, family, IS_NEW);
    return fd;
}

void
loopback_adopt(int fd, const Address *own, const Address *peer)
{
    Socket *s = socket_at(add(inode_of(fd), -1, own->any.sa_family, IS_CONNECTED));
    s->own = *own;
    s->peer = *peer;
}

bool
socket_is_open(const Socket *s)
{
    struct pollfd p = {s->kept, 0, 0};
    return s->kept >= 0 && poll(&p, 1, 0) >= 0 && !(p.revents & POLLHUP);
}

/* ---- addresses ---- */

static int
port_of(const Address *a)
{
    return ntohs(a->any.sa_family == AF_INET6 ? a->v6.sin6_port : a->v4.sin_port);
}

/* As one of version 6, in which those of version 4 have their place. */
static struct in6_addr
place_of(const Address *a)
{
    struct in6_addr place = {{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}}};
    if (a->any.sa_family == AF_INET6)
        return a->v6.sin6_addr;
    memcpy(&place.s6_addr[12], &a->v4.sin_addr, 4);
    return place;
}

static bool
is_any(const Address *a)
{
    return a->any.sa_family == AF_INET6 ? IN6_IS_ADDR_UNSPECIFIED(&a->v6.sin6_addr)
                                        : a->v4.sin_addr.s_addr == htonl(INADDR_ANY);
}

static void
set_port(Address *a, int port)
{
    if (a->any.sa_family == AF_INET6)
        a->v6.sin6_port = htons((uint16_t)port);
    else
        a->v4.sin_port = htons((uint16_t)port);
}

void
address_turn(const Address *from, int family, Address *to)
{
    struct in6_addr place = place_of(from);
    Address turned = {.any.sa_family = (sa_family_t)family};
    if (family == AF_INET6)
        turned.v6.sin6_addr = place;
    else
        memcpy(&turned.v4.sin_addr, &place.s6_addr[12], 4);
    set_port(&turned, port_of(from));
    *to = turned;
}

/* Whoever listens at any address of the machine, or connects with it, means this one. */
static void
make_loopback(Address *a)
{
    if (!is_any(a))
        return;
    if (a->any.sa_family == AF_INET6)
        a->v6.sin6_addr = in6addr_loopback;
    else
        a->v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
}

bool
address_is_met(const Socket *s, const Address *to)
{
    const Address *bound = &s->own;
    Address other = *to;
    make_loopback(&other);
    struct in6_addr here = place_of(bound), there = place_of(&other);
    bool is_everywhere = is_any(bound) && (bound->any.sa_family == to->any.sa_family ||
                                           (bound->any.sa_family == AF_INET6 && !s->is_v6_only));
    return port_of(bound) == port_of(to) && port_of(to) != 0 &&
           (is_everywhere || memcmp(&here, &there, sizeof here) == 0);
}

static const char *
host_text(PyObject *host)
{
    const char *text = PyUnicode_Check(host) ? PyUnicode_AsUTF8(host)
                       : PyBytes_Check(host) ? PyBytes_AS_STRING(host)
                                             : NULL;
    PyErr_Clear();
    return text;
}

bool
address_read(PyObject *given, int family, Address *to)
{
    int overflow;
    bool has_both = given && PyTuple_Check(given) && PyTuple_GET_SIZE(given) >= 2;
    const char *host = has_both ? host_text(PyTuple_GET_ITEM(given, 0)) : NULL;
    PyObject *number = has_both ? PyTuple_GET_ITEM(given, 1) : NULL;
    long port = host && PyLong_Check(number) ? PyLong_AsLongAndOverflow(number, &overflow) : -1;
    *to = (Address){.any.sa_family = (sa_family_t)family};
    if (port < 0 || port > LAST_PORT || (family != AF_INET && family != AF_INET6))
        return false;
    set_port(to, (int)port);
    if (*host == 0)
        return true;
    if (strcmp(host, "localhost") == 0) {
        make_loopback(to);
        return true;
    }
    void *place = family == AF_INET6 ? (void *)&to->v6.sin6_addr : (void *)&to->v4.sin_addr;
    return inet_pton(family, host, place) == 1;
}

/* ---- who is where ---- */

static bool
is_bound(const Socket *s)
{
    return s->state == IS_BOUND || s->state == LISTENS;
}

static int32_t
who_is_at(const Address *to, bool must_listen)
{
    for (int32_t i = 0; i < socket_count; i++) {
        const Socket *s = &sockets[i];
        if ((must_listen ? s->state == LISTENS : is_bound(s)) && address_is_met(s, to) && socket_is_open(s))
            return i;
    }
    return -1;
}

bool
loopback_has(const Address *to)
{
    for (int32_t i = 0; i < socket_count; i++)
        if (is_bound(&sockets[i]) && address_is_met(&sockets[i], to))
            return true;
    return false;
}

static int
free_port(void)
{
    for (int tried = 0; tried <= LAST_PORT - FIRST_PORT; tried++) {
        int port = next_port, i = 0;
        next_port = next_port == LAST_PORT ? FIRST_PORT : next_port + 1;
        while (i < socket_count && port_of(&sockets[i].own) != port)
            i++;
        if (i == socket_count)
            return port;
    }
    return 0;
}

int
socket_bind(int32_t number, const Address *to)
{
    Socket *s = &sockets[number];
    if (s->state != IS_NEW)
        return EINVAL;
    if (port_of(to) && who_is_at(to, false) >= 0)
        return EADDRINUSE;
    address_turn(to, s->own.any.sa_family, &s->own);
    if (port_of(to) == 0)
        set_port(&s->own, free_port());
    s->state = IS_BOUND;
    return port_of(&s->own) ? 0 : EADDRINUSE;
}

/* Of one that connects: where it is, and with whom. */
static void
set_addresses(Socket *c, const Address *to)
{
    c->peer = *to;
    make_loopback(&c->peer);
    if (c->state == IS_NEW || is_any(&c->own)) {
        int port = c->state == IS_NEW ? free_port() : port_of(&c->own);
        c->own = c->peer;
        set_port(&c->own, port);
    }
}

int32_t
loopback_join(int32_t client, const Address *to)
{
    int32_t listener = who_is_at(to, true);
    if (listener < 0)
        return -1;
    if (sockets[listener].strangers > 0) { /* it may be one of these */
        sockets[listener].strangers--;
        return -1;
    }
    int32_t server =
        add(inode_of(sockets[client].kept), sockets[client].kept, sockets[listener].own.any.sa_family, WAITS);
    Socket *c = &sockets[client], *s = &sockets[server], *l = &sockets[listener];
    set_addresses(c, to);
    address_turn(&c->peer, l->own.any.sa_family, &s->own);
    address_turn(&c->own, l->own.any.sa_family, &s->peer);
    c->kept = -1;
    c->state = IS_CONNECTED;
    c->partner = server;
    s->listener = listener;
    s->partner = client;
    return listener;
}

void
loopback_pend(int32_t listening, int fd, const Address *peer)
{
    int kept = fcntl(fd, F_DUPFD_CLOEXEC, 512);
    int32_t server = add(inode_of(kept), kept, socket_at(listening)->own.any.sa_family, WAITS);
    Socket *s = socket_at(server), *l = socket_at(listening);
    s->listener = listening;
    s->own = l->own;
    make_loopback(&s->own);
    address_turn(peer, l->own.any.sa_family, &s->peer);
    send(l->kept, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void
socket_meets(int fd, int end, const Address *to, Address *own)
{
    int32_t number = socket_number(fd);
    Socket *c = socket_at(number);
    int status = fcntl(fd, F_GETFL), flags = fcntl(fd, F_GETFD);
    set_addresses(c, to);
    close(c->kept);
    c->kept = -1;
    c->state = IS_CONNECTED;
    dup3(end, fd, flags & FD_CLOEXEC ? O_CLOEXEC : 0);
    fcntl(fd, F_SETFL, status & O_NONBLOCK);
    *idmap_slot(&by_inode, inode_of(fd)) = (uint32_t)number + 1;
    *own = c->own;
}

int32_t
sockets_count(void)
{
    return socket_count;
}

void
ports_begin(int process)
{
    next_port = FIRST_PORT + process * 250;
}

int32_t
loopback_next(int32_t listener)
{
    for (int32_t i = 0; i < socket_count; i++)
        if (sockets[i].state == WAITS && sockets[i].listener == listener)
            return i;
    return -1;
}

int32_t
loopback_lost(int32_t from)
{
    for (int32_t i = from; i < socket_count; i++)
        if (sockets[i].state == WAITS && !socket_is_open(&sockets[sockets[i].listener]))
            return i;
    return -1;
}

/* ---- in a copy ---- */

static int32_t held[MOST_LOOKED_AT];

/* A byte for each: what shows that a socket that listens is ready. */
static void
announce(void)
{
    for (int32_t i = 0; i < socket_count; i++)
        if (sockets[i].state == WAITS &&
            send(sockets[sockets[i].listener].kept, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
            sockets[i].state = IS_CONNECTED; /* nobody listens any more */
}

void
loopback_part_begin(void)
{
    for (int fd = 0; socket_count && fd < MOST_LOOKED_AT; fd++)
        held[fd] = socket_number(fd);
}

void
loopback_part_end(void)
{
    for (int fd = 0; socket_count && fd < MOST_LOOKED_AT; fd++)
        if (held[fd] >= 0)
            *idmap_slot(&by_inode, inode_of(fd)) = (uint32_t)held[fd] + 1;
    for (int32_t i = 0; i < socket_count; i++) {
        sockets[i].strangers = 0;
        if (is_bound(&sockets[i]) && port_of(&sockets[i].own) == 0)
            set_port(&sockets[i].own, free_port()); /* the kernel's choice, for which nobody has asked */
    }
    announce();
}
