/* A program that can save itself goes on as a new one, with a new log: so the log and the time to recovery are bounded.
 *
 * It saves its state, which is written beside its recording and synchronised. Then the process executes its interpreter
 * again, which prepares a new live directory (record/continuing.py) and becomes the program. The first event of the new
 * log is what was saved. With that the two directories exchange their names, which the kernel does atomically: before it
 * the old recording is whole, and a resumed program makes the call `continue` once more; after it the new one is.
 *
 * A call that succeeds is never in the log. So a replay ends there as at the end of the log of a program that was killed. */
#include "base/core.h"
#include "crossing/crossing.h"
#include "guard/asked.h"
#include "heap/heap.h"
#include "log/log.h"
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LARGEST_STATE ((200 << 20) - 64) /* as an outcome in the log: with its head */
#define FIRST_OF_LOG (1 << 20)           /* bytes beside it, for a log that is limited */
#define ASK_AFTER 64                     /* events from one question for the size of the log to the next */
#define MOST_WORDS 16
#define STOPPED_AT 12 /* in the header of a log, see format.md */
#define STOPPED_CONTINUED 7

#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE (1 << 1)
#endif

static PyObject *state; /* what the program before this one has saved, until this one loads it */
static bool has_state;  /* the log begins with it */
static char *live_dir;  /* record: the name that the new directory gets; NULL: it has it already */
static uint64_t default_events, default_bytes, asked_at;
static bool cannot;
static char *words[MOST_WORDS + 1]; /* the command line that prepares the new recording */
static uint64_t max_size;
static bool stops_on_deadlock;
static char *group_page, *group_library;

void
checkpoint_prepare(PyObject *boot)
{
    PyObject *command = PyDict_GetItemString(boot, "continuing");
    for (Py_ssize_t i = 0; command && PyList_CheckExact(command) && i < PyList_GET_SIZE(command) && i < 6; i++)
        words[i] = strdup(PyBytes_AsString(PyList_GET_ITEM(command, i)));
    has_state = PyDict_GetItemString(boot, "has_state") == Py_True;
    live_dir = PyDict_GetItemString(boot, "next_dir") ? boot_bytes(boot, "live_dir") : NULL;
    default_events = boot_number(boot, "checkpoint_events");
    default_bytes = boot_number(boot, "checkpoint_bytes");
    max_size = boot_number(boot, "max_size");
    stops_on_deadlock = PyDict_GetItemString(boot, "stop_on_deadlock") == Py_True;
    group_page = boot_bytes(boot, "group");
    group_library = boot_bytes(boot, "joins");
}

_Noreturn void
checkpoint_fails(const char *reason)
{
    fprintf(stderr, "replaydbg: the program cannot continue from its checkpoint: %s. Its recording can be resumed.\n",
            reason);
    fflush(stderr);
    kill(getpid(), SIGKILL); /* as if it had been killed before the call */
    leave_process(1);
}

/* ---- what the new program does first ---- */

static int
remove_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    return remove(path), 0;
}

static void
remove_directory(const char *path)
{
    nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

/* Whether there is nothing there but what a recorder has left: other things are not removed. */
static bool
is_left_over(const char *next)
{
    static const char *const own[] = {"header.json", "state"};
    char path[4300];
    struct stat st;
    if (lstat(next, &st) < 0)
        return errno == ENOENT;
    for (size_t i = 0; S_ISDIR(st.st_mode) && i < sizeof own / sizeof *own; i++) {
        snprintf(path, sizeof path, "%s/%s", next, own[i]);
        if (access(path, F_OK) == 0)
            return true;
    }
    return rmdir(next) == 0;
}

static int
exchange(const char *one, const char *other)
{
#ifdef SYS_renameat2
    return (int)syscall(SYS_renameat2, AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE);
#else
    errno = ENOSYS;
    return -1;
#endif
}

static int
sync_path(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC), rc = fd < 0 ? -1 : fsync(fd), saved = errno;
    if (fd >= 0)
        close(fd);
    errno = saved;
    return rc;
}

static int
sync_parent(const char *path)
{
    char *parent = strdup(path), *slash = strrchr(parent, '/');
    int rc = 0;
    if (slash && slash > parent) {
        *slash = 0;
        rc = sync_path(parent);
    }
    free(parent);
    return rc;
}

static int
sync_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    return kind == FTW_F || kind == FTW_DP ? sync_path(path) : 0;
}

/* Who follows the old log sees that nothing is added to it any more. */
static void
mark_continued(const char *directory)
{
    char path[4300];
    uint32_t reason = STOPPED_CONTINUED;
    snprintf(path, sizeof path, "%s/log", directory);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)!pwrite(fd, &reason, sizeof reason, STOPPED_AT);
        close(fd);
    }
}

/* What was saved is on the disk before that with which the program would begin otherwise is removed. */
static void
take_the_place(void)
{
    char *next = core.live_dir, path[4300];
    log_sync();
    if (nftw(next, sync_one, 8, FTW_DEPTH | FTW_PHYS) < 0 || exchange(next, live_dir) < 0 || sync_parent(live_dir) < 0)
        checkpoint_fails(strerror(errno));
    core.live_dir = live_dir;
    logs_moved();
    mark_continued(next);
    remove_directory(next);
    snprintf(path, sizeof path, "%s/state", core.live_dir);
    unlink(path);
    free(next);
    live_dir = NULL;
}

static PyObject *
read_state(PyObject *unused)
{
    char path[4300];
    struct stat st;
    snprintf(path, sizeof path, "%s/state", core.live_dir);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        checkpoint_fails("its saved state cannot be read");
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, st.st_size);
    for (off_t done = 0; bytes && done < st.st_size;) {
        ssize_t n = read(fd, PyBytes_AS_STRING(bytes) + done, (size_t)(st.st_size - done));
        if (n <= 0)
            checkpoint_fails("its saved state cannot be read");
        done += n;
    }
    close(fd);
    return bytes;
}

void
checkpoint_receive(void)
{
    if (!has_state)
        return;
    bool takes_place = core.mode == RECORD && live_dir;
    state = asked_crossing("state", read_state, NULL);
    if (takes_place && (state == NULL || core.mode != RECORD))
        checkpoint_fails("its new log cannot hold its saved state");
    if (state == NULL)
        PyErr_Clear();
    if (takes_place)
        take_the_place();
}

/* ---- when one is due ---- */

static PyObject *
log_size(PyObject *unused)
{
    return PyLong_FromUnsignedLongLong(log_end());
}

static uint64_t
limit(PyObject *args, Py_ssize_t at, uint64_t otherwise)
{
    PyObject *v = at < PyTuple_GET_SIZE(args) ? PyTuple_GET_ITEM(args, at) : Py_None;
    return PyLong_CheckExact(v) ? PyLong_AsUnsignedLongLongMask(v) : otherwise;
}

/* The number of events is the same in a replay; the size of the log need not be, so it is asked for in a crossing. */
PyObject *
checkpoint_due(PyObject *args)
{
    bool is_given = limit(args, 1, 0) || limit(args, 2, 0);
    uint64_t events = limit(args, 1, is_given ? 0 : default_events);
    uint64_t bytes = limit(args, 2, is_given ? 0 : default_bytes);
    if (state) {
        PyObject *saved = state;
        state = NULL;
        return saved;
    }
    if (cannot)
        return Py_NewRef(Py_False);
    if (events && core.crossings >= events)
        return Py_NewRef(Py_True);
    if (bytes == 0 || core.crossings < asked_at + ASK_AFTER)
        return Py_NewRef(Py_False);
    PyObject *size = asked_crossing("log_size", log_size, NULL);
    if (size == NULL)
        return NULL;
    asked_at = core.crossings;
    bool is_due = PyLong_Check(size) && PyLong_AsUnsignedLongLongMask(size) >= bytes;
    Py_DECREF(size);
    return PyBool_FromLong(is_due);
}

/* ---- the old program goes on as a new one ---- */

static bool
write_state(const char *next, PyObject *saved)
{
    char path[4300];
    snprintf(path, sizeof path, "%s/state", next);
    return mkdir(next, 0700) == 0 &&
           write_whole_file(path, (const uint8_t *)PyBytes_AS_STRING(saved), (size_t)PyBytes_GET_SIZE(saved)) == 0 &&
           sync_path(path) == 0 && sync_path(next) == 0;
}

/* Some file systems exchange no names: that has to be known before there is no way back. */
static bool
can_exchange(const char *next)
{
    char one[4300], other[4300];
    snprintf(one, sizeof one, "%s/1", next);
    snprintf(other, sizeof other, "%s/2", next);
    bool can = mkdir(one, 0700) == 0 && mkdir(other, 0700) == 0 && exchange(one, other) == 0;
    int saved = errno;
    rmdir(one);
    rmdir(other);
    errno = saved;
    return can;
}

static char *
next_directory(void)
{
    static const char live_end[] = "-live";
    size_t n = strlen(core.live_dir), end = sizeof live_end - 1;
    char *next = malloc(n + 8);
    strcpy(next, core.live_dir);
    if (n > end && strcmp(next + n - end, live_end) == 0)
        next[n - end] = 0;
    return strcat(next, "-next");
}

/* What a group puts into the environment of programs is not for this one: it has its place there already. */
static char **
plain_environment(void)
{
    size_t count = 0, kept = 0;
    while (environ[count])
        count++;
    char **plain = calloc(count + 1, sizeof *plain);
    for (size_t i = 0; plain && i < count; i++)
        if (strncmp(environ[i], "LD_PRELOAD=", 11) != 0 && strncmp(environ[i], "REPLAYDBG_GROUP=", 16) != 0)
            plain[kept++] = environ[i];
    return plain;
}

static void
execute(const char *next)
{
    char size[24], deadlock[2] = {stops_on_deadlock ? '1' : '0', 0};
    size_t n = 0;
    while (words[n])
        n++;
    snprintf(size, sizeof size, "%" PRIu64, max_size);
    char *page = group_page ? group_page : "", *library = group_library ? group_library : "";
    char *more[] = {core.live_dir, (char *)next, size, deadlock, page, library};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        words[n + i] = more[i];
    char **plain = plain_environment();
    if (plain)
        execve(words[0], words, plain);
    words[n] = NULL;
    free(plain);
}

static PyObject *
reason(const char *text)
{
    char note_text[400];
    snprintf(note_text, sizeof note_text, "the program did not continue from a checkpoint: %s", text);
    note("checkpoint", note_text);
    return PyUnicode_FromString(text);
}

/* Returns why it cannot, with the saved state in the directory `next`. */
static PyObject *
go_on_from(const char *next, PyObject *saved)
{
    if (!write_state(next, saved))
        return reason(strerror(errno));
    if (!can_exchange(next))
        return reason(errno == EINVAL || errno == ENOSYS
                          ? "the file system cannot exchange the names of two directories (renameat2)"
                          : strerror(errno));
    heap_await_copies();
    log_sync();
    execute(next);
    return reason(strerror(errno));
}

static PyObject *
perform(PyObject *saved)
{
    size_t n = (size_t)PyBytes_GET_SIZE(saved);
    if (core.mode != RECORD || words[0] == NULL)
        return reason("this recorder does not support checkpoints");
    if (group_is_on() && !group_is_alone())
        return reason("it is one of several processes that are recorded together");
    if (n > LARGEST_STATE)
        return reason("save() returned more than 200 MiB");
    if (max_size && n + FIRST_OF_LOG > max_size)
        return reason("what save() returned does not fit into a log of the largest size that is allowed (max-size)");
    char *next = next_directory();
    if (!is_left_over(next)) {
        char text[300];
        snprintf(text, sizeof text, "%.200s exists, and is not a recorder's", next);
        free(next);
        return reason(text);
    }
    remove_directory(next);
    PyObject *why = go_on_from(next, saved);
    remove_directory(next);
    free(next);
    return why;
}

PyObject *
checkpoint_continue(PyObject *saved)
{
    if (!PyBytes_CheckExact(saved))
        return NULL;
    PyObject *why = asked_crossing("continue", perform, saved);
    cannot = why != NULL;
    return why;
}
