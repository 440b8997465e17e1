/* From the bootstrap command to the program's own `__main__`.
 *
 *   boot.c          all the steps
 *   module.c        the extension module: boot_program() and what the tests call
 *   parts.c         which part is registered for what
 *   child.c         children that the program forks
 *   surroundings.c  what the bootstrap interpreter was not started with, and the program must have
 */
#ifndef REPLAYDBG_BOOT_H
#define REPLAYDBG_BOOT_H
#include "base/core.h"

/* boot.c */
/* by its path or, if that is NULL, its descriptor; never returns but with an exception set */
int boot_program(const char *boot_file, int boot_fd);

#endif
