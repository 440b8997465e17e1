/* SQLite's virtual file system. */
#ifndef REPLAYDBG_SQLITE_H
#define REPLAYDBG_SQLITE_H
#include "base/core.h"

/* sqlite.c */
/* a replay becomes a recording: the real files are opened and locked as they were; NULL, or what is impossible */
const char *sqlite_continue(void);
int sqlite_module_loaded(PyObject *module, const char *name);

#endif
