/* What the two nets share. */
#ifndef REPLAYDBG_GUARD_H
#define REPLAYDBG_GUARD_H
#include "core.h"

/* Installs the filter for this process and every thread of it, for good. False: the kernel has none to offer. */
bool filter_install(void);
extern bool guard_filtered; /* replay: it is installed */

#endif
