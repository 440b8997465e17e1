/* Memory maps, and memory that other processes write.
 *
 *   maps.c    maps
 *   shared.c  what others write
 */
#ifndef REPLAYDBG_MEMORY_H
#define REPLAYDBG_MEMORY_H
#include "base/core.h"
#include "crossing/crossing.h"

/* shared.c */
/* Each map that the program makes, in the same order in both modes. Returns the copy with which it will be compared, or
 * NULL. */
bool shared_is_mapped(void);      /* whether a clone has to copy memory before the other process may write there */
void shared_part(void);           /* this process is a clone: what it writes is its own */
void shared_process_starts(void); /* before there can be a child that shares our memory */
/* A replay has become a recording: the map that this event made lies over `file` from now on, which is its own
 * descriptor. What the program has stored in it is in the file then. False: it cannot be mapped. */
bool shared_continue(uint64_t event, int file);
/* Before that: the event that made a map of a file; 0: the map of this index is none of those. False: there are no more. */
bool shared_map_event(size_t index, uint64_t *event);
bool shared_was_mapped_by(uint64_t event); /* there is a map that others may see, made by this event or before */
void shared_end(void);                     /* nothing is logged any more */
extern uint64_t shared_written;
void shared_look(bool before, unsigned flags); /* record: logs what has changed; flags of the crossing's gate */
void memory_changes(Crossing *open);           /* replay: reads one MEMORY record without its head */
bool memory_changes_later(void);

/* maps.c */
int maps_module_loaded(PyObject *module, const char *name);
extern const HandlerEntry map_handlers[];

#endif
