/* What the files of this folder have of each other. */
#ifndef REPLAYDBG_FILES_INSIDE_H
#define REPLAYDBG_FILES_INSIDE_H
#include "base/core.h"
#include "crossing/crossing.h"
#include "files/files.h"

/* stream_transfers.c */
extern const HandlerEntry stream_handlers[];
/* between which descriptors the kernel moves bytes by this call */
void kernel_moves(const Crossing *c, int *from, int *to);

/* streams.c */
/* replay: what a descriptor is a copy of that is being opened, or copied; -1: no stream */
int stream_stands_in(int copy_of);
/* record: the kernel has moved these bytes to it */
void stream_moved(int fd, int64_t at, const uint8_t *data, size_t n);
void stream_write(int fd, const void *data, size_t n); /* replay: the program has written this to a descriptor */
void stream_opened(int fd, int copy_of);               /* fd_opened(): bookkeeping, in both modes */
void stream_closed(int fd);
/* of a descriptor that came with a message: fd_place() and fd_opened() make it that stream's */
bool stream_is_received(int fd);

/* Calls that move no bytes, by file: `moves` of a gate that one has is at least its number here. */
#define MEMBER_CALLS 100               /* waits_and_kills.c */
#define FILE_CALLS 120                 /* file_order.c */
#define CLOSE_CALLS 140                /* closes.c */
#define LOCK_CALLS 160                 /* file_locks.c */
uint8_t member_call_of(const Gate *g); /* 0: it is none; the others are the same */
void member_call_begins(Crossing *c);
void member_call_ends(const Crossing *c, PyObject *result);
uint8_t file_call_of(const Gate *g);
void file_call_begins(Crossing *c);
void file_call_ends(const Crossing *c, PyObject *result);
uint8_t close_call_of(const Gate *g);
void close_call_begins(Crossing *c);
void close_call_ends(const Crossing *c, PyObject *result);
uint8_t lock_call_of(const Gate *g);
void lock_call_begins(Crossing *c);
void lock_call_ends(const Crossing *c, PyObject *result);

/* channels.c: of the bytes that a call has moved, if they are as many as `length`; 0: it is not known */
uint64_t channel_digest(const Crossing *c, PyObject *result, uint64_t length);

/* redigest.c: in the replay of a redacted copy, a call that sends or receives begins, and its event has come */
bool redigest_is_on(void);
void redigest_begins(Crossing *c);
void redigest_ends(const Crossing *c, PyObject *result);

/* file_order.c: of a regular file that is open to read, or to write; 0: it is none */
uint32_t file_endpoint(int fd, bool for_writing);

/* closes.c: a call that raised may have found a stream broken */
void stream_found_broken(void);

/* scatter.c */
/* scatter.c: the descriptors in what recvmsg() returned second */
void each_received(PyObject *ancillary, void (*take)(int));

/* streams.c */
/* replay: ftruncate() of the tool's own output, which the fence refuses otherwise */
int stream_cut(int fd, int64_t size);

/* stream_capture.c */
void streams_capture(void); /* engine: C code writes where the core finds it */

/* stream_children.c */
extern bool stream_counts; /* record: what the program writes to a stream is counted */
void stream_counted(int fd, int64_t n);

#endif
