/* Power loss (`record --durable`). The kernel writes the pages of a mapped file in any order: after a power cut the
 * commit word may be on the disk, and bytes before it not. So the logs are made of stretches. Each begins with a
 * CHECKSUM record, which says how long the stretch behind it is and what its CRC-32 is; both change with each commit.
 * A stretch ends when the log is synchronised, and never changes again: what was synchronised can be told from what
 * was not, whatever the disk has of the pages written later. See docs/reference/format.md, 2.1, and
 * replaydbg/log/entries/checksums.py, which reads it.
 *
 * Each record has two slots for length and checksum, written in turn: a process that is killed between two stores
 * leaves one of them whole. The checksum is CRC-32, since readers in Python have it in zlib. By tables it takes 1 ns a
 * byte; a synchronisation takes 100 us and more. */
#include "base/core.h"
#include "log/inside.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define LONGEST_STRETCH (64u << 10) /* after a power cut, what was not synchronised is lost in such pieces at most */
#define MOST_OF_RECORD 80           /* bytes of a CHECKSUM record */
#define SLICES 8
#define FACTS 4 /* numbers behind the slots */

typedef struct {
    uint32_t length, events, sum; /* of the stretch; the sum covers the other two as well */
} ChecksumSlot;
#define SLOTS_SIZE (2 * sizeof(ChecksumSlot))

typedef struct {
    size_t begin;            /* offset in its log, just behind the slots; 0: there is none yet */
    uint32_t sum;            /* of what it has so far */
    unsigned slot;           /* the one that was written last */
    uint64_t events;         /* before it */
    uint64_t world, content; /* bytes of these files that the events of the stretch may refer to */
} Stretch;

bool log_is_durable;
static Log *const logs[] = {&event_log, &world_log};
enum { EVENTS, WORLD, LOGS };
static Stretch stretches[LOGS];
static uint64_t synced[LOGS], synced_transfers; /* bytes that the disk has */
static int kept[LOGS + 1] = {-1, -1, -1};       /* descriptors of both logs and of the transfers */
static uint32_t table[SLICES][256];

/* ---- CRC-32, eight bytes at a time (Kounavis, Berry: A systematic approach to building high performance
 * software-based CRC generators, 2005) ---- */

static void
make_table(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
        table[0][i] = crc;
    }
    for (int slice = 1; slice < SLICES; slice++)
        for (int i = 0; i < 256; i++)
            table[slice][i] = table[slice - 1][i] >> 8 ^ table[0][table[slice - 1][i] & 0xFF];
}

/* As zlib.crc32(): of bytes that follow those with the checksum `crc`. Numbers are little endian, as in the format. */
static uint32_t
crc32_of(uint32_t crc, const void *data, size_t n)
{
    const uint8_t *p = data;
    crc = ~crc;
    for (; n >= SLICES; p += SLICES, n -= SLICES) {
        uint32_t low, high;
        memcpy(&low, p, 4);
        memcpy(&high, p + 4, 4);
        low ^= crc;
        crc = 0;
        for (int i = 0; i < 4; i++)
            crc ^= table[7 - i][low >> 8 * i & 0xFF] ^ table[3 - i][high >> 8 * i & 0xFF];
    }
    while (n-- > 0)
        crc = crc >> 8 ^ table[0][(crc ^ *p++) & 0xFF];
    return ~crc;
}

/* ---- stretches ---- */

static int
which(const Log *log)
{
    return log == &event_log ? EVENTS : log == &world_log ? WORLD : LOGS;
}

static uint64_t
used(const Log *log)
{
    return log->base ? (uint64_t)(log->wp - log->base) : 0;
}

static void
write_slot(Log *log, Stretch *s, size_t length)
{
    ChecksumSlot slot = {(uint32_t)length, log == &event_log ? (uint32_t)(core.crossings - s->events) : 0, 0};
    slot.sum = crc32_of(s->sum, &slot, 8);
    s->slot = !s->slot;
    memcpy(log->base + s->begin - SLOTS_SIZE + s->slot * sizeof slot, &slot, sizeof slot);
}

void
checksum_extend(Log *log, const uint8_t *end)
{
    int i = which(log);
    if (i == LOGS || stretches[i].begin == 0)
        return;
    Stretch *s = &stretches[i];
    s->sum = crc32_of(s->sum, log->wp, (size_t)(end - log->wp));
    write_slot(log, s, (size_t)(end - log->base) - s->begin);
}

static bool
begin_stretch(Log *log)
{
    Stretch *s = &stretches[which(log)];
    uint8_t *p = log_raw_room(log, MOST_OF_RECORD);
    Buf facts = {0};
    if (p == NULL)
        return false;
    bool is_of_events = log == &event_log;
    s->events = core.crossings;
    s->world = is_of_events ? used(&world_log) : 0;
    s->content = is_of_events ? content_own() : 0;
    buf_varint(&facts, s->events);
    buf_varint(&facts, s->world);
    buf_varint(&facts, s->content);
    buf_varint(&facts, is_of_events ? synced_transfers : 0);
    *p = CONTROL_CHECKSUM << 2 | 2u;
    memset(p + 1, 0, SLOTS_SIZE);
    memcpy(p + 1 + SLOTS_SIZE, facts.data, facts.used);
    s->begin = (size_t)(p + 1 - log->base) + SLOTS_SIZE;
    s->sum = crc32_of(0, facts.data, facts.used);
    write_slot(log, s, facts.used);
    uint8_t *end = p + 1 + SLOTS_SIZE + facts.used;
    free(facts.data);
    log->wp = end; /* its own bytes are in the sum already */
    log_commit(log, end);
    return true;
}

/* What the events of a stretch refer to must be whole if they are: if there is more of it now, the next event begins
 * another stretch. */
static bool
is_due(const Log *log)
{
    const Stretch *s = &stretches[which(log)];
    return s->begin == 0 || used(log) - s->begin >= LONGEST_STRETCH ||
           (log == &event_log && (s->world != used(&world_log) || s->content != content_own()));
}

bool
checksum_before(Log *log)
{
    return which(log) == LOGS || !is_due(log) || begin_stretch(log);
}

bool
checksum_skip(const uint8_t **p, const uint8_t *end)
{
    bool ok = (size_t)(end - *p) >= SLOTS_SIZE;
    if (ok)
        *p += SLOTS_SIZE;
    for (int i = 0; i < FACTS && ok; i++)
        read_varint(p, end, &ok);
    return ok;
}

/* ---- synchronising ---- */

static int
sync_file(int fd)
{
    int rc;
    while ((rc = fdatasync(fd)) < 0 && errno == EINTR)
        ;
    return rc < 0 ? errno : 0;
}

void
durable_content(int fd)
{
    int error = log_is_durable ? sync_file(fd) : 0;
    if (error)
        log_fail_by(error);
}

int
durable_entries(const char *directory)
{
    int fd = log_is_durable ? open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1, error = 0;
    if (!log_is_durable)
        return 0;
    if (fd < 0 || fsync(fd) < 0)
        error = errno;
    if (fd >= 0)
        close(fd);
    return error;
}

bool
log_is_synced(uint64_t end)
{
    return !log_is_durable || event_log.base == NULL || event_log.failed || synced[EVENTS] >= end;
}

uint64_t
log_end(void)
{
    return used(&event_log);
}

void
log_sync_begin(LogSync *sync)
{
    for (int i = 0; i < LOGS; i++) {
        sync->fds[i] = -1;
        if (logs[i]->base == NULL || logs[i]->failed || used(logs[i]) == synced[i] || !begin_stretch(logs[i]))
            continue;
        sync->fds[i] = kept[i];
        sync->ends[i] = used(logs[i]);
    }
    /* alone, it has nobody whose transfers could be compared with its own */
    sync->fds[LOGS] = group_is_on() && !group_is_alone() ? kept[LOGS] : -1;
    sync->ends[LOGS] = transfers_end();
}

long
log_sync_perform(void *argument)
{
    LogSync *sync = argument;
    int error = 0;
    for (int i = LOGS; i >= 0 && !error; i--)
        if (sync->fds[i] >= 0)
            error = sync_file(sync->fds[i]);
    errno = error;
    return error;
}

void
log_sync_end(const LogSync *sync, int error)
{
    if (error) { /* pages that could not be written may count as clean now: the log cannot be relied on any more */
        log_fail_by(error);
        return;
    }
    for (int i = 0; i < LOGS; i++)
        if (sync->fds[i] >= 0 && sync->ends[i] > synced[i])
            synced[i] = sync->ends[i];
    if (sync->fds[LOGS] >= 0 && sync->ends[LOGS] > synced_transfers)
        synced_transfers = sync->ends[LOGS];
}

void
log_sync(void)
{
    LogSync sync;
    int saved = errno;
    if (!log_is_durable || event_log.base == NULL || event_log.failed)
        return;
    log_sync_begin(&sync);
    log_sync_end(&sync, (int)log_sync_perform(&sync));
    group_sync();
    errno = saved;
}

/* ---- beginning ---- */

static int
keep(const char *path)
{
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    return fd < 0 ? -1 : fd_keep(fd);
}

/* Descriptors stay open, unlike all others of a log: a helper thread that opened one would take the lowest number from
 * under the program. */
int
durable_begin(void)
{
    make_table();
    log_is_durable = true;
    for (int i = 0; i < LOGS; i++)
        if ((kept[i] = keep(logs[i]->path)) < 0)
            return -1;
    kept[LOGS] = keep(transfers_path());
    errno = durable_entries(core.live_dir);
    return errno ? -1 : 0;
}

/* The last stretch ends where its log is written on: what came after that is left out, or was never whole. */
static void
end_last_stretch(Log *log)
{
    Stretch *s = &stretches[which(log)];
    const uint8_t *p = log->base + HEADER_SIZE;
    ChecksumSlot slots[2];
    while (p < log->wp && *p == (CONTROL_CHECKSUM << 2 | 2u)) {
        memcpy(slots, p + 1, sizeof slots);
        s->begin = (size_t)(p + 1 + SLOTS_SIZE - log->base);
        uint32_t length = slots[0].length > slots[1].length ? slots[0].length : slots[1].length;
        if (length == 0 || s->begin + length >= used(log))
            break;
        p = log->base + s->begin + length;
    }
    if (s->begin == 0)
        return;
    bool ok = true;
    const uint8_t *facts = log->base + s->begin;
    s->events = read_varint(&facts, log->wp, &ok);
    s->world = read_varint(&facts, log->wp, &ok);
    s->content = read_varint(&facts, log->wp, &ok);
    s->sum = crc32_of(0, log->base + s->begin, (size_t)(log->wp - log->base) - s->begin);
    for (int i = 0; i < 2; i++)
        write_slot(log, s, (size_t)(log->wp - log->base) - s->begin);
}

int
durable_continue(void)
{
    if (event_log.wp <= event_log.base + HEADER_SIZE || event_log.base[HEADER_SIZE] != (CONTROL_CHECKSUM << 2 | 2u))
        return 0;
    if (durable_begin() < 0)
        return -1;
    for (int i = 0; i < LOGS; i++)
        end_last_stretch(logs[i]);
    return 0;
}

void
durable_forked(bool is_recorded)
{
    if (!log_is_durable)
        return;
    for (int i = 0; i <= LOGS; i++)
        if (kept[i] >= 0)
            fd_forget(kept[i]);
    memset(stretches, 0, sizeof stretches);
    memset(synced, 0, sizeof synced);
    synced_transfers = 0;
    log_is_durable = is_recorded;
    if (is_recorded && durable_begin() < 0)
        log_fail_by(errno);
}
