/* Files and descriptors. The methods of `FileIO` are gated where they are, so that every stream that exists or will exist goes
 * through them with its type, repr, buffering and encoding unchanged. In replay a descriptor is a placeholder: a real one, at the
 * recorded number, that leads nowhere, or to a memory file when C code is going to read it behind our back. */
#include "streams.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MFD_CLOEXEC
#define MFD_CLOEXEC 1u
#endif

/* ---- descriptors ---- */

#define MOST_TRACKED 4096 /* higher descriptors are not large files to us */
typedef enum { SIZE_UNKNOWN, SIZE_SMALL, SIZE_LARGE } SizeClass;
static struct {
    uint8_t size;    /* SizeClass, learnt at the first read */
    int file;        /* index into files */
    uint64_t escaped; /* hash of what C code was handed when fileno() was last asked for; 0: nothing yet */
} tracked[MOST_TRACKED];

static int ours[16], ours_count;

bool
fd_is_ours(int fd)
{
    for (int i = 0; i < ours_count; i++)
        if (ours[i] == fd)
            return true;
    return false;
}

int
fd_ours(const int **fds)
{
    *fds = ours;
    return ours_count;
}

int
fd_keep(int fd)
{
    struct rlimit limit;
    int base = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur > 128 && limit.rlim_cur < 1u << 20
                   ? (int)limit.rlim_cur - 64 : 900;
    int high = fcntl(fd, F_DUPFD_CLOEXEC, base);
    if (high < 0)
        return fd;
    close(fd);
    if (ours_count < 16)
        ours[ours_count++] = high;
    return high;
}

void
fd_opened(int fd, int copy_of)
{
    stream_opened(fd, copy_of);
    if (fd >= 0 && fd < MOST_TRACKED)
        memset(&tracked[fd], 0, sizeof tracked[fd]);
}

void
fd_closed(int fd)
{
    stream_closed(fd);
    if (fd >= 0 && fd < MOST_TRACKED)
        memset(&tracked[fd], 0, sizeof tracked[fd]);
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
    place_copy(core.socket_fd, fd);
}

/* ---- large files: copied once by the kernel, then referred to ---- */

#define LARGE (1u << 20)
#define PIECE (1u << 20)

typedef struct {
    dev_t dev;
    ino_t ino;
    size_t pieces;
    uint64_t *at; /* offset in `content` of each piece, plus 1; 0: not copied */
} File;
static File *files;
static int file_count;
static uint64_t content_size;
static const uint8_t *content_map; /* replay: all of it; record: the piece last compared */
static uint64_t content_mapped_at, content_length;

static int
file_index(int fd, const struct stat *st)
{
    for (int i = 0; i < file_count; i++)
        if (files[i].dev == st->st_dev && files[i].ino == st->st_ino)
            return i;
    File *more = realloc(files, (size_t)(file_count + 1) * sizeof *files);
    if (more == NULL)
        return -1;
    files = more;
    files[file_count] = (File){.dev = st->st_dev, .ino = st->st_ino};
    return file_count++;
}

static bool
is_large(int fd)
{
    struct stat st;
    if (tracked[fd].size == SIZE_UNKNOWN) {
        tracked[fd].size = SIZE_SMALL;
        if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size >= LARGE && (tracked[fd].file = file_index(fd, &st)) >= 0)
            tracked[fd].size = SIZE_LARGE;
    }
    return tracked[fd].size == SIZE_LARGE;
}

static int
open_content(void)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/content", core.live_dir);
    return open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}

/* Copies one piece of a file into `content`; what is missing at the end of the file stays zero. */
static bool
copy_piece(int fd, File *file, size_t piece)
{
    if (piece >= file->pieces) {
        size_t pieces = piece + 64;
        uint64_t *at = realloc(file->at, pieces * sizeof *at);
        if (at == NULL)
            return false;
        memset(at + file->pieces, 0, (pieces - file->pieces) * sizeof *at);
        file->at = at;
        file->pieces = pieces;
    }
    if (event_log.max_size && content_size + PIECE > event_log.max_size) {
        log_fail(2);
        return false;
    }
    int content_fd = open_content();
    if (content_fd < 0 || ftruncate(content_fd, (off_t)(content_size + PIECE)) < 0) {
        if (content_fd >= 0)
            close(content_fd);
        return false;
    }
    off_t from = (off_t)piece * PIECE, to = (off_t)content_size;
    for (size_t left = PIECE; left > 0;) {
        ssize_t n = copy_file_range(fd, &from, content_fd, &to, left, 0);
        if (n < 0) {
            close(content_fd);
            return false; /* the bytes go inline instead */
        }
        if (n == 0)
            break;
        left -= (size_t)n;
    }
    close(content_fd);
    file->at[piece] = content_size + 1;
    content_size += PIECE;
    return true;
}

static const uint8_t *
map_piece(uint64_t at)
{
    if (content_map && content_mapped_at == at)
        return content_map;
    if (content_map)
        munmap((void *)content_map, PIECE);
    int content_fd = open_content();
    void *p = content_fd < 0 ? MAP_FAILED : mmap(NULL, PIECE, PROT_READ, MAP_SHARED | MAP_POPULATE, content_fd, (off_t)at);
    if (content_fd >= 0)
        close(content_fd);
    content_map = p == MAP_FAILED ? NULL : p;
    content_mapped_at = at;
    return content_map;
}

/* Whether the pieces from `first` to `last` are copied, one behind the other; copies what is missing. */
static bool
have_pieces(int fd, File *file, size_t first, size_t last)
{
    bool whole = true;
    for (size_t i = first; whole && i <= last; i++)
        whole = i < file->pieces && file->at[i] && (i == first || file->at[i] == file->at[i - 1] + PIECE);
    if (whole)
        return true;
    /* a single read of several pieces that were copied apart: they are copied again together */
    for (size_t i = first; i <= last; i++)
        if (!copy_piece(fd, file, i))
            return false;
    return true;
}

/* Whether the copy is what the program has read; a file may change while it is being read. */
static bool
same_as_copy(File *file, uint64_t begin, const uint8_t *data, size_t n)
{
    while (n > 0) {
        size_t piece = begin / PIECE, within = begin % PIECE, part = PIECE - within < n ? PIECE - within : n;
        const uint8_t *copy = map_piece(file->at[piece] - 1);
        if (copy == NULL || memcmp(copy + within, data, part) != 0) {
            file->at[piece] = 0;
            return false;
        }
        begin += part;
        data += part;
        n -= part;
    }
    return true;
}

static bool
refer(Buf *b, int fd, const void *data, size_t n)
{
    off_t end = lseek(fd, 0, SEEK_CUR);
    if (end < (off_t)n)
        return false;
    uint64_t begin = (uint64_t)end - n;
    File *file = &files[tracked[fd].file];
    if (!have_pieces(fd, file, begin / PIECE, ((uint64_t)end - 1) / PIECE) || !same_as_copy(file, begin, data, n))
        return false;
    buf_byte(b, 0x13);
    buf_varint(b, file->at[begin / PIECE] - 1 + begin % PIECE);
    buf_varint(b, n);
    return true;
}

bool
content_encode(Buf *b, int fd, const void *data, size_t n)
{
    if (fd < 0 || fd >= MOST_TRACKED || n < 1024 || !is_large(fd))
        return false;
    int saved = errno;
    bool done = refer(b, fd, data, n);
    errno = saved;
    return done;
}

int
content_open(int fd)
{
    struct stat st;
    if (fstat(fd, &st) == 0 && st.st_size > 0) {
        void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p == MAP_FAILED)
            return -1;
        content_map = p;
        content_length = (uint64_t)st.st_size;
    }
    close(fd);
    return 0;
}

const uint8_t *
content_at(uint64_t offset, uint64_t n)
{
    return offset <= content_length && n <= content_length - offset ? content_map + offset : NULL;
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
    static const char *const known[] = {"/subprocess.py", "/shutil.py", "/selectors.py", "/tempfile.py", "/socket.py", "/tarfile.py",
                                        "/zipfile.py", "/mailbox.py", "/getpass.py", "/_pyrepl/", "/multiprocessing/", NULL};
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
    uint8_t *data = position < 0 || tracked[fd].escaped == state ? NULL : malloc((size_t)(readable ? st.st_size : 0) + 8);
    if (data == NULL)
        return NULL;
    memcpy(data, &position, 8);
    ssize_t k = readable ? pread(fd, data + 8, (size_t)st.st_size, 0) : 0;
    *n = (size_t)(k < 0 ? 0 : k) + 8;
    tracked[fd].escaped = state;
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
    int keep[16], n = 0;
    for (int i = 0; i < ours_count; i++)
        keep[n++] = ours[i];
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

const HandlerEntry fileio_handlers[] = {
    {"fcntl_fcntl", fcntl_fcntl},
    {"file_write", file_write}, {"file_close", file_close}, {"file_fileno", file_fileno}, {"os_close", os_close},
    {"os_closerange", os_closerange}, {NULL, NULL}};
