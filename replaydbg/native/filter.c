/* The kernel's net: in a replay, a seccomp filter refuses every system call that would change something outside.
 *
 * It needs no privilege, is installed in a quarter of a millisecond, adds some 40 ns to an allowed call, and holds for C libraries
 * too. A refused call traps: the handler of SIGSYS ends the replay with a divergence that names the call, and the program cannot catch
 * that. Where signals are blocked, as glibc blocks them all in system() and posix_spawn(), the process is killed by SIGSYS instead:
 * then its exit status is all there is to say.
 *
 * Allowed is what stays inside the process: reading and writing what is open (a replay has nothing open for writing but its own
 * streams), opening to read, memory, threads, waiting. Two calls are answered with "no such call", because their callers can do
 * without: clone3, whose flags a filter cannot see (glibc then uses clone), and io_uring_setup, whose work no filter sees.
 */
#include "engine.h"
#include "guard.h"
#include "libc.h"
#include <asm/ioctls.h>
#include <asm/unistd.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#if defined(__x86_64__)
#define THIS_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define THIS_ARCH AUDIT_ARCH_AARCH64
#endif

#ifdef THIS_ARCH

/* Calls that are younger than the kernel headers may be. Their numbers are the same everywhere. */
#ifndef __NR_pidfd_send_signal
#define __NR_pidfd_send_signal 424
#define __NR_io_uring_setup 425
#endif
#ifndef __NR_open_tree
#define __NR_open_tree 428
#define __NR_move_mount 429
#define __NR_fsopen 430
#define __NR_fsmount 432
#endif
#ifndef __NR_clone3
#define __NR_clone3 435
#endif
#ifndef __NR_openat2
#define __NR_openat2 437
#define __NR_pidfd_getfd 438
#endif
#ifndef __NR_mount_setattr
#define __NR_mount_setattr 442
#endif
#ifndef __NR_fchmodat2
#define __NR_fchmodat2 452
#endif
#ifndef __NR_setxattrat
#define __NR_setxattrat 463
#define __NR_removexattrat 466
#endif
#ifndef __NR_file_setattr
#define __NR_file_setattr 469
#endif

/* What of a call decides. Whether a path is shown, and which argument it is, is said by the same word. */
enum {
    ALWAYS,          /* refused */
    PATH,            /* refused; the first argument is a path */
    PATH_AT,         /* refused; the second one is */
    OPENS,           /* refused if its flags, the second argument, say more than reading; first argument: a path */
    OPENS_AT,        /* the same, one argument later */
    NO_SUCH_CALL,    /* answered with ENOSYS */
    NEW_PROCESS,     /* refused if the flags in the first argument say that it makes no thread */
    OTHER_PROCESS,   /* refused if the first argument is not this process */
    OTHER_OR_ZERO,   /* the same; zero is this process too */
    COMMAND,         /* refused if the second argument is the value in the row */
};

typedef struct {
    int number;
    unsigned short kind;
    const char *name;
    uint32_t command;
} Call;

#define ROW(name, kind) {__NR_##name, kind, #name, 0}
#define ROW_IF(name, command) {__NR_##name, COMMAND, #name, command}

static const Call calls[] = {
    /* files */
    ROW(openat, OPENS_AT), ROW(openat2, PATH_AT), ROW(unlinkat, PATH_AT), ROW(renameat2, PATH_AT), ROW(mkdirat, PATH_AT),
    ROW(linkat, PATH_AT), ROW(symlinkat, PATH), ROW(mknodat, PATH_AT), ROW(fchmodat, PATH_AT), ROW(fchmod, ALWAYS),
    ROW(fchownat, PATH_AT), ROW(fchown, ALWAYS), ROW(truncate, PATH), ROW(utimensat, PATH_AT), ROW(setxattr, PATH),
    ROW(lsetxattr, PATH), ROW(fsetxattr, ALWAYS), ROW(removexattr, PATH), ROW(lremovexattr, PATH), ROW(fremovexattr, ALWAYS),
    ROW(fchmodat2, PATH_AT), ROW(setxattrat, PATH_AT), ROW(removexattrat, PATH_AT), ROW(file_setattr, PATH_AT),
    ROW(flock, ALWAYS), ROW_IF(fcntl, F_SETLK), ROW_IF(fcntl, F_SETLKW), ROW_IF(fcntl, F_OFD_SETLK),
    ROW_IF(fcntl, F_OFD_SETLKW), ROW_IF(fcntl, F_SETLEASE), ROW_IF(ioctl, TCSETS),
    ROW_IF(ioctl, TCSETSW), ROW_IF(ioctl, TCSETSF), ROW_IF(ioctl, TIOCSTI),
    ROW_IF(ioctl, TIOCSWINSZ), ROW_IF(ioctl, TIOCSCTTY),
    /* sockets and other ways to talk */
    ROW(socket, ALWAYS), ROW(connect, ALWAYS), ROW(bind, ALWAYS), ROW(listen, ALWAYS), ROW(accept, ALWAYS), ROW(accept4, ALWAYS),
    ROW(sendto, ALWAYS), ROW(sendmsg, ALWAYS), ROW(sendmmsg, ALWAYS), ROW(msgget, ALWAYS), ROW(msgsnd, ALWAYS), ROW(semget, ALWAYS),
    ROW(semop, ALWAYS), ROW(semtimedop, ALWAYS), ROW(shmget, ALWAYS), ROW(mq_open, PATH), ROW(mq_unlink, PATH),
    ROW(io_uring_setup, NO_SUCH_CALL),
    /* processes, and signals, which come from the log */
    ROW(execve, PATH), ROW(execveat, PATH_AT), ROW(clone, NEW_PROCESS), ROW(clone3, NO_SUCH_CALL), ROW(kill, OTHER_PROCESS),
    ROW(tkill, OTHER_PROCESS), ROW(tgkill, OTHER_PROCESS), ROW(rt_sigqueueinfo, OTHER_PROCESS),
    ROW(rt_tgsigqueueinfo, OTHER_PROCESS), ROW(pidfd_send_signal, ALWAYS), ROW(pidfd_getfd, ALWAYS), ROW(ptrace, ALWAYS),
    ROW(process_vm_writev, ALWAYS), ROW(prlimit64, OTHER_OR_ZERO), ROW(sched_setaffinity, OTHER_OR_ZERO),
    ROW(sched_setscheduler, OTHER_OR_ZERO), ROW(setitimer, ALWAYS), ROW(timer_create, ALWAYS), ROW(personality, ALWAYS),
    /* the machine */
    ROW(mount, PATH_AT), ROW(umount2, PATH), ROW(pivot_root, PATH), ROW(chroot, PATH), ROW(move_mount, PATH_AT), ROW(fsopen, PATH),
    ROW(fsmount, ALWAYS), ROW(open_tree, PATH_AT), ROW(mount_setattr, PATH_AT), ROW(unshare, ALWAYS), ROW(setns, ALWAYS), ROW(reboot, ALWAYS),
    ROW(sethostname, PATH), ROW(setdomainname, PATH), ROW(settimeofday, ALWAYS), ROW(clock_settime, ALWAYS),
    ROW(swapon, PATH), ROW(swapoff, PATH), ROW(acct, PATH), ROW(quotactl, PATH_AT), ROW(init_module, ALWAYS),
    ROW(finit_module, ALWAYS), ROW(delete_module, PATH), ROW(kexec_load, ALWAYS), ROW(bpf, ALWAYS), ROW(add_key, PATH),
    ROW(request_key, PATH), ROW(keyctl, ALWAYS), ROW(vhangup, ALWAYS),
#ifdef __x86_64__ /* the older forms, which newer architectures never had */
    ROW(open, OPENS), ROW(creat, PATH), ROW(unlink, PATH), ROW(rename, PATH), ROW(mkdir, PATH), ROW(rmdir, PATH), ROW(link, PATH),
    ROW(symlink, PATH), ROW(mknod, PATH), ROW(chmod, PATH), ROW(chown, PATH), ROW(lchown, PATH), ROW(utime, PATH),
    ROW(utimes, PATH), ROW(futimesat, PATH_AT), ROW(fork, ALWAYS), ROW(vfork, ALWAYS), ROW(alarm, ALWAYS),
    ROW(kexec_file_load, ALWAYS), ROW(ioperm, ALWAYS), ROW(iopl, ALWAYS),
#endif
#ifdef __NR_renameat
    ROW(renameat, PATH_AT),
#endif
};
enum { CALLS = sizeof calls / sizeof *calls };

/* ---- the handler ---- */
enum { TRAPPED = 1 }; /* si_code SYS_SECCOMP, which older C libraries do not define */

static const Call *
find_call(int number)
{
    for (int i = 0; i < CALLS; i++)
        if (calls[i].number == number)
            return &calls[i];
    return NULL;
}

static uint64_t
argument(const ucontext_t *context, int i)
{
#if defined(__x86_64__)
    static const int registers[] = {REG_RDI, REG_RSI};
    return (uint64_t)context->uc_mcontext.gregs[registers[i]];
#else
    return context->uc_mcontext.regs[i];
#endif
}

/* Reads a path where the program says it is; the kernel looks whether that is readable at all. Page by page: what follows the end of
 * the path may be unmapped. Returns its length. */
static size_t
copy_path(char *to, size_t room, uint64_t address)
{
    size_t n = 0;
    while (n < room) {
        size_t part = 4096 - (address + n) % 4096;
        part = part < room - n ? part : room - n;
        struct iovec local = {to + n, part}, remote = {(void *)(uintptr_t)(address + n), part};
        ssize_t got = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
        if (got <= 0)
            return 0;
        char *stop = memchr(to + n, 0, (size_t)got);
        if (stop)
            return (size_t)(stop - to);
        n += (size_t)got;
    }
    return n;
}

static size_t
append(char *text, size_t used, size_t size, const char *more)
{
    size_t n = strlen(more);
    n = n < size - used - 1 ? n : size - used - 1;
    memcpy(text + used, more, n);
    text[used + n] = 0;
    return used + n;
}

static void
refused(int signum, siginfo_t *info, void *context)
{
    if (libc_trapped(info, context))
        return;
    char text[300] = "", path[200];
    if (info->si_code != TRAPPED)
        return;
    const Call *call = find_call(info->si_syscall);
    int kind = call ? call->kind : ALWAYS;
    size_t used = append(text, 0, sizeof text, call ? call->name : "a system call"), n = 0;
    if (kind == PATH || kind == OPENS || kind == PATH_AT || kind == OPENS_AT)
        n = copy_path(path, sizeof path - 1, argument(context, kind == PATH_AT || kind == OPENS_AT));
    path[n] = 0;
    if (n > 0) {
        used = append(text, used, sizeof text, "(\"");
        used = append(text, used, sizeof text, path);
        append(text, used, sizeof text, kind == PATH ? "\")" : "\", ...)");
    }
    else
        append(text, used, sizeof text, "(...)");
    diverge("refused", NULL, NULL, text);
}

/* ---- the filter ---- */
enum { MOST_INSTRUCTIONS = 18 + 6 * CALLS };

typedef struct {
    struct sock_filter code[MOST_INSTRUCTIONS];
    unsigned short n;
} Program;

static void
emit(Program *p, unsigned short code, uint32_t k, uint8_t jump_true, uint8_t jump_false)
{
    p->code[p->n++] = (struct sock_filter){code, jump_true, jump_false, k};
}

static void
emit_load(Program *p, size_t offset)
{
    emit(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

/* The low half of an argument: flags, commands and process numbers are 32 bits wide (both architectures are little endian). */
static void
emit_argument(Program *p, int i)
{
    emit_load(p, offsetof(struct seccomp_data, args) + (size_t)i * sizeof(uint64_t));
}

static void
emit_return(Program *p, uint32_t what)
{
    emit(p, BPF_RET | BPF_K, what, 0, 0);
}

/* One call: the accumulator holds its number before and, unless the call was decided, after. */
static void
emit_call(Program *p, const Call *call, uint32_t pid)
{
    static const uint32_t more_than_reading = O_ACCMODE | O_CREAT | O_TRUNC;
    unsigned short start = p->n;
    emit(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call->number, 0, 0);
    switch (call->kind) {
    case OPENS:
    case OPENS_AT:
        emit_argument(p, call->kind == OPENS ? 1 : 2);
        emit(p, BPF_JMP | BPF_JSET | BPF_K, more_than_reading, 1, 0);
        emit_return(p, SECCOMP_RET_ALLOW);
        break;
    case NEW_PROCESS:
        emit_argument(p, 0);
        emit(p, BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 0, 1);
        emit_return(p, SECCOMP_RET_ALLOW);
        break;
    case OTHER_OR_ZERO:
        emit_argument(p, 0);
        emit(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0);
        emit(p, BPF_JMP | BPF_JEQ | BPF_K, pid, 0, 1);
        emit_return(p, SECCOMP_RET_ALLOW);
        break;
    case OTHER_PROCESS:
        emit_argument(p, 0);
        emit(p, BPF_JMP | BPF_JEQ | BPF_K, pid, 0, 1);
        emit_return(p, SECCOMP_RET_ALLOW);
        break;
    case COMMAND: /* several rows may be about one call: it stays undecided */
        emit_argument(p, 1);
        emit(p, BPF_JMP | BPF_JEQ | BPF_K, call->command, 0, 1);
        break;
    }
    emit_return(p, call->kind == NO_SUCH_CALL ? SECCOMP_RET_ERRNO | ENOSYS : SECCOMP_RET_TRAP);
    if (call->kind == COMMAND)
        emit_load(p, offsetof(struct seccomp_data, nr));
    p->code[start].jf = (uint8_t)(p->n - start - 1);
}

/* A call that the engine makes itself, and no other with the same first argument. */
static void
emit_engines(Program *p, uint32_t number, uint32_t first)
{
    emit(p, BPF_JMP | BPF_JEQ | BPF_K, number, 0, 4);
    emit_argument(p, 0);
    emit(p, BPF_JMP | BPF_JEQ | BPF_K, first, 0, 1);
    emit_return(p, SECCOMP_RET_ALLOW);
    emit_load(p, offsetof(struct seccomp_data, nr));
}

static void
emit_filter(Program *p, uint32_t pid)
{
    emit_load(p, offsetof(struct seccomp_data, arch));
    emit(p, BPF_JMP | BPF_JEQ | BPF_K, THIS_ARCH, 1, 0);
    emit_return(p, SECCOMP_RET_KILL_PROCESS);
    emit_load(p, offsetof(struct seccomp_data, nr));
#ifdef __x86_64__
    emit(p, BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1); /* the x32 forms of the same calls */
    emit_return(p, SECCOMP_RET_KILL_PROCESS);
#endif
    if (engine.is_on) {
        emit_engines(p, __NR_sendmsg, (uint32_t)engine.fd);
        emit_engines(p, __NR_clone, (uint32_t)ENGINE_CLONE);
    }
    for (int i = 0; i < CALLS; i++)
        emit_call(p, &calls[i], pid);
    emit_return(p, SECCOMP_RET_ALLOW);
}

bool
filter_install(void)
{
    static Program program;
    struct sigaction action = {.sa_sigaction = refused, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    sigset_t signals;
    emit_filter(&program, (uint32_t)getpid());
    struct sock_fprog filter = {program.n, program.code};
    sigemptyset(&signals);
    sigaddset(&signals, SIGSYS);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || sigaction(SIGSYS, &action, NULL) < 0)
        return false;
    sigprocmask(SIG_UNBLOCK, &signals, NULL); /* whoever started us may have blocked it */
    /* With the second flag older kernels do not slow the process down as a guard against its own speculation. */
    unsigned flags = SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_SPEC_ALLOW;
    if (syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, flags, &filter) == 0)
        return true;
    return syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) == 0;
}

#else

bool
filter_install(void)
{
    return false;
}

#endif
