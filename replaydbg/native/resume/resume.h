/* A replay that becomes a recording: the program goes on, live, from the last event of its log or from an earlier one.
 *
 *   live.c     when, and what of the core changes with it
 *   orders.c   what the launcher is asked, and what it answers: which files lie behind descriptors from now on
 *   process.c  settings of the process, made again
 *   contexts.c what TLS contexts have loaded, loaded again
 *   clocks.c   clocks that do not go backwards
 *   group.c    a process of a group goes on as one of a group
 *   sent.c     data that was sent to other processes, and that no recording has
 *   standby_page.c  what a standby of which images are made has in place of a connection
 *   calls.c    calls that may have been made without being logged, and what is known of them
 */
#ifndef REPLAYDBG_RESUME_H
#define REPLAYDBG_RESUME_H
#include "base/core.h"
#include "crossing/crossing.h"

/* live.c */
int resume_prepare(PyObject *boot); /* reads whether this replay is one, before the log is opened */
/* of crossing_hooks */
void live_at_call(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
bool live_inside(void);
void live_install_handlers(void); /* of a future, at a call */
bool live_handlers_wait(void);    /* the main thread has made none yet */
void live_follow(const Crossing *c, PyObject *result);
PyObject *live_end(Crossing *c, PyObject *result, bool *is_again);
PyObject *live_passed(Gate *g, PyObject *const *args, Py_ssize_t nargs, PyObject *result);
void live_at_end(void); /* the process ends: a replay becomes a recording, if it was to, which ends with it */

/* What higher parts register in boot/parts.c: of a replay with futures. */
typedef struct {
    void (*become_future)(void);            /* comes back in each copy of this process, and never in itself */
    PyObject *(*answer)(const Crossing *c); /* the outcome of a call that is not made */
    PyObject *(*performed)(const Crossing *c, PyObject *result); /* of one that was made; steals it */
    /* of one of several processes: the latest reading of a clock by any of them, if it is one for all; else `own` */
    uint64_t (*latest_reading)(int clock, uint64_t own);
    uint64_t (*passed)(void);      /* ns of simulated time since the moment; of one process alone 0 */
    void (*nothing_follows)(void); /* the program has ended without a call after the moment; does not come back */
} ResumeHooks;
extern const ResumeHooks resume_hooks;

/* clocks.c */
uint64_t clocks_last_wall(void);    /* ns since the epoch: the program's last reading of the wall clock; 0: none */
uint64_t clocks_reading(int clock); /* ns: of a clock of the system, by its number; 0: none */
void clocks_set_back(uint64_t ns);  /* of a future: those that go on by themselves */
enum { MOST_CLOCKS = 16 };

/* standby_page.c */
void standby_hide_input(void); /* of a process of which images are made: after the interpreter has opened its streams */

/* contexts.c */
int contexts_module_loaded(PyObject *module, const char *name);

/* sent.c */
void sent_prepare(PyObject *events);                 /* whose data is wanted: a list of numbers, ascending */
const uint8_t *sent_data(uint64_t event, size_t *n); /* NULL: it was not wanted, or had none */

/* calls.c */
bool live_is_settled(void);

#endif
