/* The importer's private world. */
#ifndef REPLAYDBG_WORLD_H
#define REPLAYDBG_WORLD_H
#include "base/core.h"
#include "log/log.h"

/* world.c */
int world_moved(PyObject *sources); /* replay: directories that lie elsewhere now, (recorded, today's) */
int world_install(void);
int world_load(void); /* replay: reads the world log */
/* replay: goes on with that of a child, whose first `same` bytes must be the same; 0: whatever they are; closes fd */
int world_replace(int fd, uint64_t same, Room to);
/* record: notes value; replay: gives the noted one */
PyObject *world_fixed(const char *op, const char *key, PyObject *value);
PyObject *world_fixed_if_known(const char *op, const char *key, PyObject *value);
/* new bytes object: content of a source file as the importer sees it */
PyObject *world_content(const char *path);
PyObject *world_moved_path(PyObject *path);

/* looked.c: in a replay of edited code, what it asked of today's disk */
void world_looked(const char *op, const char *path);
void world_looked_unnamed(void);
void looked_report(Buf *b);

#endif
