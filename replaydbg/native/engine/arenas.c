/* Memory for objects in large pages, in the processes of the engine. What a clone costs is its page tables: with pages
 * of 4 KiB some 30 ms for a gigabyte. The kernel splits a large page when one side writes to it, and copies 4 KiB. */
#include "engine/inside.h"
#include <sys/mman.h>

#define LARGE_PAGE ((size_t)2 << 20)
#define REGION ((size_t)64 << 20)
#define MOST_REGIONS 4096 /* 256 GiB */

static uint8_t *regions[MOST_REGIONS]; /* in the order of their making; the last one is being used up */
static size_t count, used;             /* bytes of the last one */
static void *given_back;               /* a list through the first words of free arenas, all of one size */
static size_t size_of_all;

static bool
add_region(void)
{
    if (count == MOST_REGIONS)
        return false;
    uint8_t *room =
        mmap(NULL, REGION + LARGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED)
        return false;
    uint8_t *start = (uint8_t *)(((uintptr_t)room + LARGE_PAGE - 1) & ~(LARGE_PAGE - 1));
    madvise(start, REGION, MADV_HUGEPAGE);
    regions[count++] = start;
    used = 0;
    return true;
}

static void *
give(void *context, size_t size)
{
    if (size_of_all == 0)
        size_of_all = size;
    if (size != size_of_all || REGION % size) {
        void *room = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        return room == MAP_FAILED ? NULL : room;
    }
    if (given_back) {
        void *arena = given_back;
        given_back = *(void **)arena;
        return arena;
    }
    if ((count == 0 || used == REGION) && !add_region())
        return NULL;
    used += size;
    return regions[count - 1] + used - size;
}

static void
take_back(void *context, void *arena, size_t size)
{
    for (size_t i = count; i-- > 0;)
        if ((uint8_t *)arena >= regions[i] && (uint8_t *)arena < regions[i] + REGION) {
            madvise(arena, size, MADV_DONTNEED);
            *(void **)arena = given_back;
            given_back = arena;
            return;
        }
    munmap(arena, size); /* the interpreter had it before */
}

void
arenas_prepare(void)
{
    PyObject_SetArenaAllocator(&(PyObjectArenaAllocator){NULL, give, take_back});
}
