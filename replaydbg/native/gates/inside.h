/* What the files of this folder have of each other. */
#ifndef REPLAYDBG_GATES_INSIDE_H
#define REPLAYDBG_GATES_INSIDE_H
#include "base/core.h"
#include "gates/gates.h"

/* programs.c: in a group `row` is the row of the program that is started, see log.h; 0: there is none */
/* gate_regular() */
PyObject *program_start(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
                        unsigned row);
/* gate_call_original() */
PyObject *program_perform(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
                          unsigned row);

/* semlocks.c */
/* replay: this object was made, with that value or NULL; processes know it by its name */
void semlock_note(PyObject *semlock, PyObject *value, PyObject *name);

/* readline.c */
void readline_typed(PyObject *line); /* replay: input() has got this line */

#endif
