/* Memory that other processes write. No gate sees them do it. What can be seen is that the memory is not what it was:
 * each shared map has a copy of what it was known to hold, and at crossings the two are compared. What differs is
 * logged, with the bytes, and becomes the copy; a replay writes the same bytes at the same crossing.
 *
 * A program that waits for the other side before it reads (a lock taken, a child that ended, bytes in a pipe) crosses a
 * gate between the write and the read, and so reads in the replay what it read. One that reads memory while it is being
 * written, with nothing between, may read something else: nobody sees such a read. But it can be detected that there was
 * such a write: memory is looked at when a crossing begins, too; what has changed by then and was not written by the
 * program itself, which a replay can tell, was written while the program computed. A replay that diverges later says
 * so.
 *
 * Small maps (the locks and values of multiprocessing share one page) are compared at each crossing, for a microsecond
 * (clocks: a tenth); larger ones after the program has waited for others or heard of them, as long as that takes no
 * more than half of the time; very large ones not at all. What is left out is noted. */
#include "base/core.h"
#include "crossing/crossing.h"
#include "log/log.h"
#include "memory/inside.h"
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SMALL (64u << 10)   /* of all maps together: 2 us to compare */
#define LARGEST (64u << 20) /* 5 ms; twice that much memory is used */
#define BLOCK 4096u
#define NEARBY 64u /* changes that are no further apart than this become one record, whose head takes about 8 bytes */
#define FREE_TIME 50000000u /* ns: looks at larger maps that are not weighed against the time that the program takes */

/* The beginning of an mmap object; the same in 3.11 to 3.13. */
typedef struct {
    PyObject_HEAD uint8_t *data; /* NULL: closed */
    Py_ssize_t size, pos;
    off_t offset;
    Py_ssize_t exports;
    int fd; /* its own; -1: none */
} MapObject;

typedef struct {
    MapObject *map; /* borrowed: it tells us when it goes */
    uint64_t number;
    uint64_t event; /* replay: that made it */
    uint64_t file;  /* several maps may lie over one; 0: none */
    dev_t dev;
    ino_t ino;
    MapKind kind;
    bool is_memory; /* made to be shared: in /dev/shm, as all of multiprocessing's, or a memory file */
    bool is_new;    /* record: the crossing that makes it goes on, and a replay has it only afterwards */
    uint8_t *copy;  /* record: what it is known to hold; NULL: it is not watched */
    size_t size;    /* of the copy */
} Map;

static Map *maps;
static size_t count, room;
static uint64_t made;
static size_t watched_bytes;
static bool has_children;
/* replay: the event before which another process was first seen to write while the program computed */
uint64_t shared_written;

/* ---- which maps are watched ---- */

static void
forget_copy(Map *m)
{
    free(m->copy);
    watched_bytes -= m->copy ? m->size : 0;
    m->copy = NULL;
    m->size = 0;
    core.shares_memory = watched_bytes > 0;
}

/* A file on a disk is written by others only in theory, unless there are children; looking at a small one costs
 * nothing. */
static bool
may_change(const Map *m)
{
    if (m->kind == MAP_IS_PRIVATE)
        return false;
    if (!m->file)
        return has_children;
    return m->is_memory || (size_t)m->map->size + watched_bytes <= SMALL || (has_children && m->kind == MAP_IS_WRITTEN);
}

/* `known`: how many bytes of it may be other than zero. */
static void
watch(Map *m, size_t known)
{
    size_t size = (size_t)m->map->size;
    if (m->copy || m->map->data == NULL || size == 0 || core.mode != RECORD || !may_change(m))
        return;
    if (watched_bytes + size > LARGEST) {
        note("uncovered", "shared memory of more than 64 MiB: what other processes write there");
        return;
    }
    m->copy = calloc(1, size);
    if (m->copy == NULL)
        return;
    memory_copy(m->copy, m->map->data, known < size ? known : size);
    m->size = size;
    watched_bytes += size;
    core.shares_memory = true;
}

static bool
made_to_be_shared(int fd)
{
    char link[40], path[16] = "";
    if (fd < 0)
        return false;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if (readlink(link, path, sizeof path - 1) > 0)
        return strncmp(path, "/dev/shm/", 9) == 0 || strncmp(path, "/memfd:", 7) == 0;
    return without_proc_is_memory(fd);
}

/* Record: a number for the file, which it keeps as long as there is a map of it. */
uint64_t
shared_file(int fd)
{
    static uint64_t files;
    struct stat st;
    for (size_t i = 0; i < count && fstat(fd, &st) == 0; i++)
        if (maps[i].file && maps[i].dev == st.st_dev && maps[i].ino == st.st_ino)
            return maps[i].file;
    return ++files;
}

/* Replay: a descriptor of the memory file that stands for it, or -1. */
int
shared_descriptor(uint64_t file)
{
    for (size_t i = 0; i < count; i++)
        if (file && maps[i].file == file && maps[i].map->data)
            return maps[i].map->fd;
    return -1;
}

const uint8_t *
shared_map_made(PyObject *object, int fd, uint64_t file, MapKind kind, size_t known)
{
    made++;
    if (count == room) {
        size_t more = room ? room * 2 : 16;
        Map *bigger = realloc(maps, more * sizeof *maps);
        if (bigger == NULL)
            return NULL;
        maps = bigger;
        room = more;
    }
    Map *m = &maps[count++];
    *m = (Map){.map = (MapObject *)object,
               .number = made,
               .event = core.crossings,
               .kind = kind,
               .file = file,
               .is_memory = made_to_be_shared(fd)};
    struct stat st;
    if (fd >= 0 && fstat(fd, &st) == 0) {
        m->dev = st.st_dev;
        m->ino = st.st_ino;
    }
    m->is_new = fd >= 0 && core.mode == RECORD;
    watch(m, known);
    return m->copy;
}

/* Record: its crossing has ended. What others have written since it was made is found by the next look. */
void
shared_map_is_ready(PyObject *object)
{
    for (size_t i = count; i-- > 0;)
        if ((PyObject *)maps[i].map == object) {
            maps[i].is_new = false;
            return;
        }
}

void
shared_map_gone(PyObject *object)
{
    for (size_t i = count; i-- > 0;)
        if ((PyObject *)maps[i].map == object) {
            forget_copy(&maps[i]);
            maps[i] = maps[--count];
            return;
        }
}

/* NULL: it is closed. */
uint8_t *
shared_map_data(PyObject *object, size_t *size)
{
    MapObject *map = (MapObject *)object;
    *size = map->data ? (size_t)map->size : 0;
    return map->data;
}

void
shared_map_move_descriptor(PyObject *object, int (*move)(int fd))
{
    MapObject *map = (MapObject *)object;
    map->fd = move(map->fd);
}

/* Replay: by the descriptor, since the map may be one that can only be read. */
void
shared_map_extend(PyObject *object, size_t at, const uint8_t *data, size_t n)
{
    const MapObject *map = (MapObject *)object;
    if (map->fd >= 0 && pwrite(map->fd, data, n, map->offset + (off_t)at) != (ssize_t)n)
        diverge("corrupt", NULL, NULL, "the content of a map cannot be written");
}

void
shared_process_starts(void)
{
    has_children = true;
    for (size_t i = 0; i < count; i++)
        watch(&maps[i], SIZE_MAX);
}

void
shared_end(void)
{
    core.shares_memory = false;
}

/* ---- record: looking ---- */

static void
log_change(const Map *m, bool before, size_t from, size_t to)
{
    Buf b = {0};
    buf_varint(&b, CONTROL_MEMORY << 2 | 2u);
    buf_varint(&b, m->number << 1 | before);
    buf_varint(&b, from);
    buf_str(&b, (const char *)m->copy + from, to - from);
    uint8_t *p = log_room(&event_log, b.used);
    if (p) {
        memcpy(p, b.data, b.used);
        log_commit(&event_log, p + b.used);
    }
    free(b.data);
}

/* The map was resized: what is new is compared with zeros, as a replay finds it there. */
static bool
resize_copy(Map *m)
{
    size_t size = (size_t)m->map->size;
    uint8_t *copy = realloc(m->copy, size);
    if (copy == NULL) {
        forget_copy(m);
        return false;
    }
    if (size > m->size)
        memset(copy + m->size, 0, size - m->size);
    watched_bytes += size - m->size;
    m->copy = copy;
    m->size = size;
    return true;
}

/* Takes what has changed in one block into the copy; `*from` to `*to` is the run of changes that is not logged yet. */
static void
take_block(Map *m, size_t at, size_t n, bool before, size_t *from, size_t *to)
{
    uint8_t now[BLOCK]; /* read once: it may be changing */
    memcpy(now, m->map->data + at, n);
    size_t first = 0, last = n;
    while (first < n && now[first] == m->copy[at + first])
        first++;
    if (first == n)
        return;
    while (now[last - 1] == m->copy[at + last - 1])
        last--;
    memcpy(m->copy + at + first, now + first, last - first);
    if (*to && at + first > *to + NEARBY) {
        log_change(m, before, *from, *to);
        *to = 0;
    }
    if (*to == 0)
        *from = at + first;
    *to = at + last;
}

/* What cannot be read is left out: it cannot have been read by the program either. */
static void
look_at(Map *m, bool before)
{
    if (m->map->data == NULL || m->map->size == 0) {
        forget_copy(m);
        return;
    }
    if ((size_t)m->map->size != m->size && !resize_copy(m))
        return;
    size_t from = 0, to = 0;
    for (size_t at = 0; at < m->size; at += BLOCK) {
        size_t part = m->size - at < BLOCK ? m->size - at : BLOCK;
        if (memory_is_there(m->map->data + at) && memcmp(m->map->data + at, m->copy + at, part) != 0)
            take_block(m, at, part, before, &from, &to);
    }
    if (to)
        log_change(m, before, from, to);
}

/* Larger maps may take half of the program's time; what a look that is left out would have found, the next one finds.
 */
static void
look_at_larger(void)
{
    static uint64_t start, spent;
    uint64_t begin = monotonic_ns();
    if (start == 0)
        start = begin;
    if (spent > FREE_TIME && spent > (begin - start) / 2) {
        note("uncovered",
             "large shared memory: it is not checked each time that other processes may have written to it");
        return;
    }
    for (size_t i = 0; i < count; i++)
        if (maps[i].copy && !maps[i].is_new)
            look_at(&maps[i], false);
    spent += monotonic_ns() - begin;
}

/* At clocks, which programs ask for in loops, half of the work is left out: a look when they begin. What has changed is
 * found all the same.
 *
 * The program itself may write to a file by its descriptor and read it in the map: what writes is as good as hearing of
 * others there. */
void
shared_look(bool before, unsigned flags)
{
    bool is_large = watched_bytes > SMALL, hears = (flags & GATE_HEARS) || !is_large, writes = flags & GATE_DIGEST;
    bool is_clock = flags & GATE_MAKES_NOTHING;
    if (core.mode != RECORD || !(hears || writes) || (before && (is_clock || is_large)))
        return;
    if (is_large && hears) {
        look_at_larger();
        return;
    }
    for (size_t i = 0; i < count; i++)
        if (maps[i].copy && !maps[i].is_new && (hears || (maps[i].file && !maps[i].is_memory)))
            look_at(&maps[i], before);
}

/* ---- replay ---- */

static Map *
find(uint64_t number)
{
    for (size_t i = 0; i < count; i++)
        if (maps[i].number == number)
            return &maps[i];
    return NULL;
}

static void
write_there(const Map *m, uint8_t *to, const uint8_t *data, size_t n)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)to & ~(page - 1),
              length = (uintptr_t)to + n - begin;
    bool is_locked = m->kind == MAP_IS_READ;
    if (is_locked && mprotect((void *)begin, length, PROT_READ | PROT_WRITE) < 0)
        diverge("corrupt", NULL, NULL, "a change of memory cannot be written");
    memcpy(to, data, n);
    if (is_locked)
        mprotect((void *)begin, length, PROT_READ);
}

static bool
shared_change(const uint8_t **p, const uint8_t *end)
{
    bool ok = true;
    uint64_t head = read_varint(p, end, &ok), at = read_varint(p, end, &ok), n = read_varint(p, end, &ok);
    if (!ok || n > (uint64_t)(end - *p))
        return false;
    const uint8_t *data = *p;
    *p += n;
    Map *m = find(head >> 1);
    if (m == NULL || m->map->data == NULL || at > (uint64_t)m->map->size || n > (uint64_t)m->map->size - at)
        return false;
    uint8_t *to = m->map->data + at;
    if (memcmp(to, data, n) == 0)
        return true;
    if ((head & 1) && shared_written == 0)
        shared_written = core.crossings + 1;
    write_there(m, to, data, n);
    return true;
}

void
memory_changes(Crossing *open)
{
    if (!shared_change(&event_log.rp, event_log.rend))
        diverge("corrupt", NULL, NULL, "a change of memory cannot be read");
}

/* What was written while the next crossing ran, perhaps by the program itself, is not read before it. */
bool
memory_changes_later(void)
{
    return event_log.rp + 1 < event_log.rend && (event_log.rp[1] & 1);
}

/* ---- a replay becomes a recording ---- */

/* What is there already is not written: its time stamp stays. */
static bool
write_stores(const MapObject *map, int file)
{
    uint8_t there[BLOCK];
    for (Py_ssize_t at = 0; at < map->size; at += BLOCK) {
        size_t part = map->size - at < BLOCK ? (size_t)(map->size - at) : BLOCK;
        if (!memory_is_there(map->data + at) ||
            (pread(file, there, part, map->offset + at) == (ssize_t)part && memcmp(there, map->data + at, part) == 0))
            continue;
        if (pwrite(file, map->data + at, part, map->offset + at) != (ssize_t)part)
            return false;
    }
    return true;
}

bool
shared_map_event(size_t index, uint64_t *event)
{
    if (index >= count)
        return false;
    *event = maps[index].map->data && maps[index].map->fd >= 0 ? maps[index].event : 0;
    return true;
}

/* A private map keeps the memory that it has. */
bool
shared_continue(uint64_t event, int file)
{
    for (size_t i = 0; i < count; i++) {
        Map *m = &maps[i];
        struct stat st;
        if (m->event != event || m->map->data == NULL || m->map->fd < 0)
            continue;
        int protection = m->kind == MAP_IS_WRITTEN ? PROT_READ | PROT_WRITE : PROT_READ;
        if (m->kind == MAP_IS_WRITTEN && !write_stores(m->map, file))
            return false;
        if (m->kind != MAP_IS_PRIVATE && mmap(m->map->data, (size_t)m->map->size, protection, MAP_SHARED | MAP_FIXED,
                                              file, m->map->offset) == MAP_FAILED)
            return false;
        m->map->fd = file; /* that of the replay was closed with all that it has open */
        m->is_memory = made_to_be_shared(file);
        if (fstat(file, &st) == 0) {
            m->dev = st.st_dev;
            m->ino = st.st_ino;
        }
        watch(m, (size_t)m->map->size);
        return true;
    }
    return true; /* it is gone */
}

/* ---- clones of a replay ---- */

static void
part_map(MapObject *map, int fd)
{
    for (Py_ssize_t at = 0; at < map->size; at += BLOCK) {
        size_t part = map->size - at < BLOCK ? (size_t)(map->size - at) : BLOCK;
        if (memory_is_there(map->data + at) && pwrite(fd, map->data + at, part, map->offset + at) != (ssize_t)part)
            _exit(0);
    }
    if (mmap(map->data, (size_t)map->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, map->offset) ==
        MAP_FAILED)
        _exit(0);
}

static bool
is_shared(const Map *m)
{
    return m->map->data && m->kind != MAP_IS_PRIVATE;
}

bool
shared_was_mapped_by(uint64_t event)
{
    for (size_t i = 0; i < count; i++)
        if (maps[i].event <= event && is_shared(&maps[i]))
            return true;
    return false;
}

bool
shared_is_mapped(void)
{
    for (size_t i = 0; i < count; i++)
        if (is_shared(&maps[i]))
            return true;
    return false;
}

/* Maps of one file share their memory; those of a clone are no longer shared with the process from which it was cloned.
 */
void
shared_part(void)
{
    for (size_t i = 0; i < count; i++) {
        Map *m = &maps[i];
        bool is_first = is_shared(m);
        for (size_t k = 0; k < i && is_first; k++)
            is_first = !is_shared(&maps[k]) || !m->file || maps[k].file != m->file;
        if (!is_first)
            continue;
        off_t end = 0;
        for (size_t k = i; k < count; k++)
            if (k == i || (m->file && maps[k].file == m->file && maps[k].map->data))
                end = end < maps[k].map->offset + maps[k].map->size ? maps[k].map->offset + (off_t)maps[k].map->size
                                                                    : end;
        int fd = memfd_create("map", MFD_CLOEXEC);
        if (fd < 0 || ftruncate(fd, end) < 0)
            _exit(0);
        for (size_t k = i; k < count; k++)
            if ((k == i || (m->file && maps[k].file == m->file)) && is_shared(&maps[k]))
                part_map(maps[k].map, fd);
        close(fd);
    }
}
