/* Since when an object is the one that lies at its address: the number of the snapshot before which its memory was last
 * freed, or put to a new use. Kept only from the first snapshot of a run on; of what was never freed since, it is 0. An
 * object of one snapshot is that of an earlier one at the same address if its number is not later than the earlier
 * snapshot's.
 *
 * Two bytes for each sixteen of the address space, of which the kernel gives what is written to. */
#include "identity/inside.h"
#include <sys/mman.h>

#define CHUNK 26 /* bits of an address that one table serves: 64 MiB */
#define CHUNKS ((size_t)1 << (47 - CHUNK))

bool since_is_kept;
static uint16_t **chunks, next;

static void *
room(size_t size)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

void
since_freed(uintptr_t block)
{
    size_t i = block >> CHUNK;
    if (i >= CHUNKS)
        return;
    if (chunks[i] == NULL && (chunks[i] = room((size_t)2 << (CHUNK - 4))) == NULL) {
        since_is_kept = false; /* then everything counts as new: see heap_since() */
        return;
    }
    chunks[i][block >> 4 & (((size_t)1 << (CHUNK - 4)) - 1)] = next;
}

/* From now on until the snapshot of that number is taken, what is freed is freed before it. */
void
since_begin(uint64_t number)
{
    chunks = chunks ? chunks : room(CHUNKS * sizeof *chunks);
    next = number < UINT16_MAX ? (uint16_t)number : UINT16_MAX;
    if (chunks == NULL || since_is_kept)
        return;
    identity_watch_reused();
    since_is_kept = true;
}

uint32_t
heap_since(uint64_t block)
{
    if (!since_is_kept)
        return next;
    size_t i = block >> CHUNK;
    return i < CHUNKS && chunks[i] ? chunks[i][block >> 4 & (((size_t)1 << (CHUNK - 4)) - 1)] : 0;
}
