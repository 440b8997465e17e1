/* The locks of files that this process has, or may have: so a close that releases one is known, and whether a lock that is
 * asked for takes the place of another one. A lock by flock() belongs to an open file, which other descriptors and
 * processes can have, too; one by lockf() belongs to the process, and ends when it closes any descriptor of the file.
 * Locks of different bytes of a file are treated as one. */
#include "base/core.h"
#include "log/inside.h"
#include <errno.h>
#include <sys/stat.h>

typedef struct {
    uint64_t device, inode;
    int fd; /* -1: it is that of the process */
    bool is_flock;
    bool is_passed_on; /* another descriptor, or process, has the same open file */
    LockMode mode;
} Lock;
static Lock *locks;
static size_t lock_count;
static IdMap endpoints;

static bool
identity_of(int fd, Lock *found)
{
    struct stat st;
    int saved = errno;
    bool is_open = fstat(fd, &st) == 0;
    errno = saved;
    if (is_open) {
        found->device = st.st_dev;
        found->inode = st.st_ino;
    }
    return is_open;
}

static uint32_t
endpoint_of_lock(const Lock *lock, LockMode mode, bool is_part)
{
    uint64_t key[] = {lock->device, lock->inode, (uint64_t)mode << 2 | (uint64_t)lock->is_flock << 1 | is_part};
    uint32_t *number = idmap_slot(&endpoints, hash_bytes(key, sizeof key, 0));
    if (*number == 0) {
        char own[44], how[32];
        snprintf(own, sizeof own, "%llu:%llu", (unsigned long long)lock->device, (unsigned long long)lock->inode);
        snprintf(how, sizeof how, "%s %s%s", mode == LOCK_SHARED ? "shared" : "exclusive",
                 lock->is_flock ? "flock" : "lockf", is_part ? " part" : "");
        *number = endpoint_new(ENDPOINT_FILE_LOCK, own, how);
    }
    return *number;
}

static Lock *
find(const Lock *wanted)
{
    for (size_t i = 0; i < lock_count; i++)
        if (locks[i].device == wanted->device && locks[i].inode == wanted->inode && locks[i].fd == wanted->fd &&
            locks[i].is_flock == wanted->is_flock)
            return &locks[i];
    return NULL;
}

static Lock
lock_of(const LockCall *call)
{
    return (Lock){.fd = call->is_of_process ? -1 : call->fd, .is_flock = call->is_flock};
}

/* Another process, or descriptor, can have changed the lock of an open file that it has, too: then it may be exclusive. */
static LockMode
mode_at_most(const Lock *lock)
{
    return lock == NULL || lock->is_passed_on || lock->mode == LOCK_NONE ? LOCK_EXCLUSIVE : lock->mode;
}

uint32_t
lock_asks(const LockCall *call, uint32_t *released)
{
    Lock wanted = lock_of(call);
    *released = 0;
    if (!identity_of(call->fd, &wanted))
        return 0;
    const Lock *known = find(&wanted);
    if (call->mode == LOCK_NONE)
        return endpoint_of_lock(&wanted, mode_at_most(known), call->is_part);
    /* flock() releases a lock before it changes it; lockf() keeps a shared one until it has an exclusive one. */
    bool is_less = known && known->mode == LOCK_EXCLUSIVE && call->mode == LOCK_SHARED;
    if (known && (call->is_of_process ? is_less : known->mode != LOCK_NONE || known->is_passed_on))
        *released = endpoint_of_lock(&wanted, mode_at_most(known), call->is_part);
    return endpoint_of_lock(&wanted, call->mode, call->is_part);
}

void
lock_got(const LockCall *call)
{
    Lock wanted = lock_of(call);
    if (!identity_of(call->fd, &wanted))
        return;
    Lock *known = find(&wanted);
    if (known == NULL && call->mode == LOCK_NONE)
        return;
    if (known == NULL) {
        locks = grown(locks, lock_count + 1, sizeof *locks);
        known = &locks[lock_count++];
        *known = wanted;
    }
    if (!call->is_part || call->mode > known->mode) /* of other parts it may have more */
        known->mode = call->mode;
}

static bool
is_in(const Lock *lock, const Lock *closed, int fd)
{
    return lock->fd == fd || (lock->fd < 0 && lock->device == closed->device && lock->inode == closed->inode);
}

uint32_t
lock_closed(int fd)
{
    Lock closed = {.fd = fd}, *most = NULL;
    size_t kept = 0;
    uint32_t endpoint = 0;
    if (__builtin_expect(lock_count == 0, 1) || !identity_of(fd, &closed))
        return 0;
    for (size_t i = 0; i < lock_count; i++) {
        Lock *lock = &locks[i];
        if (!is_in(lock, &closed, fd)) {
            locks[kept++] = *lock;
            continue;
        }
        bool is_its = lock->device == closed.device && lock->inode == closed.inode;
        if (is_its && (lock->mode != LOCK_NONE || lock->is_passed_on)) {
            closed.is_flock = lock->is_flock;
            if (most == NULL || mode_at_most(lock) > closed.mode)
                closed.mode = mode_at_most(lock);
            most = &closed;
        }
    }
    lock_count = kept;
    if (most)
        endpoint = endpoint_of_lock(most, most->mode, false);
    return endpoint;
}

void
locks_closed(int low, int high)
{
    for (size_t i = lock_count; i-- > 0;) {
        Lock *lock = &locks[i];
        if (lock->fd >= 0 && (lock->fd < low || lock->fd >= high))
            continue;
        uint64_t number = transfer_begin(endpoint_of_lock(lock, LOCK_EXCLUSIVE, false), 0, -1);
        if (number)
            transfer_end(number, &(TransferEnd){.address = ""});
        if (lock->fd >= 0) /* of one of the process it is not known whether its file was closed */
            *lock = locks[--lock_count];
    }
}

void
lock_passed_on(int fd)
{
    for (size_t i = 0; i < lock_count; i++)
        if (fd < 0 || locks[i].fd == fd)
            locks[i].is_passed_on = locks[i].fd >= 0;
}

void
lock_copied(int fd, int copy)
{
    lock_passed_on(fd);
    for (size_t i = 0, n = lock_count; i < n && fd >= 0; i++)
        if (locks[i].fd == fd) {
            locks = grown(locks, lock_count + 1, sizeof *locks);
            locks[lock_count] = locks[i];
            locks[lock_count++].fd = copy;
        }
}

void
locks_forked(void)
{
    size_t kept = 0;
    endpoints = (IdMap){0};
    lock_passed_on(-1);
    for (size_t i = 0; i < lock_count; i++)
        if (locks[i].fd >= 0)
            locks[kept++] = locks[i];
    lock_count = kept;
}
