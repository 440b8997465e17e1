/* Ends of channels: what a descriptor leads to, asked of the kernel when it is first used by a transfer, and not again
 * until its number is closed or connected anew. The program sees nothing of it. Identities are such that whoever reads
 * the recordings of two processes finds the same channel in both: device and inode of a pipe, the addresses of a
 * connection, the inodes of two unix sockets. */
#define _GNU_SOURCE
#include "base/core.h"
#include "log/inside.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <unistd.h>

#define MOST_KNOWN (1 << 16) /* higher descriptors are no ends of channels to us */
#define PIPES 0x50495045     /* PIPEFS_MAGIC of linux/magic.h: a pipe without a name */
#define EVENTFD "anon_inode:[eventfd]"
#ifndef SO_COOKIE
#define SO_COOKIE 57
#endif

typedef struct {
    unsigned kind; /* 0: no channel */
    bool is_settled;
    uint64_t device, inode, cookie;
    uint32_t peer_pid;
    char own[ADDRESS_TEXT], peer[ADDRESS_TEXT], path[4200], peer_path[ADDRESS_TEXT];
} Identity;

/* A number that was closed is UNKNOWN, and keeps the rest: this is also set in a child of vfork(), which must not free. */
typedef struct {
    enum { UNKNOWN, NO_CHANNEL, CHANNEL } state;
    uint16_t kind;
    bool is_settled;
    uint32_t number; /* 0: not yet defined in this process's file */
    uint32_t output; /* no channel, but a standard stream: its number; 0: not yet used */
    uint32_t asked;  /* how often more was hoped for */
    uint32_t peer_pid;
    uint64_t device, inode, cookie;
    char *texts; /* ENDPOINT_TEXTS of them, each with its NUL */
} Descriptor;
static Descriptor *known; /* it never moves: other threads close descriptors, too */
static int known_count;
static uint32_t endpoint_count;

typedef struct {
    uint64_t device, inode;
    uint32_t number;
} Output; /* a terminal or a file that a standard stream leads to */
static Output *outputs;
static uint32_t output_count;

typedef struct {
    uint32_t number;
    char *name;
    long value; /* with which it was made; -1: unknown */
} Semaphore;
static Semaphore *semaphores;
static uint32_t semaphore_count;
static IdMap semaphore_ids; /* by address; from 1 */

/* Ends of a process that goes on in another one: the kernel has new names for them. */
typedef struct {
    uint64_t device, inode;
    Identity as;
} StandIn;
static StandIn *stand_ins;
static size_t stand_in_count;

static struct {
    int lane;
    char text[ADDRESS_TEXT];
} sent_to = {.lane = -1};

/* ---- addresses ---- */

/* host:port, [host]:port or the path of a unix socket; empty: none, or unknown */
void
address_text(char text[ADDRESS_TEXT], const void *address, size_t size)
{
    char host[INET6_ADDRSTRLEN];
    const struct sockaddr *any = address;
    *text = 0;
    if (address == NULL || size < sizeof any->sa_family)
        return;
    if (any->sa_family == AF_INET && size >= sizeof(struct sockaddr_in)) {
        const struct sockaddr_in *v4 = address;
        if (inet_ntop(AF_INET, &v4->sin_addr, host, sizeof host))
            snprintf(text, ADDRESS_TEXT, "%s:%u", host, ntohs(v4->sin_port));
    }
    else if (any->sa_family == AF_INET6 && size >= sizeof(struct sockaddr_in6)) {
        const struct sockaddr_in6 *v6 = address;
        bool is_v4 = IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr);
        const void *bytes = is_v4 ? v6->sin6_addr.s6_addr + 12 : v6->sin6_addr.s6_addr;
        if (inet_ntop(is_v4 ? AF_INET : AF_INET6, bytes, host, sizeof host))
            snprintf(text, ADDRESS_TEXT, is_v4 ? "%s:%u" : "[%s]:%u", host, ntohs(v6->sin6_port));
    }
    else if (any->sa_family == AF_UNIX && size > offsetof(struct sockaddr_un, sun_path)) {
        const char *path = ((const struct sockaddr_un *)address)->sun_path;
        size_t n = size - offsetof(struct sockaddr_un, sun_path);
        bool is_abstract = path[0] == 0;
        for (size_t i = 0; i < n && i + 1 < ADDRESS_TEXT && (path[i] || is_abstract); i++) {
            text[i] = path[i] ? path[i] : '@';
            text[i + 1] = 0;
        }
    }
}

/* A name was looked up by the interpreter: its address is known here, right when the kernel has taken the message. */
void
endpoint_sent_to(const void *address, size_t size)
{
    sent_to.lane = core.lane;
    address_text(sent_to.text, address, size);
}

void
endpoint_sends(void)
{
    sent_to.lane = -1;
}

const char *
endpoint_was_sent_to(void)
{
    return sent_to.lane == core.lane ? sent_to.text : "";
}

/* ---- what a descriptor leads to ---- */

/* The inode of the other end, which the kernel tells everybody; 0: there is none, or it is not accepted yet. */
static uint64_t
unix_peer(uint64_t inode)
{
    struct {
        struct nlmsghdr head;
        struct unix_diag_req body;
    } asks = {.head = {.nlmsg_len = sizeof asks, .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST},
              .body = {.sdiag_family = AF_UNIX,
                       .udiag_states = UINT32_MAX,
                       .udiag_ino = (uint32_t)inode,
                       .udiag_show = UDIAG_SHOW_PEER,
                       .udiag_cookie = {UINT32_MAX, UINT32_MAX}}};
    union {
        struct nlmsghdr head;
        char bytes[1024];
    } answer;
    int fd = inode <= UINT32_MAX ? socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG) : -1;
    ssize_t n =
        fd >= 0 && send(fd, &asks, sizeof asks, 0) == sizeof asks ? recv(fd, &answer, sizeof answer, MSG_DONTWAIT) : -1;
    if (fd >= 0)
        close(fd);
    if (n < (ssize_t)NLMSG_LENGTH(sizeof(struct unix_diag_msg)) || !NLMSG_OK(&answer.head, n) ||
        answer.head.nlmsg_type != SOCK_DIAG_BY_FAMILY)
        return 0;
    struct unix_diag_msg *found = NLMSG_DATA(&answer.head);
    int left = (int)(answer.head.nlmsg_len - NLMSG_LENGTH(sizeof *found));
    for (struct rtattr *each = (struct rtattr *)(found + 1); RTA_OK(each, left); each = RTA_NEXT(each, left)) {
        uint32_t peer;
        if (each->rta_type != UNIX_DIAG_PEER || RTA_PAYLOAD(each) < sizeof peer)
            continue;
        memcpy(&peer, RTA_DATA(each), sizeof peer);
        return peer;
    }
    return 0;
}

static void
identify_unix(int fd, int type, Identity *id)
{
    struct sockaddr_un address;
    struct ucred peer_process; /* whoever connected, or was connected to: known even if it is gone */
    socklen_t size = sizeof address;
    uint64_t peer = unix_peer(id->inode);
    id->kind = type == SOCK_STREAM ? ENDPOINT_UNIX : ENDPOINT_UNIX_DATAGRAM;
    snprintf(id->own, sizeof id->own, "%llu", (unsigned long long)id->inode);
    if (peer)
        snprintf(id->peer, sizeof id->peer, "%llu", (unsigned long long)peer);
    if (getsockname(fd, (struct sockaddr *)&address, &size) == 0)
        address_text(id->path, &address, size);
    size = sizeof address;
    if (getpeername(fd, (struct sockaddr *)&address, &size) == 0)
        address_text(id->peer_path, &address, size);
    size = sizeof peer_process;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer_process, &size) == 0 && peer_process.pid > 0)
        id->peer_pid = (uint32_t)peer_process.pid;
    id->is_settled = peer || type == SOCK_DGRAM;
}

static void
identify_internet(int fd, int type, Identity *id)
{
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    id->kind = type == SOCK_STREAM ? ENDPOINT_TCP : ENDPOINT_UDP;
    if (getsockname(fd, (struct sockaddr *)&address, &size) == 0)
        address_text(id->own, &address, size);
    size = sizeof address;
    if (getpeername(fd, (struct sockaddr *)&address, &size) == 0)
        address_text(id->peer, &address, size);
    size_t n = strlen(id->own);
    bool has_port = n > 2 && strcmp(id->own + n - 2, ":0") != 0; /* the kernel chooses one when it first sends */
    id->is_settled = has_port && (id->kind == ENDPOINT_UDP || *id->peer);
}

static void
identify_socket(int fd, Identity *id)
{
    int domain = -1, type = -1, protocol = -1;
    socklen_t size = sizeof domain;
    getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size);
    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size);
    getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size);
    size = sizeof id->cookie;
    if (getsockopt(fd, SOL_SOCKET, SO_COOKIE, &id->cookie, &size) < 0)
        id->cookie = 0;
    bool is_internet = domain == AF_INET || domain == AF_INET6;
    if (domain == AF_UNIX && (type == SOCK_STREAM || type == SOCK_DGRAM || type == SOCK_SEQPACKET))
        identify_unix(fd, type, id);
    else if (is_internet &&
             ((type == SOCK_STREAM && protocol != IPPROTO_SCTP) || (type == SOCK_DGRAM && protocol == IPPROTO_UDP)))
        identify_internet(fd, type, id);
}

static void
identify_pipe(int fd, Identity *id)
{
    struct statfs system;
    char link[64];
    bool has_name = fstatfs(fd, &system) < 0 || system.f_type != PIPES;
    id->kind = has_name ? ENDPOINT_FIFO : ENDPOINT_PIPE;
    id->is_settled = true;
    snprintf(id->own, sizeof id->own, "%llu:%llu", (unsigned long long)id->device, (unsigned long long)id->inode);
    strcpy(id->peer, id->own);
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = has_name ? readlink(link, id->path, sizeof id->path - 1) : 0;
    id->path[n > 0 ? n : 0] = 0;
}

/* All eventfds have one inode, but each a number of its own, which kernels since 5.2 show. */
static void
identify_eventfd(int fd, Identity *id)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(path, text, sizeof text);
    if (n != sizeof EVENTFD - 1 || memcmp(text, EVENTFD, sizeof EVENTFD - 1) != 0)
        return;
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
    int facts = open(path, O_RDONLY | O_CLOEXEC);
    n = facts >= 0 ? read(facts, text, sizeof text - 1) : 0;
    if (facts >= 0)
        close(facts);
    text[n > 0 ? n : 0] = 0;
    const char *number = strstr(text, "\neventfd-id:");
    if (number == NULL)
        return;
    id->kind = ENDPOINT_EVENTFD;
    snprintf(id->own, sizeof id->own, "%lu", strtoul(number + sizeof "\neventfd-id:" - 1, NULL, 10));
}

static const Identity *
stands_for(const struct stat *st)
{
    for (size_t i = 0; i < stand_in_count; i++)
        if (stand_ins[i].device == st->st_dev && stand_ins[i].inode == st->st_ino)
            return &stand_ins[i].as;
    return NULL;
}

static void
copy_text(char *to, size_t size, const char *from)
{
    snprintf(to, size, "%s", from);
}

void
endpoint_stands_for(int fd, unsigned kind, uint64_t cookie, uint32_t peer_pid, const char *const texts[ENDPOINT_TEXTS])
{
    struct stat st;
    if (fstat(fd, &st) == 0 && !stands_for(&st))
        endpoint_keeps_name(st.st_dev, st.st_ino, kind, cookie, peer_pid, texts);
}

void
endpoint_keeps_name(uint64_t device, uint64_t inode, unsigned kind, uint64_t cookie, uint32_t peer_pid,
                    const char *const texts[ENDPOINT_TEXTS])
{
    stand_ins = grown(stand_ins, stand_in_count + 1, sizeof *stand_ins);
    StandIn *made = &stand_ins[stand_in_count++];
    *made = (StandIn){.device = device, .inode = inode};
    made->as = (Identity){.kind = kind, .is_settled = true, .device = device, .inode = inode};
    made->as.cookie = cookie;
    made->as.peer_pid = peer_pid;
    copy_text(made->as.own, sizeof made->as.own, texts[OWN]);
    copy_text(made->as.peer, sizeof made->as.peer, texts[PEER]);
    copy_text(made->as.path, sizeof made->as.path, texts[PATH]);
    copy_text(made->as.peer_path, sizeof made->as.peer_path, texts[PEER_PATH]);
}

static bool
identify(int fd, Identity *id)
{
    struct stat st;
    id->kind = 0;
    id->is_settled = true;
    id->cookie = 0;
    id->peer_pid = 0;
    *id->own = *id->peer = *id->path = *id->peer_path = 0;
    if (fstat(fd, &st) < 0)
        return false;
    id->device = st.st_dev;
    id->inode = st.st_ino;
    const Identity *as = stands_for(&st);
    if (as) {
        *id = *as;
        id->kind = as->kind == ENDPOINT_OUTPUT ? 0 : as->kind;
    }
    else if (core.is_future)
        ; /* what it has made itself, nobody else has */
    else if (S_ISFIFO(st.st_mode))
        identify_pipe(fd, id);
    else if (S_ISSOCK(st.st_mode))
        identify_socket(fd, id);
    else if ((st.st_mode & S_IFMT) == 0) /* the kernel's own, such as one of epoll */
        identify_eventfd(fd, id);
    return true;
}

/* ---- what is known ---- */

static const char *
text_of(const Descriptor *d, int i)
{
    const char *text = d->texts;
    while (i-- > 0)
        text += strlen(text) + 1;
    return text;
}

static bool
is_stream(unsigned kind)
{
    return kind == ENDPOINT_TCP || kind == ENDPOINT_UNIX;
}

static bool
is_the_same(const Descriptor *d, const Identity *id)
{
    if (d->texts == NULL || d->kind != id->kind || d->inode != id->inode || d->device != id->device ||
        d->cookie != id->cookie || strcmp(text_of(d, OWN), id->own) != 0 || strcmp(text_of(d, PATH), id->path) != 0)
        return false;
    if (is_stream(id->kind) && *id->peer == 0)
        return true; /* its peer is gone: that of a connection never changes */
    return d->peer_pid == id->peer_pid && strcmp(text_of(d, PEER), id->peer) == 0 &&
           strcmp(text_of(d, PEER_PATH), id->peer_path) == 0;
}

/* Of a connection whose peer was known, and may be gone. */
static void
keep_peer(Identity *id, const Descriptor *from)
{
    snprintf(id->peer, sizeof id->peer, "%s", text_of(from, PEER));
    snprintf(id->peer_path, sizeof id->peer_path, "%s", text_of(from, PEER_PATH));
    id->peer_pid = from->peer_pid;
    id->is_settled = from->is_settled;
}

static void
take(Descriptor *d, const Identity *id)
{
    const char *const texts[ENDPOINT_TEXTS] = {id->own, id->peer, id->path, id->peer_path};
    size_t size = 0, at = 0;
    d->kind = (uint16_t)id->kind;
    d->is_settled = id->is_settled;
    d->device = id->device;
    d->inode = id->inode;
    d->cookie = id->cookie;
    d->peer_pid = id->peer_pid;
    for (int i = 0; i < ENDPOINT_TEXTS; i++)
        size += strlen(texts[i]) + 1;
    d->texts = grown(d->texts, size, 1);
    for (int i = 0; i < ENDPOINT_TEXTS; at += strlen(texts[i++]) + 1)
        strcpy(d->texts + at, texts[i]);
}

static void
define(const Descriptor *d)
{
    EndpointFacts facts = {.kind = d->kind, .cookie = d->cookie, .peer_pid = d->peer_pid};
    for (int i = 0; i < ENDPOINT_TEXTS; i++)
        facts.texts[i] = text_of(d, i);
    transfer_define(&facts, d->number);
}

/* NULL: it is not open, or too high. */
static Descriptor *
look_up(int fd)
{
    static Identity id;
    if (known == NULL)
        known = memory_apart(MOST_KNOWN * sizeof *known);
    if (known == NULL || fd < 0 || fd >= MOST_KNOWN)
        return NULL;
    if (fd >= known_count)
        known_count = fd + 1;
    Descriptor *d = &known[fd];
    if (d->state != UNKNOWN)
        return d;
    int saved = errno;
    bool is_open = identify(fd, &id);
    errno = saved;
    if (!is_open)
        return NULL;
    d->state = id.kind ? CHANNEL : NO_CHANNEL;
    d->output = 0;
    if (id.kind == 0 || is_the_same(d, &id))
        return d;
    bool is_better = d->texts && is_stream(id.kind) && id.inode == d->inode && id.cookie == d->cookie &&
                     id.device == d->device && *text_of(d, PEER) == 0;
    uint32_t number = is_better ? d->number : 0;
    for (int i = 0; i < known_count && number == 0; i++)
        if (known[i].number && is_the_same(&known[i], &id)) { /* a copy of that descriptor */
            number = known[i].number;
            keep_peer(&id, &known[i]);
        }
    take(d, &id);
    d->asked = 0;
    if (number && number == d->number)
        define(d);
    d->number = number;
    return d;
}

/* Of what was not known when it was first used: the port of a socket that is not bound, the peer of one that is not yet
 * accepted. To ask for a peer takes some 10 us, so it is done more and more rarely. */
void
endpoint_settle(int fd)
{
    static Identity id;
    Descriptor *d = fd >= 0 && fd < known_count ? &known[fd] : NULL;
    if (d == NULL || d->state != CHANNEL || d->is_settled || d->number == 0)
        return;
    d->asked++;
    if (d->kind == ENDPOINT_UNIX && (d->asked & (d->asked - 1)) != 0)
        return;
    int saved = errno;
    bool is_open = identify(fd, &id);
    errno = saved;
    if (!is_open || id.inode != d->inode || id.kind != d->kind || is_the_same(d, &id))
        return;
    take(d, &id);
    define(d);
}

uint32_t
endpoint_new(unsigned kind, const char *own, const char *peer)
{
    EndpointFacts facts = {.kind = kind, .texts = {own, peer, "", ""}};
    transfer_define(&facts, ++endpoint_count);
    return endpoint_count;
}

/* Who prints to the same terminal or file has the same identity, in all processes. */
static uint32_t
output_of(int fd)
{
    char own[ADDRESS_TEXT];
    struct stat st;
    int saved = errno;
    if (fstat(fd, &st) < 0) {
        errno = saved;
        return 0;
    }
    for (uint32_t i = 0; i < output_count; i++)
        if (outputs[i].device == st.st_dev && outputs[i].inode == st.st_ino)
            return outputs[i].number;
    outputs = grown(outputs, output_count + 1, sizeof *outputs);
    const Identity *as = stands_for(&st);
    if (as)
        copy_text(own, sizeof own, as->own);
    else
        snprintf(own, sizeof own, "%llu:%llu", (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
    outputs[output_count++] = (Output){st.st_dev, st.st_ino, endpoint_new(ENDPOINT_OUTPUT, own, "")};
    return endpoint_count;
}

uint32_t
endpoint_of(int fd, int stream)
{
    Descriptor *d = look_up(fd);
    if (d && d->state == CHANNEL) {
        if (d->number == 0) {
            d->number = ++endpoint_count;
            define(d);
        }
        return d->number;
    }
    if (stream == 0 || d == NULL)
        return 0;
    if (d->output == 0)
        d->output = output_of(fd);
    return d->output;
}

/* ---- semaphores, which have addresses instead of descriptors ---- */

static Semaphore *
semaphore_at(const void *handle)
{
    uint32_t *id = idmap_slot(&semaphore_ids, hash_bytes(&handle, sizeof handle, 0));
    if (*id == 0) {
        semaphores = grown(semaphores, semaphore_count + 1, sizeof *semaphores);
        semaphores[semaphore_count] = (Semaphore){.value = -1};
        *id = ++semaphore_count;
    }
    return &semaphores[*id - 1];
}

/* A new one, perhaps where an earlier one was. Its name may be gone from the file system already. */
void
endpoint_semaphore(const void *handle, const char *name, long value)
{
    if (!group_is_on() || core.mode != RECORD)
        return;
    Semaphore *s = semaphore_at(handle);
    free(s->name);
    *s = (Semaphore){.name = strdup(name), .value = value};
}

uint32_t
endpoint_of_semaphore(const void *handle)
{
    char address[24], value[24] = "";
    Semaphore *s = semaphore_at(handle);
    if (s->number == 0) {
        snprintf(address, sizeof address, "%p", handle);
        if (s->value >= 0)
            snprintf(value, sizeof value, "%ld", s->value);
        s->number = endpoint_new(ENDPOINT_SEMAPHORE, s->name ? s->name : address, value);
    }
    return s->number;
}

/* ---- for others ---- */

bool
endpoint_has_messages(int fd)
{
    return fd >= 0 && fd < known_count && known[fd].state == CHANNEL &&
           (known[fd].kind == ENDPOINT_UDP || known[fd].kind == ENDPOINT_UNIX_DATAGRAM);
}

/* Before its peer may have gone; it is defined when it is used. */
void
endpoint_meet(int fd)
{
    if (group_is_on() && core.mode == RECORD)
        look_up(fd);
}

void
endpoint_forget(int fd)
{
    if (fd >= 0 && fd < known_count)
        known[fd].state = UNKNOWN;
}

bool
endpoint_is_none(int fd)
{
    return fd >= 0 && fd < known_count && known[fd].state == NO_CHANNEL;
}

void
endpoints_continue(uint32_t count)
{
    endpoint_count = count;
}

void
endpoints_forked(void)
{
    for (int i = 0; i < known_count; i++)
        known[i].number = known[i].output = 0;
    for (uint32_t i = 0; i < semaphore_count; i++)
        semaphores[i].number = 0;
    endpoint_count = output_count = 0;
}
