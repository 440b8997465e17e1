/* What the files of this folder have of each other. */
#ifndef REPLAYDBG_CODE_INSIDE_H
#define REPLAYDBG_CODE_INSIDE_H
#include "base/core.h"
#include "code/code.h"

/* stacks.c */
void stacks_forget(void); /* a code object has died */

/* site.c */
bool site_hear_of_end(PyCodeObject *code);  /* stacks_forget() will be called when it dies */
uint64_t code_identity(PyCodeObject *code); /* hash of file, qualified name and first line */

#endif
