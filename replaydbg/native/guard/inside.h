/* What the files of this folder have of each other. */
#ifndef REPLAYDBG_GUARD_INSIDE_H
#define REPLAYDBG_GUARD_INSIDE_H
#include "base/core.h"
#include "guard/guard.h"
#include <stdint.h>

/* filter.c */
/* filter.c; -1 with errno */
int filter_install(bool has_debugger, bool has_futures);
int filter_seal(void);

/* refused.c */
int refused_prepare(void);

/* landlock.c */
bool landlock_restrict(void);
#if defined(__x86_64__)
#define THIS_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define THIS_ARCH AUDIT_ARCH_AARCH64
#endif

/* What decides whether a call is allowed. */
typedef enum {
    REFUSED, /* it never is */
    INSIDE,  /* it always is: it stays inside the process, or only asks */
    /* answered with ENOSYS: callers can do without it, and a filter does not see what it is asked to do */
    MISSING,
    READS, /* opens a file; only for reading. The flags follow the path */
    /* a descriptor that is not the tool's; on one of those the answer is EBADF: the program never opened it */
    CLOSES,
    COPIES_TO,        /* the second argument is not one of the tool's descriptors */
    CHANGES_FILE,     /* not a standard stream, whose file belongs to the user, and not one of the tool's */
    ASKS_TERMINAL,    /* ioctl: the requests in ioctl_requests */
    ASKS_DESCRIPTOR,  /* fcntl: the commands in fcntl_commands */
    ASKS_PROCESS,     /* prctl: the options in prctl_options */
    UNIX_PAIR,        /* socketpair: of the family AF_UNIX */
    NEW_THREAD,       /* clone: as pthread_create() calls it */
    ITSELF,           /* the first argument is this process; for signals of its copies refused.c answers */
    ITSELF_OR_ZERO,   /* the same; zero means this process, too */
    OWN_PRIORITY,     /* setpriority(PRIO_PROCESS, this process) */
    OWN_IO_PRIORITY,  /* ioprio_set(IOPRIO_WHO_PROCESS, this process) */
    OWN_LIMITS,       /* prlimit64: sets limits of this process alone */
    ASKS_PERSONALITY, /* personality(0xffffffff) */
    HANDLES,          /* rt_sigaction: not for SIGSYS, whose handler is ours; refused.c answers for it */
    TO_DEBUGGER,      /* sendmsg: in a session of the debugger, on its descriptor */
    OWN_TIMER,        /* in a session of the debugger, by refused.c: a timer signals its own process alone */
    TO_PEER,          /* sendto: in a future, without an address, to the other end of a pair of its own */
    ENDS,             /* exit_group: goes by refused.c, which looks whether the recording ends there, too */
    CALL_KINDS,
} CallKind;

/* calls.c */
extern const uint32_t ioctl_requests[], fcntl_commands[], prctl_options[]; /* each ends with LIST_END */
#define LIST_END 0xffffffffu
#define THREAD_FLAGS 0x7d0f00u /* all that pthread_create() passes to clone(), of glibc and of musl */

#endif
