/* What the files of this folder have of each other. */
#ifndef REPLAYDBG_GATES_INSIDE_H
#define REPLAYDBG_GATES_INSIDE_H
#include "base/core.h"
#include "gates/gates.h"

/* readline.c */
void readline_typed(PyObject *line); /* replay: input() has got this line */

#endif
