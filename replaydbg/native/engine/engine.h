/* A replay that the debugger travels through.
 *
 *   engine.c   messages, where to stand, checkpoints
 *   rule.c     where a step ends
 *   watch.c    whether a value has changed
 *   judge.c    what a question says at each line
 *   passages.c what an expression is where a breakpoint is met
 *   raises.c   the exceptions for the index
 *   lineage.c  what exceptions inherit from
 *   course.c   hashes of the program's own lines
 *   points.c   places inside a line
 *   path.c     the path through one
 *   printed.c  which line printed what
 *   arenas.c   memory of which copies are cheap
 *   ending.c   how such a process ends
 */
#ifndef REPLAYDBG_ENGINE_H
#define REPLAYDBG_ENGINE_H
#include "base/core.h"
#include "clock/clock.h"
#include "code/code.h"
#include <fcntl.h>

/* engine.c */
int engine_prepare(PyObject *asked);          /* before the step clock */
void engine_take_clock(void);                 /* after it */
void engine_idle(void);                       /* ends the process if nobody listens any more */
bool engine_line(_PyInterpreterFrame *frame); /* true: stand here */

/* course.c */
void course_line(_PyInterpreterFrame *frame, CodeFacts *facts, int unit);

/* engine.c */
void engine_raised(const Raise *raise); /* from listen.c */

/* passages.c */
bool passages_met(int number); /* of a breakpoint, from 1; true: stand here */

/* raises.c */
void engine_uncaught(PyObject *type, PyObject *value); /* it ends the program */
void engine_report_uncaught(Buf *b);

/* engine.c */
void engine_output(int stream, const void *data, size_t n);
void engine_report_written(Buf *b);
void engine_report(Buf *report); /* in place of report_send(); the replay ends */

/* ending.c */
void engine_exit(int status);
void engine_is_killed(int signum);                         /* reports it, and leaves the process */
_Noreturn void engine_would_wait(const char *what);        /* in a diversion */
_Noreturn void engine_asks_outside(const char *what);      /* the same: C code asks, which knows no exceptions */
PyObject *engine_cross_end(Crossing *c, PyObject *result); /* the same: of a crossing; raises */
PyObject *engine_answer(Crossing *c);

/* engine.c */
void engine_function_starts(_PyInterpreterFrame *frame);
void engine_function_ends(_PyInterpreterFrame *frame, PyObject *value); /* NULL: it yields, or raises */
void engine_function_resumes(_PyInterpreterFrame *frame);               /* a generator or coroutine goes on */

/* points.c */
void points_crossed(void); /* an event has been consumed, inside its crossing */
void points_stand(void);

/* path.c */
void path_instruction(_PyInterpreterFrame *frame); /* from listen.c */

/* watch.c */
void watch_look(_PyInterpreterFrame *frame); /* frame: a function returns; NULL: another lane goes on */
bool watch_is_set(void);

/* engine.c */
void engine_ends_here(void); /* this line is the last one, for this process and for all its clones */

#endif
