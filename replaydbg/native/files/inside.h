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

/* waits_and_kills.c: `moves` of a gate that it has is at least this */
#define MEMBER_CALLS 100
uint8_t member_call_of(const Gate *g); /* 0: it waits for no process, and sends no signal */
Moving member_call_begins(const Crossing *c);
void member_call_ends(const Crossing *c, PyObject *result);

/* file_order.c: the same; above all of those */
#define FILE_CALLS 120
uint8_t file_call_of(const Gate *g); /* 0: it neither opens nor closes a file */
Moving file_call_begins(const Crossing *c);
void file_call_ends(const Crossing *c, PyObject *result);

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
