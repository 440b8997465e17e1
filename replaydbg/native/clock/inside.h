/* What the files of this folder have of each other. */
#ifndef REPLAYDBG_CLOCK_INSIDE_H
#define REPLAYDBG_CLOCK_INSIDE_H
#include "base/core.h"
#include "clock/clock.h"
#include "code/code.h"

/* listen.c */
int listen_prepare(void); /* before the program begins, if it may be needed */

/* activations.c */
void activation_start(_PyInterpreterFrame *frame);
bool activation_line(_PyInterpreterFrame *frame, PyCodeObject *code, int unit); /* whether it is its first one */
/* an exception comes to it from elsewhere; NULL: nothing is done */
void activation_pass(_PyInterpreterFrame *frame);
/* whether one came since its last line; asked once for each */
bool activation_passes(_PyInterpreterFrame *frame);

/* stepclock.c */
void stepclock_line(_PyInterpreterFrame *frame); /* from listen.c */
void stepclock_start(_PyInterpreterFrame *frame);
bool stepclock_wants_starts(void);

/* listen.c, 3.11: the program traces the thread; call our trace function as well */
void listen_when_traced(PyThreadState *ts);

/* checks.c */
int checks_hear(bool on); /* -1: the checks of this build of the interpreter cannot be seen */
#if PY_VERSION_HEX < 0x030C0000
extern _PyInterpreterFrame *checks_frame; /* the trace function knows that it begins: its check comes now */

/* The trace function is called for the beginning of a function; NULL: for anything else. Here, since this is done at
 * each line: a call of it costs 2 % there. */
static inline void
checks_announced(_PyInterpreterFrame *frame)
{
    checks_frame = frame;
    if (frame)
        checks_go_on();
}
#endif

/* ticks.c */
void ticks_tick(_PyInterpreterFrame *frame); /* from listen.c */

/* trace.c */
void trace_tick(_PyInterpreterFrame *frame, CodeFacts *facts);
void trace_inside(_PyInterpreterFrame *frame); /* from listen.c: a function begins */

#endif
