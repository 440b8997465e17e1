/* The two nets of a replay: the fence, which the kernel keeps up, and the audit hook inside the interpreter.
 *
 *   fence.c     all of the fence
 *   calls.c     which system calls are allowed
 *   filter.c    the seccomp program made from that
 *   refused.c   what happens at a call that is not
 *   landlock.c  the rules for files
 *   guard.c     the audit hook
 *   asked.c     what the program asks the recorder for
 *   checkpoint.c  a program that saves itself and goes on as a new one
 */
#ifndef REPLAYDBG_GUARD_H
#define REPLAYDBG_GUARD_H
#include "base/core.h"
#include <stdint.h>

/* guard.c */
int guard_record(void);              /* audit hook that notes uncovered acts */
void guard_interactive_begins(void); /* the recording ends here */
int guard_replay(void);              /* audit hook that refuses, and the second filter */

/* asked.c */
void asked_prepare(PyObject *boot); /* both modes: before the program begins */

/* checkpoint.c */
_Noreturn void checkpoint_fails(const char *reason); /* nothing was lost: the recording before it can be resumed */
void checkpoint_receive(void); /* both modes, where nothing of the program has run: what the one before it has saved */

/* fence.c */
/* Closes what the launcher did not open for this replay: before anything else is opened. */
void fence_close_descriptors(PyObject *boot);

/* Puts the fence up, for good, for this process and all threads and copies of it, unless `boot` says that there shall
 * be none. Returns -1 with errno where the kernel has no filter to offer: then the program must not begin. */
int fence_raise(PyObject *boot);

/* What depends on descriptors that are known only when all is prepared; no filter can be added behind it. */
int fence_seal(void);

typedef struct {
    int number;
    unsigned short kind; /* CallKind */
    unsigned short path; /* which argument is a path that a refusal shows: 1, 2; 0: none */
    const char *name;
} SystemCall;

/* calls.c */
extern const SystemCall system_calls[]; /* one row for each call that has a name; any other number is refused */
extern const int system_call_count;

#endif
