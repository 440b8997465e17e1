/* What C code takes from outside by itself: functions of the C library that extension modules and C libraries call.
 *
 * Such a call is a crossing of its own where no other one is open: `libc.getrandom` in the list of events. The real function runs while
 * recording; a replay gives what it returned, its error number, and the bytes that it wrote into the caller's memory.
 *
 *   rows.c    the table: each function's arguments, where its results leave, and what else is to be done
 *   libc.c    one call of a row
 *   forms.c   results that are no plain bytes: lists of addresses, requests to devices, maps of files
 *   memory.c  memory at the same addresses in both modes
 *   zmq.c     functions of libzmq, whose sockets live in threads of its own
 *   lead.c    how calls get here: tables of offsets, dlsym(), syscall()
 *   trap.c    system calls that pass by the C library
 */
#ifndef REPLAYDBG_LIBC_H
#define REPLAYDBG_LIBC_H
#include "base/core.h"
#include <signal.h>

/* lead.c */
void libc_install(void);                            /* before the program begins */
void libc_library_loaded(void);                     /* libraries may be new */
void *libc_lookup(void *library, const char *name); /* as dlsym() */

/* libc.c */
uint64_t libc_interpreter_clock(void); /* see LanesHooks */

/* trap.c */
/* this process is a copy: the kernel has forgotten what it was to trap */
void libc_trap_copied(void);
/* in a handler of SIGSYS: it was such a call, and has been made */
bool libc_trapped(const siginfo_t *info, void *context);

/* What higher parts register in boot/parts.c. */
typedef struct {
    void (*asks_outside)(const char *what); /* in a diversion; does not come back */
} LibcHooks;
extern const LibcHooks libc_hooks;

#endif
