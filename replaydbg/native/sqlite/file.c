/* The files of SQLite, recorded and replayed.
 *
 * A file is a crossing at each of its methods. In a replay there is no real file behind it: what is read comes from the
 * log, what is written is checked against its digest, and locks are what they were. What a real file would answer for
 * ever the same is asked once. / */
#include "base/core.h"
#include "crossing/crossing.h"
#include "sqlite/inside.h"
#include <stdlib.h>

File *open_files;

static void
begin_file_data(Act *act, int row, SqliteFile *file, int64_t a, int64_t b, const void *data, size_t n)
{
    File *f = (File *)file;
    act_begin(act, row, f->name, a, b, data, n);
    if (act->crossed || f->real)
        return;
    act->perform = false; /* a file of the replay, met where the recording did not meet it */
    if (row != FILE_CLOSE)
        act_diverge("uncovered", row, "a database is used inside another recorded call, or by another thread");
}

static void
begin_file(Act *act, int row, SqliteFile *file, int64_t a, int64_t b)
{
    begin_file_data(act, row, file, a, b, NULL, 0);
}

static SqliteFile *
real_of(SqliteFile *file)
{
    return ((File *)file)->real;
}

#define REAL(file, method, ...) (real_of(file)->methods->method(real_of(file), ##__VA_ARGS__))

static int
file_close(SqliteFile *file)
{
    Act act;
    int rc = SQLITE_OK;
    begin_file(&act, FILE_CLOSE, file, 0, 0);
    if (act.perform)
        rc = REAL(file, close);
    rc = (int)act_end(&act, rc, NULL, 0);
    wal_free(&((File *)file)->wal);
    for (File **p = &open_files; *p; p = &(*p)->next)
        if (*p == (File *)file) {
            *p = (*p)->next;
            break;
        }
    return rc;
}

static int
file_read(SqliteFile *file, void *data, int n, int64_t offset)
{
    Act act;
    int rc = SQLITE_OK;
    begin_file(&act, FILE_READ, file, offset, n);
    if (act.perform) {
        rc = REAL(file, read, data, n, offset);
        if (rc != SQLITE_OK && rc != SQLITE_IOERR_SHORT_READ)
            memset(data, 0, (size_t)n); /* nothing was read: the log gets no left-over bytes */
    }
    return (int)act_end(&act, rc, data, (size_t)n);
}

static int
file_write(SqliteFile *file, const void *data, int n, int64_t offset)
{
    Act act;
    int rc = SQLITE_OK;
    begin_file_data(&act, FILE_WRITE, file, offset, n, data, (size_t)n);
    if (act.perform)
        rc = REAL(file, write, data, n, offset);
    return (int)act_end(&act, rc, NULL, 0);
}

static int
file_truncate(SqliteFile *file, int64_t size)
{
    Act act;
    int rc = SQLITE_OK;
    begin_file(&act, FILE_TRUNCATE, file, size, 0);
    if (act.perform)
        rc = REAL(file, truncate, size);
    return (int)act_end(&act, rc, NULL, 0);
}

static int
file_sync(SqliteFile *file, int flags)
{
    Act act;
    int rc = SQLITE_OK;
    do {
        begin_file(&act, FILE_SYNC, file, flags, 0);
        act_let_others_run(&act);
        if (act.perform)
            rc = REAL(file, sync, flags);
        rc = (int)act_end(&act, rc, NULL, 0);
    } while (act.again);
    return rc;
}

/* Where a number comes back beside SQLite's code, an event has one of the two: the code is shown negative. */
static int
file_size(SqliteFile *file, int64_t *size)
{
    Act act;
    int64_t number = 0;
    begin_file(&act, FILE_SIZE, file, 0, 0);
    if (act.perform) {
        int rc = REAL(file, size, size);
        number = rc == SQLITE_OK ? *size : -rc;
    }
    number = act_end(&act, number, NULL, 0);
    *size = number < 0 ? 0 : number;
    return number < 0 ? (int)-number : SQLITE_OK;
}

static int
file_lock(SqliteFile *file, int level)
{
    Act act;
    int rc = SQLITE_OK;
    begin_file(&act, FILE_LOCK, file, level, 0);
    if (act.perform)
        rc = REAL(file, lock, level);
    rc = (int)act_end(&act, rc, NULL, 0);
    if (rc == SQLITE_OK && level > ((File *)file)->level)
        ((File *)file)->level = level;
    return rc;
}

static int
file_unlock(SqliteFile *file, int level)
{
    Act act;
    int rc = SQLITE_OK;
    begin_file(&act, FILE_UNLOCK, file, level, 0);
    if (act.perform)
        rc = REAL(file, unlock, level);
    rc = (int)act_end(&act, rc, NULL, 0);
    if (rc == SQLITE_OK && level < ((File *)file)->level)
        ((File *)file)->level = level;
    return rc;
}

static int
file_reserved(SqliteFile *file, int *taken)
{
    Act act;
    int64_t number = 0;
    begin_file(&act, FILE_RESERVED, file, 0, 0);
    if (act.perform) {
        int rc = REAL(file, reserved, taken);
        number = rc == SQLITE_OK ? *taken : -rc;
    }
    number = act_end(&act, number, NULL, 0);
    *taken = number > 0;
    return number < 0 ? (int)-number : SQLITE_OK;
}

/* What a file control takes and gives through its pointer. */
enum { IS_PLAIN, IS_INT, IS_INT64, IS_TEXT, IS_UNKNOWN };

static int
control_kind(int op)
{
    switch (op) {
    case 1:
    case 4:
    case 6:
    case 10:
    case 13:
    case 20:
    case 34:
    case 40:
        /* LOCKSTATE, LAST_ERRNO, CHUNK_SIZE, PERSIST_WAL, POWERSAFE_OVERWRITE, HAS_MOVED, LOCK_TIMEOUT, EXTERNAL_READER
         */
        return IS_INT;
    case 5:
    case 18:
        return IS_INT64; /* SIZE_HINT, MMAP_SIZE */
    case 12:
    case 16:
        return IS_TEXT; /* VFSNAME, TEMPFILENAME: allocated by the VFS */
    case 8:
    case 11:
    case 14:
    case 15:
    case 19:
    case 21:
    case 22:
    case 24:
    case 25:
    case 26:
    case 30:
    case 31:
    case 32:
    case 33:
    case 37:
    case 39:
        return IS_PLAIN;
    default:
        return IS_UNKNOWN;
    }
}

#define LONGEST_TEXT ((size_t)1 << 20) /* names of files */

static int
control_text(SqliteFile *file, int op, char **text)
{
    Act act;
    int64_t number = 0;
    begin_file(&act, FILE_CONTROL, file, op, 0);
    if (act.perform) {
        int rc = REAL(file, control, op, text);
        number = act_pack(rc, rc == SQLITE_OK && *text ? strlen(*text) + 1 : 0);
    }
    number = act_end(&act, number, NULL, 0);
    size_t n = (size_t)(number >> 16);
    if (n > LONGEST_TEXT)
        act_diverge("corrupt", FILE_CONTROL, "the text of a file control is too long");
    if (n && !act.perform)
        *text = sqlite_malloc((int)n);
    if (n && *text == NULL)
        act_diverge("uncovered", FILE_CONTROL, "out of memory");
    act_arrive(&act, FILE_CONTROL, ((File *)file)->name, op, n ? *text : NULL, n);
    if (n && act.crossed && !act.perform)
        (*text)[n - 1] = 0;
    return (int)(number & 0xFFFF);
}

static int
file_control(SqliteFile *file, int op, void *pointer)
{
    Act act;
    int kind = control_kind(op), rc = SQLITE_OK;
    if (kind == IS_TEXT)
        return control_text(file, op, pointer);
    size_t n = kind == IS_INT ? sizeof(int) : kind == IS_INT64 ? sizeof(int64_t) : 0;
    int64_t given = kind == IS_INT ? *(int *)pointer : kind == IS_INT64 ? *(int64_t *)pointer : 0;
    begin_file(&act, FILE_CONTROL, file, op, given);
    if (act.perform)
        rc = REAL(file, control, op, pointer);
    if (act.crossed && kind == IS_UNKNOWN && rc == SQLITE_OK && core.mode == RECORD)
        note("uncovered", "sqlite3: an unknown file control");
    if (op == 13) /* POWERSAFE_OVERWRITE, which is one of the characteristics */
        ((File *)file)->device = -1;
    return (int)act_end(&act, rc, n ? pointer : NULL, n);
}

static int
file_sector(SqliteFile *file)
{
    File *f = (File *)file;
    Act act;
    int size = f->sector;
    if (size >= 0)
        return size;
    begin_file(&act, FILE_SECTOR, file, 0, 0);
    if (act.perform)
        size = REAL(file, sector);
    size = (int)act_end(&act, size, NULL, 0);
    if (act.crossed) /* what no event holds must not spare one */
        f->sector = size;
    return size;
}

static int
file_device(SqliteFile *file)
{
    File *f = (File *)file;
    Act act;
    int bits = f->device;
    if (bits >= 0)
        return bits;
    begin_file(&act, FILE_DEVICE, file, 0, 0);
    if (act.perform)
        bits = REAL(file, device);
    bits = (int)act_end(&act, bits, NULL, 0);
    if (act.crossed)
        f->device = bits;
    return bits;
}

/* ---- files: the WAL index ---- */
static Buf arrived; /* main thread, GIL held */

#define LARGEST_INDEX ((size_t)64 << 20)

static void
arrive_index(const Act *first, int row, File *f, int64_t a, int64_t number)
{
    size_t n = (size_t)(number >> 16);
    if (!first->crossed || n == 0)
        return;
    if (!first->perform) {
        if (n > LARGEST_INDEX)
            act_diverge("corrupt", row, "the content of a WAL index is too long");
        arrived.used = 0;
        buf_reserve(&arrived, n);
    }
    act_arrive(first, row, f->name, a, arrived.data, n);
    if (!first->perform && !wal_arrive(&f->wal, arrived.data, n))
        act_diverge("corrupt", row, "the content of a WAL index does not fit");
}

/* Without the GIL the buffer is not ours, and nothing is logged. */
static Buf *
start_news(const Act *act)
{
    if (!act->crossed)
        return NULL;
    arrived.used = 0;
    return &arrived;
}

enum { NOT_THERE = 1 << 15 }; /* no code of SQLite's: the region does not exist and was not to be made */

static int
file_shm_map(SqliteFile *file, int number, int size, int extend, volatile void **seen)
{
    File *f = (File *)file;
    Act act;
    int64_t packed = 0;
    volatile void *real = NULL;
    if ((*seen = wal_region(&f->wal, number)))
        return SQLITE_OK;
    begin_file(&act, FILE_SHM_MAP, file, number, extend);
    if (act.perform) {
        int rc = REAL(file, shm_map, number, size, extend, &real);
        Buf *news = start_news(&act);
        if (real && !wal_map(&f->wal, number, (size_t)size, real, news)) {
            rc = SQLITE_IOERR_NOMEM;
            real = NULL;
        }
        packed = act_pack(rc | (real ? 0 : NOT_THERE), news && real ? news->used : 0);
    }
    packed = act_end(&act, packed, NULL, 0);
    if (!act.perform && !(packed & NOT_THERE) && !wal_map(&f->wal, number, (size_t)size, NULL, NULL))
        return SQLITE_IOERR_NOMEM;
    arrive_index(&act, FILE_SHM_MAP, f, number, packed);
    *seen = wal_region(&f->wal, number);
    return (int)(packed & (NOT_THERE - 1));
}

static int
file_shm_lock(SqliteFile *file, int first, int n, int flags)
{
    File *f = (File *)file;
    Act act;
    int64_t packed = 0;
    begin_file(&act, FILE_SHM_LOCK, file, first << 8 | n, flags);
    if (act.perform) {
        wal_push(&f->wal);
        int rc = REAL(file, shm_lock, first, n, flags);
        Buf *news = start_news(&act);
        wal_pull(&f->wal, first == 0 && flags == (SHM_LOCK | SHM_EXCLUSIVE), news);
        packed = act_pack(rc, news ? news->used : 0);
    }
    packed = act_end(&act, packed, NULL, 0);
    arrive_index(&act, FILE_SHM_LOCK, f, first << 8 | n, packed);
    for (int i = first; (packed & 0xFFFF) == SQLITE_OK && i < first + n && i < 8; i++)
        f->shared_locks[i] = flags & SHM_LOCK ? flags : 0;
    return (int)(packed & 0xFFFF);
}

static void
file_shm_barrier(SqliteFile *file)
{
    if (real_of(file)) {
        wal_push(&((File *)file)->wal);
        REAL(file, shm_barrier);
    }
}

static int
file_shm_unmap(SqliteFile *file, int delete)
{
    Act act;
    int rc = SQLITE_OK;
    begin_file(&act, FILE_SHM_UNMAP, file, delete, 0);
    if (act.perform) {
        wal_push(&((File *)file)->wal);
        rc = REAL(file, shm_unmap, delete);
    }
    rc = (int)act_end(&act, rc, NULL, 0);
    wal_free(&((File *)file)->wal);
    return rc;
}

/* A mapped database would be read without crossings: this part is reported to SQLite as not mapped, so it reads. */
static int
file_fetch(SqliteFile *file, int64_t offset, int n, void **data)
{
    *data = NULL;
    return SQLITE_OK;
}

static int
file_unfetch(SqliteFile *file, int64_t offset, void *data)
{
    return SQLITE_OK;
}

#define METHODS(version)                                                                                               \
    {version,       file_close,       file_read,      file_write,   file_truncate, file_sync,   file_size,             \
     file_lock,     file_unlock,      file_reserved,  file_control, file_sector,   file_device, file_shm_map,          \
     file_shm_lock, file_shm_barrier, file_shm_unmap, file_fetch,   file_unfetch}
static const SqliteMethods file_methods[3] = {METHODS(1), METHODS(2), METHODS(3)};

void
file_prepare(File *f, const char *path, SqliteFile *real, int version)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    memset(f, 0, sizeof *f);
    f->methods = &file_methods[version - 1];
    f->real = real;
    f->name = slash ? slash + 1 : path ? path : "";
    f->sector = f->device = -1;
    f->path = path;
    f->next = open_files;
    open_files = f;
}
