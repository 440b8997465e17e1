/* SQLite's virtual file system. */
#ifndef REPLAYDBG_SQLITE_H
#define REPLAYDBG_SQLITE_H
#include "base/core.h"

/* sqlite.c */
int sqlite_module_loaded(PyObject *module, const char *name);

#endif
