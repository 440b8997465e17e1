/* Calls of functions from the interpreter and from C libraries led to others: the entries of their global offset tables
 * are replaced, as the dynamic linker would have filled them had it known ours first. The core's own table is left
 * alone, so the core calls the real ones; so are those of the C library and of the dynamic linker. */
#include "base/core.h"
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
enum { SLOT_OF_CALL = R_X86_64_JUMP_SLOT, SLOT_OF_ADDRESS = R_X86_64_GLOB_DAT, IN_DATA = R_X86_64_64 };
#elif defined(__aarch64__)
enum { SLOT_OF_CALL = R_AARCH64_JUMP_SLOT, SLOT_OF_ADDRESS = R_AARCH64_GLOB_DAT, IN_DATA = R_AARCH64_ABS64 };
#else
enum { SLOT_OF_CALL = -1, SLOT_OF_ADDRESS = -1, IN_DATA = -1 };
#endif

typedef struct {
    const ElfW(Sym) *symbols;
    const char *strings;
    const ElfW(Rela) *tables[2];
    size_t sizes[2]; /* bytes */
} Dynamic;

static void
replace(void **entry, void *function)
{
    long page = sysconf(_SC_PAGESIZE);
    void *start = (void *)((uintptr_t)entry & ~(uintptr_t)(page - 1));
    if (*entry == function || mprotect(start, (size_t)page, PROT_READ | PROT_WRITE) < 0)
        return; /* the page stays writable, as it is where libraries are bound lazily */
    *entry = function;
}

static bool
read_dynamic(const struct dl_phdr_info *info, Dynamic *d)
{
    const ElfW(Dyn) *entry = NULL;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            entry = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    for (; entry && entry->d_tag != DT_NULL; entry++)
        switch (entry->d_tag) {
        case DT_SYMTAB:
            d->symbols = (const void *)entry->d_un.d_ptr;
            break;
        case DT_STRTAB:
            d->strings = (const void *)entry->d_un.d_ptr;
            break;
        case DT_JMPREL:
            d->tables[0] = (const void *)entry->d_un.d_ptr;
            break;
        case DT_PLTRELSZ:
            d->sizes[0] = entry->d_un.d_val;
            break;
        case DT_RELA:
            d->tables[1] = (const void *)entry->d_un.d_ptr;
            break;
        case DT_RELASZ:
            d->sizes[1] = entry->d_un.d_val;
            break;
        }
    /* the C library has made these addresses absolute; the kernel's own object (vdso) has none that are */
    return d->symbols && d->strings && (uintptr_t)d->strings > info->dlpi_addr;
}

static bool
contains(const struct dl_phdr_info *info, const void *address)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_LOAD && (uintptr_t)address >= start && (uintptr_t)address < start + part->p_memsz)
            return true;
    }
    return false;
}

bool
relink_leaves_alone(const struct dl_phdr_info *info)
{
    static const char *const names[] = {"libc.so", "libc-",   "libpthread", "ld-linux",
                                        "ld-musl", "libasan", "libubsan",   "libtsan"};
    const char *name = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
    if (contains(info, (const void *)(uintptr_t)relink))
        return true;
    for (size_t i = 0; name && i < sizeof names / sizeof *names; i++)
        if (strncmp(name + 1, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

bool
relink_is_interpreter(const struct dl_phdr_info *info)
{
    return contains(info, (const void *)(uintptr_t)PyThread_start_new_thread);
}

static const Relink *
find(const Relinking *wanted, const char *name)
{
    for (const Relink *r = wanted->functions; r->name; r++)
        if (r->name[0] == name[0] && strcmp(r->name, name) == 0)
            return r;
    return NULL;
}

static int
relink_object(struct dl_phdr_info *info, size_t size, void *data)
{
    Relinking *wanted = data;
    Dynamic d = {0};
    for (int i = 0; i < wanted->seen_count; i++)
        if (wanted->seen[i] == info->dlpi_addr)
            return 0;
    if (wanted->seen_count < (int)(sizeof wanted->seen / sizeof *wanted->seen))
        wanted->seen[wanted->seen_count++] = info->dlpi_addr;
    if (relink_leaves_alone(info) || !read_dynamic(info, &d))
        return 0;
    const char *name = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL;
    if (wanted->only_named && (!name || strncmp(name + 1, wanted->only_named, strlen(wanted->only_named)) != 0))
        return 0;
    if (wanted->only_interpreter && !relink_is_interpreter(info))
        return 0;
    if (wanted->is_wanted && !wanted->is_wanted(info))
        return 0;
    for (int t = 0; t < 2; t++)
        for (size_t i = 0; d.tables[t] && i < d.sizes[t] / sizeof(ElfW(Rela)); i++) {
            const ElfW(Rela) *r = &d.tables[t][i];
            int type = (int)ELF64_R_TYPE(r->r_info);
            bool in_data = type == IN_DATA && wanted->is_wanted && r->r_addend == 0; /* of a structure of functions */
            if (type != SLOT_OF_CALL && type != SLOT_OF_ADDRESS && !in_data)
                continue;
            const ElfW(Sym) *symbol = &d.symbols[ELF64_R_SYM(r->r_info)];
            const Relink *found = find(wanted, d.strings + symbol->st_name);
            if (found && (symbol->st_shndx == SHN_UNDEF || !wanted->is_wanted)) /* else it is the library's own */
                replace((void **)(info->dlpi_addr + r->r_offset), found->function);
        }
    return 0;
}

void
relink(Relinking *wanted)
{
    dl_iterate_phdr(relink_object, wanted);
}
