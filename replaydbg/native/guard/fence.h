/* The fence of a replay, which the kernel keeps up: see fence.c. With it calls.c, which system calls are allowed, filter.c, the seccomp
 * program made from that, refused.c, what happens at a call that is not, and landlock.c, the rules for files. */
#ifndef REPLAYDBG_FENCE_H
#define REPLAYDBG_FENCE_H
#include "base/core.h"

/* Closes what the launcher did not open for this replay: before anything else is opened. */
void fence_close_descriptors(PyObject *boot);
/* Puts the fence up, for good, for this process and all threads and copies of it, unless `boot` says that there shall be none. Returns -1
 * with errno where the kernel has no filter to offer: then the program must not begin. */
int fence_raise(PyObject *boot);
/* Somebody else than the core ends the process, at once: exit() as its last act, or _exit() of C code, which may not be where the recording
 * ends. boot.c */
_Noreturn void process_ends(int status);
/* What depends on descriptors that are known only when all is prepared; no filter can be added behind it. */
int fence_seal(void);

/* filter.c; -1 with errno */
int filter_install(bool has_debugger);
int filter_seal(void);

/* refused.c */
int refused_prepare(void);

/* landlock.c: false where the kernel has none */
bool landlock_restrict(void);

#endif
