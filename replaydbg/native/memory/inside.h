/* What the files of this folder have of each other. */
#ifndef REPLAYDBG_MEMORY_INSIDE_H
#define REPLAYDBG_MEMORY_INSIDE_H
#include "base/core.h"
#include "memory/memory.h"

typedef enum { MAP_IS_PRIVATE, MAP_IS_READ, MAP_IS_WRITTEN } MapKind;

/* shared.c */
const uint8_t *shared_map_made(PyObject *map, int fd, uint64_t file, MapKind kind, size_t known);
void shared_map_is_ready(PyObject *object);
uint64_t shared_file(int fd);
uint8_t *shared_map_data(PyObject *map, size_t *size);
void shared_map_move_descriptor(PyObject *map, int (*move)(int fd));
void shared_map_extend(PyObject *map, size_t at, const uint8_t *data, size_t n);
int shared_descriptor(uint64_t file);
void shared_map_gone(PyObject *map);

#endif
