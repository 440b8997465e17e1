/* Functions of the C library whose results are no plain bytes at one place: see libc.h. */
#define _GNU_SOURCE
#include "base/core.h"
#include "files/files.h"
#include "lanes/lanes.h"
#include "libc/inside.h"
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

typedef struct {
    LibcEvent event;
    Buf arguments, arrived;
} Form;

static void
form_begin(Form *f, int arguments)
{
    memset(f, 0, sizeof *f);
    buf_byte(&f->arguments, TAG_TUPLE);
    buf_varint(&f->arguments, (uint64_t)arguments);
}

static LibcBytes
form_end(Form *f)
{
    LibcBytes bytes = libc_end(&f->event, &f->arrived);
    free(f->arguments.data);
    free(f->arrived.data);
    return bytes;
}

static void
take_bytes(LibcBytes *from, void *to, size_t most)
{
    const uint8_t *data;
    size_t n;
    if (libc_take_piece(from, &data, &n) && n <= most && to)
        memcpy(to, data, n);
}

/* ---- lists that the caller gives back ---- */

/* What a replay has made: whoever frees one of these frees all of it. A recorded list is the C library's own. */
typedef struct Made {
    struct Made *next;
    void *first;
} Made;
static Made *made;

static void *
make(Made **block, size_t n)
{
    *block = calloc(1, sizeof **block + n);
    if (*block == NULL)
        return NULL;
    (*block)->first = *block + 1;
    (*block)->next = made;
    made = *block;
    return (*block)->first;
}

static bool
unmake(void *first)
{
    for (Made **at = &made; *at; at = &(*at)->next)
        if ((*at)->first == first) {
            Made *gone = *at;
            *at = gone->next;
            free(gone);
            return true;
        }
    return false;
}

static size_t
address_size(const struct sockaddr *address)
{
    if (address == NULL)
        return 0;
    return address->sa_family == AF_INET ? 16 : address->sa_family == AF_INET6 ? 28 : sizeof(struct sockaddr_ll);
}

enum { LINK_STATISTICS = 92 }; /* struct rtnl_link_stats, since the first kernel that has it */

typedef struct {
    struct ifaddrs entry;
    struct sockaddr_storage addresses[3];
    char name[IFNAMSIZ + 8];
    uint8_t data[LINK_STATISTICS + 4];
} Interface;

static void
put_interface(Buf *b, const struct ifaddrs *i)
{
    const struct sockaddr *addresses[3] = {i->ifa_addr, i->ifa_netmask, i->ifa_ifu.ifu_broadaddr};
    bool has_data = i->ifa_data && i->ifa_addr && i->ifa_addr->sa_family == AF_PACKET;
    libc_put_piece(b, i->ifa_name, strlen(i->ifa_name));
    libc_put_piece(b, &i->ifa_flags, sizeof i->ifa_flags);
    for (int k = 0; k < 3; k++)
        libc_put_piece(b, addresses[k], address_size(addresses[k]));
    libc_put_piece(b, i->ifa_data, has_data ? LINK_STATISTICS : 0);
}

static bool
take_interface(LibcBytes *from, Interface *i)
{
    const uint8_t *data;
    size_t n;
    struct sockaddr **addresses[3] = {&i->entry.ifa_addr, &i->entry.ifa_netmask, &i->entry.ifa_ifu.ifu_broadaddr};
    if (!libc_take_piece(from, &data, &n) || n >= sizeof i->name)
        return false;
    memcpy(i->name, data, n);
    i->entry.ifa_name = i->name;
    if (!libc_take_piece(from, &data, &n) || n != sizeof i->entry.ifa_flags)
        return false;
    memcpy(&i->entry.ifa_flags, data, n);
    for (int k = 0; k < 3; k++) {
        if (!libc_take_piece(from, &data, &n) || n > sizeof i->addresses[k])
            return false;
        memcpy(&i->addresses[k], data, n);
        *addresses[k] = n ? (struct sockaddr *)&i->addresses[k] : NULL;
    }
    if (!libc_take_piece(from, &data, &n) || n > sizeof i->data)
        return false;
    memcpy(i->data, data, n);
    i->entry.ifa_data = n ? i->data : NULL;
    return true;
}

static size_t
count_of(LibcBytes *from)
{
    const uint8_t *data;
    size_t n;
    uint32_t count = 0;
    if (libc_take_piece(from, &data, &n) && n == sizeof count)
        memcpy(&count, data, n);
    return count > (size_t)(from->end - from->at) ? 0 : count;
}

static struct ifaddrs *
make_interfaces(LibcBytes from)
{
    size_t count = count_of(&from);
    Made *block;
    Interface *all = count ? make(&block, count * sizeof *all) : NULL;
    for (size_t i = 0; all && i < count; i++) {
        if (!take_interface(&from, &all[i]))
            return NULL;
        if (i > 0)
            all[i - 1].entry.ifa_next = &all[i].entry;
    }
    return all ? &all[0].entry : NULL;
}

static int
our_getifaddrs(struct ifaddrs **found)
{
    static LibcRow *row;
    if (row == NULL)
        row = libc_row_named("getifaddrs");
    if (!libc_records(row))
        return getifaddrs(found);
    Form f;
    form_begin(&f, 0);
    libc_begin(&f.event, row, &f.arguments, "", 0, false);
    bool performed = f.event.perform;
    if (performed) {
        int rc = getifaddrs(found);
        uint32_t count = 0;
        f.event.result = rc < 0 ? -errno : 0;
        for (struct ifaddrs *i = rc < 0 ? NULL : *found; i; i = i->ifa_next)
            count++;
        libc_put_piece(&f.arrived, &count, sizeof count);
        for (struct ifaddrs *i = rc < 0 ? NULL : *found; i; i = i->ifa_next)
            put_interface(&f.arrived, i);
    }
    LibcBytes bytes = form_end(&f);
    if (!performed)
        *found = f.event.result < 0 ? NULL : make_interfaces(bytes);
    if (f.event.result < 0)
        errno = (int)-f.event.result;
    return f.event.result < 0 ? -1 : 0;
}

static void
our_freeifaddrs(struct ifaddrs *found)
{
    if (!unmake(found))
        freeifaddrs(found);
}

/* ---- addresses of hosts ---- */

typedef struct {
    struct addrinfo entry;
    struct sockaddr_storage address;
    char name[256];
} Host;

static void
put_host(Buf *b, const struct addrinfo *i)
{
    int numbers[4] = {i->ai_flags, i->ai_family, i->ai_socktype, i->ai_protocol};
    libc_put_piece(b, numbers, sizeof numbers);
    libc_put_piece(b, i->ai_addr, i->ai_addrlen);
    libc_put_piece(b, i->ai_canonname, i->ai_canonname ? strlen(i->ai_canonname) : 0);
}

static bool
take_host(LibcBytes *from, Host *h)
{
    const uint8_t *data;
    size_t n;
    int numbers[4];
    if (!libc_take_piece(from, &data, &n) || n != sizeof numbers)
        return false;
    memcpy(numbers, data, n);
    if (!libc_take_piece(from, &data, &n) || n > sizeof h->address)
        return false;
    memcpy(&h->address, data, n);
    h->entry = (struct addrinfo){.ai_flags = numbers[0],
                                 .ai_family = numbers[1],
                                 .ai_socktype = numbers[2],
                                 .ai_protocol = numbers[3],
                                 .ai_addr = (struct sockaddr *)&h->address,
                                 .ai_addrlen = (socklen_t)n};
    if (!libc_take_piece(from, &data, &n) || n >= sizeof h->name)
        return false;
    memcpy(h->name, data, n);
    h->entry.ai_canonname = n ? h->name : NULL;
    return true;
}

static struct addrinfo *
make_hosts(LibcBytes from)
{
    size_t count = count_of(&from);
    Made *block;
    Host *all = count ? make(&block, count * sizeof *all) : NULL;
    for (size_t i = 0; all && i < count; i++) {
        if (!take_host(&from, &all[i]))
            return NULL;
        if (i > 0)
            all[i - 1].entry.ai_next = &all[i].entry;
    }
    return all ? &all[0].entry : NULL;
}

typedef int (*GetHosts)(const char *, const char *, const struct addrinfo *, struct addrinfo **);

static int
our_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **found)
{
    static LibcRow *row;
    if (row == NULL)
        row = libc_row_named("getaddrinfo");
    GetHosts real = (GetHosts)(void *)row->real;
    if (!libc_records(row))
        return real(node, service, hints, found);
    Form f;
    form_begin(&f, 6);
    libc_put_text(&f.arguments, node);
    libc_put_text(&f.arguments, service);
    libc_put_number(&f.arguments, hints ? hints->ai_flags : -1);
    libc_put_number(&f.arguments, hints ? hints->ai_family : -1);
    libc_put_number(&f.arguments, hints ? hints->ai_socktype : -1);
    libc_put_number(&f.arguments, hints ? hints->ai_protocol : -1);
    libc_begin(&f.event, row, &f.arguments, "", 0, true);
    bool performed = f.event.perform;
    if (performed) {
        uint32_t count = 0;
        f.event.result = real(node, service, hints, found);
        for (struct addrinfo *i = f.event.result ? NULL : *found; i; i = i->ai_next)
            count++;
        libc_put_piece(&f.arrived, &count, sizeof count);
        for (struct addrinfo *i = f.event.result ? NULL : *found; i; i = i->ai_next)
            put_host(&f.arrived, i);
    }
    LibcBytes bytes = form_end(&f);
    if (!performed && f.event.result == 0)
        *found = make_hosts(bytes);
    return (int)f.event.result;
}

static void
our_freeaddrinfo(struct addrinfo *found)
{
    if (!unmake(found))
        freeaddrinfo(found);
}

typedef int (*GetName)(const struct sockaddr *, socklen_t, char *, socklen_t, char *, socklen_t, int);

static int
our_getnameinfo(const struct sockaddr *of, socklen_t size, char *host, socklen_t host_size, char *service,
                socklen_t service_size, int flags)
{
    static LibcRow *row;
    if (row == NULL)
        row = libc_row_named("getnameinfo");
    GetName real = (GetName)(void *)row->real;
    if (!libc_records(row))
        return real(of, size, host, host_size, service, service_size, flags);
    Form f;
    form_begin(&f, 4);
    buf_byte(&f.arguments, TAG_BYTES);
    buf_str(&f.arguments, (const char *)of, of ? size : 0);
    libc_put_number(&f.arguments, host ? host_size : 0);
    libc_put_number(&f.arguments, service ? service_size : 0);
    libc_put_number(&f.arguments, flags);
    libc_begin(&f.event, row, &f.arguments, "", 0, true);
    bool performed = f.event.perform;
    if (performed) {
        int rc = real(of, size, host, host_size, service, service_size, flags);
        f.event.result = rc;
        libc_put_piece(&f.arrived, host, rc == 0 && host && host_size ? strlen(host) + 1 : 0);
        libc_put_piece(&f.arrived, service, rc == 0 && service && service_size ? strlen(service) + 1 : 0);
    }
    LibcBytes bytes = form_end(&f);
    if (!performed && f.event.result == 0) {
        take_bytes(&bytes, host, host_size);
        take_bytes(&bytes, service, service_size);
    }
    return (int)f.event.result;
}

/* ---- requests to devices ---- */

/* How many bytes come back at the third argument. Newer requests tell it by their number. */
static size_t
request_size(unsigned long request)
{
    if (request >= SIOCADDRT && request <= SIOCWANDEV && request != SIOCGIFCONF)
        return sizeof(struct ifreq);
    switch (request) {
    case FIONREAD:
    case TIOCOUTQ:
    case TIOCGPGRP:
    case TIOCGSID:
        return sizeof(int);
    case TIOCGWINSZ:
        return sizeof(struct winsize);
    case TCGETS:
        return 36;
    case SIOCETHTOOL:
        return sizeof(struct ifreq);
    case SIOCGIFCONF:
        return sizeof(struct ifconf);
    }
    return _IOC_DIR(request) & _IOC_READ ? _IOC_SIZE(request) : 0;
}

/* A few of them lead to more memory. */
static void *
request_more(unsigned long request, void *argument, size_t *n)
{
    *n = 0;
    if (request == SIOCETHTOOL) {
        void *data = ((struct ifreq *)argument)->ifr_data;
        uint32_t command = 0;
        memcpy(&command, data, sizeof command);
        if (command == ETHTOOL_GLINKSETTINGS) {
            int words = ((struct ethtool_link_settings *)data)->link_mode_masks_nwords;
            *n = sizeof(struct ethtool_link_settings) + (words > 0 ? 12u * (unsigned)words : 0);
        }
        else
            *n = command == ETHTOOL_GDRVINFO ? sizeof(struct ethtool_drvinfo)
                 : command == ETHTOOL_GSET   ? sizeof(struct ethtool_cmd)
                                             : sizeof(struct ethtool_value);
        return data;
    }
    if (request == SIOCGIFCONF) {
        struct ifconf *list = argument;
        *n = list->ifc_len > 0 ? (size_t)list->ifc_len : 0;
        return list->ifc_buf;
    }
    return NULL;
}

static void
take_request(LibcBytes bytes, unsigned long request, void *argument)
{
    size_t n, size = request_size(request);
    void *more = request_more(request, argument, &n), *inside = NULL;
    memcpy(&inside, (char *)argument + (request == SIOCETHTOOL ? offsetof(struct ifreq, ifr_data) : 0),
           size >= sizeof inside ? sizeof inside : 0);
    if (request == SIOCGIFCONF)
        inside = ((struct ifconf *)argument)->ifc_buf;
    take_bytes(&bytes, argument, size);
    if (request == SIOCETHTOOL)
        ((struct ifreq *)argument)->ifr_data = inside;
    if (request == SIOCGIFCONF)
        ((struct ifconf *)argument)->ifc_buf = inside;
    take_bytes(&bytes, more, n);
}

static int
our_ioctl(int fd, unsigned long request, ...)
{
    static LibcRow *row;
    va_list args;
    va_start(args, request);
    void *argument = va_arg(args, void *);
    va_end(args);
    if (row == NULL)
        row = libc_row_named("ioctl");
    bool is_local = request == FIOCLEX || request == FIONCLEX;
    if (is_local || !libc_records(row))
        return ioctl(fd, request, argument);
    Form f;
    form_begin(&f, 2);
    libc_put_number(&f.arguments, fd);
    libc_put_number(&f.arguments, (int64_t)request);
    libc_begin(&f.event, row, &f.arguments, "", 0, false);
    bool performed = f.event.perform;
    size_t n, size = request_size(request);
    if (performed) {
        int rc = ioctl(fd, request, argument);
        f.event.result = rc < 0 ? -errno : rc;
        if (rc >= 0 && size) {
            void *more = request_more(request, argument, &n);
            libc_put_piece(&f.arrived, argument, size);
            libc_put_piece(&f.arrived, more, n);
        }
    }
    LibcBytes bytes = form_end(&f);
    if (!performed && f.event.result >= 0 && size)
        take_request(bytes, request, argument);
    if (f.event.result >= 0)
        return (int)f.event.result;
    errno = (int)-f.event.result;
    return -1;
}

/* ---- descriptors ---- */

static int
our_fcntl(int fd, int command, ...)
{
    static LibcRow *row;
    va_list args;
    va_start(args, command);
    long argument = va_arg(args, long);
    va_end(args);
    if (row == NULL)
        row = libc_row_named("fcntl");
    int (*real)(int, int, ...) = (int (*)(int, int, ...))(void *)row->real;
    bool is_local = command == F_GETFD || command == F_SETFD, copies = command == F_DUPFD || command == F_DUPFD_CLOEXEC;
    bool reads_lock = command == F_GETLK || command == F_OFD_GETLK,
         has_number = copies || command == F_SETFL || command == F_SETPIPE_SZ;
    if (is_local || !libc_records(row))
        return real(fd, command, argument);
    Form f;
    form_begin(&f, 3);
    libc_put_number(&f.arguments, fd);
    libc_put_number(&f.arguments, command);
    libc_put_number(&f.arguments, has_number ? (int)argument : 0);
    libc_begin(&f.event, row, &f.arguments, "", 0, command == F_SETLKW || command == F_OFD_SETLKW);
    bool performed = f.event.perform;
    if (performed) {
        int rc = real(fd, command, argument);
        f.event.result = rc < 0 ? -errno : rc;
        libc_put_piece(&f.arrived, (void *)argument, rc >= 0 && reads_lock ? sizeof(struct flock) : 0);
    }
    LibcBytes bytes = form_end(&f);
    int rc = (int)f.event.result;
    if (!performed && rc >= 0 && reads_lock)
        take_bytes(&bytes, (void *)argument, sizeof(struct flock));
    if (rc >= 0 && copies) {
        if (!performed)
            fd_place(rc, fd);
        fd_opened(rc, fd);
    }
    if (rc >= 0)
        return rc;
    errno = -rc;
    return -1;
}

static int
our_closing(int fd)
{
    if (on_lanes && core.mode == REPLAY && fd_is_ours(fd)) {
        errno = EBADF;
        return -1;
    }
    if (on_lanes)
        fd_closed(fd);
    return our_close(fd);
}

static char *
our_getcwd(char *to, size_t size)
{
    static LibcRow *row;
    if (row == NULL)
        row = libc_row_named("getcwd");
    if (!libc_records(row))
        return getcwd(to, size);
    Form f;
    form_begin(&f, 1);
    libc_put_number(&f.arguments, to ? (int64_t)size : -1);
    libc_begin(&f.event, row, &f.arguments, "", 0, false);
    bool performed = f.event.perform;
    char *result = NULL;
    if (performed) {
        result = getcwd(to, size);
        f.event.result = result ? 0 : -errno;
        libc_put_piece(&f.arrived, result, result ? strlen(result) + 1 : 0);
    }
    LibcBytes bytes = form_end(&f);
    if (f.event.result < 0)
        errno = (int)-f.event.result;
    if (performed || f.event.result < 0)
        return result;
    const uint8_t *data;
    size_t n;
    if (!libc_take_piece(&bytes, &data, &n) || n == 0 || (to && n > size))
        return NULL;
    result = to ? to : malloc(n > size ? n : size);
    if (result)
        memcpy(result, data, n);
    return result;
}

const LibcForm libc_forms[] = {{"getifaddrs", (void *)our_getifaddrs},
                               {"freeifaddrs", (void *)our_freeifaddrs},
                               {"getaddrinfo", (void *)our_getaddrinfo},
                               {"getnameinfo", (void *)our_getnameinfo},
                               {"freeaddrinfo", (void *)our_freeaddrinfo},
                               {"ioctl", (void *)our_ioctl},
                               {"fcntl", (void *)our_fcntl},
                               {"fcntl64", (void *)our_fcntl},
                               {"close", (void *)our_closing},
                               {"getcwd", (void *)our_getcwd},
                               {NULL, NULL}};
