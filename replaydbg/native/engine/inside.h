/* What the files of this folder have of each other. */
#ifndef REPLAYDBG_ENGINE_INSIDE_H
#define REPLAYDBG_ENGINE_INSIDE_H
#include "base/core.h"
#include "clock/clock.h"
#include "engine/engine.h"
#include <fcntl.h>

/* path.c */
void path_return(_PyInterpreterFrame *frame, PyObject *value); /* NULL: it yields, or raises */

/* watch.c */
void watch_start(_PyInterpreterFrame *frame); /* a function begins */
void watch_resume(_PyInterpreterFrame *frame);

/* judge.c */
void judge_start(_PyInterpreterFrame *frame); /* the same */

/* watch.c */
bool watch_looks_at_returns(void);
void watch_report(Buf *b);

/* engine.c */
Buf engine_message(void); /* where the next message is written; only one at a time */
void engine_send(int kind, Buf *b);
void engine_stand(const char *why);   /* until an order to continue */
PyThreadState *lane_tstate(int lane); /* NULL: there is no such lane, or it has none */
/* puts a query to the probe; its answer, borrowed from `globals`, or NULL */
PyObject *engine_probe(PyObject *globals, const uint8_t *p, const uint8_t *end);

/* arenas.c */
void arenas_prepare(void);

/* printed.c */
int printed_prepare(int fd);
void printed_ignore(void); /* from here on */
void printed_take(int fd); /* the same again */
void printed_send(void);

/* rule.c */
int rule_prepare(void);
#define MOST_PATTERNS 256
typedef struct {
    bool is_set; /* only lines of the user's own code count for the rule */
    int count;
    const char
        *patterns[MOST_PATTERNS]; /* of files, as for fnmatch(); those behind `!` are not own; the last one wins */
} OwnCode;
/* relative to where the lane is now; 0: none. The texts must stay while it runs. */
void rule_begin(int kind, int lane, const OwnCode *own);
void rule_report(Buf *b); /* a key and its value */
bool rule_is_set(void);
bool rule_line(_PyInterpreterFrame *frame);
bool rule_has_stopped(void);
bool rule_is_own(_PyInterpreterFrame *frame); /* by the patterns of the order */

/* called.c */
bool called_begin(uint64_t most, bool is_own); /* is_own: only of own code; false: they cannot be listened to */
void called_start(_PyInterpreterFrame *frame);
void called_resume(_PyInterpreterFrame *frame);
void called_end(_PyInterpreterFrame *frame);
void called_report(Buf *b); /* a key and its value */

/* points.c */
void points_begin(uint64_t event, uint64_t count, uint64_t point); /* where to stand inside a line; zeros: nowhere */
void points_write(void);                                           /* a standard stream is about to be given text */

/* path.c */
bool path_begin(bool is_wanted); /* false: it cannot be followed */
void path_start(_PyInterpreterFrame *frame);
void path_event(void); /* one has been consumed */
void path_report(Buf *b);

/* judge.c */
typedef struct {
    CompatRoom room;
    bool is_heard;
} Asking;
Asking
asking_begin(void); /* Python that is run from here on is not the program's; its exceptions are to be put aside */
void asking_end(Asking asking);
void asking_forget(PyObject **by);
/* has the probe put the function by which it answers into `by`; false: there is nothing to ask */
bool asking_prepare(PyObject **by, const uint8_t *p, const uint8_t *end);
_PyInterpreterFrame *programs_frame(PyThreadState *ts); /* the innermost one that is not the probe's */
bool judge_begin(const uint8_t *p, const uint8_t *end); /* false: there is nothing to ask */
PyObject *judge_call_of(PyObject *self, PyObject *args);
PyObject *judge_stands_at(PyObject *self, PyObject *args);
PyObject *judge_lines_by(PyObject *self, PyObject *function);
uint64_t judge(uint64_t before); /* what it says here; `before` where it cannot tell */

/* passages.c */
void passages_prepare(void);
/* no query: nothing is evaluated; most: answers after which the run stops */
bool passages_begin(const uint8_t *p, const uint8_t *end, uint64_t most);
bool passages_are_asked(void);
/* counts of lines at which the first of what is asked is evaluated, each as the difference to the one before */
bool passages_begin_lines(const uint8_t *p, const uint8_t *end);
uint64_t passages_next_line(void); /* UINT64_MAX: there is none */
bool passages_met_line(void);      /* at each line where the clock stops; true: stand here */
void passages_report(Buf *b);      /* a key and its value */
PyObject *passages_answer_by(PyObject *self, PyObject *function);
PyObject *passages_answering(PyObject *self, PyObject *none);
PyObject *passages_names(PyObject *self, PyObject *names);
PyObject *passages_skip(PyObject *self, PyObject *rules);

/* raises.c */
void raises_prepare(int fd);
void raises_leave(void);  /* in a clone */
void raises_join(int to); /* in one that writes after all */
int raises_leads_to(void);
void raises_write(const Raise *raise);
void raises_send(void);

/* course.c */
void course_prepare(int fd); /* -1: it is not asked for */
void course_leave(void);     /* in a clone */
void course_send(void);
/* of two equal values, in whatever run, the same; bit 4: a part of it is not known */
uint64_t course_digest(PyObject *value);

/* lineage.c */
uint32_t lineage_number(Buf *b, PyTypeObject *type);

/* watch.c */
bool watch_begin(const uint8_t *p, const uint8_t *end); /* false: it cannot be read */
bool watch_line(_PyInterpreterFrame *frame);
bool watch_has_stopped(void);
void watch_point(void); /* it is about to stand inside a line */
void watch_report_object(Buf *b);

#endif
