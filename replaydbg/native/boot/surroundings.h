/* What the bootstrap interpreter was not started with, and the program must have. */
#ifndef REPLAYDBG_SURROUNDINGS_H
#define REPLAYDBG_SURROUNDINGS_H
#include "base/core.h"

int surroundings_restore(PyObject *boot);           /* the environment; in replay also -X options, and where things are installed */
void surroundings_hold_warnings(PyObject *options); /* a list of -W values, or none, that the bootstrap was not given */
void surroundings_warnings(void);                   /* right before the program: applies them */

#endif
