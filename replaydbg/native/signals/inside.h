/* What the files of this folder have of each other. */
#ifndef REPLAYDBG_SIGNALS_INSIDE_H
#define REPLAYDBG_SIGNALS_INSIDE_H
#include "base/core.h"
#include "signals/signals.h"

typedef struct {
    const void *code;             /* of the topmost frame: not recorded */
    int lasti;                    /* there */
    uint64_t fingerprint;         /* of frames and simple locals */
    uint64_t ticks;               /* since the last event or switch, plus 1; 0: not counted, and then */
    int levels;                   /* how many of these there are: */
    uint64_t state[PLACE_LEVELS]; /* fingerprints of what the frames can reach, each of more of it */
} Place;

/* places.c */
void place_here(Place *place);
bool place_is_here(const Place *place);             /* quick where the topmost frame is at another instruction */
bool place_is_same_instruction(const Place *place); /* of a place that was seen in this process */

/* signals.c */
void signals_expect(int signum, const Place *place); /* replay: a handler runs there */

/* raised.c */
void raised_prepare(void); /* raised.c */

/* limit.c */
void limit_check(void);

#endif
