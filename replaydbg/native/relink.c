/* Calls of one function of the interpreter from C libraries led to another: the entries of their global offset tables are replaced, as
 * the dynamic linker would have filled them had it known ours first. For functions that extension modules call directly and that
 * no Python object stands for: coverage's tracer sets its trace function with PyEval_SetTrace. */
#include "core.h"
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
enum { SLOT_OF_CALL = R_X86_64_JUMP_SLOT, SLOT_OF_ADDRESS = R_X86_64_GLOB_DAT };
#elif defined(__aarch64__)
enum { SLOT_OF_CALL = R_AARCH64_JUMP_SLOT, SLOT_OF_ADDRESS = R_AARCH64_GLOB_DAT };
#else
enum { SLOT_OF_CALL = -1, SLOT_OF_ADDRESS = -1 };
#endif

typedef struct {
    const char *name;
    void *function;
} Relink;
static uintptr_t seen[1024]; /* where libraries lie; more than these are looked at each time */
static int seen_count;

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
        case DT_SYMTAB: d->symbols = (const void *)entry->d_un.d_ptr; break;
        case DT_STRTAB: d->strings = (const void *)entry->d_un.d_ptr; break;
        case DT_JMPREL: d->tables[0] = (const void *)entry->d_un.d_ptr; break;
        case DT_PLTRELSZ: d->sizes[0] = entry->d_un.d_val; break;
        case DT_RELA: d->tables[1] = (const void *)entry->d_un.d_ptr; break;
        case DT_RELASZ: d->sizes[1] = entry->d_un.d_val; break;
        }
    /* the C library has made these addresses absolute; the kernel's own object (vdso) has none that are */
    return d->symbols && d->strings && (uintptr_t)d->strings > info->dlpi_addr;
}

static int
relink_object(struct dl_phdr_info *info, size_t size, void *data)
{
    Relink *wanted = data;
    Dynamic d = {0};
    for (int i = 0; i < seen_count; i++)
        if (seen[i] == info->dlpi_addr)
            return 0;
    if (seen_count < (int)(sizeof seen / sizeof *seen))
        seen[seen_count++] = info->dlpi_addr;
    if (!read_dynamic(info, &d))
        return 0;
    for (int t = 0; t < 2; t++)
        for (size_t i = 0; d.tables[t] && i < d.sizes[t] / sizeof(ElfW(Rela)); i++) {
            const ElfW(Rela) *r = &d.tables[t][i];
            int type = (int)ELF64_R_TYPE(r->r_info);
            if ((type == SLOT_OF_CALL || type == SLOT_OF_ADDRESS) &&
                strcmp(d.strings + d.symbols[ELF64_R_SYM(r->r_info)].st_name, wanted->name) == 0)
                replace((void **)(info->dlpi_addr + r->r_offset), wanted->function);
        }
    return 0;
}

/* Libraries that are there now, each looked at once; a process has one function that is replaced. */
void
relink(const char *name, void *function)
{
    Relink wanted = {name, function};
    dl_iterate_phdr(relink_object, &wanted);
}
