/* The program's standard output and error: every way that leads there, and what a replay writes there. */
#ifndef REPLAYDBG_STREAMS_H
#define REPLAYDBG_STREAMS_H
#include "base/core.h"

StreamAct stream_act(const char *module, const char *name);
void streams_open(void);                         /* replay, before the fence: the output once more */
void streams_begin(void);                        /* before the program begins: which descriptors lead to a stream */
void streams_recorded(Crossing *c, PyObject *result); /* record: the real thing is done, its outcome not yet in the log */
void stream_change(void);                        /* replay: reads one STREAM record without its head */
int stream_stands_in(int copy_of);               /* replay: what a descriptor is a copy of that is being opened, or copied; -1: no stream */
void stream_moved(int fd, int64_t at, const uint8_t *data, size_t n); /* record: the kernel has moved these bytes to it */
void stream_write(int fd, const void *data, size_t n); /* replay: the program has written this to a descriptor */
bool streams_mix(void);                          /* replay: bytes are in the order of writing, where the program had moved about in a file */
void stream_opened(int fd, int copy_of);         /* fd_opened(): bookkeeping, in both modes */
void stream_closed(int fd);
bool stream_is_received(int fd);                 /* of a descriptor that came with a message: fd_place() and fd_opened() make it that stream's */
void each_received(PyObject *ancillary, void (*take)(int)); /* scatter.c: the descriptors in what recvmsg() returned second */
void streams_end_with(const char *what);         /* record: the recording cannot go on from here */
bool stream_is_map(int fd);                      /* record: whether a map of this descriptor would be one of a stream */
void streams_collect(void);                      /* engine: what C code has written by itself */
void streams_leave(void);                        /* engine: this process is a clone, which writes nowhere */
int stream_cut(int fd, int64_t size);            /* replay: ftruncate() of the tool's own output, which the fence refuses otherwise */
void streams_capture(void);                      /* engine: C code writes where the core finds it */
void stream_child_starts(void);                  /* record: a child process is about to start */
void stream_child(bool has_out, bool has_err);   /* record: it has started, with these streams */
void stream_children_end(void);                  /* record: the program ends */
extern bool stream_counts;                       /* record: what the program writes to a stream is counted */
void stream_counted(int fd, int64_t n);
extern const HandlerEntry stream_handlers[];
#endif
