/* The WAL index of a SQLite database: shared memory, made repeatable.
 *
 * In WAL mode the processes that use a database share its index in mapped memory. SQLite reads it with no call that could be a
 * crossing, so what it saw at which moment could not be repeated: the header, above all, is read before any lock is asked for.
 * Therefore SQLite never sees the shared memory itself, while recording neither, but a copy that changes only at two kinds of
 * moments, both of them calls of the VFS: what others wrote comes in after a lock operation (and is an event), and what SQLite wrote
 * goes out at a barrier and before a lock operation.
 *
 * Why the index stays sound for everybody:
 *   - SQLite writes to it only under exclusive locks, and every one of them is given back through xShmLock, before which we push;
 *     the barrier that parts the two copies of the header keeps its meaning, because it pushes too.
 *   - Nothing comes in at a barrier, so a reader finds both copies of the header old, takes its read lock, finds then that the header
 *     has changed, and tries again: SQLite's own way with a commit that happened meanwhile. (With a fresh second copy it would take
 *     the write lock to look again, and others could find the database locked who had not been recorded.)
 *   - A pull reads in the order in which SQLite would: checkpoint state, first header, second header, the rest. The number of
 *     checkpointed frames must not be newer than the header that a reader compares after it.
 *   - Hash tables go out when the header or the checkpoint state was written: what SQLite enters before that is its own affair.
 *   - They come in when one of the two changed: entries beyond the header's last frame mean nothing to a
 *     reader. Who takes the write lock clears up after others, and gets everything.
 * A process that is killed between a write and its push died, for all others, just before the write.
 */
#include "base/core.h"
#include "sqlite/inside.h"
#include <stdlib.h>

enum {
    HEADER = 48,             /* two copies at the start of region 0 */
    CHECKPOINT = 2 * HEADER, /* then checkpoint state, read marks and the bytes that stand for locks */
    HEAD = 136,              /* then hash tables */
};

/* Words are the unit: SQLite stores its marks as aligned 32-bit words, and 16-bit hash entries only under the write
 * lock. */
static uint32_t
load(const volatile uint8_t *p)
{
    return __atomic_load_n((const volatile uint32_t *)p, __ATOMIC_RELAXED);
}

/* The first word at or after `i` at which both differ, or `end`. A whole block at a time: a transaction changes a few
 * words of 32 KiB, and comparing word by word made small transactions five times as slow. */
static size_t
next_difference(const uint8_t *one, const uint8_t *other, size_t i, size_t end)
{
    enum { BLOCK = 512 };
    while (i < end) {
        size_t n = end - i < BLOCK ? end - i : BLOCK;
        if (memcmp(one + i, other + i, n) == 0) {
            i += n;
            continue;
        }
        for (; n > 0; i += 4, n -= 4)
            if (memcmp(one + i, other + i, 4) != 0)
                return i;
    }
    return end;
}

static void
push_span(WalRegion *r, size_t start, size_t end)
{
    for (size_t i = start; (i = next_difference(r->seen, r->base, i, end)) < end; i += 4) {
        uint32_t word;
        memcpy(&word, r->seen + i, 4);
        memcpy(r->base + i, &word, 4);
        __atomic_store_n((volatile uint32_t *)(r->real + i), word, __ATOMIC_RELAXED);
    }
}

/* Appends one run of bytes: number of the region, offset, length, bytes. */
static void
append_run(Buf *b, int number, const WalRegion *r, size_t start, size_t end)
{
    uint32_t head[3] = {(uint32_t)number, (uint32_t)start, (uint32_t)(end - start)};
    if (b == NULL || start == end)
        return;
    buf_bytes(b, head, sizeof head);
    buf_bytes(b, r->seen + start, end - start);
}

static bool
pull_span(WalIndex *w, int number, size_t start, size_t end, Buf *arrived)
{
    WalRegion *r = &w->regions[number];
    size_t run = start, stop = start; /* changed words that follow each other */
    for (size_t i = start; (i = next_difference((const uint8_t *)r->real, r->base, i, end)) < end; i += 4) {
        uint32_t word = load(r->real + i);
        memcpy(r->base + i, &word, 4);
        memcpy(r->seen + i, &word, 4);
        if (i != stop) {
            append_run(arrived, number, r, run, stop);
            run = i;
        }
        stop = i + 4;
    }
    append_run(arrived, number, r, run, stop);
    return stop > start;
}

static void
barrier(void)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static bool
pull_head(WalIndex *w, Buf *arrived)
{
    bool changed = pull_span(w, 0, CHECKPOINT, HEAD, arrived);
    barrier();
    changed |= pull_span(w, 0, 0, HEADER, arrived);
    barrier();
    changed |= pull_span(w, 0, HEADER, CHECKPOINT, arrived);
    barrier();
    return changed;
}

void
wal_pull(WalIndex *w, bool all, Buf *arrived)
{
    if (wal_region(w, 0) == NULL || w->regions[0].real == NULL)
        return;
    barrier();
    if (!pull_head(w, arrived) && !all)
        return;
    for (int i = 0; i < w->count; i++)
        if (w->regions[i].seen)
            pull_span(w, i, i == 0 ? HEAD : 0, w->regions[i].size, arrived);
}

void
wal_push(WalIndex *w)
{
    if (wal_region(w, 0) == NULL || w->regions[0].real == NULL)
        return;
    if (memcmp(w->regions[0].seen, w->regions[0].base, HEAD) == 0)
        return;
    for (int i = 0; i < w->count; i++)
        if (w->regions[i].seen)
            push_span(&w->regions[i], i == 0 ? HEAD : 0, w->regions[i].size);
    barrier();
    push_span(&w->regions[0], HEADER, CHECKPOINT); /* SQLite writes the second copy first */
    barrier();
    push_span(&w->regions[0], 0, HEADER);
    barrier();
    push_span(&w->regions[0], CHECKPOINT, HEAD);
    barrier();
}

bool
wal_map(WalIndex *w, int number, size_t size, volatile void *real, Buf *arrived)
{
    if (number >= w->count) {
        WalRegion *grown = realloc(w->regions, (size_t)(number + 1) * sizeof *grown);
        if (grown == NULL)
            return false;
        memset(grown + w->count, 0, (size_t)(number + 1 - w->count) * sizeof *grown);
        w->regions = grown;
        w->count = number + 1;
    }
    WalRegion *r = &w->regions[number];
    r->seen = calloc(1, size);
    r->base = real ? calloc(1, size) : NULL;
    if (r->seen == NULL || (real && r->base == NULL)) {
        free(r->seen);
        free(r->base);
        r->seen = r->base = NULL;
        return false;
    }
    r->size = size;
    r->real = real;
    if (real && number == 0)
        wal_pull(w, true, arrived);
    else if (real)
        pull_span(w, number, 0, size, arrived);
    return true;
}

void *
wal_region(WalIndex *w, int number)
{
    return number < w->count ? w->regions[number].seen : NULL;
}

bool
wal_attach(WalIndex *w, int number, volatile void *real)
{
    WalRegion *r = &w->regions[number];
    if (r->base == NULL && (r->base = malloc(r->size)) == NULL)
        return false;
    r->real = real;
    for (size_t i = 0; i < r->size; i += 4) {
        uint32_t word = load(r->real + i);
        memcpy(r->base + i, &word, 4);
    }
    return true;
}

bool
wal_arrive(WalIndex *w, const uint8_t *data, size_t n)
{
    uint32_t head[3];
    while (n > 0) {
        if (n < sizeof head)
            return false;
        memcpy(head, data, sizeof head);
        data += sizeof head;
        n -= sizeof head;
        if (head[0] >= (uint32_t)w->count || w->regions[head[0]].seen == NULL)
            return false;
        WalRegion *r = &w->regions[head[0]];
        if (head[2] > n || head[1] > r->size || head[2] > r->size - head[1])
            return false;
        memcpy(r->seen + head[1], data, head[2]);
        data += head[2];
        n -= head[2];
    }
    return true;
}

void
wal_free(WalIndex *w)
{
    for (int i = 0; i < w->count; i++) {
        free(w->regions[i].seen);
        free(w->regions[i].base);
    }
    free(w->regions);
    memset(w, 0, sizeof *w);
}
