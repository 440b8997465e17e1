/* What the files of this folder have of each other. */
#ifndef REPLAYDBG_BOOT_INSIDE_H
#define REPLAYDBG_BOOT_INSIDE_H
#include "base/core.h"
#include "boot/boot.h"

/* child.c */
void children_prepare(void);

/* member.c: record: a process of a group */
void
member_starts_plainly(PyObject *boot); /* it has no recording: becomes the program that asked to join, if it is one */
void member_begins(PyObject *boot);    /* when the environment is the program's */

/* surroundings.c */
/* the environment; in replay also -X options, and where things are installed */
int surroundings_restore(PyObject *boot);
void surroundings_hold_warnings(PyObject *options); /* a list of -W values, or none, that the bootstrap was not given */
void surroundings_warnings(void);                   /* right before the program: applies them */

#endif
