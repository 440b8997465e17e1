/* The system call filter of a replay: a seccomp program made from the table in calls.c.
 *
 * It needs no privilege and is installed in a fraction of a millisecond. The kernel finds out by itself which calls are
 * allowed whatever their arguments are, and runs no filter for them; for the others a binary search over the numbers
 * leads to what decides. A refused call traps, see refused.c.
 *
 * There are two filters, and the kernel takes the stricter answer. The first has the whole table; the second,
 * filter_seal(), knows the numbers of the tool's own descriptors, which are not open yet when the first is installed.
 *
 * Two lines longer than a module should be: what emits instructions belongs together. */
#include "base/core.h"
#include "guard/inside.h"
#include <asm/ioctls.h>
#include <asm/unistd.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/ioprio.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#if (defined(__x86_64__) || defined(__aarch64__)) && !defined(THIS_ARCH)
#error "without THIS_ARCH there is no fence"
#endif

#ifdef THIS_ARCH

enum { SPAN = 512, MOST_INSTRUCTIONS = 4096 };

typedef struct {
    struct sock_filter code[MOST_INSTRUCTIONS];
    unsigned short n;
} Program;

static uint32_t token, own_pid;
static bool debugger_is_on, futures_are_made;

/* ---- instructions ---- */

static void
emit(Program *p, unsigned short code, uint32_t k, uint8_t jump_true, uint8_t jump_false)
{
    p->code[p->n++] = (struct sock_filter){code, jump_true, jump_false, k};
}

static void
emit_number(Program *p)
{
    emit(p, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
}

/* The low half of an argument: descriptors, flags, commands and process numbers are 32 bits wide (both architectures
 * are little endian). */
static void
emit_argument(Program *p, int i)
{
    emit(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)(offsetof(struct seccomp_data, args) + (size_t)i * sizeof(uint64_t)), 0,
         0);
}

static void
emit_return(Program *p, uint32_t what)
{
    emit(p, BPF_RET | BPF_K, what, 0, 0);
}

/* Decides if what was loaded is `value`; goes on if it is not. */
static void
emit_if(Program *p, uint32_t value, uint32_t what)
{
    emit(p, BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
    emit_return(p, what);
}

static void
emit_if_any(Program *p, uint32_t bits, uint32_t what)
{
    emit(p, BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1);
    emit_return(p, what);
}

static void
emit_if_in(Program *p, const uint32_t *list, uint32_t what)
{
    for (; *list != LIST_END; list++)
        emit_if(p, *list, what);
}

/* The part that follows is for one value of what was loaded; end_part() says where it ends. */
static unsigned short
begin_part(Program *p, uint32_t value)
{
    emit(p, BPF_JMP | BPF_JEQ | BPF_K, value, 0, 0);
    return p->n;
}

static void
end_part(Program *p, unsigned short begin)
{
    p->code[begin - 1].jf = (uint8_t)(p->n - begin);
}

/* ---- what decides, by the kind of the call. Each part ends with a return. ---- */
#define ALLOW SECCOMP_RET_ALLOW
#define TRAP SECCOMP_RET_TRAP
#define DONE (SECCOMP_RET_ERRNO | 0) /* answered with success, and nothing done */

static void
emit_unless(Program *p, int i, uint32_t value, uint32_t equal, uint32_t other)
{
    emit_argument(p, i);
    emit_if(p, value, equal);
    emit_return(p, other);
}

static void
emit_if_itself(Program *p, int i, bool or_zero)
{
    emit_argument(p, i);
    emit_if(p, own_pid, ALLOW);
    if (or_zero)
        emit_if(p, 0, ALLOW);
    emit_return(p, TRAP);
}

static void
emit_if_own(Program *p, uint32_t first)
{
    emit_argument(p, 0);
    emit(p, BPF_JMP | BPF_JEQ | BPF_K, first, 1, 0);
    emit_return(p, TRAP);
    emit_if_itself(p, 1, true);
}

/* fcntl and ioctl. Whether a standard stream blocks is a property of the file, which the user's shell shares: there it
 * is left alone. */
static void
emit_commands(Program *p, uint32_t sets_flags, const uint32_t *list, bool in_argument)
{
    emit_argument(p, 1);
    emit_if_in(p, list, ALLOW);
    unsigned short part = begin_part(p, sets_flags);
    emit_argument(p, 0);
    emit(p, BPF_JMP | BPF_JGT | BPF_K, 2, 1, 0);
    emit_return(p, DONE);
    if (in_argument) {
        emit_argument(p, 2);
        emit_if_any(p, O_ASYNC, TRAP);
    }
    emit_return(p, ALLOW);
    end_part(p, part);
    emit_return(p, TRAP);
}

static void
emit_prctl(Program *p)
{
    emit_argument(p, 0);
    emit_if_in(p, prctl_options, ALLOW);
    unsigned short part = begin_part(p, PR_SET_PDEATHSIG);
    emit_argument(p, 1);
    emit_if(p, SIGKILL, ALLOW);
    end_part(p, part);
    emit_return(p, TRAP);
}

static void
emit_clone(Program *p)
{
    emit_argument(p, 0);
    if (debugger_is_on || futures_are_made) {
        unsigned short part = begin_part(p, (uint32_t)ENGINE_CLONE);
        emit_unless(p, 5, token, ALLOW, TRAP);
        end_part(p, part);
    }
    emit_if_any(p, ~THREAD_FLAGS, TRAP);
    emit_if_any(p, CLONE_THREAD, ALLOW);
    emit_return(p, TRAP);
}

/* sendto: without an address, in a future, whose only sockets are pairs of its own. */
static void
emit_to_peer(Program *p)
{
    if (!futures_are_made) {
        emit_return(p, TRAP);
        return;
    }
    emit_argument(p, 4);
    emit(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0);
    emit_return(p, TRAP);
    emit(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)(offsetof(struct seccomp_data, args) + 4 * sizeof(uint64_t) + 4), 0, 0);
    emit_if(p, 0, ALLOW);
    emit_return(p, TRAP);
}

/* prlimit64: its third argument, a pointer, is NULL where nothing is set. */
static void
emit_limits(Program *p)
{
    emit_argument(p, 2);
    emit(p, BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 3);
    emit(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)(offsetof(struct seccomp_data, args) + 2 * sizeof(uint64_t) + 4), 0, 0);
    emit_if(p, 0, ALLOW);
    emit_if_itself(p, 0, true);
}

static void
emit_kind(Program *p, const SystemCall *call)
{
    static const uint32_t more_than_reading = O_ACCMODE | O_CREAT | O_TRUNC | O_ASYNC | (O_TMPFILE & ~O_DIRECTORY);
    switch ((CallKind)call->kind) {
    case INSIDE:
    case CLOSES:
    case COPIES_TO:
        emit_return(p, ALLOW);
        return; /* descriptors: see filter_seal() */
    case MISSING:
        emit_return(p, SECCOMP_RET_ERRNO | ENOSYS);
        return;
    case READS:
        emit_argument(p, call->path);
        emit_if_any(p, more_than_reading, TRAP);
        emit_return(p, ALLOW);
        return;
    case CHANGES_FILE:
        emit_argument(p, 0);
        emit(p, BPF_JMP | BPF_JGT | BPF_K, 2, 0, 1);
        emit_return(p, ALLOW);
        emit_return(p, TRAP);
        return;
    case ASKS_TERMINAL:
        emit_commands(p, FIONBIO, ioctl_requests, false);
        return;
    case ASKS_DESCRIPTOR:
        emit_commands(p, F_SETFL, fcntl_commands, true);
        return;
    case ASKS_PROCESS:
        emit_prctl(p);
        return;
    case UNIX_PAIR:
        emit_unless(p, 0, AF_UNIX, ALLOW, TRAP);
        return;
    case NEW_THREAD:
        emit_clone(p);
        return;
    case ITSELF:
        emit_if_itself(p, 0, false);
        return;
    case ITSELF_OR_ZERO:
        emit_if_itself(p, 0, true);
        return;
    case OWN_PRIORITY:
        emit_if_own(p, PRIO_PROCESS);
        return;
    case OWN_IO_PRIORITY:
        emit_if_own(p, IOPRIO_WHO_PROCESS);
        return;
    case OWN_LIMITS:
        emit_limits(p);
        return;
    case ASKS_PERSONALITY:
        emit_unless(p, 0, 0xffffffff, ALLOW, TRAP);
        return;
    case HANDLES:
        emit_unless(p, 0, SIGSYS, TRAP, ALLOW);
        return;
    case TO_DEBUGGER:
        emit_return(p, debugger_is_on ? ALLOW : TRAP);
        return;
    case OWN_TIMER:
        if (debugger_is_on || futures_are_made)
            emit_unless(p, 5, token, ALLOW, TRAP);
        else
            emit_return(p, TRAP);
        return;
    case TO_PEER:
        emit_to_peer(p);
        return;
    case ENDS:
        emit_unless(p, 1, token, ALLOW, TRAP);
        return;
    case REFUSED:
    case CALL_KINDS:
        if (call->number == __NR_seccomp) /* the second filter, which then refuses every other one */
            emit_unless(p, 5, token, ALLOW, TRAP);
        else
            emit_return(p, TRAP);
    }
}

/* ---- the first filter ---- */

/* Neighbouring numbers that are decided alike. */
typedef struct {
    uint32_t first;
    const SystemCall *call;
} Run;

static const SystemCall unknown = {-1, REFUSED, 0, NULL};

static bool
are_alike(const SystemCall *a, const SystemCall *b)
{
    return a->kind == b->kind && (a->kind != READS || a->path == b->path) && a->number != __NR_seccomp &&
           b->number != __NR_seccomp;
}

static int
find_runs(Run *runs)
{
    static const SystemCall *by_number[SPAN];
    int n = 0;
    for (int i = 0; i < system_call_count; i++)
        if (system_calls[i].number < SPAN)
            by_number[system_calls[i].number] = &system_calls[i];
    for (uint32_t number = 0; number < SPAN; number++) {
        const SystemCall *call = by_number[number] ? by_number[number] : &unknown;
        if (n == 0 || !are_alike(runs[n - 1].call, call))
            runs[n++] = (Run){number, call};
    }
    return n;
}

/* A binary search. The offsets of conditional jumps have 8 bits: the way to the upper half is a jump without a
 * condition. */
static void
emit_search(Program *p, const Run *runs, int n)
{
    if (n == 1) {
        emit_kind(p, runs->call);
        return;
    }
    emit(p, BPF_JMP | BPF_JGE | BPF_K, runs[n / 2].first, 0, 1);
    unsigned short jump = p->n;
    emit(p, BPF_JMP | BPF_JA, 0, 0, 0);
    emit_search(p, runs, n / 2);
    p->code[jump].k = (uint32_t)(p->n - jump - 1);
    emit_search(p, runs + n / 2, n - n / 2);
}

static void
emit_table(Program *p)
{
    static Run runs[SPAN];
    int n = find_runs(runs);
    emit(p, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch), 0, 0);
    emit(p, BPF_JMP | BPF_JEQ | BPF_K, THIS_ARCH, 1, 0);
    emit_return(p, TRAP); /* the 32-bit calls of the same processor */
    emit_number(p);
    emit_search(p, runs, n); /* the last run goes on for ever: there are the x32 forms of the same calls, too */
}

static int
install(Program *p)
{
    struct sock_fprog filter = {p->n, p->code};
    /* With the second flag older kernels do not slow the process down as a guard against its own speculation. */
    unsigned flags = SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_SPEC_ALLOW;
    if (syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, flags, &filter, 0, 0, token) == 0)
        return 0;
    return syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter, 0, 0, token) == 0 ? 0 : -1;
}

int
filter_install(bool has_debugger, bool has_futures)
{
    static Program program;
    own_pid = (uint32_t)getpid();
    debugger_is_on = has_debugger;
    futures_are_made = has_futures;
    if (getrandom(&token, sizeof token, 0) != sizeof token || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -1;
    token |= 1; /* an argument that is not given is 0 as a rule */
    own_token_set(token);
    program.n = 0;
    emit_table(&program);
    return install(&program);
}

/* ---- the second filter ---- */

/* For one call: what is done if the argument is a descriptor of the tool's. */
static void
emit_own(Program *p, uint32_t number, int which, uint32_t what)
{
    const int *own;
    int n = fd_ours(&own);
    unsigned short part = begin_part(p, number);
    emit_argument(p, which);
    for (int i = 0; i < n; i++)
        emit_if(p, (uint32_t)own[i], what);
    emit_return(p, ALLOW);
    end_part(p, part);
}

static void
emit_own_command(Program *p, uint32_t number, uint32_t command)
{
    unsigned short part = begin_part(p, number), other;
    emit_argument(p, 1);
    other = begin_part(p, command);
    emit_number(p);
    emit_own(p, number, 0, DONE);
    end_part(p, other);
    emit_return(p, ALLOW);
    end_part(p, part);
}

int
filter_seal(void)
{
    static Program program;
    Program *p = &program;
    p->n = 0;
    emit_number(p);
    if (engine.is_on) {
        unsigned short part = begin_part(p, __NR_sendmsg);
        emit_unless(p, 0, (uint32_t)engine.fd, ALLOW, TRAP);
        end_part(p, part);
    }
    if (engine.is_on || futures_are_made) { /* a copy takes its own descriptors there */
        unsigned short part = begin_part(p, __NR_dup3);
        emit_argument(p, 3);
        emit_if(p, token, ALLOW);
        emit_number(p);
        end_part(p, part);
    }
    emit_own(p, __NR_close, 0, SECCOMP_RET_ERRNO | EBADF);
    emit_own(p, __NR_dup3, 1, TRAP);
#ifdef __NR_dup2
    emit_own(p, __NR_dup2, 1, TRAP);
#endif
    unsigned short cut = begin_part(p, __NR_ftruncate); /* the output, see streams.c */
    emit_argument(p, 3);
    emit_if(p, token, ALLOW);
    emit_number(p);
    end_part(p, cut);
    emit_own(p, __NR_ftruncate, 0, TRAP);
    emit_own(p, __NR_fallocate, 0, TRAP);
    emit_own(p, __NR_shutdown, 0, TRAP);
    emit_own(p, __NR_setsockopt, 0, TRAP);
    emit_own(p, __NR_sendto, 0, TRAP);
    emit_own_command(p, __NR_fcntl, F_SETFL);
    emit_own_command(p, __NR_ioctl, FIONBIO);
    emit_if(p, __NR_seccomp, TRAP);
    emit_return(p, ALLOW);
    return install(p);
}

#else

int
filter_install(bool has_debugger, bool has_futures)
{
    errno = ENOSYS;
    return -1;
}

int
filter_seal(void)
{
    return 0;
}

#endif
