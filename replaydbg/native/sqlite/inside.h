/* What the three parts about SQLite share: its public binary interface, as far as a virtual file system needs it, an act of SQLite's
 * that may be a crossing, and the private copy of a WAL index.
 *
 *   sqlite.c       the VFS, and how it gets into the library
 *   sqlite/file.c  its files
 *   sqlite/wal.c   the shared memory of a database in WAL mode
 *   sqlite/future_files.c  what it has in the place of files in a future
 *
 * The structures are SQLite's published ABI, which only grows at its end. They are declared here because the core must not depend
 * on SQLite: it speaks to the library that the program's `_sqlite3` has loaded, if it loads one.
 */
#ifndef REPLAYDBG_SQLITE_INSIDE_H
#define REPLAYDBG_SQLITE_INSIDE_H
#include "base/core.h"
#include "crossing/crossing.h"

enum {
    SQLITE_OK = 0,
    SQLITE_READONLY = 8,
    SQLITE_IOERR_NOMEM = 10 | 12 << 8,
    SQLITE_IOERR_SHORT_READ = 10 | 2 << 8,
    SQLITE_IOERR_DELETE_NOENT = 10 | 23 << 8,
    SHM_UNLOCK = 1,
    SHM_LOCK = 2,
    SHM_EXCLUSIVE = 8,
};

typedef struct SqliteFile SqliteFile;
typedef struct SqliteVfs SqliteVfs;
typedef void (*SqliteCall)(void);

typedef struct {
    int version;
    int (*close)(SqliteFile *);
    int (*read)(SqliteFile *, void *, int, int64_t);
    int (*write)(SqliteFile *, const void *, int, int64_t);
    int (*truncate)(SqliteFile *, int64_t);
    int (*sync)(SqliteFile *, int);
    int (*size)(SqliteFile *, int64_t *);
    int (*lock)(SqliteFile *, int);
    int (*unlock)(SqliteFile *, int);
    int (*reserved)(SqliteFile *, int *);
    int (*control)(SqliteFile *, int, void *);
    int (*sector)(SqliteFile *);
    int (*device)(SqliteFile *);
    int (*shm_map)(SqliteFile *, int, int, int, volatile void **); /* from here: version 2 */
    int (*shm_lock)(SqliteFile *, int, int, int);
    void (*shm_barrier)(SqliteFile *);
    int (*shm_unmap)(SqliteFile *, int);
    int (*fetch)(SqliteFile *, int64_t, int, void **); /* from here: version 3 */
    int (*unfetch)(SqliteFile *, int64_t, void *);
} SqliteMethods;

struct SqliteFile {
    const SqliteMethods *methods; /* NULL after a failed open: there is nothing to close */
};

struct SqliteVfs {
    int version;
    int file_size; /* bytes of this VFS's kind of SqliteFile */
    int max_path;
    SqliteVfs *next;
    const char *name;
    void *data;
    int (*open)(SqliteVfs *, const char *, SqliteFile *, int, int *);
    int (*remove)(SqliteVfs *, const char *, int);
    int (*access)(SqliteVfs *, const char *, int, int *);
    int (*full_path)(SqliteVfs *, const char *, int, char *);
    void *(*dl_open)(SqliteVfs *, const char *);
    void (*dl_error)(SqliteVfs *, int, char *);
    SqliteCall (*dl_sym)(SqliteVfs *, void *, const char *);
    void (*dl_close)(SqliteVfs *, void *);
    int (*randomness)(SqliteVfs *, int, char *);
    int (*sleep)(SqliteVfs *, int);
    int (*time)(SqliteVfs *, double *);
    int (*last_error)(SqliteVfs *, int, char *);
    int (*time64)(SqliteVfs *, int64_t *);                  /* from here: version 2 */
    int (*set_call)(SqliteVfs *, const char *, SqliteCall); /* from here: version 3 */
    SqliteCall (*get_call)(SqliteVfs *, const char *);
    const char *(*next_call)(SqliteVfs *, const char *);
};

/* ---- sqlite/wal.c ---- */
typedef struct {
    uint8_t *seen;          /* what SQLite reads and writes */
    uint8_t *base;          /* record: how the real region stood when both were last made equal */
    volatile uint8_t *real; /* record: mapped and shared with other processes */
    size_t size;
} WalRegion;
typedef struct {
    WalRegion *regions; /* by number; `seen` is NULL where none was asked for */
    int count;
} WalIndex;

/* Makes SQLite's copy of a region; `real` is NULL in replay. What the region holds is appended to `arrived`, if that is
 * given. False: out of memory. */
bool wal_map(WalIndex *w, int number, size_t size, volatile void *real, Buf *arrived);
void *wal_region(WalIndex *w, int number); /* SQLite's copy, or NULL */
void wal_push(WalIndex *w);                /* what SQLite wrote goes to the real regions */
/* What others wrote comes in; `all`: uncommitted frames too. Appended to `arrived`, if that is given. */
void wal_pull(WalIndex *w, bool all, Buf *arrived);
bool wal_attach(WalIndex *w, int number,
                volatile void *real); /* that of a replay gets its real region; false: no memory */
bool wal_arrive(WalIndex *w, const uint8_t *data, size_t n); /* replay: what had arrived then; false if it cannot be */
void wal_free(WalIndex *w);

/* ---- sqlite.c: one act ----
 *     Act act;
 *     int rc = SQLITE_OK;
 *     act_begin(&act, ROW, name, a, b, NULL, 0);
 *     if (act.perform)
 *         rc = the real thing
 *     rc = act_end(&act, rc, NULL, 0);
 */
enum {
    VFS_OPEN,
    VFS_DELETE,
    VFS_ACCESS,
    VFS_FULLPATH,
    VFS_RANDOMNESS,
    VFS_SLEEP,
    VFS_TIME,
    VFS_LASTERROR,
    FILE_CLOSE,
    FILE_READ,
    FILE_WRITE,
    FILE_TRUNCATE,
    FILE_SYNC,
    FILE_SIZE,
    FILE_LOCK,
    FILE_UNLOCK,
    FILE_RESERVED,
    FILE_CONTROL,
    FILE_SECTOR,
    FILE_DEVICE,
    FILE_SHM_MAP,
    FILE_SHM_LOCK,
    FILE_SHM_UNMAP,
    ROWS
};
typedef struct {
    NativeCrossing native;
    PyGILState_STATE gil;
    PyThreadState *released;
    PyObject *error[3]; /* SQLite may be called while an exception is on its way */
    bool crossed;       /* false: not ours to record or to answer */
    bool perform;       /* do the real thing */
    bool again;         /* ended: the replay has become a recording meanwhile, and it is to be made once more */
} Act;
void act_begin(Act *act, int row, const char *text, int64_t a, int64_t b, const void *data, size_t n);
/* The number says what came of it; `out` takes `n` bytes, of rows that fill. Returns the number, in a replay the
 * recorded one. */
int64_t act_end(Act *act, int64_t number, void *out, size_t n);
void act_let_others_run(Act *act); /* before a real call that may take long */
/* An outcome whose length nobody knows before: the first crossing tells the length in `act_pack`, a second one has the
 * bytes. */
static inline int64_t
act_pack(int rc, size_t n)
{
    return (int64_t)n << 16 | (rc & 0xFFFF);
}
void act_arrive(const Act *first, int row, const char *text, int64_t a, void *data, size_t n);
_Noreturn void act_diverge(const char *kind, int row, const char *detail);
void *sqlite_malloc(int n);

/* ---- sqlite/future_files.c: of a future, in the place of the real VFS ---- */
int future_open(const char *path, SqliteFile *real, int flags, int *out_flags);
int future_remove(const char *path);
int future_access(const char *path, int *yes);
int future_full_path(const char *path, int size, char *full);
int future_sleep(int microseconds);
int64_t future_time(void);

/* ---- sqlite/file.c ---- */
typedef struct File {
    const SqliteMethods *methods;
    SqliteFile *real;   /* NULL: opened in a replay */
    const char *name;   /* without directories; "" for a temporary file */
    int sector, device; /* as last answered; -1: not asked yet */
    WalIndex wal;
    /* for a replay that becomes a recording */
    SqliteVfs *vfs;
    const char *path;    /* NULL: a temporary file */
    int flags;           /* with which it was opened */
    int level;           /* of the lock that is held */
    int shared_locks[8]; /* flags of those on the WAL index; 0: not held */
    struct File *next;   /* of those that are open */
} File;
extern File *open_files;
/* `version`: of the real file's methods, 1 to 3. `path` lives as long as the file does. */
void file_prepare(File *f, const char *path, SqliteFile *real, int version);

#endif
