/* What the processes of a group share in a future: ends of channels, which the launcher makes for each future, and puts
 * what was under way into them. */
#include "files/files.h"
#include "future/loopback.h"
#include "future/turns.h"
#include "gates/gates.h"
#include "log/log.h"
#include "memory/memory.h"
#include "resume/resume.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct {
    int number;
    unsigned kind; /* of an endpoint; 0: it has no name in the recordings */
    uint64_t cookie;
    uint32_t peer_pid;
    const char *texts[4];
    bool has_addresses; /* it is an end of a connection over TCP */
    Address own, peer;
} End;
static struct {
    char *name;
    unsigned value;
} semaphores[MOST_SEMAPHORES];
static int semaphore_count;
static End *ends;
typedef struct {
    int listening; /* descriptor */
    Address peer;
} Waiting;
static Waiting *waiting; /* connections that it has not accepted yet */
static int waiting_count;
static End *names; /* of descriptors that are none of these */
static int name_count, end_count, own, count, child_count, pair_count;
static unsigned process;
static uint32_t endpoints, addresses;
static uint64_t forked_at; /* the last event that it has in common with another process */

static bool
read_end(PyObject *given, End *end)
{
    int family;
    PyObject *own_address, *peer_address;
    if (!PyTuple_Check(given) ||
        !PyArg_ParseTuple(given, "iiOOIKIyyyy", &end->number, &family, &own_address, &peer_address, &end->kind,
                          &end->cookie, &end->peer_pid, &end->texts[0], &end->texts[1], &end->texts[2], &end->texts[3]))
        return false;
    for (int i = 0; i < 4; i++)
        end->texts[i] = strdup(end->texts[i]);
    end->has_addresses =
        family && address_read(own_address, family, &end->own) && address_read(peer_address, family, &end->peer);
    return true;
}

int
group_future_prepare(PyObject *boot)
{
    PyObject *given = PyDict_GetItemString(boot, "future_group"), *list = NULL, *children = NULL, *locks = NULL,
             *pids = NULL, *pending = NULL, *named = NULL;
    if (given == NULL || !PyTuple_Check(given))
        return 0;
    if (!PyArg_ParseTuple(given, "iiIIIKO!O!O!O!O!iO!", &own, &count, &process, &endpoints, &addresses, &forked_at,
                          &PyList_Type, &list, &PyList_Type, &children, &PyList_Type, &locks, &PyList_Type, &pids,
                          &PyList_Type, &pending, &pair_count, &PyList_Type, &named))
        return -1;
    ends = calloc((size_t)PyList_GET_SIZE(list) + 1, sizeof *ends);
    for (Py_ssize_t i = 0; ends && i < PyList_GET_SIZE(list); i++)
        if (!read_end(PyList_GET_ITEM(list, i), &ends[end_count++]))
            return -1;
    names = calloc((size_t)PyList_GET_SIZE(named) + 1, sizeof *names);
    for (Py_ssize_t i = 0; names && i < PyList_GET_SIZE(named); i++)
        if (!read_end(PyList_GET_ITEM(named, i), &names[name_count++]))
            return -1;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(locks) && i < MOST_SEMAPHORES; i++) {
        const char *name;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(locks, i), "yI", &name, &semaphores[semaphore_count].value))
            return -1;
        semaphores[semaphore_count++].name = strdup(name);
    }
    waiting = calloc((size_t)PyList_GET_SIZE(pending) + 1, sizeof *waiting);
    for (Py_ssize_t i = 0; waiting && i < PyList_GET_SIZE(pending); i++) {
        PyObject *peer;
        int family;
        if (!PyArg_ParseTuple(PyList_GET_ITEM(pending, i), "iiO", &waiting[i].listening, &family, &peer))
            return -1;
        address_read(peer, family, &waiting[i].peer);
        waiting_count++;
    }
    child_count = (int)PyList_GET_SIZE(children);
    return family_prepare(children, pids) ? 0 : -1;
}

enum { FOR_TURNS, FOR_GROUP, FOR_TRANSFERS, OWN_LIFE, FIRST_TURN };

int
group_future_descriptors(void)
{
    return count ? FIRST_TURN + count + child_count + end_count + waiting_count + 2 * pair_count : 0;
}

bool
group_future_has(int fd)
{
    for (int i = 0; i < end_count; i++)
        if (ends[i].number == fd)
            return true;
    return false;
}

static sem_t *
shared_semaphore(const char *name)
{
    for (int i = 0; i < semaphore_count; i++)
        if (strcmp(semaphores[i].name, name) == 0)
            return turns_semaphore(i);
    return NULL;
}

static bool
put_end(const End *end, int fd)
{
    int flags = fcntl(end->number, F_GETFD);
    bool is_there = !fd_is_ours(end->number) &&
                    dup3(fd, end->number, flags < 0 || flags & FD_CLOEXEC ? O_CLOEXEC : 0) == end->number;
    fd_forget(fd);
    if (is_there && end->has_addresses)
        loopback_adopt(end->number, &end->own, &end->peer);
    if (is_there && end->kind)
        endpoint_stands_for(end->number, end->kind, end->cookie, end->peer_pid, end->texts);
    return is_there;
}

void
group_future_take(int fds[])
{
    fd_leave_room(group_future_descriptors());
    for (int i = 0; i < group_future_descriptors(); i++)
        fds[i] = fd_keep(fds[i]); /* OWN_LIFE as well: it is closed with the process */
}

bool
group_future_shares_memory(void)
{
    return count && shared_was_mapped_by(forked_at);
}

void
group_future_semaphores(void)
{
    semlocks_become_future(shared_semaphore);
}

const char *
group_future_part(const int fds[])
{
    if (count == 0)
        return NULL;
    turns_join(fds[FOR_TURNS], fds + FIRST_TURN, count, own);
    for (int i = 0; i < semaphore_count; i++)
        turns_raise(i, semaphores[i].value);
    family_join(fds + FIRST_TURN + count);
    for (int i = 0; i < end_count; i++)
        if (!put_end(&ends[i], fds[FIRST_TURN + count + child_count + i]))
            return "descriptors for what it shares with other processes";
    for (int i = 0; i < name_count; i++)
        endpoint_stands_for(names[i].number, names[i].kind, names[i].cookie, names[i].peer_pid, names[i].texts);
    fds += FIRST_TURN + count + child_count + end_count;
    for (int i = 0; i < waiting_count; i++) {
        int32_t listening = socket_number(waiting[i].listening);
        if (listening < 0)
            return "a listening socket";
        loopback_pend(listening, fds[i], &waiting[i].peer);
        fd_forget(fds[i]);
    }
    meetings_join(turns_board(), own, fds + waiting_count, pair_count);
    fds -= FIRST_TURN + count + child_count + end_count;
    if (group_continue_in(fds[FOR_GROUP], fds[FOR_TRANSFERS], process, endpoints, addresses) < 0)
        return "memory for what it sends and receives";
    return NULL;
}
