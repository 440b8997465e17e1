/* What the files of this folder have of each other. */
#ifndef REPLAYDBG_FUTURE_INSIDE_H
#define REPLAYDBG_FUTURE_INSIDE_H
#include "future/future.h"

/* known.c */
int known_load(int fd); /* what the launcher has read in the log; -1: it cannot be mapped */
/* what it was told in the recorded run: coded, and whether it was raised; NULL: not known */
const uint8_t *known_answer(const Crossing *c, const uint8_t **end, bool *is_raised);
bool known_has(PyObject *path); /* the content of such a file */

/* closed.c */
void closed_begin(uint64_t seed); /* which descriptors lead to nothing real, and what is drawn */

#endif
