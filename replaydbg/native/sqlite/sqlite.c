/* SQLite's virtual file system: everything that SQLite takes from outside passes here and is a crossing.
 *
 * The functions of the `sqlite3` module are no crossings: SQLite itself runs in a replay as it ran when it was
 * recorded, with its own caches, its own generator of random numbers, and the program's functions called back at the
 * same places. It is a deterministic function of what its VFS answers. So the VFSs of the library that `_sqlite3` has
 * loaded are replaced by wrappers of the same names (a program may ask for one by name). In a replay they answer from
 * the log.
 *
 * SQLite calls with the GIL released, and any thread may call: only what the main thread does outside other crossings
 * is recorded. / */
#include "base/core.h"
#include "crossing/crossing.h"
#include "sqlite/inside.h"
#include "sqlite/sqlite.h"
#include <dlfcn.h>

static const char *const row_names[ROWS] = {
    "vfs.open",    "vfs.delete",    "vfs.access",   "vfs.fullpath",  "vfs.randomness", "vfs.sleep",
    "vfs.time",    "vfs.lasterror", "file.close",   "file.read",     "file.write",     "file.truncate",
    "file.sync",   "file.size",     "file.lock",    "file.unlock",   "file.reserved",  "file.control",
    "file.sector", "file.device",   "file.shm_map", "file.shm_lock", "file.shm_unmap",
};
static Gate *rows[ROWS];

static struct {
    SqliteVfs *(*find)(const char *);
    int (*add)(SqliteVfs *, int);
    int (*remove)(SqliteVfs *);
    void *(*malloc)(int);
    int (*test_control)(int, ...);
    void (*randomness)(int, void *);
} lib;

/* ---- an act of SQLite's ---- */
static bool met_thread; /* set without the GIL, noted at the next crossing */

void
act_begin(Act *act, int row, const char *text, int64_t a, int64_t b, const void *data, size_t n)
{
    act->crossed = act->again = false;
    act->perform = true;
    act->released = NULL;
    if (core.mode == OBSERVE)
        return;
    if (PyGILState_GetThisThreadState() != core.tstate) {
        met_thread = true;
        return;
    }
    if (core.depth > core.ground)
        return;
    act->crossed = true;
    act->gil = PyGILState_Ensure();
    PyErr_Fetch(&act->error[0], &act->error[1], &act->error[2]);
    if (met_thread) {
        met_thread = false;
        note("uncovered", "sqlite3: a database was used by a thread other than the main thread");
    }
    act->perform = native_begin(&act->native, rows[row], text, a, b, data, n);
}

int64_t
act_end(Act *act, int64_t number, void *out, size_t n)
{
    uint8_t none;
    if (!act->crossed)
        return number;
    if (act->released)
        PyEval_RestoreThread(act->released);
    number = native_end(&act->native, number, out ? out : &none, n);
    act->again = cross_again();
    PyErr_Restore(act->error[0], act->error[1], act->error[2]);
    PyGILState_Release(act->gil);
    return number;
}

void
act_let_others_run(Act *act)
{
    if (act->crossed && act->perform)
        act->released = PyEval_SaveThread();
}

void
act_arrive(const Act *first, int row, const char *text, int64_t a, void *data, size_t n)
{
    Act act;
    if (!first->crossed || n == 0)
        return;
    act_begin(&act, row, text, a, (int64_t)n, NULL, 0);
    act_end(&act, 0, data, n);
}

void
act_diverge(const char *kind, int row, const char *detail)
{
    diverge(kind, rows[row], NULL, detail);
}

void *
sqlite_malloc(int n)
{
    return lib.malloc(n);
}

/* ---- the VFS ---- */
static SqliteVfs *
real_of(SqliteVfs *vfs)
{
    return vfs->data;
}

/* The name of a temporary file is drawn from SQLite's generator inside the real VFS. A replay draws none, so the
 * generator is put back as it was: else everything that is random in the program's SQL afterwards would differ. */
enum { PRNG_SAVE = 5, PRNG_RESTORE = 6 };

static int
open_real(SqliteVfs *vfs, const char *path, SqliteFile *real, int flags, int *out_flags)
{
    if (core.is_future)
        return future_open(path, real, flags, out_flags);
    bool draws = path == NULL && lib.test_control;
    if (draws)
        lib.test_control(PRNG_SAVE);
    int rc = real_of(vfs)->open(real_of(vfs), path, real, flags, out_flags);
    if (draws)
        lib.test_control(PRNG_RESTORE);
    if (rc != SQLITE_OK && real->methods)
        real->methods->close(real);
    return rc;
}

/* The real VFS seeds SQLite's generator anew at the first file that a forked child opens, so that it does not draw its
 * parent's numbers. A replay forks nothing, and opens no real file. */
static void
seed_after_fork(void)
{
    static unsigned forks;
    if (forks != core.forks && lib.randomness)
        lib.randomness(0, NULL);
    forks = core.forks;
}

static int
methods_version(const SqliteFile *real)
{
    int version = real->methods->version;
    return version < 2 || real->methods->shm_map == NULL ? 1 : version > 3 ? 3 : version;
}

/* Where a number comes back beside SQLite's code, an event has one of the two: the code is shown negative. */
static int
vfs_open(SqliteVfs *vfs, const char *path, SqliteFile *file, int flags, int *out_flags)
{
    File *f = (File *)file;
    SqliteFile *real = (SqliteFile *)(f + 1);
    Act act;
    int64_t number = 0; /* flags, and above them the version of the methods */
    file->methods = real->methods = NULL;
    seed_after_fork();
    act_begin(&act, VFS_OPEN, path ? path : "", flags, 0, NULL, 0);
    if (act.perform) {
        int out = 0, rc = open_real(vfs, path, real, flags, &out);
        number = rc == SQLITE_OK ? (int64_t)methods_version(real) << 32 | out : -rc;
    }
    number = act_end(&act, number, NULL, 0);
    if (number < 0)
        return (int)-number;
    int version = (int)(number >> 32);
    if (version < 1 || version > 3)
        act_diverge("corrupt", VFS_OPEN, "a file of another kind");
    file_prepare(f, path, act.perform ? real : NULL, version);
    f->vfs = vfs;
    f->flags = flags;
    if (out_flags)
        *out_flags = (int)(number & INT32_MAX);
    return SQLITE_OK;
}

static int
vfs_remove(SqliteVfs *vfs, const char *path, int sync_directory)
{
    Act act;
    int rc = SQLITE_OK;
    act_begin(&act, VFS_DELETE, path, sync_directory, 0, NULL, 0);
    if (act.perform)
        rc = core.is_future ? future_remove(path) : real_of(vfs)->remove(real_of(vfs), path, sync_directory);
    if (rc == SQLITE_IOERR_DELETE_NOENT && core.is_resumed && core.crossings == core.live_since)
        rc = SQLITE_OK; /* it had been done, and was not logged */
    return (int)act_end(&act, rc, NULL, 0);
}

static int
vfs_access(SqliteVfs *vfs, const char *path, int flags, int *yes)
{
    Act act;
    int64_t number = 0;
    act_begin(&act, VFS_ACCESS, path, flags, 0, NULL, 0);
    if (act.perform) {
        int rc = core.is_future ? future_access(path, yes) : real_of(vfs)->access(real_of(vfs), path, flags, yes);
        number = rc == SQLITE_OK ? *yes : -rc;
    }
    number = act_end(&act, number, NULL, 0);
    *yes = number > 0;
    return number < 0 ? (int)-number : SQLITE_OK;
}

static int
vfs_full_path(SqliteVfs *vfs, const char *path, int size, char *full)
{
    Act act;
    int64_t number = 0;
    act_begin(&act, VFS_FULLPATH, path, size, 0, NULL, 0);
    if (act.perform) {
        full[0] = 0;
        /* a symbolic link has a code of its own, no error */
        int rc = core.is_future ? future_full_path(path, size, full)
                                : real_of(vfs)->full_path(real_of(vfs), path, size, full);
        number = act_pack(rc, strlen(full) + 1);
    }
    number = act_end(&act, number, NULL, 0);
    size_t n = (size_t)(number >> 16);
    if (n > (size_t)size)
        act_diverge("corrupt", VFS_FULLPATH, "a path that is too long");
    act_arrive(&act, VFS_FULLPATH, path, size, full, n);
    return (int)(number & 0xFFFF);
}

static int
vfs_randomness(SqliteVfs *vfs, int n, char *bytes)
{
    Act act;
    int64_t count = 0;
    act_begin(&act, VFS_RANDOMNESS, "", n, 0, NULL, 0);
    if (act.perform && core.is_future) {
        sqlite_hooks.draw(bytes, (size_t)n);
        count = n;
    }
    else if (act.perform)
        count = real_of(vfs)->randomness(real_of(vfs), n, bytes);
    return (int)act_end(&act, count, bytes, (size_t)n);
}

static int
vfs_sleep(SqliteVfs *vfs, int microseconds)
{
    Act act;
    int64_t slept = 0;
    do {
        act_begin(&act, VFS_SLEEP, "", microseconds, 0, NULL, 0);
        act_let_others_run(&act);
        if (act.perform)
            slept = core.is_future ? future_sleep(microseconds) : real_of(vfs)->sleep(real_of(vfs), microseconds);
        slept = act_end(&act, slept, NULL, 0);
    } while (act.again);
    return (int)slept;
}

static int
vfs_time64(SqliteVfs *vfs, int64_t *milliseconds)
{
    Act act;
    int64_t number = 0;
    act_begin(&act, VFS_TIME, "", 0, 0, NULL, 0);
    if (act.perform && core.is_future)
        number = future_time();
    else if (act.perform && real_of(vfs)->version >= 2 && real_of(vfs)->time64) {
        int rc = real_of(vfs)->time64(real_of(vfs), &number);
        number = rc == SQLITE_OK ? number : -rc;
    }
    else if (act.perform) {
        double days = 0;
        int rc = real_of(vfs)->time(real_of(vfs), &days);
        number = rc == SQLITE_OK ? (int64_t)(days * 86400000.0) : -rc;
    }
    number = act_end(&act, number, NULL, 0);
    *milliseconds = number < 0 ? 0 : number;
    return number < 0 ? (int)-number : SQLITE_OK;
}

static int
vfs_time(SqliteVfs *vfs, double *days)
{
    int64_t milliseconds;
    int rc = vfs_time64(vfs, &milliseconds);
    *days = (double)milliseconds / 86400000.0;
    return rc;
}

static int
vfs_last_error(SqliteVfs *vfs, int n, char *text)
{
    Act act;
    int64_t number = 0;
    if (n > 0 && text)
        text[0] = 0;
    act_begin(&act, VFS_LASTERROR, "", 0, 0, NULL, 0);
    if (act.perform && !core.is_future)
        number = real_of(vfs)->last_error ? real_of(vfs)->last_error(real_of(vfs), 0, NULL) : 0;
    return (int)act_end(&act, number, NULL, 0);
}

/* ---- a replay becomes a recording ---- */

enum { OPEN_EXCLUSIVE = 0x10 }; /* it was made by then */

static const char *
lock_again(File *f)
{
    for (int level = 1; level <= f->level; level++) /* the pending level is on the way to the exclusive one */
        if (level != 3 && f->real->methods->lock(f->real, level) != SQLITE_OK)
            return "a lock on a database of SQLite is held by another process";
    return NULL;
}

static const char *
map_again(File *f)
{
    static const char problem[] = "the WAL index of a database of SQLite cannot be mapped again";
    const SqliteMethods *m = f->real->methods;
    for (int i = 0; i < f->wal.count; i++) {
        volatile void *real = NULL;
        if (f->wal.regions[i].seen == NULL)
            continue;
        if (m->shm_map == NULL || m->shm_map(f->real, i, (int)f->wal.regions[i].size, 1, &real) != SQLITE_OK ||
            real == NULL || !wal_attach(&f->wal, i, real))
            return problem;
    }
    for (int i = 0; i < 8; i++)
        if (f->shared_locks[i] && m->shm_lock(f->real, i, 1, f->shared_locks[i]) != SQLITE_OK)
            return "a lock on the WAL index of a database of SQLite is held by another process";
    wal_push(&f->wal);
    return NULL;
}

/* Libraries and system calls: not recorded; an extension of SQLite is code, and runs in both modes. */
static void *
vfs_dl_open(SqliteVfs *vfs, const char *path)
{
    return real_of(vfs)->dl_open(real_of(vfs), path);
}

static void
vfs_dl_error(SqliteVfs *vfs, int n, char *text)
{
    real_of(vfs)->dl_error(real_of(vfs), n, text);
}

static SqliteCall
vfs_dl_sym(SqliteVfs *vfs, void *handle, const char *symbol)
{
    return real_of(vfs)->dl_sym(real_of(vfs), handle, symbol);
}

static void
vfs_dl_close(SqliteVfs *vfs, void *handle)
{
    real_of(vfs)->dl_close(real_of(vfs), handle);
}

static int
vfs_set_call(SqliteVfs *vfs, const char *name, SqliteCall call)
{
    return real_of(vfs)->set_call(real_of(vfs), name, call);
}

static SqliteCall
vfs_get_call(SqliteVfs *vfs, const char *name)
{
    return real_of(vfs)->get_call(real_of(vfs), name);
}

static const char *
vfs_next_call(SqliteVfs *vfs, const char *name)
{
    return real_of(vfs)->next_call(real_of(vfs), name);
}

/* ---- into the library ---- */
enum { MOST_VFSS = 8 };
static SqliteVfs wrappers[MOST_VFSS];

static void
wrap(SqliteVfs *wrapper, SqliteVfs *real)
{
    *wrapper = (SqliteVfs){
        .version = real->version < 3 ? real->version : 3,
        .file_size = (int)sizeof(File) + real->file_size,
        .max_path = real->max_path,
        .name = real->name,
        .data = real,
        .open = vfs_open,
        .remove = vfs_remove,
        .access = vfs_access,
        .full_path = vfs_full_path,
        .dl_open = real->dl_open ? vfs_dl_open : NULL,
        .dl_error = real->dl_error ? vfs_dl_error : NULL,
        .dl_sym = real->dl_sym ? vfs_dl_sym : NULL,
        .dl_close = real->dl_close ? vfs_dl_close : NULL,
        .randomness = vfs_randomness,
        .sleep = vfs_sleep,
        .time = vfs_time,
        .last_error = vfs_last_error,
        .time64 = vfs_time64,
        .set_call = vfs_set_call,
        .get_call = vfs_get_call,
        .next_call = vfs_next_call,
    };
}

/* The default and its variants for other kinds of locking, which share files, are wrapped. A VFS above the default
 * (SQLite's own one for databases in memory) is kept, but asks the wrapper for time and entropy. */
static void
replace_all(void)
{
    SqliteVfs *found[MOST_VFSS], *standard = lib.find(NULL), *vfs;
    int count = 0;
    for (vfs = standard; vfs && count < MOST_VFSS; vfs = vfs->next)
        if (vfs == standard || strncmp(vfs->name, "unix", 4) == 0)
            found[count++] = vfs;
    for (int i = 0; i < count; i++) {
        lib.remove(found[i]);
        wrap(&wrappers[i], found[i]);
        lib.add(&wrappers[i], found[i] == standard);
    }
    for (vfs = lib.find(NULL); vfs; vfs = vfs->next)
        if (vfs->data == standard && vfs->open != vfs_open)
            vfs->data = &wrappers[0];
}

static void *
library_of(PyObject *module)
{
    PyObject *path = PyModule_GetFilenameObject(module);
    const char *text = path ? PyUnicode_AsUTF8(path) : NULL;
    void *library = dlopen(text, RTLD_NOLOAD | RTLD_LAZY); /* NULL, the program itself, if the module is built in */
    Py_XDECREF(path);
    PyErr_Clear();
    return library;
}

static bool
find_library(PyObject *module)
{
    void *library = library_of(module);
    if (library == NULL)
        return false;
    lib.find = (SqliteVfs * (*)(const char *)) dlsym(library, "sqlite3_vfs_find");
    lib.add = (int (*)(SqliteVfs *, int))dlsym(library, "sqlite3_vfs_register");
    lib.remove = (int (*)(SqliteVfs *))dlsym(library, "sqlite3_vfs_unregister");
    lib.malloc = (void *(*)(int))dlsym(library, "sqlite3_malloc");
    lib.test_control = (int (*)(int, ...))dlsym(library, "sqlite3_test_control");
    lib.randomness = (void (*)(int, void *))dlsym(library, "sqlite3_randomness");
    return lib.find && lib.add && lib.remove && lib.malloc && lib.find(NULL);
}

int
sqlite_module_loaded(PyObject *module, const char *name)
{
    static bool done;
    if (done || core.mode == OBSERVE || strcmp(name, "_sqlite3") != 0)
        return 0;
    done = true;
    for (int i = 0; i < ROWS; i++)
        if ((rows[i] = gate_named("_sqlite3", row_names[i])) == NULL) {
            note("uncovered", "sqlite3: its file functions are not covered");
            return 0;
        }
    if (!find_library(module)) {
        note("uncovered", "sqlite3: its library cannot be reached");
        return 0;
    }
    replace_all();
    return 0;
}

/* ---- a replay becomes a recording: the library ---- */

/* In a process whose number it does not know the real VFS seeds SQLite's generator anew, at the first file that it
 * opens. A replay of this recording opens none, so the generator stays as it is. */
static void
know_process(void)
{
    enum { READ_ONLY = 1, MAIN_DATABASE = 0x100 };
    SqliteVfs *vfs = lib.find ? real_of(&wrappers[0]) : NULL;
    SqliteFile *file = vfs ? calloc(1, (size_t)vfs->file_size) : NULL;
    if (file && lib.test_control) {
        lib.test_control(PRNG_SAVE);
        if (vfs->open(vfs, "/dev/null", file, READ_ONLY | MAIN_DATABASE, NULL) == SQLITE_OK || file->methods)
            file->methods->close(file);
        lib.test_control(PRNG_RESTORE);
    }
    free(file);
}

const char *
sqlite_continue(void)
{
    know_process();
    for (File *f = open_files; f; f = f->next) {
        SqliteFile *real = (SqliteFile *)(f + 1);
        const char *problem;
        if (f->real)
            continue;
        if (f->path == NULL)
            return "a temporary file of SQLite";
        real->methods = NULL;
        if (open_real(f->vfs, f->path, real, f->flags & ~OPEN_EXCLUSIVE, NULL) != SQLITE_OK)
            return "a database of SQLite cannot be opened again";
        f->real = real;
        if ((problem = lock_again(f)) || (problem = map_again(f)))
            return problem;
    }
    return NULL;
}
