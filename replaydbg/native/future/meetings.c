/* New connections between the processes of a group, over addresses of the machine. No process can give another one a
 * descriptor, so the launcher gives pairs of sockets to all of them at the beginning: whoever connects takes one end of the
 * next pair, and whoever listens the other one with its next turn. */
#include "future/loopback.h"
#include "future/turns.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { MOST_LISTENING = 64, MOST_PAIRS = 16 };
typedef struct {
    uint32_t member; /* from 1 */
    uint32_t is_open, is_v6_only;
    int32_t socket; /* its number in that process */
    Address at;
} Listening;
typedef struct {
    uint32_t server, client; /* members */
    int32_t socket;          /* of the server, which listens */
    Address peer;
} Meeting;
typedef struct {
    uint32_t listening_count, meeting_count;
    Listening listening[MOST_LISTENING];
    Meeting meeting[MOST_PAIRS];
} Board;
_Static_assert(sizeof(Board) <= BOARD_SIZE, "see turns.h");

static Board *board;
static uint32_t me, pair_count, seen;
static int pairs[MOST_PAIRS][2];

void
meetings_join(void *at, int own, const int fds[], int count)
{
    board = at;
    me = (uint32_t)own;
    pair_count = (uint32_t)count;
    memcpy(pairs, fds, (size_t)count * sizeof *pairs);
    ports_begin(own);
    for (int32_t i = 0; i < sockets_count(); i++)
        if (socket_at(i)->state == LISTENS && socket_is_open(socket_at(i)))
            meetings_listens(i);
}

void
meetings_listens(int32_t socket)
{
    const Socket *s = socket_at(socket);
    if (board == NULL)
        return;
    uint32_t at = __atomic_fetch_add(&board->listening_count, 1, __ATOMIC_SEQ_CST);
    if (at >= MOST_LISTENING)
        diverge("outside", NULL, NULL, "more listening sockets than the future of a group can have");
    board->listening[at] = (Listening){me + 1, 1, s->is_v6_only, socket, s->own};
}

void
meetings_closed(void)
{
    for (uint32_t i = 0; board && i < board->listening_count; i++)
        if (board->listening[i].member == me + 1 && board->listening[i].is_open &&
            !socket_is_open(socket_at(board->listening[i].socket)))
            board->listening[i].is_open = 0;
}

static bool
is_met(const Listening *l, const Address *to)
{
    Socket bound = {.own = l->at, .is_v6_only = l->is_v6_only};
    return l->member && address_is_met(&bound, to);
}

bool
meetings_know(const Address *to)
{
    for (uint32_t i = 0; board && i < board->listening_count; i++)
        if (is_met(&board->listening[i], to))
            return true;
    return false;
}

/* Who listens there; NULL: nobody. */
static const Listening *
server_at(const Address *to)
{
    const Listening *found = NULL;
    for (uint32_t i = 0; i < board->listening_count; i++)
        if (board->listening[i].is_open && is_met(&board->listening[i], to)) {
            if (found && found->member != board->listening[i].member)
                diverge("outside", NULL, NULL, "a listening socket that several processes have");
            found = &board->listening[i];
        }
    return found;
}

static void
close_pair(uint32_t pair)
{
    for (int end = 0; end < 2; end++)
        if (pairs[pair][end] >= 0)
            fd_forget(pairs[pair][end]);
    pairs[pair][0] = pairs[pair][1] = -1;
}

bool
meetings_connect(int fd, const Address *to)
{
    const Listening *server = board ? server_at(to) : NULL;
    if (server == NULL || server->member == me + 1)
        return false;
    uint32_t pair = board->meeting_count;
    if (pair >= pair_count)
        diverge("outside", NULL, NULL, "more new connections than the future of a group can have");
    meetings_look(); /* those of others that came before */
    Meeting made = {.server = server->member - 1, .client = me, .socket = server->socket};
    socket_meets(fd, pairs[pair][0], to, &made.peer);
    close_pair(pair);
    board->meeting[pair] = made;
    board->meeting_count++;
    seen++;
    return true;
}

void
meetings_look(void)
{
    for (; board && seen < board->meeting_count; seen++) {
        const Meeting *m = &board->meeting[seen];
        if (m->server == me)
            loopback_pend(m->socket, pairs[seen][1], &m->peer);
        close_pair(seen); /* or nobody would hear that one of the two has closed it */
        turns_news();
    }
}
