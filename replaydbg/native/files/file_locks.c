/* Calls by which the program acquires and releases locks of files, in a group: fcntl.flock, lockf and fcntl. */
#define _GNU_SOURCE
#include "base/core.h"
#include "crossing/crossing.h"
#include "files/inside.h"
#include "log/log.h"
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

typedef enum { FLOCK, LOCKF, FCNTL } Function;
static const char *const names[] = {"flock", "lockf", "fcntl"};

uint8_t
lock_call_of(const Gate *g)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], g->name) == 0 && strcmp("fcntl", g->module) == 0)
            return (uint8_t)(LOCK_CALLS + i);
    return 0;
}

static long
number_or(const Crossing *c, Py_ssize_t at, long otherwise)
{
    int overflow;
    return at < c->nargs && PyLong_Check(c->args[at]) ? PyLong_AsLongAndOverflow(c->args[at], &overflow) : otherwise;
}

static int
descriptor(PyObject *file)
{
    int overflow, fd = file_fd(file);
    if (fd == -2)
        fd = socket_fd(file);
    if (fd == -2)
        fd = wrapper_fd(file);
    long number = PyLong_Check(file) ? PyLong_AsLongAndOverflow(file, &overflow) : fd;
    return number < 0 || number > INT32_MAX ? -1 : (int)number;
}

/* By an operation of flock(), or of lockf(). */
static void
take_operation(LockCall *call, long operation)
{
    call->waits = !(operation & LOCK_NB);
    call->mode = operation & LOCK_UN ? LOCK_NONE : operation & LOCK_SH ? LOCK_SHARED : LOCK_EXCLUSIVE;
}

/* False: the command is another one, or its argument is not plain bytes. */
static bool
take_command(LockCall *call, const Crossing *c)
{
    struct flock lock;
    long command = number_or(c, 1, -1);
    if ((command != F_SETLK && command != F_SETLKW && command != F_OFD_SETLK && command != F_OFD_SETLKW) ||
        c->nargs < 3 || !PyBytes_Check(c->args[2]) || PyBytes_GET_SIZE(c->args[2]) < (Py_ssize_t)sizeof lock)
        return false;
    memcpy(&lock, PyBytes_AS_STRING(c->args[2]), sizeof lock);
    call->waits = command == F_SETLKW || command == F_OFD_SETLKW;
    call->is_of_process = command == F_SETLK || command == F_SETLKW;
    call->is_part = lock.l_whence != SEEK_SET || lock.l_start != 0 || lock.l_len != 0;
    call->mode = lock.l_type == F_UNLCK ? LOCK_NONE : lock.l_type == F_RDLCK ? LOCK_SHARED : LOCK_EXCLUSIVE;
    return true;
}

/* False: it is about no lock, or not known about which. */
static bool
read_call(const Crossing *c, LockCall *call)
{
    Function function = (Function)(c->gate->moves - LOCK_CALLS);
    *call = (LockCall){.fd = c->nargs ? descriptor(c->args[0]) : -1, .is_flock = function == FLOCK};
    if (function == FCNTL)
        return call->fd >= 0 && take_command(call, c);
    take_operation(call, number_or(c, 1, LOCK_UN));
    call->is_of_process = function == LOCKF;
    call->is_part = function == LOCKF && (number_or(c, 2, 0) || number_or(c, 3, 0) || number_or(c, 4, 0));
    return call->fd >= 0;
}

/* What it gives up comes first: it has its ticket before the call, which may wait. */
void
lock_call_begins(Crossing *c)
{
    LockCall call;
    uint32_t released, endpoint = read_call(c, &call) ? lock_asks(&call, &released) : 0;
    if (endpoint == 0)
        return;
    unsigned flags = call.mode == LOCK_NONE ? 0 : TRANSFER_RECEIVES;
    if (released)
        c->transfers[1] = (Moving){transfer_begin(released, 0, call.fd), call.fd, 0};
    c->transfers[0] = (Moving){transfer_begin(endpoint, flags, call.fd), call.fd, flags};
}

void
lock_call_ends(const Crossing *c, PyObject *result)
{
    LockCall call;
    TransferEnd end = {.flags = c->transfers[0].flags, .address = ""}, gives_up = {.address = ""};
    bool is_known = read_call(c, &call);
    if (c->transfers[1].number) /* even if it did not get the other one */
        transfer_end(c->transfers[1].number, &gives_up);
    if (result) {
        transfer_end(c->transfers[0].number, &end);
        if (is_known)
            lock_got(&call);
    }
    else if (is_known && call.waits && call.mode != LOCK_NONE)
        transfer_interrupted(c->transfers[0].number);
    else
        transfer_undo(c->transfers[0].number);
}
