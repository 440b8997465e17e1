/* What the files of this folder have of each other. */
#ifndef REPLAYDBG_FUTURE_INSIDE_H
#define REPLAYDBG_FUTURE_INSIDE_H
#include "future/future.h"

/* known.c */
int known_load(int fd); /* what the launcher has read in the log; -1: it cannot be mapped */
/* what it was told in the recorded run: coded, and whether it was raised; NULL: not known */
const uint8_t *known_answer(const Crossing *c, const uint8_t **end, bool *is_raised);
/* of a file by its absolute path, which the program has not changed; NULL: not known */
const uint8_t *known_content(const char *path, size_t *size);

/* closed.c */
void closed_begin(uint64_t seed); /* which descriptors lead to nothing real, and what is drawn */

/* faults.c; the launcher's message has them */
enum { MOST_FAULTS = 2, MOST_FAULT_GATES = 96, MOST_FAULT_DATA = 4096 };
enum { FAULT_ERROR = 1, FAULT_TIMEOUT, FAULT_SHORT, FAULT_STEP, FAULT_ORDER, FAULT_OUTCOME, FAULT_STATEMENT };
typedef struct __attribute__((packed)) {
    int32_t kind, error; /* of an outcome: whether it is raised */
    int64_t value;       /* by how many ns a clock is set */
    uint32_t at;         /* which call it is, from 1 */
    uint16_t count;      /* how many of the gates are counted; once it has come, those behind them fail, too */
    uint16_t rest, length;
    uint16_t gates[MOST_FAULT_GATES];
    uint8_t data[MOST_FAULT_DATA]; /* coded: a value, or the name of an exception and its arguments */
} Fault;
void faults_begin(const Fault *given, uint32_t count); /* they stay where they are */
bool faults_take(Crossing *c);                         /* the call that begins has a fault, and its outcome is known */
PyObject *faults_after(const Crossing *c, PyObject *result); /* it has ended: what the program gets */

/* statement.c: ends the future if it raises */
void statement_runs(const char *source);

/* load.c: one part of what is known, about files; returns its size, 0: it is none */
size_t layer_part(const uint8_t *p, size_t left);
void layer_load(void);
bool layer_opens(void); /* what is open at the moment; false: it cannot be made */

/* layer.c */
void layer_begin(void);
bool layer_takes(Crossing *c);         /* the call that begins is about its files, and its outcome is known */
bool layer_answers(PyObject **result); /* it ends: NULL with an exception, or the result; false: none was kept */
bool layer_has(int fd);                /* a descriptor leads to one of its files */
void layer_performed(const Crossing *c, PyObject *result); /* a call was made for real */

#endif
