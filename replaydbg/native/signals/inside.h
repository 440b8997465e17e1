/* What the files of this folder have of each other. */
#ifndef REPLAYDBG_SIGNALS_INSIDE_H
#define REPLAYDBG_SIGNALS_INSIDE_H
#include "base/core.h"
#include "signals/signals.h"

#define MOST_SIGNALS 65

/* senders.c: record, in a group of processes */
void sender_asked_for(int signum);
void sender_known(int signum); /* its handler is about to run */

enum { MOST_CHUNKS = 128 };
typedef struct {
    uint64_t size; /* of each chunk */
    int count;     /* of chunks, at most MOST_CHUNKS */
    int differs;   /* the one that differed last: it is compared first */
    uint64_t chunks[MOST_CHUNKS];
} Contents;

typedef struct {
    const void *code;             /* of the topmost frame: not recorded */
    int lasti;                    /* there */
    uint64_t fingerprint;         /* of frames and simple locals */
    uint64_t ticks;               /* since the last event or switch, plus 1; 0: not counted, and then */
    int levels;                   /* how many of these there are: */
    uint64_t state[PLACE_LEVELS]; /* fingerprints of what the frames can reach, each of more of it */
    bool has_contents;            /* not in recordings of earlier versions */
    uint64_t computed;            /* us of CPU time since the last record, at least */
    Contents near, all;           /* of what the topmost frame reaches, of what all do */
} Place;

/* Whether the kernel puts programs and libraries there: such a number is an address, another one in each process. Nothing
 * else is likely to be one; a counter of nanoseconds is for half an hour once a day. */
static inline bool
place_may_be_address(uint64_t n)
{
#if defined(__aarch64__)
    if (n >> 40 == 0xaa || n >> 40 == 0xff) /* where addresses have 48 bits; with 47 it is as on x86-64 */
        return true;
#endif
    return n >> 40 == 0x55 || n >> 40 == 0x56 || n >> 42 == 0x7c >> 2;
}

/* contents.c */
void contents_here(Contents *contents, PyObject **objects, int count, uint64_t computed);
bool contents_are_here(Contents *contents, PyObject **objects, int count, uint64_t computed);

/* places.c */
static inline uint64_t
place_mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9E3779B97F4A7C15u;
    return h ^ h >> 29;
}
bool place_hash_quickly(PyObject *v, uint64_t *h);              /* false: it is another value */
uint64_t place_hash_simple(PyObject *v, uint64_t h, int depth); /* without its address */
void place_here(Place *place, uint64_t computed);
bool place_is_here(Place *place); /* quick where the topmost frame is at another instruction */
bool place_is_all_visible(void);
bool place_is_same_instruction(const Place *place); /* of a place that was seen in this process */

/* doubt.c */
void doubt_begin(void);
void doubt_looked(uint64_t ns); /* so long, in vain */
void doubt_judge(int signum, const Place *place);
void doubt_note(int signum); /* the handler's place, which is here, was ambiguous */

/* signals.c */
void signals_expect(int signum, const Place *place); /* replay: a handler runs there */

bool signals_are_due(void); /* replay: a handler's place is being looked for */

/* raised.c */
void raised_prepare(void); /* raised.c */
void raised_continue(void);

/* limit.c */
void limit_check(void);

#endif
