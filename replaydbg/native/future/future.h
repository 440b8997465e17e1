/* Futures: many continuations of a program from one moment of its recording.
 *
 * A replay comes to the moment and stands still there. For each future that the launcher asks for it makes a copy of
 * itself (base/clones.c), which becomes a recording as a resumed program does (resume/live.c), with three differences:
 * its lanes are interleaved at random from a seed of its own; its log is a file in memory; and it is in a closed world.
 * The fence of a replay stays up, so the kernel lets nothing out. What the program asks for is made if it stays inside
 * the process, or is simulated; anything else ends the future, and the launcher learns what it was.
 *
 *   copies.c  the orders of the launcher, the copies, and how they begin
 *   closed.c  what a future does with each call
 *   known.c   what the recording knows of the outside
 *   faults.c  calls that fail
 *   statement.c  a value that is changed at the beginning
 *   layer.h   files, which are its own
 *   loopback.h  connections between its threads
 *   turns.h     the processes of a group in one future
 */
#ifndef REPLAYDBG_FUTURE_H
#define REPLAYDBG_FUTURE_H
#include "base/core.h"
#include "crossing/crossing.h"
#include <sys/socket.h>

/* copies.c */
int futures_prepare(PyObject *boot); /* reads whether this replay has futures; before the fence is raised */
/* of resume_hooks */
void future_begins(void);
_Noreturn void future_has_nothing(void);

/* closed.c */
void future_asks(Crossing *c);
PyObject *future_answers(const Crossing *c);
void future_marked(PyObject *text); /* of the pytest plugin: it ends a future where its test has failed or ended */

PyObject *future_performed(const Crossing *c, PyObject *result); /* of a call that was made; steals it */

void statement_again(int kind, Crossing *c, PyObject *recorded); /* statement.c: a reader of callbacks */

/* databases.c, faults.c, closed.c: of sqlite_hooks */
int database_opens(const char *path, bool creates);
int database_exists(const char *path);
ssize_t database_reads(const char *path, void *data, size_t n, int64_t offset);
bool database_writes(const char *path, const void *data, size_t n, int64_t offset);
bool database_resizes(const char *path, int64_t size);
int64_t database_size(const char *path);
bool database_removes(const char *path);
const char *database_directory(void);
int fault_of_sqlite(void);
void future_draws(void *bytes, size_t n);

/* opens.c, listings.c, socket_gates.c: of files_hooks */
int layer_open_waiting(PyObject *path);
void layer_scan_made(PyObject *iterator);
bool past_socket_made(int fd, PyObject *fields);
bool past_socket_accepted(int listening, int fd, PyObject *address);

/* socket_gates.c: of crossing_hooks */
void past_sockets_follow(const Crossing *c, PyObject *result);

/* socket_calls.c: of lanes_hooks */
bool loopback_connects(int fd, const struct sockaddr *to, socklen_t size, int *result);
bool loopback_accepts(int fd, struct sockaddr *from, socklen_t *size, int flags, int *result);
unsigned loopback_hung_up(int fd, unsigned events);
void future_library_loaded(void);
/* turns.c, family.c: of lanes_hooks; all but the first only if it returns true */
bool turns_are_taken(void); /* it is one of several processes */
void turns_news(void);      /* something has come that it waited for */
/* all of its threads wait; false: so do all others, and for no time. `has_run`: a thread has, since it was called last */
bool turns_wait(uint64_t deadline, bool has_run);
bool children_are_known(void);
/* of resume_hooks */
uint64_t turns_reading(int clock, uint64_t own);
uint64_t turns_passed(void);
pid_t child_ended(pid_t pid, int *status, int fds[], int *n);

#endif
