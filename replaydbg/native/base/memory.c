/* Memory of the program that the core reads by itself. It may be gone: a map can be longer than its file or than the
 * memory it was made over, C code can take away the right to read it, or unmap it. The program would get a signal for
 * reading it; the core must not.
 *
 * The kernel looks: it copies a set of signals from there, and then refuses, since nothing can be done with a set in no
 * known way. process_vm_readv(), which looks and reads in one step, is refused in many containers, and a pipe would
 * need descriptors that the program could see. Another process may still cut a file between the look and the reading;
 * for the program's own reading that is no different. */
#include "base/core.h"
#include <errno.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096u                   /* the smallest that there are */
#define SET_SIZE 8                   /* of a set of signals, for the kernel */
#define MOST_APART ((size_t)4 << 30) /* of addresses */

bool
memory_is_there(const void *at)
{
    int saved = errno;
    const void *page = (const void *)((uintptr_t)at & ~(uintptr_t)(PAGE - 1));
    bool is_there = syscall(SYS_rt_sigprocmask, ~0, page, NULL, SET_SIZE) == 0 || errno != EFAULT;
    errno = saved;
    return is_there;
}

void
memory_copy(uint8_t *to, const uint8_t *from, size_t n)
{
    for (size_t at = 0; at < n;) {
        size_t part = PAGE - ((uintptr_t)(from + at) & (PAGE - 1));
        part = part < n - at ? part : n - at;
        if (memory_is_there(from + at))
            memcpy(to + at, from + at, part);
        at += part;
    }
}

/* Whether a word of an object may be the address of another one. An interpreter that was linked for fixed addresses, as
 * Debian's and Ubuntu's are, lies at the beginning of all addresses, with the heap of the C library behind it. */
bool
memory_may_be_address(uint64_t word)
{
    enum { FIRST_FIXED = 1 << 22 }; /* where linkers put such a program; smaller numbers are numbers */
#if defined(__aarch64__)
    enum { BITS = 48 };
#else
    enum { BITS = 47 };
#endif
    static uint64_t first;
    if (first == 0)
        first = getauxval(AT_PHDR) >> 32 ? (uint64_t)1 << 32 : FIRST_FIXED;
    return word >= first && word >> BITS == 0 && (word & 7) == 0;
}

/* ---- memory apart from the program's ----
 * What the tool takes from the program's own allocator moves what the program takes next, and one process of a session would have its objects
 * elsewhere than another. */

void *
memory_apart(size_t n)
{
    void *room = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED)
        Py_FatalError("replaydbg: out of memory for the debugger");
    return room;
}

/* Reports on a recording in progress come at a different moment in each run. */
void *
memory_apart_small(size_t n)
{
    static uint8_t *room;
    static size_t used;
    size_t size = (n + 15) & ~(size_t)15;
    if (room == NULL)
        room = memory_apart(MOST_APART);
    if (used + size > MOST_APART)
        Py_FatalError("replaydbg: out of memory for following a recording");
    used += size;
    return room + used - size;
}
