/* What the parts of a crossing have of each other. */
#ifndef REPLAYDBG_CROSSING_INSIDE_H
#define REPLAYDBG_CROSSING_INSIDE_H
#include "base/core.h"
#include "crossing/crossing.h"

extern CrossState cross_state; /* of the running lane */

/* cross.c */
void cross_take_arguments(Crossing *c, const Buf *encoded);
/* replay: encodes them as recordings before the descriptors of buffered files were shown; whether they hash to this */
bool cross_argued_before(Crossing *c, uint64_t hash);
void cross_define_late(Crossing *c);
PyObject *cross_made_again(void); /* the outcome of one that is to be made again */

/* record.c */
void record_end(Crossing *c, PyObject *result);
void record_time(void);
void cross_time_continues(void); /* as the last TIME record that was read has it */

/* replay.c */
extern uint64_t replay_time; /* ns, of the last TIME record */

/* unfinished.c: replay, while core.tells */
void unfinished_begin(Crossing *c);
void unfinished_end(Crossing *c);

/* outputs.c */
/* record, with a durable log: right before the real thing is done; false: a signal handler raised an exception */
bool output_may_leave(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs);

/* warned.c */
extern bool warned_inside; /* record: the crossing that is open has issued one */
void warned_crossed(void); /* that crossing ends */

/* draws.c */
extern bool draws_are_kept;        /* only in a replay */
void draws_crossed(const Gate *g); /* if they are kept */

#endif
