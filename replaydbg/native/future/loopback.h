/* Connections of a future from one of its threads to another: TCP over addresses of the machine itself, as a server and
 * its client in one program have them. The kernel lets a future make no socket but a pair, so each of these sockets is
 * one end of a pair, and a connection is the other end given to the one who listens.
 *
 *   loopback.c        which sockets there are, their addresses, and who is connected with whom
 *   socket_calls.c    the functions of the C library that the module _socket calls
 *   socket_gates.c    which calls stay inside; the sockets that the program has at the moment
 */
#ifndef REPLAYDBG_FUTURE_LOOPBACK_H
#define REPLAYDBG_FUTURE_LOOPBACK_H
#include "base/core.h"
#include <netinet/in.h>
#include <sys/socket.h>

enum { MOST_OPTIONS = 12 };
typedef union {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
} Address;
typedef enum { IS_NEW, IS_BOUND, LISTENS, WAITS /* to be accepted */, IS_CONNECTED } SocketState;
typedef struct {
    SocketState state;
    /* a descriptor of the core's own, or -1: the other end of the pair, until somebody is connected with it; of one that
     * waits, its own end */
    int kept;
    int32_t listener; /* of one that waits */
    int32_t partner;  /* of one that is connected, or waits; -1: none */
    int error;        /* of a connection that was begun without waiting, until the program asks */
    bool is_v6_only;  /* IPV6_V6ONLY */
    bool has_shut;    /* the program sends no more */
    int strangers;    /* of one that listens: accepted from elsewhere, by a connection that the program did not make */
    Address own, peer;
    struct {
        int level, name, value;
    } options[MOST_OPTIONS];
    int option_count;
} Socket;

/* loopback.c */
int32_t socket_number(int fd); /* -1: it is none of these */
Socket *socket_at(int32_t number);
/* one of `family`, with SOCK_CLOEXEC and SOCK_NONBLOCK of `flags`, as descriptor `at` (-1: any); -1: errno */
int socket_make(int family, int flags, int at);
int32_t sockets_count(void);
bool address_is_met(const Socket *bound, const Address *to);
void ports_begin(int process); /* one of several, which give out other ports */
/* a connection that `listening` has not accepted yet, of which `fd` is the end to accept; `fd` stays the caller's */
void loopback_pend(int32_t listening, int fd, const Address *peer);
/* `fd` is connected to the address over `end`, which stays the caller's; its own address */
void socket_meets(int fd, int end, const Address *to, Address *own);
void loopback_adopt(int fd, const Address *own, const Address *peer); /* it is one end of a connection */
bool socket_is_open(const Socket *s);                     /* of one that nobody is connected with: its program's end */
int socket_bind(int32_t number, const Address *to);       /* 0, or an errno */
bool loopback_has(const Address *to);                     /* a socket is or was bound there */
int32_t loopback_join(int32_t client, const Address *to); /* the one who listens there; -1: nobody does */
int32_t loopback_next(int32_t listener);                  /* who waits longest; -1: nobody */
int32_t loopback_lost(int32_t from); /* waits where nobody listens any more: the first one from there on, or -1 */
bool address_read(PyObject *given, int family,
                  Address *to); /* as Python has it; false: no number, or not a local name */
void address_turn(const Address *from, int family, Address *to); /* the same as an address of that family */
/* descriptors get other inodes in a copy */
void loopback_part_begin(void);
void loopback_part_end(void);

/* meetings.c: with other processes */
bool meetings_know(const Address *to);            /* one listens there, or did */
bool meetings_connect(int fd, const Address *to); /* false: no other process listens there */

/* socket_calls.c */
void socket_calls_relink(void); /* once for each module that is new */

#endif
