/* What happens at a system call that the filter refuses: the kernel raises SIGSYS in the place of the call, and the
 * handler ends the replay with a divergence that names it. The program cannot catch that: the filter leaves no other
 * handler to this signal.
 *
 * Where the signal is blocked, as glibc blocks all signals in system() and posix_spawn(), the kernel ends the process
 * with it; then its exit status is all there is to tell. */
#include "base/core.h"
#include "ending/ending.h"
#include "guard/inside.h"
#include "libc/libc.h"
#include <asm/unistd.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#if (defined(__x86_64__) || defined(__aarch64__)) && !defined(THIS_ARCH)
#error "without THIS_ARCH there is no fence"
#endif

#ifdef THIS_ARCH

enum { TRAPPED = 1 }; /* si_code SYS_SECCOMP, which older C libraries do not define */

/* The kernel's struct sigaction, which is the same on both architectures. */
typedef struct {
    void (*handler)(int, siginfo_t *, void *);
    unsigned long flags;
    void (*restorer)(void);
    uint64_t mask;
} KernelAction;

static KernelAction programs; /* what the program finds as the handler of SIGSYS */

static uint64_t
argument(const ucontext_t *context, int i)
{
#if defined(__x86_64__)
    static const int registers[] = {REG_RDI, REG_RSI, REG_RDX, REG_R10};
    return (uint64_t)context->uc_mcontext.gregs[registers[i]];
#else
    return context->uc_mcontext.regs[i];
#endif
}

static void
set_result(ucontext_t *context, int64_t result)
{
#if defined(__x86_64__)
    context->uc_mcontext.gregs[REG_RAX] = result;
#else
    context->uc_mcontext.regs[0] = (uint64_t)result;
#endif
}

/* Libraries set a handler for every signal there is (Go's runtime does), and the interpreter takes its own away at its
 * end. What they set is remembered and shown, and the kernel does not hear of it. */
static int64_t
handle(const ucontext_t *context)
{
    const KernelAction *fresh = (const KernelAction *)(uintptr_t)argument(context, 1);
    KernelAction *old = (KernelAction *)(uintptr_t)argument(context, 2), before = programs;
    if (argument(context, 3) != sizeof programs.mask)
        return -EINVAL;
    if (fresh)
        programs = *fresh;
    if (old)
        *old = before;
    return 0;
}

/* A copy of a process of the debugger has another number than the one that the filter knows as its own. */
static bool
is_signal_to_itself(const siginfo_t *info, const ucontext_t *context)
{
    static const int calls[] = {__NR_kill, __NR_tkill, __NR_tgkill, __NR_rt_sigqueueinfo, __NR_rt_tgsigqueueinfo};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (calls[i] == info->si_syscall)
            return info->si_arch == THIS_ARCH && (engine.is_on || core.is_future) &&
                   (pid_t)argument(context, 0) == getpid();
    return false;
}

/* By a timer that is over at once: the filter cannot let a copy send signals to its own number without letting it send
 * them to any other, but a timer's signal is for its own process. */
static int64_t
send_signal(const siginfo_t *info, const ucontext_t *context)
{
    bool names_thread = info->si_syscall == __NR_tgkill || info->si_syscall == __NR_rt_tgsigqueueinfo;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = (int)argument(context, names_thread ? 2 : 1)};
    struct itimerspec time = {.it_value.tv_nsec = 1};
    int timer;
    if (event.sigev_signo == 0)
        return 0; /* whether there is such a process */
    if (syscall(__NR_timer_create, CLOCK_MONOTONIC, &event, &timer, 0, 0, own_token()) < 0 ||
        syscall(__NR_timer_settime, timer, 0, &time, NULL, 0, own_token()) < 0)
        return -errno;
    while (syscall(__NR_timer_gettime, timer, &time) == 0 && (time.it_value.tv_sec || time.it_value.tv_nsec))
        ;
    return 0;
}

/* Reads a path where the program says it is, page by page: what follows its end may be unmapped. The kernel looks
 * whether that is readable, as it copies it into a pipe. Returns its length. */
static size_t
copy_path(char *to, size_t room, uint64_t address)
{
    int ends[2];
    size_t n = 0;
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return 0;
    while (n < room) {
        size_t part = 4096 - (address + n) % 4096;
        part = part < room - n ? part : room - n;
        /* not write(): a sanitizer would look itself, and more of a page than the path is not the program's */
        ssize_t got = syscall(__NR_write, ends[1], (const void *)(uintptr_t)(address + n), part);
        if (got > 0)
            got = read(ends[0], to + n, (size_t)got);
        if (got <= 0) {
            n = 0;
            break;
        }
        char *stop = memchr(to + n, 0, (size_t)got);
        n = stop ? (size_t)(stop - to) : n + (size_t)got;
        if (stop)
            break;
    }
    close(ends[0]);
    close(ends[1]);
    return n;
}

static const SystemCall *
find_call(const siginfo_t *info)
{
    for (int i = 0; i < system_call_count && info->si_arch == THIS_ARCH; i++)
        if (system_calls[i].number == info->si_syscall)
            return &system_calls[i];
    return NULL;
}

/* snprintf() of numbers and short texts takes no lock and no memory. */
static void
describe(char *text, size_t size, const siginfo_t *info, const ucontext_t *context)
{
    char path[200];
    const SystemCall *call = find_call(info);
    if (call == NULL) {
        bool is_own = info->si_arch == THIS_ARCH;
        snprintf(text, size, "%s %d(...)", is_own ? "system call" : "32-bit system call", info->si_syscall);
        return;
    }
    size_t n = call->path ? copy_path(path, sizeof path - 1, argument(context, call->path - 1)) : 0;
    path[n] = 0;
    long long first = (int)argument(context, 0);
    if (n > 0)
        snprintf(text, size, "%s(\"%s\"%s)", call->name, path, call->path == 1 && call->kind == REFUSED ? "" : ", ...");
    else if (call->kind == ASKS_TERMINAL || call->kind == ASKS_DESCRIPTOR)
        snprintf(text, size, "%s(%lld, %#llx, ...)", call->name, first,
                 (unsigned long long)(unsigned)argument(context, 1));
    else if (call->kind != REFUSED && !call->path)
        snprintf(text, size, "%s(%lld, ...)", call->name, first);
    else
        snprintf(text, size, "%s(...)", call->name);
}

static void
refused(int signum, siginfo_t *info, void *context)
{
    int saved = errno;
    if (libc_trapped(info, context)) /* a call of C code that the recording answers */
        ;
    else if (info->si_code != TRAPPED) { /* the program sent it to itself */
        if (programs.handler != (void *)SIG_DFL && programs.handler != (void *)SIG_IGN)
            programs.handler(signum, info, context);
    }
    else if (info->si_arch == THIS_ARCH && info->si_syscall == __NR_rt_sigaction)
        set_result(context, handle(context));
    else if (is_signal_to_itself(info, context))
        set_result(context, send_signal(info, context));
    else if (info->si_arch == THIS_ARCH && info->si_syscall == __NR_exit_group)
        process_ends((int)argument(context, 0));
    else {
        char text[300];
        describe(text, sizeof text, info, context);
        diverge("refused", NULL, NULL, text);
    }
    errno = saved;
}

int
refused_prepare(void)
{
    struct sigaction action = {.sa_sigaction = refused, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGSYS);
    if (syscall(__NR_rt_sigaction, SIGSYS, NULL, &programs, sizeof programs.mask) < 0 ||
        sigaction(SIGSYS, &action, NULL) < 0)
        return -1;
    return sigprocmask(SIG_UNBLOCK, &signals, NULL); /* whoever started us may have blocked it */
}

#else

int
refused_prepare(void)
{
    return 0;
}

#endif
