/* Small blocks of memory that C code asks for lie at the same addresses in both modes, and a thread has the same ident.
 *
 * C libraries mix addresses into what they compute: OpenSSL seeds each of its generators with the generator's own
 * address and with pthread_self(). The C library's heap cannot be the same in both modes, since the tool itself uses
 * it. So blocks of up to 2 KiB that a library of the program asks for, outside every crossing, come from slabs at fixed
 * addresses, which nobody else uses: the same questions in the same order get the same addresses. Larger blocks, and
 * those of threads that C code has started, are the C library's.
 *
 * A slab has blocks of one size; a block that is given back is the next one to be given. Who frees a block may be any
 * library, so free() is led in all of them, from when the first library of the program is there. */
#define _GNU_SOURCE
#include "base/core.h"
#include "lanes/lanes.h"
#include "libc/inside.h"
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define FIRST_SLAB 0x5e0000000000u
enum { UNIT = 16, LARGEST = 2048, CLASSES = LARGEST / UNIT + 1, SLAB = 1 << 16, GROWTH = 64, MOST_SLABS = 1 << 16 };

typedef struct Free {
    struct Free *next;
} Free;

static Free *free_blocks[CLASSES];
static char *fresh[CLASSES], *fresh_end[CLASSES];
static _Atomic(Free *) freed_elsewhere; /* by threads that C code has started */
static uint8_t class_of_slab[MOST_SLABS];
static size_t slabs_mapped, slabs_used;

static inline bool
is_ours(const void *block)
{
    return (uintptr_t)block - FIRST_SLAB < (uintptr_t)MOST_SLABS * SLAB;
}

static inline unsigned
class_of(const void *block)
{
    return class_of_slab[((uintptr_t)block - FIRST_SLAB) / SLAB];
}

static bool
new_slab(unsigned class)
{
    if (slabs_used == slabs_mapped) {
        void *at = (void *)(FIRST_SLAB + slabs_mapped * SLAB);
        if (slabs_mapped + GROWTH > MOST_SLABS || mmap(at, (size_t)GROWTH * SLAB, PROT_READ | PROT_WRITE,
                                                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != at)
            return false;
        slabs_mapped += GROWTH;
    }
    class_of_slab[slabs_used] = (uint8_t)class;
    fresh[class] = (char *)(FIRST_SLAB + slabs_used++ * SLAB);
    fresh_end[class] = fresh[class] + SLAB / (class * UNIT) * (class * UNIT);
    return true;
}

static void
take_back(void)
{
    Free *block = atomic_exchange(&freed_elsewhere, NULL);
    while (block) {
        Free *next = block->next;
        block->next = free_blocks[class_of(block)];
        free_blocks[class_of(block)] = block;
        block = next;
    }
}

/* NULL: the C library is to give it. */
static void *
take(size_t size)
{
    unsigned class = size ? (unsigned)((size + UNIT - 1) / UNIT) : 1;
    if (free_blocks[class] == NULL && freed_elsewhere)
        take_back();
    Free *block = free_blocks[class];
    if (block) {
        free_blocks[class] = block->next;
        return block;
    }
    if (fresh[class] == fresh_end[class] && !new_slab(class))
        return NULL;
    void *at = fresh[class];
    fresh[class] += class * UNIT;
    return at;
}

static inline bool
is_taken_here(size_t size)
{
    return size <= LARGEST && on_lanes && core.depth == 0 && lanes.is_on && core.tstate;
}

static void *
our_malloc(size_t size)
{
    void *block = is_taken_here(size) ? take(size) : NULL;
    return block ? block : malloc(size);
}

static void *
our_calloc(size_t count, size_t size)
{
    size_t n;
    void *block = !__builtin_mul_overflow(count, size, &n) && is_taken_here(n) ? take(n) : NULL;
    return block ? memset(block, 0, n) : calloc(count, size);
}

static void
our_free(void *block)
{
    if (!is_ours(block)) {
        free(block);
        return;
    }
    Free *f = block;
    if (on_lanes) {
        f->next = free_blocks[class_of(block)];
        free_blocks[class_of(block)] = f;
        return;
    }
    f->next = atomic_load(&freed_elsewhere);
    while (!atomic_compare_exchange_weak(&freed_elsewhere, &f->next, f)) {
    }
}

static void *
our_realloc(void *block, size_t size)
{
    if (block == NULL)
        return our_malloc(size);
    if (!is_ours(block))
        return realloc(block, size);
    size_t room = class_of(block) * UNIT;
    if (size == 0) {
        our_free(block);
        return NULL;
    }
    if (size <= room && size > room / 2)
        return block;
    void *fresh_block = our_malloc(size);
    if (fresh_block) {
        memcpy(fresh_block, block, size < room ? size : room);
        our_free(block);
    }
    return fresh_block;
}

/* The interpreter's own: what it asks for is its own matter. */
static void *
interpreters_realloc(void *block, size_t size)
{
    return is_ours(block) ? our_realloc(block, size) : realloc(block, size);
}

static void *
our_reallocarray(void *block, size_t count, size_t size)
{
    size_t n;
    if (!__builtin_mul_overflow(count, size, &n))
        return our_realloc(block, n);
    errno = ENOMEM;
    return NULL;
}

static size_t
our_usable_size(void *block)
{
    return is_ours(block) ? class_of(block) * UNIT : malloc_usable_size(block);
}

/* The C library makes this buffer larger by itself. */
static ssize_t
our_getdelim(char **line, size_t *size, int delimiter, FILE *file)
{
    if (line && is_ours(*line)) {
        size_t n = size && *size ? *size : 1;
        char *block = malloc(n);
        if (block == NULL)
            return -1;
        our_free(*line);
        *line = block;
    }
    return getdelim(line, size, delimiter, file);
}

static ssize_t
our_getline(char **line, size_t *size, FILE *file)
{
    return our_getdelim(line, size, '\n', file);
}

static char *
our_strndup(const char *text, size_t most)
{
    size_t n = strnlen(text, most);
    char *copy = our_malloc(n + 1);
    if (copy) {
        memcpy(copy, text, n);
        copy[n] = 0;
    }
    return copy;
}

static char *
our_strdup(const char *text)
{
    return our_strndup(text, SIZE_MAX - 1);
}

/* ---- threads ---- */

static pthread_t
our_self(void)
{
    return on_lanes && lanes.running ? (pthread_t)lane_ident(lanes.running) : pthread_self();
}

/* Whose thread is named by a lane's ident: the one that all lanes run on. */
static pthread_t
real_thread(pthread_t thread)
{
    return on_lanes && lane_of_ident((uintptr_t)thread) ? pthread_self() : thread;
}

/* thread_calls.c and raised.c have the others, which C code may be asked to call by the program. */
static int
about_clock(pthread_t thread, clockid_t *clock)
{
    return pthread_getcpuclockid(real_thread(thread), clock);
}

static int
about_detach(pthread_t thread)
{
    return on_lanes && lane_of_ident((uintptr_t)thread) ? 0 : pthread_detach(thread);
}

const LibcForm libc_memory[] = {
#ifndef __SANITIZE_ADDRESS__ /* which has an allocator of its own */
    {"malloc", (void *)our_malloc},
    {"calloc", (void *)our_calloc},
    {"realloc", (void *)our_realloc},
    {"free", (void *)our_free},
    {"reallocarray", (void *)our_reallocarray},
    {"malloc_usable_size", (void *)our_usable_size},
    {"getdelim", (void *)our_getdelim},
    {"__getdelim", (void *)our_getdelim},
    {"getline", (void *)our_getline},
    {"strdup", (void *)our_strdup},
    {"__strdup", (void *)our_strdup},
    {"strndup", (void *)our_strndup},
    {"__strndup", (void *)our_strndup},
    {"cfree", (void *)our_free},
#endif
    {"pthread_self", (void *)our_self},
    {"pthread_getcpuclockid", (void *)about_clock},
    {"pthread_detach", (void *)about_detach},
    {NULL, NULL}};

const Relink libc_freeing[] = {
#ifndef __SANITIZE_ADDRESS__
    {"free", (void *)our_free},
    {"realloc", (void *)interpreters_realloc},
    {"malloc_usable_size", (void *)our_usable_size},
#endif
    {NULL, NULL}};
