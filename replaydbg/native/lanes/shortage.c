/* Memory that the program asked for and did not get, because of a limit (RLIMIT_AS, a container's). Nothing tells a
 * replay: it has another limit, or none, and other things in its memory. So what was refused is recorded, and refused
 * again.
 *
 * A refusal is named by its size and by how many of that size were asked for since the last event: both are the same in
 * a replay, as far as large blocks go. Those are seen because every large block of the interpreter's comes from the raw
 * allocator, and small ones too when there is no room for another arena. But how many small ones the arenas still have
 * room for depends on what the tool has in them: of small blocks a refusal is recorded, and ends the replay. Maps
 * without a file and stacks of threads are counted in the same way. */
#include "base/core.h"
#include "crossing/crossing.h"
#include "lanes/inside.h"
#include <stdlib.h>

#define LARGE 65536u /* the tool's own work takes no such blocks from the interpreter while the program runs */
#define SLOTS 512u   /* sizes that hash alike are counted together, in both modes */

static struct {
    uint64_t event;
    uint32_t count;
} asked[SLOTS];
static struct {
    uint64_t event, size, count;
} *refused; /* replay: as the log says, in this order */
static size_t refused_count, refused_first, refused_room;
static PyMemAllocatorEx inner;

static bool
is_the_programs(void)
{
    return core.mode != OBSERVE && core.depth == 0 && !engine.diverting && lane_has_gil();
}

static uint32_t
count_one(uint64_t size)
{
    uint32_t at = (uint32_t)(size * 0x9E3779B97F4A7C15u >> 32) % SLOTS;
    if (asked[at].event != core.crossings + 1) {
        asked[at].event = core.crossings + 1;
        asked[at].count = 0;
    }
    return ++asked[at].count;
}

static bool
is_refused(uint64_t size, uint64_t count)
{
    while (refused_first < refused_count && refused[refused_first].event < core.crossings)
        refused_first++;
    if (refused_first == refused_count || refused[refused_first].size != size || refused[refused_first].count != count)
        return false;
    refused_first++;
    return true;
}

/* 0: go on; else what shortage_met() is to be given if it was refused. */
static uint64_t
ask(uint64_t size, bool *no)
{
    uint64_t count = is_the_programs() ? count_one(size) : 0;
    *no = core.mode == REPLAY && count && is_refused(size, count);
    return count;
}

static void
met(uint64_t size, uint64_t count)
{
    if (core.mode == RECORD && is_the_programs())
        cross_control(CONTROL_NO_MEMORY, (uint64_t[]){size, count}, 2);
}

bool
shortage_ask(uint64_t size)
{
    bool no;
    ask(size, &no);
    return !no;
}

void
shortage_met(uint64_t size)
{
    uint32_t at = (uint32_t)(size * 0x9E3779B97F4A7C15u >> 32) % SLOTS;
    met(size, asked[at].count);
}

/* Replay: a record without its head. */
void
shortage_expect(Crossing *open)
{
    uint64_t size = cross_read_number(), count = cross_read_number();
    if (count == 0)
        diverge("shortage", NULL, NULL, "");
    if (refused_count == refused_room) {
        size_t more = refused_room ? refused_room * 2 : 16;
        void *bigger = realloc(refused, more * sizeof *refused);
        if (bigger == NULL)
            return;
        refused = bigger;
        refused_room = more;
    }
    refused[refused_count].event = core.crossings;
    refused[refused_count].size = size;
    refused[refused_count++].count = count;
}

/* ---- the interpreter's raw allocator ---- */

static void *
raw_malloc(void *context, size_t size)
{
    bool no = false;
    uint64_t count = size >= LARGE ? ask(size, &no) : 0;
    void *block = no ? NULL : inner.malloc(inner.ctx, size);
    if (__builtin_expect(block == NULL, 0) && !no)
        met(size, count);
    return block;
}

static void *
raw_calloc(void *context, size_t n, size_t each)
{
    bool no = false;
    uint64_t size = each && n > UINT64_MAX / each ? UINT64_MAX : (uint64_t)n * each,
             count = size >= LARGE ? ask(size, &no) : 0;
    void *block = no ? NULL : inner.calloc(inner.ctx, n, each);
    if (__builtin_expect(block == NULL, 0) && !no)
        met(size, count);
    return block;
}

static void *
raw_realloc(void *context, void *old, size_t size)
{
    bool no = false;
    uint64_t count = size >= LARGE ? ask(size, &no) : 0;
    void *block = no ? NULL : inner.realloc(inner.ctx, old, size);
    if (__builtin_expect(block == NULL, 0) && !no)
        met(size, count);
    return block;
}

static void
raw_free(void *context, void *block)
{
    inner.free(inner.ctx, block);
}

void
shortage_begin(void)
{
    PyMem_GetAllocator(PYMEM_DOMAIN_RAW, &inner);
    PyMem_SetAllocator(PYMEM_DOMAIN_RAW, &(PyMemAllocatorEx){NULL, raw_malloc, raw_calloc, raw_realloc, raw_free});
}
