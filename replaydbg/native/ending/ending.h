/* How a run ends: its exit, a divergence, and what is reported of them.
 *
 *   outcome.c     the exception, and what is asked of it then
 *   exit.c        the end of the process
 *   killed.c      its end by a signal
 *   divergence.c  the report of a divergence
 *   told.c        what is compared with another replay
 */
#ifndef REPLAYDBG_ENDING_H
#define REPLAYDBG_ENDING_H
#include "base/core.h"

/* outcome.c */
int outcome_prepare(PyObject *boot);
void outcome_uncaught(PyObject *type, PyObject *value, PyObject *traceback); /* it ends the program; borrowed */
/* the script's code has come to its end; an exception may be set, and stays */
void outcome_script_ends(void);
void outcome_told(PyObject *text);               /* what the program was replayed for is over */
void report_frames(Buf *b, PyObject *traceback); /* list of (file, line, qualified name, is library) */
/* (module, qualified name, text or None), or None for NULL; the text if no code of the program makes it */
void report_exception(Buf *b, PyObject *type, PyObject *value);
void ending_report(void);    /* to the launcher, once */
void ending_goes_to(int fd); /* the report is wanted, in this file, which is one of the core's own */

/* exit.c */
void process_has_ended(int status, void *unused); /* of on_exit() */
/* somebody else than the core ends it, at once: exit() as its last act, or _exit() of C code */
_Noreturn void process_ends(int status);
extern bool process_end_is_reported; /* by process_has_ended() or process_is_killed() */

/* killed.c */
void process_is_killed(int signum);             /* this signal is about to end it, which its caller then does */
_Noreturn void process_ends_by_interrupt(void); /* KeyboardInterrupt has ended the program */
void crashes_prepare(void);                     /* replay: what is counted is reported at a crash, too */

/* told.c: replay, while core.tells */
void told_prepare(void);
void told_output(const void *data, size_t n);
void told_listen(void);                                                 /* to the exceptions that end threads */
void told_raised(PyObject *type, PyObject *value, PyObject *traceback); /* borrowed, or NULL */
void told_end(const char *how, int64_t number);                         /* `how`: a text; once */

/* divergence.c */
_Noreturn void report_divergence(const char *kind, Gate *gate, Crossing *c, const char *detail);
void report_whole(void);

#endif
