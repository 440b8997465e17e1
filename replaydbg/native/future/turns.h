/* The processes of a group in one future. One of them runs at a time, as one thread of a process does: where all of its
 * threads wait, or at an event by chance, it lets another one run. So the order of all that they do comes from the seed,
 * and time is one for all: it jumps to the first deadline where all processes wait.
 *
 *   turns.c        whose turn it is; the page that they share, of which replaydbg/group_futures/turn_page.py is
 *                  the other side
 *   group_ends.c   what the launcher has made for each future: ends of channels between processes
 *   family.c       waiting for other processes, and signals to them
 *   meetings.c     new connections between them
 */
#ifndef REPLAYDBG_FUTURE_TURNS_H
#define REPLAYDBG_FUTURE_TURNS_H
#include "future/future.h"
#include <semaphore.h>

enum { MOST_MEMBERS = 64, MOST_CHANGED = 4096, MOST_SEMAPHORES = 256, BOARD_SIZE = 8192 };

/* turns.c */
/* in a copy; the descriptors are its own now */
void turns_join(int page, const int turns[], int count, int own);
sem_t *turns_semaphore(int index); /* of those that processes share; turns_begin() gives it its value */
void turns_raise(int index, unsigned value);
void turns_begin(uint64_t wall);         /* it is ready, and its clock is there; comes back when its turn has come */
void turns_event(void);                  /* a call begins */
void turns_send(int member, int signum); /* which it takes when it has its turn */
bool turn_has_ended(int member, int *status); /* how, as wait() has it */
uint64_t turn_ended_as(int member);           /* from 1, in the order of their ends */

/* A path is changed, or looked at: what another process has changed is not known here. `what`: PATH_ITSELF or so. */
enum { PATH_ITSELF, PATH_LISTING };
uint64_t turns_path(const char *path, int what); /* 0: of one process alone, which shares nothing */
void turns_change(uint64_t path);
void turns_change_listing(const char *path); /* a name in the directory of `path` is new, or gone */
void turns_look(uint64_t path);

void *turns_board(void); /* of meetings.c: BOARD_SIZE bytes */

/* group_ends.c */
int group_future_prepare(PyObject *boot);
int group_future_descriptors(void); /* how many come with each order, beside those of every future; 0: no group */
bool group_future_has(int fd);      /* a process shares it with others */
void group_future_take(int fds[]);  /* they are ours from now on, and not the program's */
const char *group_future_part(const int fds[]); /* puts them in their places; a problem, or NULL */

bool group_future_shares_memory(void); /* with other processes */
void group_future_semaphores(void);    /* of multiprocessing: those that processes share, and its own */

/* family.c */
bool family_prepare(PyObject *list,
                    PyObject *pids);  /* its children, and the ids of all processes by which they know each other */
void family_join(const int lives[]);  /* one for each child; they can be read when it has ended */
bool family_takes(const Crossing *c); /* a call waits for a child, which may be one of the group */

/* meetings.c */
void meetings_join(void *board, int own, const int pairs[], int count); /* in a copy: two descriptors for each pair */
void meetings_listens(int32_t socket);
void meetings_closed(void); /* a socket may be */
void meetings_look(void);   /* it has its turn */

#endif
