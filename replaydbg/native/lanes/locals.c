/* Thread-local variables of C and C++ libraries, which each lane has for itself as each thread would: greenlet keeps
 * the greenlet that runs in one. The system's thread has one block of them for each library; a switch of lanes changes
 * what is in it. The interpreter's own need not: at a switch it holds nothing in them. */
#include "base/core.h"
#include "lanes/inside.h"
#include <link.h>
#include <stdlib.h>

typedef struct {
    size_t module, offset;
} Index; /* as the dynamic linker's function takes it */
extern void *__tls_get_addr(Index *);

typedef struct {
    uintptr_t at;        /* of the library */
    void *block;         /* its variables */
    const void *initial; /* what they begin with; the rest is zero */
    size_t initial_size, size;
} Library;

enum { MOST_LIBRARIES = 256 };
static Library libraries[MOST_LIBRARIES];
static int library_count;

typedef struct Destructor {
    void (*function)(void *);
    void *object;
    struct Destructor *next;
} Destructor;

static int
look_at(struct dl_phdr_info *info, size_t size, void *unused)
{
    for (int i = 0; i < library_count; i++)
        if (libraries[i].at == info->dlpi_addr)
            return 0;
    for (int i = 0; i < info->dlpi_phnum && info->dlpi_tls_modid; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type != PT_TLS || relink_leaves_alone(info) || relink_is_interpreter(info) ||
            library_count == MOST_LIBRARIES)
            continue;
        Index index = {info->dlpi_tls_modid, 0};
        libraries[library_count++] =
            (Library){info->dlpi_addr, __tls_get_addr(&index), (const void *)(info->dlpi_addr + part->p_vaddr),
                      part->p_filesz, part->p_memsz};
    }
    return 0;
}

void
locals_library_loaded(void)
{
    dl_iterate_phdr(look_at, NULL);
}

static size_t
total_size(int count)
{
    size_t n = 0;
    for (int i = 0; i < count; i++)
        n += libraries[i].size;
    return n;
}

static void
save(Lane *lane)
{
    uint8_t *to = realloc(lane->locals, total_size(library_count));
    if (to == NULL)
        Py_FatalError("replaydbg: out of memory for variables of a thread");
    lane->locals = to;
    lane->locals_count = library_count;
    for (int i = 0; i < library_count; to += libraries[i++].size)
        memcpy(to, libraries[i].block, libraries[i].size);
}

void
locals_switch(Lane *leaves, Lane *comes)
{
    if (library_count == 0)
        return;
    save(leaves);
    const uint8_t *from = comes->locals;
    for (int i = 0; i < library_count; i++) {
        Library *l = &libraries[i];
        if (i < comes->locals_count) {
            memcpy(l->block, from, l->size);
            from += l->size;
        }
        else { /* it has not run since this library is there */
            memset(l->block, 0, l->size);
            memcpy(l->block, l->initial, l->initial_size);
        }
    }
}

/* ---- destructors of C++: run when the lane ends, as they are when a thread does ---- */

extern int __cxa_thread_atexit_impl(void (*function)(void *), void *object, void *library);

static int
our_thread_atexit(void (*function)(void *), void *object, void *library)
{
    if (!on_lanes || !lanes.is_on || lanes.running == &lanes.first)
        return __cxa_thread_atexit_impl(function, object, library);
    Destructor *d = malloc(sizeof *d);
    if (d == NULL)
        return -1;
    *d = (Destructor){function, object, lanes.running->destructors};
    lanes.running->destructors = d;
    return 0;
}

void
locals_end(Lane *lane)
{
    while (lane->destructors) {
        Destructor *d = lane->destructors;
        lane->destructors = d->next;
        d->function(d->object);
        free(d);
    }
}

const Relink locals_functions[] = {{"__cxa_thread_atexit", (void *)our_thread_atexit},
                                   {"__cxa_thread_atexit_impl", (void *)our_thread_atexit},
                                   {NULL, NULL}};
