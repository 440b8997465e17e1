/* Large files that the program reads: the kernel copies them once beside the log, which refers to them from then on. */
#include "base/core.h"
#include "log/inside.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define LARGE (1u << 20)
#define PIECE (1u << 20)

#define MOST_TRACKED 4096 /* higher descriptors are not large files to us */
typedef enum { SIZE_UNKNOWN, SIZE_SMALL, SIZE_LARGE } SizeClass;
static struct {
    uint8_t size; /* SizeClass, learnt at the first read */
    int file;     /* index into files */
} tracked[MOST_TRACKED];

typedef struct {
    dev_t dev;
    ino_t ino;
    size_t pieces;
    uint64_t *at; /* offset in `content` of each piece, plus 1; 0: not copied */
} File;
static File *files;
static int file_count;
static uint64_t content_size;
bool content_is_missing;
static uint64_t content_begin;     /* in a child that is recorded: what was copied before the fork is its parent's */
static const uint8_t *content_map; /* replay: the file with all of it; record: the piece last compared */
static uint64_t content_mapped_at, content_length;
static size_t content_map_size;   /* replay */
static int followed_content = -1; /* replay: the file that a program still writes */

/* Replay: the content is a file of its own, or lies in the sealed recording, in pieces with something between them. */
static struct {
    bool in_recording;
    uint64_t first, stride; /* where the first piece begins, and how far it is from one to the next */
    int fd;
    uint64_t size, mtime; /* of the recording, before its blocks were checked */
    uint64_t piece;       /* the last one that was used */
    uint8_t *joined;
    size_t joined_size;
} sealed = {.fd = -1, .piece = UINT64_MAX};

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
        /* a future has no directory: all that it reads is in its log */
        if (!core.is_future && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size >= LARGE &&
            (tracked[fd].file = file_index(fd, &st)) >= 0)
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
    if ((event_log.max_size && content_size + PIECE > event_log.max_size) || !group_may_grow(PIECE)) {
        log_fail(2);
        return false;
    }
    FileLimit held;
    file_limit_hold(&held);
    int content_fd = open_content();
    if (content_fd >= 0 && content_size == content_begin)
        durable_entries(core.live_dir); /* it is new */
    bool has_grown = content_fd >= 0 && ftruncate(content_fd, (off_t)(content_size - content_begin + PIECE)) == 0;
    file_limit_release(&held);
    if (!has_grown) {
        if (content_fd >= 0)
            close(content_fd);
        return false;
    }
    off_t from = (off_t)piece * PIECE, to = (off_t)(content_size - content_begin);
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
    durable_content(content_fd);
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
    void *p = content_fd < 0
                  ? MAP_FAILED
                  : mmap(NULL, PIECE, PROT_READ, MAP_SHARED | MAP_POPULATE, content_fd, (off_t)(at - content_begin));
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
    buf_byte(b, TAG_CONTENT);
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

uint64_t
content_used(void)
{
    return content_size;
}

uint64_t
content_own(void)
{
    return content_size - content_begin;
}

/* What was copied before is copied again when it is read again: its parent's file may be gone by then. */
void
content_forked(void)
{
    for (int i = 0; i < file_count; i++)
        memset(files[i].at, 0, files[i].pieces * sizeof *files[i].at);
    if (content_map)
        munmap((void *)content_map, PIECE);
    content_map = NULL;
    content_begin = content_size;
}

int
content_open(int fd)
{
    struct stat st;
    sealed.in_recording = false;
    content_map = NULL;
    content_map_size = content_length = 0;
    if (fstat(fd, &st) == 0 && st.st_size > 0) {
        void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p == MAP_FAILED)
            return -1;
        content_map = p;
        content_length = content_map_size = (uint64_t)st.st_size;
    }
    close(fd);
    return 0;
}

/* Whether nobody has written to the recording since its blocks were checked. It is asked again at each piece: a session
 * of the debugger may last for days. */
static bool
is_unchanged(uint64_t piece)
{
    struct stat now;
    if (piece == sealed.piece)
        return true;
    if (fstat(sealed.fd, &now) < 0 || (uint64_t)now.st_size != sealed.size ||
        (uint64_t)now.st_mtim.tv_sec * 1000000000 + (uint64_t)now.st_mtim.tv_nsec != sealed.mtime)
        return false;
    sealed.piece = piece;
    return true;
}

int
content_open_sealed(int fd, const ContentPlace *place)
{
    uint64_t pieces = place->length / PIECE + (place->length % PIECE != 0), size;
    if (pieces == 0 || place->stride < PIECE || __builtin_mul_overflow(pieces - 1, place->stride, &size) ||
        __builtin_add_overflow(size, place->first, &size) ||
        __builtin_add_overflow(size, place->length - (pieces - 1) * PIECE, &size) || size > place->file_size)
        return -1;
    sealed.fd = fd_keep(fd);
    sealed.size = place->file_size;
    sealed.mtime = place->mtime;
    sealed.piece = UINT64_MAX;
    void *p = is_unchanged(0) ? mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, sealed.fd, 0) : MAP_FAILED;
    if (p == MAP_FAILED)
        return -1;
    content_map = p;
    content_length = place->length;
    content_map_size = (size_t)size;
    sealed.in_recording = true;
    sealed.first = place->first;
    sealed.stride = place->stride;
    return 0;
}

int
content_move(Room to)
{
    if (content_map_size == 0)
        return 0;
    if (content_map_size > to.size || mremap((void *)content_map, content_map_size, content_map_size,
                                             MREMAP_MAYMOVE | MREMAP_FIXED, to.at) == MAP_FAILED)
        return -1;
    content_map = to.at;
    return 0;
}

static const uint8_t *
in_piece(uint64_t offset)
{
    return content_map + sealed.first + offset / PIECE * sealed.stride + offset % PIECE;
}

/* Bytes of several pieces, one behind the other; until the next are asked for. */
static const uint8_t *
joined(uint64_t offset, uint64_t n)
{
    if (sealed.joined_size < n || sealed.joined_size > LARGE) {
        if (sealed.joined)
            munmap(sealed.joined, sealed.joined_size);
        sealed.joined_size = n > LARGE ? n : LARGE;
        void *p = mmap(NULL, sealed.joined_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        sealed.joined = p == MAP_FAILED ? NULL : p;
        if (sealed.joined == NULL) {
            sealed.joined_size = 0;
            return NULL;
        }
    }
    for (uint64_t done = 0; done < n;) {
        uint64_t at = offset + done, part = PIECE - at % PIECE < n - done ? PIECE - at % PIECE : n - done;
        if (!is_unchanged(at / PIECE))
            return NULL;
        memcpy(sealed.joined + done, in_piece(at), part);
        done += part;
    }
    return sealed.joined;
}

int
content_follow(int fd)
{
    if (fd < 0)
        return 0;
    void *p = mmap(NULL, MOST_FOLLOWED, PROT_READ, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (p == MAP_FAILED)
        return -1;
    followed_content = fd_keep(fd);
    content_map = p;
    content_map_size = MOST_FOLLOWED;
    content_length = 0; /* what there is, is seen when it is needed */
    return 0;
}

/* What the program has copied by now. */
static void
follow_content(void)
{
    struct stat st;
    if (fstat(followed_content, &st) == 0)
        content_length = (uint64_t)st.st_size;
}

static const uint8_t *
find(uint64_t offset, uint64_t n)
{
    if (followed_content >= 0 && (offset > content_length || n > content_length - offset))
        follow_content();
    if (offset > content_length || n > content_length - offset)
        return NULL;
    if (!sealed.in_recording)
        return content_map + offset;
    if (n > PIECE - offset % PIECE)
        return joined(offset, n);
    return is_unchanged(offset / PIECE) ? in_piece(offset) : NULL;
}

const uint8_t *
content_at(uint64_t offset, uint64_t n)
{
    const uint8_t *found = find(offset, n);
    content_is_missing = found == NULL;
    return found;
}

void
content_forget(int fd)
{
    if (fd >= 0 && fd < MOST_TRACKED)
        memset(&tracked[fd], 0, sizeof tracked[fd]);
}

/* What was copied before is copied again when it is read again. */
int
content_continue(void)
{
    struct stat st = {0};
    char path[4200];
    snprintf(path, sizeof path, "%s/content", core.live_dir);
    if (followed_content >= 0 && write_whole_file(path, content_map, content_length) < 0)
        return -1;
    int fd = open_content();
    if (fd >= 0) {
        fstat(fd, &st);
        close(fd);
    }
    content_size = ((uint64_t)st.st_size + PIECE - 1) / PIECE * PIECE;
    content_map = NULL; /* the old one stays: what was read may point into it */
    if (followed_content >= 0)
        fd_forget(followed_content);
    followed_content = -1;
    return 0;
}
