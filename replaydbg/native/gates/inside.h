/* What the files of this folder have of each other. */
#ifndef REPLAYDBG_GATES_INSIDE_H
#define REPLAYDBG_GATES_INSIDE_H
#include "base/core.h"
#include "gates/gates.h"

/* waits.c */
int waits_exit_code(int status); /* minus the number of the signal that ended it */
void waits_hear(void);           /* posix is loaded: in a group of processes, its functions report how children ended */

/* readline.c */
void readline_typed(PyObject *line); /* replay: input() has got this line */

#endif
