/* How calls of C code get to libc.c: by the tables of offsets of libraries that are not the interpreter's, by what
 * dlsym() answers, and by syscall(). */
#define _GNU_SOURCE
#include "base/core.h"
#include "base/many.h"
#include "crossing/crossing.h"
#include "lanes/lanes.h"
#include "libc/inside.h"
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STUB(n)                                                                                                        \
    static long stub_##n(long a, long b, long c, long d, long e, long f)                                               \
    {                                                                                                                  \
        return libc_enter(&libc_rows[0##n - 01000], a, b, c, d, e, f);                                                 \
    }
#define NAME_OF_STUB(n) stub_##n,
MANY_512(STUB)
typedef long (*Stub)(long, long, long, long, long, long);
static const Stub stubs[] = {MANY_512(NAME_OF_STUB)};

static struct {
    uintptr_t start, end, code_start, code_end;
} c_library;
static bool leads;        /* the recording has such events, or will have */
static Relink *functions; /* what is led, for relink() */

/* ---- functions of their own ---- */

/* The kernel's number of the thread: lanes do not share one. */
static long
real_gettid(long a, long b, long c, long d, long e, long f)
{
    return syscall(SYS_gettid) + (on_lanes ? lanes.running->id : 0);
}

/* it reads as many arguments as the call with the most of them has */
static long __attribute__((no_sanitize("address")))
our_syscall(long number, ...)
{
    long a[6];
    va_list args;
    va_start(args, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(args, long);
    va_end(args);
    return libc_by_number(number, a);
}

/* ---- dlsym() ---- */

static const Relink *
find_led(const char *name)
{
    for (const Relink *r = functions; leads && r->name; r++)
        if (r->name[0] == name[0] && strcmp(r->name, name) == 0)
            return r;
    return NULL;
}

/* What a library of the program finds by name. Its own function of that name stays its own. */
void *
libc_lookup(void *library, const char *name)
{
    libc_library_loaded(); /* it may be the first that is asked of a new one */
    void *found = dlsym(library, name);
    const Relink *led = found ? find_led(name) : NULL;
    LibcRow *row = led ? libc_row_named(name) : NULL;
    bool is_of_c_library = (uintptr_t)found >= c_library.start && (uintptr_t)found < c_library.end;
    return led && (is_of_c_library || (row && row->address == found)) ? led->function : found;
}

/* dlsym(RTLD_DEFAULT) looks into what the library that asks was loaded with, too. */
static void *
our_dlsym(void *library, const char *name)
{
    void *ours = threads_function(name), *found = ours ? ours : libc_lookup(library, name);
    Dl_info info;
    if (found || library != RTLD_DEFAULT || dladdr(__builtin_return_address(0), &info) == 0)
        return found;
    void *asking = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (asking == NULL)
        return NULL;
    found = libc_lookup(asking, name);
    dlclose(asking);
    return found;
}

/* The interpreter asks for the function that makes a module: before it runs, what its library calls is led. */
static void *
interpreters_dlsym(void *library, const char *name)
{
    libc_library_loaded();
    return dlsym(library, name);
}

/* ---- which libraries ---- */

enum { MOST_NEEDED = 128 };
static char *needed_by_interpreter[MOST_NEEDED]; /* names of libraries that modules of the standard library bring */
static int needed_count;

static const char *
base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool
is_of_standard_library(const char *path)
{
    return strstr(path, "/lib-dynload/") != NULL;
}

static void
note_needed(const struct dl_phdr_info *info)
{
    const ElfW(Dyn) *entry = NULL;
    const char *strings = NULL;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            entry = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    for (const ElfW(Dyn) *d = entry; d && d->d_tag != DT_NULL; d++)
        if (d->d_tag == DT_STRTAB)
            strings = (const char *)d->d_un.d_ptr;
    for (const ElfW(Dyn) *d = entry; strings && d && d->d_tag != DT_NULL; d++) {
        bool known = d->d_tag != DT_NEEDED;
        for (int i = 0; !known && i < needed_count; i++)
            known = strcmp(needed_by_interpreter[i], strings + d->d_un.d_val) == 0;
        if (!known && needed_count < MOST_NEEDED &&
            (needed_by_interpreter[needed_count] = strdup(strings + d->d_un.d_val)))
            needed_count++;
    }
}

static bool program_has_library; /* one that is led is there */

static bool
is_led(const struct dl_phdr_info *info)
{
    const char *name = info->dlpi_name ? info->dlpi_name : "";
    if (name[0] == 0 || strncmp(name, "linux-vdso", 10) == 0 || relink_is_interpreter(info))
        return false;
    if (is_of_standard_library(name)) {
        note_needed(info);
        return false;
    }
    for (int i = 0; i < needed_count; i++)
        if (strcmp(needed_by_interpreter[i], base_name(name)) == 0) {
            note_needed(info);
            return false;
        }
    return true;
}

static bool
is_new_and_led(const struct dl_phdr_info *info)
{
    if (!is_led(info))
        return false;
    program_has_library = true;
    libc_trap_library(info);
    return true;
}

static bool
is_not_led(const struct dl_phdr_info *info)
{
    return !is_led(info);
}

/* Where it is looked for may depend on who asks: the call is the last one then, and so the asking library's own. */
static void *
our_dlopen(const char *name, int flags)
{
    if (name && strchr(name, '/') == NULL)
        return dlopen(name, flags);
    void *library = dlopen(name, flags);
    if (on_lanes)
        libc_library_loaded();
    return library;
}

static int
count_loaded(struct dl_phdr_info *info, size_t size, void *count)
{
    *(unsigned long long *)count = info->dlpi_adds;
    return 1;
}

void
libc_library_loaded(void)
{
    static Relinking foreign = {.is_wanted = is_new_and_led},
                     freeing = {.functions = libc_freeing, .is_wanted = is_not_led},
                     interpreter = {.only_interpreter = true};
    static const Relink asking[] = {{"dlsym", (void *)interpreters_dlsym}, {NULL, NULL}};
    static unsigned long long known;
    unsigned long long count = 0;
    dl_iterate_phdr(count_loaded, &count);
    if (!leads || !lanes.is_on || count == known)
        return;
    known = count;
    zmq_library_loaded();
    lanes_relink(); /* theirs first: ours call them */
    clones_library_loaded();
    foreign.functions = functions;
    interpreter.functions = asking;
    relink(&interpreter);
    relink(&foreign);
    if (program_has_library)
        relink(&freeing);
}

/* ---- start ---- */

static int
find_c_library(struct dl_phdr_info *info, size_t size, void *function)
{
    uintptr_t start = UINTPTR_MAX, end = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t at = info->dlpi_addr + part->p_vaddr;
        if (part->p_type != PT_LOAD)
            continue;
        if (part->p_flags & PF_X) {
            c_library.code_start = at;
            c_library.code_end = at + part->p_memsz;
        }
        start = at < start ? at : start;
        end = at + part->p_memsz > end ? at + part->p_memsz : end;
    }
    if ((uintptr_t)function < start || (uintptr_t)function >= end)
        return 0;
    c_library.start = start;
    c_library.end = end;
    return 1;
}

static void
bind_row(int i)
{
    LibcRow *row = &libc_rows[i];
    /* only named: it never gets there */
    row->gate = gate_named("libc", row->flags & ONLY_NAMED ? libc_rows[0].name : row->name);
    row->address = dlsym(RTLD_DEFAULT, row->name);
    void *of_lanes = libcalls_ours(row->name);
    row->real = (Stub)(of_lanes ? of_lanes : row->address);
    if (strcmp(row->name, "gettid") == 0)
        row->real = real_gettid;
    if (strcmp(row->name, "vfork") == 0)
        row->real = libc_row_named("fork")->real; /* its caller's frame would be used twice */
    if (strcmp(row->name, "getpid") == 0 && clones_getpid())
        row->real = (Stub)clones_getpid();
    row->stub = (void *)stubs[i];
}

void
libc_install(void)
{
    _Static_assert(sizeof stubs / sizeof *stubs >= 400, "a stub for each row");
    if (libc_row_count > (int)(sizeof stubs / sizeof *stubs) || gate_named("libc", libc_rows[0].name) == NULL)
        return; /* a recording from before has no such events */
    functions = calloc((size_t)libc_row_count + 128, sizeof *functions);
    if (functions == NULL)
        return;
    dl_iterate_phdr(find_c_library, (void *)(uintptr_t)dlsym(RTLD_DEFAULT, "getpid"));
    libc_trap_range(c_library.code_start, c_library.code_end);
    int n = 0;
    bool has_zmq = gate_named("libzmq", zmq_forms[0].name) != NULL;
    for (int i = 0; i < libc_row_count; i++)
        bind_row(i);
    for (const LibcForm *f = libc_forms; f->name; f++)
        functions[n++] = (Relink){f->name, f->function};
    for (const LibcForm *f = libc_memory; f->name; f++)
        functions[n++] = (Relink){f->name, f->function};
    for (const LibcForm *f = zmq_forms; has_zmq && f->name; f++)
        functions[n++] = (Relink){f->name, f->function};
    functions[n++] = (Relink){"syscall", (void *)our_syscall};
    functions[n++] = (Relink){"dlsym", (void *)our_dlsym};
    functions[n++] = (Relink){"dlopen", (void *)our_dlopen};
    for (int i = 0; i < libc_row_count; i++) {
        bool has_form = false;
        for (const LibcForm *f = libc_forms; f->name; f++)
            has_form = has_form || strcmp(f->name, libc_rows[i].name) == 0;
        if (!has_form && libc_rows[i].gate && libc_rows[i].real)
            functions[n++] = (Relink){libc_rows[i].name, libc_rows[i].stub};
    }
    leads = true;
    libc_library_loaded();
}
