/* Irregular gates: those for which a row of the table does not say all.
 *
 *   datetime.c  datetime, entropy, profilers
 *   network.c   sockets
 *   tls.c       TLS
 *   process.c   selection, semaphores, processes, and the end of a process
 *   semlocks.c  semaphores of a replay that goes live
 *   waits.c     waiting for children
 *   readline.c  lines that are typed at a terminal
 *   standins.c  what takes the place of C code that cannot be recorded
 */
#ifndef REPLAYDBG_GATES_H
#define REPLAYDBG_GATES_H
#include "base/core.h"
#include "crossing/crossing.h"
#include <semaphore.h>

/* readline.c */
int readline_prepare(void);
void readline_called_back(int kind, Crossing *c, PyObject *recorded); /* replay */

/* tls.c */
/* replay: a callback of the program runs inside this crossing */
void tls_called_back(int kind, Crossing *c, PyObject *recorded);
/* of a replay that is to go live: appends what a function has given as the password of a key, once; false: none has */
bool tls_take_password(Buf *to);

/* datetime.c */
int datetime_module_loaded(PyObject *module, const char *name);

/* process.c */
int process_module_loaded(PyObject *module, const char *name);

/* network.c */
int network_module_loaded(PyObject *module, const char *name);

/* semlocks.c: of a replay that is to go live */
void semlock_follow(const Crossing *c, PyObject *result); /* a call that has worked */
const char *semlocks_continue(void);                      /* makes the semaphores again; what failed, or NULL */
/* of a future: those of a name that is shared are these, others its own */
void semlocks_become_future(sem_t *(*shared)(const char *name));
void semlocks_relink(void); /* once for each module that is new */

/* standins.c */
int standins_module_loaded(PyObject *module, const char *name);

/* tls.c */
int tls_module_loaded(PyObject *module, const char *name);

/* datetime.c */
extern const HandlerEntry clock_handlers[];

/* network.c */
extern const HandlerEntry network_handlers[];

/* process.c */
extern const HandlerEntry process_handlers[];

/* waits.c */
void waits_hear(void); /* posix is loaded: in a group of processes, its functions report how children ended */
extern const HandlerEntry wait_handlers[];

/* readline.c */
extern const HandlerEntry readline_handlers[];

/* tls.c */
extern const HandlerEntry tls_handlers[];

#endif
