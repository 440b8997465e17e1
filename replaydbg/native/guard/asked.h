/* What asked.c and checkpoint.c have of each other, and the audit hook of them. */
#ifndef REPLAYDBG_GUARD_ASKED_H
#define REPLAYDBG_GUARD_ASKED_H
#include "guard/guard.h"

/* asked.c */
/* whether it is such an event; *rc: what the hook returns then */
bool asked_hears(const char *event, PyObject *args, int *rc);
/* the outcome of the crossing `name` of the module `replaydbg`; NULL without an exception: there is no such row */
PyObject *asked_crossing(const char *name, PyObject *(*perform)(PyObject *given), PyObject *given);

/* checkpoint.c */
void checkpoint_prepare(PyObject *boot);
PyObject *checkpoint_due(PyObject *args);       /* what was saved, True: it is time to save, or False */
PyObject *checkpoint_continue(PyObject *saved); /* comes back only with the reason why the program cannot */

#endif
