/* What the interpreter of a replay was not started with, and gets back behind the fence. */
#ifndef REPLAYDBG_SURROUNDINGS_H
#define REPLAYDBG_SURROUNDINGS_H
#include "core.h"

int surroundings_restore(PyObject *boot);           /* replay: the recorded environment, and -X options; both modes: paths */
void surroundings_hold_warnings(PyObject *options); /* a list of -W values, or none, that the bootstrap was not given */
void surroundings_warnings(void);                   /* right before the program: applies them */

#endif
