/* What the files of this folder have of each other. */
#ifndef REPLAYDBG_BOOT_INSIDE_H
#define REPLAYDBG_BOOT_INSIDE_H
#include "base/core.h"
#include "boot/boot.h"

/* child.c */
void children_prepare(void);

/* surroundings.c */
/* the environment; in replay also -X options, and where things are installed */
int surroundings_restore(PyObject *boot);
void surroundings_hold_warnings(PyObject *options); /* a list of -W values, or none, that the bootstrap was not given */
void surroundings_warnings(void);                   /* right before the program: applies them */

#endif
