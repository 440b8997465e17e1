/* Files and descriptors. The methods of `FileIO` are gated where they are, so that every stream that exists or will
 * exist goes through them with its type, repr, buffering and encoding unchanged. In replay a descriptor is a
 * placeholder: a real one, at the recorded number, that leads nowhere, or to a memory file when C code is going to read
 * it behind our back. */
#include "base/core.h"
#include "crossing/crossing.h"
#include "files/inside.h"
#include "log/log.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MFD_CLOEXEC
#define MFD_CLOEXEC 1u
#endif

/* ---- descriptors ---- */

#define MOST_TRACKED 4096 /* higher descriptors lead to no memory file */
/* hash of what C code was handed when fileno() was last asked for; 0: nothing yet */
static uint64_t escaped[MOST_TRACKED];

void
fd_opened(int fd, int copy_of)
{
    stream_opened(fd, copy_of);
    lock_copied(copy_of, fd);
    content_forget(fd);
    endpoint_forget(fd);
    if (fd >= 0 && fd < MOST_TRACKED)
        escaped[fd] = 0;
}

void
fd_closed(int fd)
{
    stream_closed(fd);
    content_forget(fd);
    endpoint_forget(fd);
    if (fd >= 0 && fd < MOST_TRACKED)
        escaped[fd] = 0;
}

static bool
place_copy(int source, int fd)
{
    if (fd_is_ours(fd))
        diverge("descriptors", NULL, NULL, "the program uses a descriptor number that the replay needs for itself");
    return fd == source || dup3(source, fd, O_CLOEXEC) >= 0;
}

void
fd_place(int fd, int copy_of)
{
    int stream = stream_stands_in(copy_of);
    if (stream >= 0)
        place_copy(stream, fd);
    else if (copy_of < 0 || !place_copy(copy_of, fd))
        place_copy(core.null_fd, fd);
}

void
fd_place_socket(int fd)
{
    /* In a replay that goes live each has flags of its own, from which is seen whether it waits. */
    int own =
        core.goes_live && !core.is_planned && !core.has_futures ? socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0) : -1;
    place_copy(own >= 0 ? own : core.socket_fd, fd);
    if (own >= 0 && own != fd)
        close(own);
}

/* ---- descriptors of ordinary gates ---- */

static void
show_argument(PyObject *fd, PyObject *buffer, PyObject *written)
{
    Py_buffer view;
    long number = PyLong_Check(fd) ? PyLong_AsLong(fd) : -1;
    if (number < 0 || number > INT32_MAX || !fd_stream((int)number) ||
        PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE) < 0) {
        PyErr_Clear();
        return;
    }
    Py_ssize_t n = PyLong_AsSsize_t(written);
    stream_write((int)number, view.buf, (size_t)(n < 0 || n > view.len ? view.len : n));
    PyBuffer_Release(&view);
}

static void
place_result(PyObject *result, int copy_of)
{
    if (PyTuple_CheckExact(result)) {
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(result); i++)
            place_result(PyTuple_GET_ITEM(result, i), copy_of);
        return;
    }
    long fd = PyLong_CheckExact(result) ? PyLong_AsLong(result) : -1;
    if (fd < 0 || fd > INT32_MAX)
        return;
    if (core.mode == REPLAY)
        fd_place((int)fd, copy_of);
    fd_opened((int)fd, copy_of);
}

static long
fd_argument(PyObject *const *args, Py_ssize_t nargs)
{
    long fd = nargs > 0 && PyLong_Check(args[0]) ? PyLong_AsLong(args[0]) : -1;
    if (fd == -1)
        PyErr_Clear();
    return fd;
}

void
files_regular_done(Gate *g, PyObject *result, PyObject *const *args, Py_ssize_t nargs)
{
    if (g->flags & GATE_OPENS)
        place_result(result, g->flags & GATE_COPIES ? (int)fd_argument(args, nargs) : -1);
    if (__builtin_expect(core.goes_live, 0) && core.mode == REPLAY && strncmp(g->name, "pipe", 4) == 0)
        fd_made_pipe(result, false);
    if (g->flags & GATE_CLOSES)
        fd_closed((int)fd_argument(args, nargs));
    if ((g->flags & GATE_WRITES_FD) && core.mode == REPLAY && nargs > g->buffer)
        show_argument(args[0], args[g->buffer], result);
    else if ((g->flags & GATE_WRITES_FD) && stream_counts && PyLong_Check(result))
        stream_counted((int)fd_argument(args, nargs), PyLong_AsSsize_t(result));
}

/* ---- FileIO: reading, writing, closing (how one is opened: opening.c) ---- */

static PyObject *
file_write(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    Crossing c;
    Py_buffer view = {0};
    cross_begin(&c, g, self, args, nargs, kwnames);
    bool have = nargs > 0 && PyObject_GetBuffer(args[0], &view, PyBUF_SIMPLE) == 0;
    PyErr_Clear();
    if (have)
        cross_digest(&c, view.buf, (size_t)view.len);
    PyObject *result = cross_end(&c, c.perform ? gate_call_original(g, self, args, nargs, kwnames) : NULL);
    if (core.mode == REPLAY && result && have && PyLong_Check(result))
        stream_write(file_fd(self), view.buf, (size_t)PyLong_AsSsize_t(result));
    else if (__builtin_expect(stream_counts, 0) && result && PyLong_Check(result))
        stream_counted(file_fd(self), PyLong_AsSsize_t(result));
    if (have)
        PyBuffer_Release(&view);
    return result;
}

static PyObject *
file_close(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    int fd = file_fd(self);
    PyObject *closefd = PyObject_GetAttrString(self, "closefd");
    PyObject *result = gate_regular(g, self, args, nargs, kwnames);
    if (closefd == Py_True)
        fd_closed(fd);
    Py_XDECREF(closefd);
    return result;
}

/* ---- fileno(): an escape ---- */

#define LARGEST_ESCAPE (16u << 20)

/* Callers in the standard library that use the number for gated calls only. */
static bool
caller_is_known(void)
{
    static const char *const known[] = {"/subprocess.py", "/shutil.py",  "/selectors.py",     "/tempfile.py",
                                        "/socket.py",     "/tarfile.py", "/zipfile.py",       "/mailbox.py",
                                        "/getpass.py",    "/_pyrepl/",   "/multiprocessing/", NULL};
    _PyInterpreterFrame *frame = compat_top_frame(core.tstate);
    if (frame == NULL)
        return false; /* the interpreter itself: it reads the source for a traceback */
    const char *name = PyUnicode_AsUTF8(compat_frame_code(frame)->co_filename);
    if (name == NULL) {
        PyErr_Clear();
        return false;
    }
    for (const char *const *k = known; *k; k++)
        if (strstr(name, *k))
            return true;
    return false;
}

/* What C code will find behind the descriptor: 8 bytes position, then the content if the file can be read. */
static uint8_t *
capture(int fd, size_t *n)
{
    struct stat st;
    if (fd < 3 || fd >= MOST_TRACKED || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || caller_is_known())
        return NULL;
    int64_t now[] = {(int64_t)st.st_ino, (int64_t)st.st_size, st.st_mtim.tv_sec, st.st_mtim.tv_nsec};
    uint64_t state = hash_bytes(now, sizeof now, 0) | 1;
    bool readable = (fcntl(fd, F_GETFL) & O_ACCMODE) != O_WRONLY && st.st_size > 0;
    if (readable && st.st_size > LARGEST_ESCAPE) {
        note("large", "a file of more than 16 MiB was handed to C code by its descriptor");
        readable = false;
    }
    off_t position = lseek(fd, 0, SEEK_CUR);
    uint8_t *data = position < 0 || escaped[fd] == state ? NULL : malloc((size_t)(readable ? st.st_size : 0) + 8);
    if (data == NULL)
        return NULL;
    memcpy(data, &position, 8);
    ssize_t k = readable ? pread(fd, data + 8, (size_t)st.st_size, 0) : 0;
    *n = (size_t)(k < 0 ? 0 : k) + 8;
    escaped[fd] = state;
    return data;
}

/* Replay: puts a memory file with the captured content at the recorded number. */
static void
place_content(int fd, const uint8_t *data, size_t n)
{
    off_t position;
    memcpy(&position, data, 8);
    int memory = memfd_create("content", MFD_CLOEXEC);
    if (memory < 0 || fd_is_ours(fd))
        return;
    for (size_t done = 8; done < n;) {
        ssize_t k = write(memory, data + done, n - done);
        if (k <= 0)
            break;
        done += (size_t)k;
    }
    lseek(memory, position, SEEK_SET);
    dup3(memory, fd, O_CLOEXEC);
    close(memory);
}

static PyObject *
file_fileno(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    Crossing c;
    uint8_t *content = NULL;
    size_t n = 0;
    if (engine.diverting && file_fd(self) >= 0)
        return PyLong_FromLong(file_fd(self)); /* it is known; what is done with it may not be */
    cross_begin(&c, g, self, args, nargs, kwnames);
    PyObject *result = NULL;
    if (c.perform) {
        result = gate_call_original(g, self, args, nargs, kwnames);
        content = result ? capture(file_fd(self), &n) : NULL;
        c.fill = content;
        c.fill_length = n;
    }
    bool replayed = !c.perform;
    result = cross_end(&c, result);
    if (replayed && result && c.fill_length >= 8)
        place_content(file_fd(self), c.fill, c.fill_length);
    free(content);
    return result;
}

/* ---- os functions that need more than a row ---- */

static PyObject *
os_close(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    Crossing c;
    long fd = nargs == 1 && PyLong_Check(args[0]) ? PyLong_AsLong(args[0]) : -1;
    PyErr_Clear();
    cross_begin(&c, g, self, args, nargs, kwnames);
    PyObject *result = NULL;
    if (fd >= 0 && fd_is_ours((int)fd)) {
        errno = EBADF; /* to the program our descriptors do not exist */
        result = PyErr_SetFromErrno(PyExc_OSError);
    }
    else if (c.perform)
        result = gate_call_original(g, self, args, nargs, kwnames);
    result = cross_end(&c, result);
    if (result)
        fd_closed((int)fd);
    return result;
}

static int
compare_ints(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static void
close_all_but_ours(int low, int high)
{
    const int *ours;
    int n = fd_ours(&ours), keep[MOST_OURS];
    memcpy(keep, ours, (size_t)n * sizeof *keep);
    qsort(keep, (size_t)n, sizeof *keep, compare_ints);
    for (int i = 0; i <= n; i++) {
        int stop = i < n && keep[i] < high ? keep[i] : high;
        if (low < stop)
            close_range((unsigned)low, (unsigned)stop - 1, 0);
        if (i < n && keep[i] >= low)
            low = keep[i] + 1;
    }
}

static PyObject *
os_closerange(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    Crossing c;
    if (nargs != 2 || kwnames || !PyLong_Check(args[0]) || !PyLong_Check(args[1]))
        return gate_call_original(g, self, args, nargs, kwnames);
    long low = PyLong_AsLong(args[0]), high = PyLong_AsLong(args[1]);
    PyErr_Clear();
    low = low < 0 ? 0 : low;
    high = high > INT32_MAX ? INT32_MAX : high;
    cross_begin(&c, g, self, args, nargs, kwnames);
    close_all_but_ours((int)low, (int)high);
    for (long fd = low; fd < high && fd < MOST_TRACKED; fd++)
        fd_closed((int)fd);
    return cross_end(&c, Py_NewRef(Py_None));
}

/* Only two of its commands make a descriptor. */
static PyObject *
fcntl_fcntl(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    PyObject *result = gate_regular(g, self, args, nargs, kwnames);
    long command = result && nargs > 1 && PyLong_Check(args[1]) ? PyLong_AsLong(args[1]) : -1;
    if ((command != F_DUPFD && command != F_DUPFD_CLOEXEC) || !PyLong_Check(result))
        return result;
    int from = PyLong_Check(args[0]) ? (int)PyLong_AsLong(args[0]) : -1, fd = (int)PyLong_AsLong(result);
    if (core.mode == REPLAY)
        fd_place(fd, from);
    fd_opened(fd, from);
    return result;
}

const HandlerEntry fileio_handlers[] = {{"fcntl_fcntl", fcntl_fcntl},
                                        {"file_write", file_write},
                                        {"file_close", file_close},
                                        {"file_fileno", file_fileno},
                                        {"os_close", os_close},
                                        {"os_closerange", os_closerange},
                                        {NULL, NULL}};
