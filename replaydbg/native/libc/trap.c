/* System calls that C code makes with an instruction of its own, past the C library.
 *
 * The kernel can hand back to the thread each system call whose instruction is not in one range of addresses (Syscall
 * User Dispatch, Linux 5.11). That range is the C library's code; what comes from elsewhere raises SIGSYS, whose
 * handler makes it the same event as if the C library's function had been called. Neither forks nor started programs
 * inherit it, as they would a seccomp filter.
 *
 * It makes every system call of the process slower, so it begins when a library is loaded whose code has such an
 * instruction; and it ends for good at a call that no handler can make in another's place (a new thread, the return
 * from a signal, a mask of signals): such a library, mostly a runtime of another language, is named instead. */
#define _GNU_SOURCE
#include "base/core.h"
#include "crossing/crossing.h"
#include "lanes/lanes.h"
#include "libc/inside.h"
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#ifdef __x86_64__

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#define PR_SYS_DISPATCH_ON 1
#endif
enum { LET_PASS, TRAP };   /* the kernel's numbers */
enum { CODE_OF_TRAP = 2 }; /* SYS_USER_DISPATCH */

static volatile char selector = LET_PASS;
static bool is_prepared, is_over, prepared_range_known;
static uintptr_t range_start, range_end;
static struct sigaction before;

static bool
cannot_be_made_here(long number)
{
    return number == SYS_clone || number == SYS_vfork || number == SYS_fork || number == SYS_rt_sigreturn ||
           number == SYS_rt_sigprocmask || number == SYS_execve || number == SYS_sigaltstack ||
           number == 435 /* clone3 */ || number == SYS_prctl;
}

static void
give_up(const greg_t *registers)
{
    Dl_info info;
    char text[300];
    bool known = dladdr((void *)registers[REG_RIP], &info) && info.dli_fname;
    snprintf(text, sizeof text, "system calls that %s makes by itself", known ? info.dli_fname : "C code");
    selector = LET_PASS;
    is_over = true;
    if (core.mode == RECORD && on_lanes && core.depth <= core.ground)
        note("uncovered", text);
}

bool
libc_trapped(const siginfo_t *info, void *context)
{
    greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
    if (info->si_code != CODE_OF_TRAP)
        return false;
    int saved = errno;
    long number = info->si_syscall, a[6] = {r[REG_RDI], r[REG_RSI], r[REG_RDX], r[REG_R10], r[REG_R8], r[REG_R9]};
    Dl_info library;
    if (cannot_be_made_here(number)) {
        give_up(r);
        r[REG_RAX] = number;
        r[REG_RIP] -= 2; /* once more */
        errno = saved;
        return true;
    }
    /* What the dynamic linker does for a library is no input of the program's. */
    bool is_linker = dladdr((void *)r[REG_RIP], &library) && library.dli_fname &&
                     (strstr(library.dli_fname, "/ld-") || strstr(library.dli_fname, "linux-vdso"));
    long result = is_linker ? syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]) : libc_by_number(number, a);
    r[REG_RAX] = result == -1 ? -errno : result;
    errno = saved;
    return true;
}

static void
on_trap(int signum, siginfo_t *info, void *context)
{
    if (libc_trapped(info, context))
        return;
    if (before.sa_flags & SA_SIGINFO)
        before.sa_sigaction(signum, info, context);
    else if (before.sa_handler != SIG_IGN && before.sa_handler != SIG_DFL)
        before.sa_handler(signum);
    else if (before.sa_handler == SIG_DFL) {
        signal(signum, SIG_DFL);
        raise(signum);
    }
}

/* Before the filter of a replay: it need not allow it. */
static void
libc_trap_prepare(uintptr_t start, uintptr_t end)
{
    is_prepared = prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, start, end - start, &selector) == 0;
}

void
libc_trap_copied(void)
{
    if (is_prepared)
        libc_trap_prepare(range_start, range_end);
}

void
libc_trap_range(uintptr_t start, uintptr_t end)
{
    range_start = start;
    range_end = end;
    prepared_range_known = true;
    if (core.mode == REPLAY)
        libc_trap_prepare(start, end);
}

static void
begin(const char *library)
{
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_NODEFER}, now;
    sigset_t signals;
    char text[300];
    if (selector == TRAP || is_over || !prepared_range_known)
        return;
    if (!is_prepared)
        libc_trap_prepare(range_start, range_end);
    if (!is_prepared) {
        snprintf(text, sizeof text, "system calls that %s makes by itself", library);
        note("uncovered", text);
        is_over = true;
        return;
    }
    sigaction(SIGSYS, NULL, &now);
    if (now.sa_sigaction != on_trap && core.mode == RECORD) { /* a replay's own handler asks libc_trapped() */
        before = now;
        sigaction(SIGSYS, &action, NULL);
    }
    sigemptyset(&signals);
    sigaddset(&signals, SIGSYS);
    sigprocmask(SIG_UNBLOCK, &signals, NULL);
    selector = TRAP;
}

/* Bytes that look like the instruction are in all large libraries; the number is put into a register shortly before it,
 * or the result is compared with the error numbers after it. */
static bool
makes_calls(const uint8_t *code, size_t n)
{
    static const uint8_t compares[] = {0x48, 0x3d, 0x01, 0xf0, 0xff, 0xff};
    const uint8_t *end = code + n;
    for (const uint8_t *p = code; n > 64 && p < end - 16 && (p = memchr(p, 0x0f, (size_t)(end - 16 - p))); p++) {
        if (p[1] != 0x05)
            continue;
        if (memcmp(p + 2, compares, sizeof compares) == 0)
            return true;
        for (const uint8_t *q = p - 5; q > p - 24 && q > code; q--) {
            uint32_t number;
            memcpy(&number, q + 1, sizeof number);
            if (*q == 0xb8 && number < 600)
                return true;
            memcpy(&number, q + 3, sizeof number);
            if (q + 7 <= p && q[0] == 0x48 && q[1] == 0xc7 && q[2] == 0xc0 && number < 600)
                return true;
        }
    }
    return false;
}

void
libc_trap_library(const struct dl_phdr_info *info)
{
    for (int i = 0; i < info->dlpi_phnum && selector != TRAP && !is_over; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && part->p_flags & PF_X && part->p_flags & PF_R &&
            makes_calls((const uint8_t *)(info->dlpi_addr + part->p_vaddr), part->p_filesz))
            begin(info->dlpi_name);
    }
}

#else /* the kernel hands no calls back here: a library with such an instruction is named when it is loaded */

#if defined(__aarch64__)
/* Instructions have four bytes, at addresses that are multiples of four; data between functions is hardly ever this
 * one. */
static bool
makes_calls(const uint8_t *code, size_t n)
{
    static const uint8_t svc[] = {0x01, 0x00, 0x00, 0xd4}; /* svc #0 */
    for (size_t i = 0; i + sizeof svc <= n; i += sizeof svc)
        if (memcmp(code + i, svc, sizeof svc) == 0)
            return true;
    return false;
}
#else
#define makes_calls(code, n) ((void)(code), (void)(n), false)
#endif

bool
libc_trapped(const siginfo_t *info, void *context)
{
    return false;
}

void
libc_trap_copied(void)
{
}

void
libc_trap_range(uintptr_t start, uintptr_t end)
{
}

void
libc_trap_library(const struct dl_phdr_info *info)
{
    char text[300];
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_X) || !(part->p_flags & PF_R) ||
            !makes_calls((const uint8_t *)(info->dlpi_addr + part->p_vaddr), part->p_filesz))
            continue;
        snprintf(text, sizeof text, "system calls that %s makes by itself", info->dlpi_name);
        note("uncovered", text);
        return;
    }
}

#endif
