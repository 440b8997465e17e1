/* What the walk through the heap keeps: columns that grow and tables by address and by text. All of it lies in memory
 * of its own, which is given back when the walk has ended; the program's allocator is never asked. */
#include "base/core.h"
#include "heap/inside.h"
#include <sys/mman.h>

/* What was taken, so that a walk that is given up gives it back, too. */
enum { MOST_TAKEN = 128 };
static struct {
    void *at;
    size_t size;
} taken[MOST_TAKEN];

static void
remember(void *old, void *at, size_t size)
{
    for (int i = 0; i < MOST_TAKEN; i++)
        if (taken[i].at == old) {
            taken[i].at = at;
            taken[i].size = size;
            return;
        }
}

static void *
take(size_t size)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        heap_give_up();
    if (size >= 4u << 20)
        madvise(at, size, MADV_HUGEPAGE);
    remember(NULL, at, size);
    return at;
}

static void
give(void *at, size_t size)
{
    remember(at, NULL, 0);
    munmap(at, size);
}

void
heap_release(void)
{
    for (int i = 0; i < MOST_TAKEN; i++)
        if (taken[i].at)
            give(taken[i].at, taken[i].size);
}

void
column_grow(Column *c, size_t n)
{
    size_t size = c->size ? c->size * 2 : 1 << 16;
    while (size - c->used < n)
        size *= 2;
    if (c->data == NULL)
        c->data = take(size);
    else {
        void *at = mremap(c->data, c->size, size, MREMAP_MAYMOVE);
        if (at == MAP_FAILED)
            heap_give_up();
        if (size >= 4u << 20)
            madvise(at, size, MADV_HUGEPAGE);
        remember(c->data, at, size);
        c->data = at;
    }
    c->size = size;
}

void
pointers_resize(PointerMap *map, size_t size)
{
    PointerEntry *old = map->at;
    size_t old_size = old ? map->mask + 1 : 0;
    map->at = take(size * sizeof *map->at);
    map->mask = size - 1;
    for (size_t i = 0; i < old_size; i++)
        if (old[i].key)
            *pointers_find(map, old[i].key) = old[i];
    if (old)
        give(old, old_size * sizeof *old);
}

uint32_t
texts_place(TextTable *t, const uint8_t *text, size_t n)
{
    uint64_t key = hash_bytes(text, n, 9);
    for (key = key ? key : 1;; key = key + 1 ? key + 1 : 1) {
        PointerEntry *e = pointers_find(&t->places, key);
        uint32_t *ends = (uint32_t *)t->ends.data;
        if (e->key == 0) {
            uint32_t place = (uint32_t)(t->ends.used / 4);
            *e = (PointerEntry){key, place};
            t->places.used++;
            memcpy(column_room(&t->data, n), text, n);
            column_put32(&t->ends, (uint32_t)t->data.used);
            return place;
        }
        uint32_t begin = e->value ? ends[e->value - 1] : 0;
        if (ends[e->value] - begin == n && memcmp(t->data.data + begin, text, n) == 0)
            return e->value;
    }
}
