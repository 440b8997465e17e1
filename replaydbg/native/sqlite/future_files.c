/* What SQLite has in the place of real files in a future: files of the future's own, which higher parts keep. Locks are
 * those of the connections of this process, the only one there is. */
#include "base/core.h"
#include "clock/clock.h"
#include "sqlite/inside.h"
#include "sqlite/sqlite.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    SQLITE_BUSY = 5,
    SQLITE_IOERR_READ = 10 | 1 << 8,
    SQLITE_IOERR_WRITE = 10 | 3 << 8,
    SQLITE_IOERR_TRUNCATE = 10 | 6 << 8,
    SQLITE_IOERR_DELETE = 10 | 10 << 8,
    SQLITE_IOERR_FSTAT = 10 | 7 << 8,
    SQLITE_NOTFOUND = 12,
    SQLITE_CANTOPEN = 14,
    OPEN_CREATES = 4,
    SHARED = 1,
    RESERVED = 2,
    PENDING = 3,
    SECTOR = 4096,
    POWERSAFE_OVERWRITE = 0x1000
};
#define JULIAN_EPOCH 210866760000000 /* ms from there to 1970 */

static File *
owner_of(SqliteFile *file)
{
    return (File *)file - 1; /* the real file lies behind ours */
}

static int
own_close(SqliteFile *file)
{
    return SQLITE_OK;
}

static int
own_read(SqliteFile *file, void *data, int n, int64_t offset)
{
    int fault = sqlite_hooks.fault();
    ssize_t got = fault ? 0 : sqlite_hooks.reads(owner_of(file)->path, data, (size_t)n, offset);
    if (fault || got < 0)
        return fault ? fault : SQLITE_IOERR_READ;
    memset((char *)data + got, 0, (size_t)(n - got));
    return got == n ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
}

static int
own_write(SqliteFile *file, const void *data, int n, int64_t offset)
{
    int fault = sqlite_hooks.fault();
    if (fault)
        return fault;
    return sqlite_hooks.writes(owner_of(file)->path, data, (size_t)n, offset) ? SQLITE_OK : SQLITE_IOERR_WRITE;
}

static int
own_truncate(SqliteFile *file, int64_t size)
{
    int fault = sqlite_hooks.fault();
    if (fault)
        return fault;
    return sqlite_hooks.resizes(owner_of(file)->path, size) ? SQLITE_OK : SQLITE_IOERR_TRUNCATE;
}

static int
own_sync(SqliteFile *file, int flags)
{
    return sqlite_hooks.fault();
}

static int
own_size(SqliteFile *file, int64_t *size)
{
    *size = sqlite_hooks.size(owner_of(file)->path);
    return *size < 0 ? SQLITE_IOERR_FSTAT : SQLITE_OK;
}

/* The highest lock that another connection of this process has on the same file. */
static int
others_level(const File *f)
{
    int level = 0;
    for (const File *other = open_files; other; other = other->next)
        if (other != f && other->path && f->path && strcmp(other->path, f->path) == 0 && other->level > level)
            level = other->level;
    return level;
}

static int
own_lock(SqliteFile *file, int level)
{
    File *f = owner_of(file);
    int others = others_level(f);
    if (level <= f->level)
        return SQLITE_OK;
    if (others >= PENDING || (level == RESERVED && others >= RESERVED))
        return SQLITE_BUSY;
    if (level >= PENDING && others >= SHARED) {
        f->level = PENDING; /* no more readers come */
        return SQLITE_BUSY;
    }
    return SQLITE_OK;
}

static int
own_unlock(SqliteFile *file, int level)
{
    return SQLITE_OK;
}

static int
own_reserved(SqliteFile *file, int *taken)
{
    File *f = owner_of(file);
    *taken = f->level >= RESERVED || others_level(f) >= RESERVED;
    return SQLITE_OK;
}

static int
own_control(SqliteFile *file, int op, void *pointer)
{
    return SQLITE_NOTFOUND;
}

static int
own_sector(SqliteFile *file)
{
    return SECTOR;
}

static int
own_device(SqliteFile *file)
{
    return POWERSAFE_OVERWRITE;
}

/* SQLite would silently stay with a journal if there were no shared memory. */
static int
own_shm_map(SqliteFile *file, int number, int size, int extend, volatile void **seen)
{
    act_diverge("outside", FILE_SHM_MAP, "shared memory of SQLite, for its WAL mode");
}

static const SqliteMethods own_methods = {
    .version = 2,
    .shm_map = own_shm_map,
    .close = own_close,
    .read = own_read,
    .write = own_write,
    .truncate = own_truncate,
    .sync = own_sync,
    .size = own_size,
    .lock = own_lock,
    .unlock = own_unlock,
    .reserved = own_reserved,
    .control = own_control,
    .sector = own_sector,
    .device = own_device,
};

void
sqlite_becomes_future(void)
{
    for (File *f = open_files; f; f = f->next) {
        f->real = (SqliteFile *)(f + 1);
        f->real->methods = &own_methods;
    }
}

int
future_open(const char *path, SqliteFile *real, int flags, int *out_flags)
{
    int fault = sqlite_hooks.fault();
    if (fault)
        return fault;
    int error = path ? sqlite_hooks.opens(path, flags & OPEN_CREATES) : -1;
    if (error < 0)
        act_diverge("outside", VFS_OPEN, path ? path : "a temporary file of SQLite");
    real->methods = error ? NULL : &own_methods;
    *out_flags = flags;
    return error ? SQLITE_CANTOPEN : SQLITE_OK;
}

int
future_remove(const char *path)
{
    int fault = sqlite_hooks.fault(), there = sqlite_hooks.exists(path);
    if (there < 0)
        act_diverge("outside", VFS_DELETE, path);
    if (fault || there == 0)
        return fault ? fault : SQLITE_IOERR_DELETE_NOENT;
    return sqlite_hooks.removes(path) ? SQLITE_OK : SQLITE_IOERR_DELETE;
}

int
future_access(const char *path, int *yes)
{
    int there = sqlite_hooks.exists(path);
    if (there < 0)
        act_diverge("outside", VFS_ACCESS, path);
    *yes = there;
    return SQLITE_OK;
}

int
future_full_path(const char *path, int size, char *full)
{
    int n = path[0] == '/' ? snprintf(full, (size_t)size, "%s", path)
                           : snprintf(full, (size_t)size, "%s/%s", sqlite_hooks.directory(), path);
    return n < size ? SQLITE_OK : SQLITE_CANTOPEN;
}

int
future_sleep(int microseconds)
{
    simulated_reaches(time_now() + (uint64_t)microseconds * 1000);
    return microseconds;
}

int64_t
future_time(void)
{
    return JULIAN_EPOCH + (int64_t)(simulated_clock(CLOCK_REALTIME) / 1000000);
}
