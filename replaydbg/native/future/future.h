/* Futures: many continuations of a program from one moment of its recording.
 *
 * A replay comes to the moment and stands still there. For each future that the launcher asks for it makes a copy of
 * itself (base/clones.c), which becomes a recording as a resumed program does (resume/live.c), with three differences:
 * its lanes are interleaved at random from a seed of its own; its log is a file in memory; and it is in a closed world.
 * The fence of a replay stays up, so the kernel lets nothing out. What the program asks for is made if it stays inside
 * the process, or is simulated; anything else ends the future, and the launcher learns what it was.
 *
 *   copies.c  the orders of the launcher, the copies, and how they begin
 *   closed.c  what a future does with each call
 *   known.c   what the recording knows of the outside
 *   layer.h   files, which are its own
 */
#ifndef REPLAYDBG_FUTURE_H
#define REPLAYDBG_FUTURE_H
#include "base/core.h"
#include "crossing/crossing.h"

/* copies.c */
int futures_prepare(PyObject *boot); /* reads whether this replay has futures; before the fence is raised */
/* of resume_hooks */
void future_begins(void);
_Noreturn void future_has_nothing(void);

/* closed.c */
void future_asks(Crossing *c);
PyObject *future_answers(const Crossing *c);
void future_marked(PyObject *text); /* of the pytest plugin: it ends a future where its test has failed or ended */

PyObject *future_performed(const Crossing *c, PyObject *result); /* of a call that was made; steals it */

/* opens.c, listings.c: of files_hooks */
int layer_open_waiting(PyObject *path);
void layer_scan_made(PyObject *iterator);

#endif
