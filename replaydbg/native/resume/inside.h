/* What the files of this folder have of each other. */
#ifndef REPLAYDBG_RESUME_INSIDE_H
#define REPLAYDBG_RESUME_INSIDE_H
#include "lanes/lanes.h"
#include "resume/resume.h"

/* calls.c */
void calls_of_others(void); /* of lanes that gave way within one; without the GIL */
void call_of_running(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
void calls_report(Buf *b);                                                  /* a list */
void call_settle(int lane, bool is_done, const uint8_t *value, uint64_t n); /* of which this is the outcome */

PyObject *call_outcome(void); /* of the running lane's, which is settled; once */

/* contexts.c */
void contexts_follow(const Crossing *c); /* replay: a call that has worked */
void contexts_report(Buf *b);            /* a list of the calls that are to be made again */
void context_settle(uint64_t event, bool may_fail, const char *paths, size_t n); /* where the files of one are */
const char *contexts_continue(void); /* makes them; returns why one could not be made, or NULL */

/* clocks.c */
void clocks_follow(const Crossing *c, PyObject *result); /* replay: a reading */
void clocks_continue(void);
PyObject *clocks_shifted(const Crossing *c, PyObject *result);  /* record, afterwards: a reading; steals it */
PyObject *clocks_unlogged(const Crossing *c, PyObject *result); /* the same once logging has ended */

/* process.c */
void process_follow(const Crossing *c); /* replay: a call that has worked */
void process_continue(void);

/* children.c */
void child_lost(pid_t recorded); /* from now on a process stands for it */
void children_end(void);         /* these end, as if SIGKILL had ended those; the program is live */

/* sent.c */
void sent_follow(const Crossing *c); /* replay: a call that has worked, and is counted */
void sent_report(Buf *b);            /* a list of (event, bytes) */

/* standby_page.c */
int standby_page_open(int fd);     /* of a process of which images are made; -1: it cannot be mapped */
void standby_page_directory(void); /* the live directory is the one that the page has */
int standby_page_connect(void);    /* returns a socket to the launcher; -1: it is gone, or there is no page */

/* group.c */
void group_prepare(PyObject *boot);
void group_hears(void);               /* of a process of a group: its gates hear what it sends and receives */
const char *group_goes_live(void);    /* a problem, or NULL */
const char *group_process_ends(void); /* the same, without the interpreter */

/* orders.c */
void orders_begin(int fd);                              /* the launcher's socket */
_Noreturn void orders_report(uint64_t event, int lane); /* what would be asked; the process ends */
void orders_end(void); /* closes what only a replay has, the launcher's socket included; timers begin */
void orders_follow(uint64_t event,
                   int lane); /* asks, and follows the answer; does not return if it is not to go live */
const char *orders_map(void); /* maps files again; a problem, or NULL */
void orders_await_go(void);   /* reports that all is there; the same */
_Noreturn void orders_report_end(uint64_t event); /* as orders_report(), for one that ends without any further call */
void orders_await_end(uint64_t event);            /* tells the launcher the same, and waits until it may end */

#endif
