/* The program's standard output and error, by whatever route it writes there.
 *
 * A descriptor that leads to one of them has a *description*, as the kernel has: copies of a descriptor share it, and
 * with it the position in the file. Descriptions 1 and 2 are those that the program began with; others come from
 * opening the stream again, by /dev/stdout, /proc/self/fd/1, /dev/tty, or the file's own name. While recording, what is
 * opened for writing is compared with the two streams by device and inode, so no spelling of a path is missed.
 *
 * Bytes that the program computes are shown by the replay as it computes them. What it does besides (moving in a file,
 * cutting it, writing at a place, letting the kernel move bytes) is rare, and the recording says what came of it, in
 * STREAM records before the event. A replay does the same to its own output if that is a file, too, and never before
 * the place where its output began. If it is a pipe or a terminal, the bytes come in the order in which they were
 * written. */
#define _GNU_SOURCE
#include "base/core.h"
#include "crossing/crossing.h"
#include "files/inside.h"
#include "log/log.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define MOST_TRACKED 4096 /* higher descriptors are never standard streams in practice */
#define MOST_DESCRIPTIONS 256
#define MOST_AT_START 256 /* inherited descriptors are looked at up to this one */
#define LARGEST_PIECE (1u << 20)
#define SAME_OPEN_FILE 0 /* KCMP_FILE of linux/kcmp.h */
#define NO_APPEND 0x20   /* RWF_NOAPPEND of linux/fs.h */

/* What a STREAM record says. */
enum { BEGINS, OPENED, MOVED, CUT, PLACE, DATA };
enum { IS_FILE = 1, APPENDS = 2, IS_TERMINAL = 4, IS_SHARED = 8, IS_HARMLESS = 16 };

typedef struct {
    uint8_t stream; /* 1 or 2; 0: the entry is free */
    bool is_file, appends;
    int64_t at; /* replay: of one that the program opened itself, where it writes next, as the recording counts */
} Description;
static Description descriptions[MOST_DESCRIPTIONS] = {[1] = {.stream = 1}, [2] = {.stream = 2}};
static uint8_t description_of[MOST_TRACKED] = {[1] = 1, [2] = 2};

typedef struct {
    struct stat st;    /* record */
    unsigned device;   /* record: of a terminal */
    bool is_known;     /* record: other descriptors are compared with it */
    bool is_file;      /* it was one while recording */
    bool mirrors;      /* replay: what the program did to the file is done to the replay's */
    int64_t begin;     /* where the program's output began in the file */
    int64_t own_begin; /* replay: the same in the replay's */
    int apart;         /* replay: its file, opened again: a copy whose position moves without ours; 0: not there */
} Stream;
static Stream streams[3];
static int pending;        /* the description of what is being opened; 0: it leads to no stream */
static int64_t place = -1; /* replay: where the next bytes go, once */
static bool mixed, any_file, beginning;
static uint8_t received[MOST_TRACKED]; /* the description of what is about to come with a message */

int
fd_stream(int fd)
{
    return fd >= 0 && fd < MOST_TRACKED ? descriptions[description_of[fd]].stream : 0;
}

void
stream_opened(int fd, int copy_of)
{
    int from = copy_of >= 0 && copy_of < MOST_TRACKED ? description_of[copy_of] : pending;
    pending = 0;
    if (fd >= 0 && fd < MOST_TRACKED)
        description_of[fd] = (uint8_t)from;
}

void
stream_closed(int fd)
{
    if (fd >= 0 && fd < MOST_TRACKED)
        description_of[fd] = 0;
}

bool
stream_is_received(int fd)
{
    int number = fd >= 0 && fd < MOST_TRACKED ? received[fd] : 0;
    if (number) {
        pending = number;
        received[fd] = 0;
    }
    return number != 0;
}

int
stream_stands_in(int copy_of)
{
    int number = copy_of < 0 ? pending : copy_of < MOST_TRACKED ? description_of[copy_of] : 0;
    const Stream *s = &streams[descriptions[number].stream];
    if (number == 0)
        return -1;
    /* without one apart, what C code writes comes in the order of writing */
    bool is_same = number <= 2 || !s->mirrors || s->apart == 0;
    return is_same ? core.out_fd[descriptions[number].stream] : s->apart;
}

/* ---- recording ---- */

static void
put_record(int what, int fd, int description, unsigned flags, int64_t at, const void *data, size_t n)
{
    Buf b = {0};
    buf_varint(&b, CONTROL_STREAM << 2 | 2u);
    buf_varint(&b, (uint64_t)what);
    buf_varint(&b, fd < 0 ? 0 : (uint64_t)fd);
    buf_varint(&b, (uint64_t)description);
    buf_varint(&b, descriptions[description].stream);
    buf_varint(&b, flags);
    buf_varint(&b, ((uint64_t)at << 1) ^ (uint64_t)(at >> 63));
    buf_str(&b, data ? data : "", n);
    log_append(&event_log, &b);
}

static void
put_data(int description, int64_t at, const uint8_t *data, size_t n)
{
    for (size_t done = 0; done < n || n == 0; done += LARGEST_PIECE) {
        size_t piece = n - done < LARGEST_PIECE ? n - done : LARGEST_PIECE;
        put_record(DATA, 0, description, 0, at < 0 ? -1 : at + (int64_t)done, data + done, piece);
        if (n == 0)
            break;
    }
}

void
streams_end_with(const char *what)
{
    note("unsupported", what);
    log_fail(4);
}

static bool
same_open_file(int a, int b)
{
    return syscall(SYS_kcmp, getpid(), getpid(), SAME_OPEN_FILE, a, b) == 0;
}

static unsigned
terminal_of(int fd)
{
    unsigned device = 0;
    return ioctl(fd, TIOCGDEV, &device) == 0 ? device : 0;
}

static unsigned
flags_of(int fd)
{
    struct stat st;
    int flags = fcntl(fd, F_GETFL);
    return (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? IS_FILE : 0) |
           (flags >= 0 && (flags & O_APPEND) ? APPENDS : 0) | (isatty(fd) ? IS_TERMINAL : 0);
}

static bool
leads_to(int fd, const struct stat *st, const Stream *s)
{
    if (!s->is_known)
        return false;
    if (s->device)
        return S_ISCHR(st->st_mode) && terminal_of(fd) == s->device;
    return st->st_dev == s->st.st_dev && st->st_ino == s->st.st_ino;
}

/* Of the two the one that the path names; both may lead to one terminal or file. */
static int
named_stream(PyObject *path)
{
    char text[4200], target[4200];
    const char *name = path && PyUnicode_Check(path) ? PyUnicode_AsUTF8(path)
                       : path && PyBytes_Check(path) ? PyBytes_AS_STRING(path)
                                                     : NULL;
    if (name == NULL || strlen(name) >= sizeof text) {
        PyErr_Clear();
        return 0;
    }
    strcpy(text, name);
    for (int i = 0; i < 8; i++) {
        const char *last = strrchr(text, '/');
        int fd = last && last - text >= 3 && memcmp(last - 3, "/fd", 3) == 0 && last[1] >= '0' && last[1] <= '9'
                     ? atoi(last + 1)
                     : -1;
        if (fd_stream(fd))
            return fd_stream(fd);
        ssize_t n = readlink(text, target, sizeof target - 1);
        if (n <= 0 || target[0] != '/')
            return strcmp(text, "/dev/tty") == 0 ? 2 : 0; /* who asks at the terminal itself asks beside the output */
        target[n] = 0;
        strcpy(text, target);
    }
    return 0;
}

/* The stream that this descriptor leads to; 0: neither. */
static int
stream_behind(int fd, PyObject *path)
{
    struct stat st;
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY || fstat(fd, &st) < 0)
        return 0;
    bool first = leads_to(fd, &st, &streams[1]), second = leads_to(fd, &st, &streams[2]);
    int named = first && second ? named_stream(path) : 0;
    return named ? named : first ? 1 : second ? 2 : 0;
}

static int
free_description(void)
{
    bool used[MOST_DESCRIPTIONS] = {true, true, true};
    for (int fd = 0; fd < MOST_TRACKED; fd++)
        used[description_of[fd]] = true;
    for (int i = 3; i < MOST_DESCRIPTIONS; i++)
        if (!used[i])
            return i;
    return 0;
}

static bool
nothing_written(int stream)
{
    return lseek(stream, 0, SEEK_CUR) <= streams[stream].begin && description_of[stream] == stream;
}

/* `fd` is new and leads to a stream: it is another description of it, whose position is its own. */
static void
record_opened(int fd, int stream)
{
    struct stat st;
    int number = free_description();
    if (number == 0 || fstat(fd, &st) < 0) {
        streams_end_with("a standard stream that is opened more than 250 times");
        return;
    }
    unsigned flags = flags_of(fd);
    descriptions[number] =
        (Description){.stream = (uint8_t)stream, .is_file = flags & IS_FILE, .appends = flags & APPENDS};
    off_t at = flags & IS_FILE ? lseek(fd, 0, SEEK_CUR) : 0;
    bool harmless = (flags & APPENDS) || nothing_written(stream);
    put_record(OPENED, fd, number, flags | (harmless || !(flags & IS_FILE) ? IS_HARMLESS : 0), at, NULL, 0);
    if (flags & IS_FILE) /* opening may have cut it */
        put_record(CUT, fd, number, harmless ? IS_HARMLESS : 0, st.st_size, NULL, 0);
    pending = number;
}

static void
record_open(const Crossing *c, PyObject *result)
{
    bool is_file_object = PyTuple_CheckExact(result) && PyTuple_GET_SIZE(result) > 0;
    PyObject *number = is_file_object ? PyTuple_GET_ITEM(result, 0) : result, *path = c->nargs > 0 ? c->args[0] : NULL;
    long fd = PyLong_CheckExact(number) ? PyLong_AsLong(number) : -1;
    if (fd < 0 || (is_file_object && path && PyLong_Check(path)))
        return; /* an object on a descriptor that is there already */
    int stream = stream_behind((int)fd, path);
    if (stream)
        record_opened((int)fd, stream);
}

/* A descriptor that came with a message: a copy of one that is here, or another process has opened the stream. */
static void
record_received(int fd)
{
    int stream = fd < MOST_TRACKED ? stream_behind(fd, NULL) : 0, number = 0;
    if (stream == 0)
        return;
    for (int known = 0; known < MOST_TRACKED && number == 0; known++)
        if (known != fd && description_of[known] && same_open_file(known, fd))
            number = description_of[known];
    if (number == 0 && !streams[stream].is_file)
        number = stream; /* a pipe has no position */
    if (number == 0) {
        record_opened(fd, stream);
        number = pending;
        pending = 0;
    }
    put_record(BEGINS, fd, number, flags_of(fd), 0, NULL, 0);
    received[fd] = (uint8_t)number;
}

static void
record_position(int fd)
{
    struct stat st;
    off_t at = lseek(fd, 0, SEEK_CUR);
    int number = description_of[fd];
    unsigned flags = flags_of(fd);
    if (at < 0 || fstat(fd, &st) < 0)
        return;
    descriptions[number].appends = flags & APPENDS;
    put_record(MOVED, fd, number, flags | (at == st.st_size || (flags & APPENDS) ? IS_HARMLESS : 0), at, NULL, 0);
}

static void
record_cut(int fd)
{
    struct stat st;
    if (fstat(fd, &st) == 0)
        put_record(CUT, fd, description_of[fd], 0, st.st_size, NULL, 0);
}

static void
record_cut_path(PyObject *path)
{
    struct stat st = {0};
    const char *name = path && PyUnicode_Check(path) ? PyUnicode_AsUTF8(path)
                       : path && PyBytes_Check(path) ? PyBytes_AS_STRING(path)
                                                     : NULL;
    PyErr_Clear();
    for (int i = 1; i <= 2; i++)
        if (streams[i].is_file && name && stat(name, &st) == 0 && st.st_dev == streams[i].st.st_dev &&
            st.st_ino == streams[i].st.st_ino) {
            put_record(CUT, i, i, 0, st.st_size, NULL, 0);
            return;
        }
}

static int
descriptor_in(const Crossing *c)
{
    if (c->self && file_fd(c->self) != -2)
        return file_fd(c->self);
    if (c->self && socket_fd(c->self) != -2)
        return socket_fd(c->self);
    long fd = c->nargs > 0 && PyLong_Check(c->args[0]) ? PyLong_AsLong(c->args[0]) : -1;
    PyErr_Clear();
    return fd < 0 || fd >= MOST_TRACKED ? -1 : (int)fd;
}

void
streams_recorded(Crossing *c, PyObject *result)
{
    StreamAct act = c->gate->stream_act;
    if (result == NULL)
        return; /* nothing was done, and an exception is set */
    int saved = errno, fd = descriptor_in(c), number = fd >= 0 && fd < MOST_TRACKED ? description_of[fd] : 0;
    if (act == ACT_OPEN)
        record_open(c, result);
    else if (act == ACT_RECEIVE && PyTuple_CheckExact(result) && PyTuple_GET_SIZE(result) == 4)
        each_received(PyTuple_GET_ITEM(result, 1), record_received);
    else if (act == ACT_CUT_PATH && fd < 0)
        record_cut_path(c->nargs > 0 ? c->args[0] : NULL);
    else if (number && act == ACT_SEND)
        put_data(number, -1, c->leaving, PyLong_Check(result) ? (size_t)PyLong_AsSsize_t(result) : c->leaving_length);
    else if (number && act == ACT_MESSAGE)
        streams_end_with("a message sent to a standard stream that is a socket");
    else if (number && descriptions[number].is_file) {
        if (act == ACT_MOVE)
            record_position(fd);
        else if (act == ACT_CUT || act == ACT_CUT_PATH)
            record_cut(fd);
        else if (act == ACT_PLACE && c->nargs > 2 && PyLong_Check(c->args[2]))
            put_record(PLACE, fd, number, descriptions[number].appends ? IS_HARMLESS : 0, PyLong_AsLongLong(c->args[2]),
                       NULL, 0);
    }
    errno = saved;
}

bool
stream_is_map(int fd)
{
    return fd_stream(fd) && descriptions[description_of[fd]].is_file;
}

/* The kernel has moved bytes to a stream: `data`, to `at` in the file, or -1. */
void
stream_moved(int fd, int64_t at, const uint8_t *data, size_t n)
{
    put_data(description_of[fd], at, data, n);
}

static void
record_stream_begin(int i)
{
    Stream *s = &streams[i];
    unsigned flags = flags_of(i);
    if (fstat(i, &s->st) < 0) {
        description_of[i] = 0; /* closed: what gets the number is another file */
        return;
    }
    s->device = S_ISCHR(s->st.st_mode) ? terminal_of(i) : 0;
    s->is_known = s->device || S_ISREG(s->st.st_mode) || S_ISFIFO(s->st.st_mode) || S_ISSOCK(s->st.st_mode);
    s->is_file = flags & IS_FILE;
    s->begin = !s->is_file ? 0 : flags & APPENDS ? s->st.st_size : lseek(i, 0, SEEK_CUR);
    descriptions[i] = (Description){.stream = (uint8_t)i, .is_file = s->is_file, .appends = flags & APPENDS};
    if (i == 2 && streams[1].is_file && s->st.st_dev == streams[1].st.st_dev && s->st.st_ino == streams[1].st.st_ino)
        flags |= IS_SHARED;
    put_record(BEGINS, i, i, flags, s->is_file ? s->begin : (int64_t)s->st.st_blksize, NULL, 0);
}

static void
record_begin(void)
{
    record_stream_begin(1);
    record_stream_begin(2);
    for (int fd = 0; fd < MOST_AT_START; fd++) {
        if (fd == 1 || fd == 2 || fd_is_ours(fd))
            continue;
        int stream = stream_behind(fd, NULL), number = stream;
        if (stream == 0)
            continue;
        if (streams[stream].is_file && !same_open_file(fd, stream)) {
            record_opened(fd, stream);
            number = pending;
            pending = 0;
        }
        else
            put_record(BEGINS, fd, number, flags_of(fd), 0, NULL, 0);
        description_of[fd] = (uint8_t)number;
    }
}

/* ---- in a replay: the replay's own streams ---- */

static int64_t
own_place(const Stream *s, int64_t at)
{
    return at - s->begin + s->own_begin;
}

/* Whether `at` can be gone to in the replay's file; else bytes come in the order of writing, and the user is warned at
 * the end. */
static bool
can_go_to(const Stream *s, int64_t at, unsigned flags)
{
    if (s->mirrors && at >= s->begin)
        return true;
    mixed = mixed || !(flags & IS_HARMLESS);
    return false;
}

/* pwrite() to a file that is appended to appends all the same. Where the replay's file could not be opened again, see
 * streams_open(), the kernel is asked for the place explicitly (from Linux 6.9 on). */
static ssize_t
write_at(int fd, const uint8_t *p, size_t n, int64_t at)
{
    struct iovec piece = {(void *)p, n};
    if (fd != streams[1].apart && fd != streams[2].apart && fcntl(fd, F_GETFL) & O_APPEND) {
        ssize_t k = pwritev2(fd, &piece, 1, at, NO_APPEND);
        if (k >= 0 || (errno != EOPNOTSUPP && errno != EINVAL))
            return k;
        mixed = true;
    }
    return pwrite(fd, p, n, at);
}

/* A full disk, for instance: the replay would go on without a part of its output. The report has the error's number. */
_Noreturn static void
end_without_room(int error)
{
    char number[16];
    snprintf(number, sizeof number, "%d", error);
    diverge("output", NULL, NULL, number);
}

static void
write_all(int fd, const uint8_t *p, size_t n, int64_t at)
{
    while (n > 0) {
        ssize_t k = at < 0 ? write(fd, p, n) : write_at(fd, p, n, at);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0 && errno != EPIPE && errno != EAGAIN)
            end_without_room(errno);
        if (k <= 0)
            return; /* whoever reads our output is gone: the replay goes on, it is verified all the same */
        p += k;
        n -= (size_t)k;
        at = at < 0 ? at : at + k;
    }
}

static void
show(int number, const void *data, size_t n)
{
    Description *d = &descriptions[number];
    Stream *s = &streams[d->stream];
    int fd = core.out_fd[d->stream];
    if (engine.is_on) {
        streams_collect();
        files_hooks.written(d->stream, data, n);
        return;
    }
    if (!any_file || !s->mirrors) {
        write_all(fd, data, n, -1);
        return;
    }
    int64_t once = place;
    int apart = s->apart ? s->apart : fd; /* the kernel lets nobody choose a place where a file is appended to */
    place = -1;
    if (d->appends && number <= 2)
        lseek(fd, 0, SEEK_END);
    if (d->appends && number > 2) {
        struct stat st;
        write_all(apart, data, n, fstat(fd, &st) == 0 ? st.st_size : -1);
    }
    else if (once >= 0 && !d->appends)
        write_all(apart, data, n, own_place(s, once));
    else if (number <= 2)
        write_all(fd, data, n, -1);
    else {
        bool can = d->at >= s->begin;
        write_all(can ? apart : fd, data, n, can ? own_place(s, d->at) : -1);
        d->at += (int64_t)n;
    }
}

void
stream_show(int stream, const void *data, size_t n)
{
    show(stream, data, n);
}

void
stream_write(int fd, const void *data, size_t n)
{
    if (fd_stream(fd))
        show(description_of[fd], data, n);
}

bool
streams_mix(void)
{
    return mixed;
}

/* A descriptor of the replay that leads to the same: C code that writes there by itself reaches the real stream. */
static void
inherit(int fd, int number)
{
    if (fd == 1 || fd == 2)
        return;
    description_of[fd] = (uint8_t)number;
    if (fd > 2)
        fd_place(fd, fd);
}

/* C code keeps what it prints as it did when it was recorded, whatever the replay's own output is. */
static void
keep_as_recorded(unsigned flags, int64_t block)
{
    static char room[65536];
    size_t size = flags & IS_FILE ? 4096 : block >= 256 && block <= (int64_t)sizeof room ? (size_t)block : 4096;
    if (compat_config(core.tstate)->buffered_stdio)
        setvbuf(stdout, room, flags & IS_TERMINAL ? _IOLBF : _IOFBF, flags & IS_TERMINAL ? 1024 : size);
}

static void
begin_stream(int i, unsigned flags, int64_t at)
{
    static bool is_shared;
    Stream *s = &streams[i];
    struct stat st, first;
    s->is_file = flags & IS_FILE;
    if (i == 1)
        keep_as_recorded(flags, at);
    if (!s->is_file)
        return;
    any_file = true;
    int own = fcntl(core.out_fd[i], F_GETFL);
    s->begin = at;
    s->mirrors = !engine.is_on && own >= 0 && fstat(core.out_fd[i], &st) == 0 && S_ISREG(st.st_mode) &&
                 (!(own & O_APPEND) || (flags & APPENDS));
    if (!s->mirrors)
        return;
    s->own_begin =
        (own | (flags & APPENDS ? O_APPEND : 0)) & O_APPEND ? st.st_size : lseek(core.out_fd[i], 0, SEEK_CUR);
    if (i == 2) {
        is_shared = fstat(core.out_fd[1], &first) == 0 && first.st_dev == st.st_dev && first.st_ino == st.st_ino;
        if (is_shared != ((flags & IS_SHARED) != 0)) /* places in one file are none in two */
            streams[1].mirrors = s->mirrors = false;
    }
}

static void
change_file(int what, Description *d, int number, unsigned flags, int64_t at)
{
    Stream *s = &streams[d->stream];
    int fd = core.out_fd[d->stream];
    if (what == MOVED) {
        d->appends = flags & APPENDS;
        if (number > 2)
            d->at = at;
        if (can_go_to(s, at, flags) && number <= 2)
            lseek(fd, own_place(s, at), SEEK_SET);
    }
    else if (what == PLACE)
        place = can_go_to(s, at, flags) ? at : -1;
    else if (what == CUT && can_go_to(s, at, flags) && stream_cut(fd, own_place(s, at)) < 0)
        mixed = true;
}

static uint64_t
next_number(void)
{
    bool ok = true;
    uint64_t v = read_varint(&event_log.rp, event_log.rend, &ok);
    if (!ok)
        diverge("corrupt", NULL, NULL, "an operation on a standard stream cannot be read");
    return v;
}

void
stream_change(Crossing *open)
{
    uint64_t what = next_number(), fd = next_number(), number = next_number(), stream = next_number(),
             flags = next_number();
    uint64_t zigzag = next_number(), n = next_number();
    int64_t at = (int64_t)(zigzag >> 1) ^ -(int64_t)(zigzag & 1);
    const uint8_t *data = event_log.rp;
    if (what > DATA || fd >= INT32_MAX || number < 1 || number >= MOST_DESCRIPTIONS || stream < 1 || stream > 2 ||
        n > (uint64_t)(event_log.rend - event_log.rp) || at < -1 || at > INT64_MAX / 4)
        diverge("corrupt", NULL, NULL, "an operation on a standard stream cannot be read");
    event_log.rp += n;
    if (core.lenient)
        return;
    Description *d = &descriptions[number];
    if (what == BEGINS && !beginning && fd < MOST_TRACKED) { /* it comes with the message that is received next */
        received[fd] = (uint8_t)number;
        pending = 0;
    }
    else if (what == BEGINS && fd == number && number <= 2) {
        *d = (Description){.stream = (uint8_t)stream, .is_file = flags & IS_FILE, .appends = flags & APPENDS};
        begin_stream((int)number, (unsigned)flags, at);
    }
    else if (what == BEGINS && fd < MOST_TRACKED && !fd_is_ours((int)fd))
        inherit((int)fd, (int)number);
    else if (what == OPENED) {
        *d = (Description){.stream = (uint8_t)stream, .is_file = flags & IS_FILE, .appends = flags & APPENDS, .at = at};
        pending = (int)number;
        if (beginning && fd < MOST_TRACKED && !fd_is_ours((int)fd)) { /* it was inherited */
            inherit((int)fd, (int)number);
            pending = 0;
        }
    }
    else if (what == DATA && d->stream == stream) {
        place = at >= 0 && can_go_to(&streams[stream], at, (unsigned)flags) ? at : -1;
        show((int)number, data, n);
    }
    else if (d->stream)
        change_file((int)what, d, (int)number, (unsigned)flags, at);
}

/* ---- the beginning ---- */

int
stream_cut(int fd, int64_t size)
{
    return (int)syscall(SYS_ftruncate, fd, size, 0, own_token());
}

/* Replay, before the fence, which lets nobody open a file for writing: the output once more, with a place of its own.
 * Without /proc there is no way to open it: then write_at() keeps the place. */
void
streams_open(void)
{
    struct stat st;
    char path[64];
    if (engine.is_on) {
        streams_capture();
        return;
    }
    for (int i = 1; i <= 2; i++)
        if (fstat(core.out_fd[i], &st) == 0 && S_ISREG(st.st_mode)) {
            snprintf(path, sizeof path, "/proc/self/fd/%d", core.out_fd[i]);
            int apart = open(path, O_WRONLY | O_CLOEXEC);
            streams[i].apart = apart < 0 ? 0 : fd_keep(apart);
        }
}

/* Descriptors 1 and 2 are the new run's own. What the program does to them besides writing is noted only if they are
 * files again, and were when it began. */
void
streams_continue(void)
{
    for (int i = 1; i <= 2; i++) {
        Stream *s = &streams[i];
        bool was_file = s->is_file;
        unsigned flags = flags_of(i);
        *s = (Stream){.begin = s->begin};
        if (fstat(i, &s->st) < 0)
            continue;
        s->device = S_ISCHR(s->st.st_mode) ? terminal_of(i) : 0;
        s->is_known = s->device || S_ISREG(s->st.st_mode) || S_ISFIFO(s->st.st_mode) || S_ISSOCK(s->st.st_mode);
        s->is_file = was_file && (flags & IS_FILE);
        if (!s->is_file)
            descriptions[i].is_file = false;
    }
}

void
streams_begin(void)
{
    if (core.mode == RECORD) {
        record_begin();
        return;
    }
    beginning = true;
    while (event_log.rp < event_log.rend &&
           (*event_log.rp == (CONTROL_STREAM << 2 | 2u) || *event_log.rp == (CONTROL_CHECKSUM << 2 | 2u))) {
        if (*event_log.rp++ == (CONTROL_STREAM << 2 | 2u))
            stream_change(NULL);
        else
            replay_checksum(NULL);
    }
    beginning = false;
}

static StreamAct
stream_act(const char *module, const char *name)
{
    static const struct {
        const char *module, *name;
        StreamAct act;
    } acts[] = {
        {"posix", "open", ACT_OPEN},
        {"_io", "FileIO.__init__", ACT_OPEN},
        {"posix", "lseek", ACT_MOVE},
        {"posix", "read", ACT_MOVE},
        {"posix", "readinto", ACT_MOVE},
        {"posix", "readv", ACT_MOVE},
        {"_io", "FileIO.seek", ACT_MOVE},
        {"_io", "FileIO.read", ACT_MOVE},
        {"_io", "FileIO.readall", ACT_MOVE},
        {"_io", "FileIO.readinto", ACT_MOVE},
        {"fcntl", "fcntl", ACT_MOVE},
        {"posix", "ftruncate", ACT_CUT},
        {"posix", "posix_fallocate", ACT_CUT},
        {"_io", "FileIO.truncate", ACT_CUT},
        {"posix", "truncate", ACT_CUT_PATH},
        {"posix", "pwrite", ACT_PLACE},
        {"posix", "pwritev", ACT_PLACE},
        {"_socket", "socket.send", ACT_SEND},
        {"_socket", "socket.sendall", ACT_SEND},
        {"_socket", "socket.sendto", ACT_SEND},
        {"_socket", "socket.sendmsg", ACT_MESSAGE},
        {"_socket", "socket.recvmsg", ACT_RECEIVE},
        {"_socket", "socket.recvmsg_into", ACT_RECEIVE},
    };
    for (size_t i = 0; i < sizeof acts / sizeof *acts; i++)
        if (strcmp(acts[i].name, name) == 0 && strcmp(acts[i].module, module) == 0)
            return acts[i].act;
    return ACT_NONE;
}

void
stream_gate_loaded(Gate *g)
{
    g->stream_act = stream_act(g->module, g->name);
}
