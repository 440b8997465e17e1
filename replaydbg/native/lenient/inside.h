/* What the files of this folder have of each other. */
#ifndef REPLAYDBG_LENIENT_INSIDE_H
#define REPLAYDBG_LENIENT_INSIDE_H
#include "base/core.h"
#include "lenient/lenient.h"

typedef enum { ITEM_EVENT, ITEM_SIGNAL, ITEM_CALLBACK, ITEM_BETWEEN, ITEM_SWITCH, ITEM_START, ITEM_MEMORY } ItemKind;
typedef struct {
    Stream **streams; /* by lane of the recording */
    size_t stream_count;
    Stream spare;        /* events behind the recorded end */
    size_t events;       /* without these */
    bool has_ended;      /* the recording goes on to the program's own end */
    uint64_t lines_from; /* lines count as ticks behind this place of the log; 0: there is none, or it was met */
    uint32_t *epochs;    /* by descriptor, as the program has come by */
    size_t epoch_count;
} LenientIndex;

/* index.c */
extern LenientIndex lenient_index;
uint64_t index_function_of_site(uint32_t site); /* hash of file and qualified name */
uint64_t index_loose(const Gate *g, uint64_t arguments);
uint64_t index_exact(const Gate *g, uint64_t arguments, uint32_t digest);
Chain *stream_chain(Stream *s, uint64_t key); /* NULL: there is none */
bool index_adopts(const Gate *g);
int index_opened(const uint8_t *at, unsigned flags, int *fds, int most); /* descriptors that an outcome brings */
uint32_t *index_epoch(int fd);
Stream *index_stream(size_t lane);

/* lenient.c */
/* the next item that is not used, or NULL; the cursor goes there */
Item *stream_next(Stream *s);

/* lanes.c */
void lenient_let_others(uint64_t order); /* those go first that did so in the recording */
_Noreturn void lenient_stay(void);       /* the running lane never goes on */
void lenient_lane_made(int lane, Stream *stream);
Stream *lenient_stream_of(int lane);
bool stream_reads_clock(Stream *s); /* the lane's next recorded act is a reading of the interpreter's clock */
typedef enum {
    SKIPPED,
    REORDERED,
    REPEATED,
    WRITTEN,
    ACCEPTED,
    SPARE,
    SIGNALLED,
    PREEMPTION,
    LANE,
    UNUSED,
    FOLLOWS,
    LIBERTY_KINDS
} LibertyKind;

/* liberties.c */
void liberty(LibertyKind kind, uint64_t event, Crossing *c, const char *detail);
bool liberty_fold(uint64_t event, uint64_t loose); /* that event is an output that differs: reported already */
void liberty_written(Crossing *c, uint64_t loose);
uint64_t liberties_taken(void);

/* facts.c */
void facts_done(Crossing *c);
/* the absolute path, by the program's working directory; 0: not known */
size_t facts_path(PyObject *o, char *text, size_t size);
PyObject *facts_answer(Crossing *c, bool *is_known);

#endif
