/* Files and descriptors, and the program's standard output and error: every way that leads there, and what a replay writes there.
 *
 *   fileio.c            files and descriptors
 *   opening.c           the constructor of FileIO
 *   mirrored.c          pipes of a replay that is to become a recording
 *   directories.c       what scandir() yields
 *   scatter.c           calls that take several buffers
 *   streams.c           standard output and error
 *   stream_transfers.c  what the kernel moves there
 *   stream_capture.c    what C code writes there by itself
 *   stream_children.c   what child processes write there
 *   stream_branch.c     what was printed before a fork
 *   channels.c          what goes to other processes of a group, and comes from them
 *   waits_and_kills.c   waits for other processes of a group, and signals to them
 *   file_order.c        files that it opens to read, in a group
 *   closes.c            what it closes, shuts down and connects in a group
 *   file_locks.c        locks of files that it acquires and releases in a group
 *   redigest.c          digests of what it sends and receives, for a redacted copy
 */
#ifndef REPLAYDBG_FILES_H
#define REPLAYDBG_FILES_H
#include "base/core.h"
#include "crossing/crossing.h"

/* directories.c */
void directories_install(PyObject *posix);
extern PyTypeObject *direntry_type;
PyObject *direntry_make(PyObject *name, PyObject *path);
PyObject *direntry_name(PyObject *entry); /* borrowed */
PyObject *direntry_path(PyObject *entry); /* borrowed */

/* fileio.c */
void fd_place(int fd, int copy_of);  /* replay: puts a placeholder at this number */
void fd_place_socket(int fd);        /* replay: one that is a socket, connected to nothing */
void fd_opened(int fd, int copy_of); /* bookkeeping: fd is new; copy_of >= 0: a copy of that one */
void fd_closed(int fd);

/* mirrored.c */
/* Of a replay that is to become a recording: pipes and pairs of sockets are real, and what the program sends through them
 * is sent. So what it has not yet received is there when it goes on. */
void fd_made_pipe(PyObject *numbers, bool is_pair); /* two: they replace placeholders */
void fd_note_pair(const int *ends);                 /* two sockets that are connected with each other are real ones */
void fd_widen(const int *ends);                     /* as much room as the kernel gives: TCP has more than a pair */
enum { MOST_LOOKED_AT = 4096 }; /* descriptors that a replay goes through when it goes live or parts */
/* what was under way between two ends of the program's did not fit, except in those that are left out */
bool fd_has_lost(bool (*is_left_out)(int fd));
bool fd_is_real(int fd);
ino_t fd_peer(ino_t inode); /* of a socket that is one of a pair: the other one; of a pipe itself */

/* parted.c: a replay stands still, and copies of it go on */
int fd_moved(int fd);     /* to a number above, which the program does not have; -1: errno */
void fd_part_begin(void); /* before the first copy is made: nobody here reads any more */
bool fd_part(void);       /* in a copy: pipes and pairs are its own from now on; false: they cannot be made */
bool fd_part_epoll(int number, const int *fds, const uint32_t *masks, size_t n); /* the same of an epoll object */
void fd_mirror(const Crossing *c, PyObject *result);                             /* what it did to one of them */
/* the descriptor of a file or socket object, or the number, that a call is about; -1: none */
int fd_of_call(PyObject *self, PyObject *const *args, Py_ssize_t nargs);
void fd_mirror_piece(const void *data, size_t n, bool is_first); /* of what the open call sends */

/* streams.c */
int fd_stream(int fd); /* 1 or 2 if fd is the program's original stdout or stderr, else 0 */
void stream_show(int fd, const void *data, size_t n); /* replay: shows what was written to a standard stream */

/* opening.c */
extern bool file_is_opened_by_program; /* the constructor of FileIO that begins was given an opener */
int fileio_module_loaded(PyObject *module, const char *name);

/* directories.c */
extern const HandlerEntry directory_handlers[];

/* fileio.c */
extern const HandlerEntry fileio_handlers[];

/* scatter.c */
extern const HandlerEntry scatter_handlers[];

/* streams.c */
void stream_gate_loaded(Gate *g); /* what it may do to a stream */
void streams_open(void);          /* replay, before the fence: the output once more */
void streams_continue(void);      /* a replay becomes a recording: its streams are other files now */
void streams_begin(void);         /* before the program begins: which descriptors lead to a stream */
/* record: the real thing is done, its outcome not yet in the log */
void streams_recorded(Crossing *c, PyObject *result);
void stream_change(Crossing *open); /* replay: reads one STREAM record without its head */
/* replay: bytes are in the order of writing, where the program had moved about in a file */
bool streams_mix(void);
void streams_end_with(const char *what); /* record: the recording cannot go on from here */
bool stream_is_map(int fd);              /* record: whether a map of this descriptor would be one of a stream */

/* stream_capture.c */
void streams_collect(void);       /* engine: what C code has written by itself */
void streams_leave(void);         /* engine: this process is a clone, which writes nowhere */
void streams_join(void);          /* engine: it is one that collects after all */
bool streams_are_collected(void); /* engine: nothing is there since the last event */

/* stream_children.c */
void stream_child_starts(void); /* record: a child process is about to start */
/* record: it has started, with these streams; `row`: its row in the group, or 0 */
void stream_child(unsigned row, bool has_out, bool has_err);
void stream_children_end(void);    /* record: the program ends */
void stream_children_forked(void); /* record: this process is a child, with a recording of its own */

/* stream_branch.c: in a replay of a child that was forked, what was printed before the fork is its parent's */
void
streams_hold(uint64_t event); /* before streams_open(): nothing is shown until that event, which is the fork; 0: all */
void streams_forked(void);    /* a fork has gone into the child */
void streams_expect_fork(void); /* the program ends: the fork must have been there */

/* stream_transfers.c */
extern const HandlerEntry stream_handlers[];

/* channels.c */
void channel_gate_loaded(Gate *g); /* whether it sends or receives */
void channels_begin(Crossing *c);  /* record: such a gate is about to do it */
void channels_end(Crossing *c, PyObject *result);

/* redigest.c: the transfers of a redacted copy; -1 for `fd`: it has none. 0: done */
int redigest_open(int fd);

/* waits_and_kills.c */
int wait_exit_code(int status); /* minus the number of the signal that ended it */
/* the process that has ended, and how, by the result of a function that waits; 0: none. `by_id`: of waitid() */
int wait_result(PyObject *result, bool by_id, int *exit_code);

/* What higher parts register in boot/parts.c. */
typedef struct {
    /* lenient: of a file that is read where it lies today; -1: it is none */
    int (*open_data)(PyObject *file, PyObject *mode);
    int (*open_known)(PyObject *path);     /* in a future: opened already, for this constructor; -1: it is not */
    void (*scan_made)(PyObject *iterator); /* in a future: for a scandir() that was answered */
    /* in the replay before futures: a real socket is put there; false: a placeholder will do */
    bool (*socket_made)(int fd, PyObject *fields);
    bool (*socket_accepted)(int listening, int fd, PyObject *address);
    void (*written)(int stream, const void *data, size_t n); /* replay under the debugger: to a standard stream */
} FilesHooks;
extern const FilesHooks files_hooks;

/* fileio.c */
void files_regular_done(Gate *g, PyObject *result, PyObject *const *args, Py_ssize_t nargs);

#endif
