/* Signal handlers, inside crossings and between them.
 *
 *   signals.c  handlers
 *   places.c   what a place in pure computation is known by
 *   contents.c the contents of large objects there
 *   doubt.c    whether a replay has found it for certain
 *   raised.c   signals that the program's C code sends to the process itself
 *   senders.c  which process of a group has sent one
 *   limit.c    how long a replay may compute without asking for anything
 */
#ifndef REPLAYDBG_SIGNALS_H
#define REPLAYDBG_SIGNALS_H
#include "base/core.h"
#include "crossing/crossing.h"

/* signals.c */
int signals_prepare(void);
void signals_continue(void);     /* a replay becomes a recording: the handlers that the program has set are installed */
void signals_inside(int signum); /* replay: a recorded handler runs inside the crossing */
void signal_inside(Crossing *open); /* replay: reads one SIGNAL_INSIDE record without its head */
void signal_between(Crossing *open);
void signals_look(void);            /* replay: that place is near */
int signals_expected_no_more(void); /* lenient: which handler was due */
void signals_go_on(void);
PyObject *signals_after_importing(PyObject *result); /* steals it; handlers that waited run now */

/* raised.c */
void *raising_call(const char *name); /* what stands for this function of the C library's; NULL: itself */
void raising_calls_relink(void);
bool signals_names_itself(PyObject *pid); /* the program means its own process, and nothing else */
void signals_interpreter_has_ended(void); /* nothing of the program runs any more */
typedef struct {
    void (*handler_is_late)(int signum); /* lenient: its place was not met for long: it runs here */
    /* the debugger: this line is the last one, for this process and for all its clones */
    void (*ends_here)(void);
    void (*is_interrupted)(void);  /* the interpreter ends itself by SIGINT */
    void (*is_killed)(int signum); /* replay: C code of the program ends the process by this signal */
} SignalsHooks;
extern const SignalsHooks signals_hooks;

/* doubt.c */
/* replay: the event before which a handler's place was ambiguous; 0: none was */
uint64_t signals_unsure(void);
void signals_report_unsure(Buf *b);

/* limit.c */
void limit_begin(uint64_t after, uint64_t between);

/* raised.c */
extern const HandlerEntry raised_handlers[];

/* signals.c */
extern const HandlerEntry signal_handlers[];

#endif
