/* SQLite's virtual file system. */
#ifndef REPLAYDBG_SQLITE_H
#define REPLAYDBG_SQLITE_H
#include "base/core.h"

/* sqlite.c */
/* a replay becomes a recording: the real files are opened and locked as they were; NULL, or what is impossible */
const char *sqlite_continue(void);
int sqlite_module_loaded(PyObject *module, const char *name);

/* future_files.c: in a future, its files are the future's own from now on */
void sqlite_becomes_future(void);

/* What higher parts register in boot/parts.c: files of a future, by their absolute paths. */
typedef struct {
    int (*opens)(const char *path, bool creates); /* 0, or an errno; -1: not known */
    int (*exists)(const char *path);              /* -1: not known */
    ssize_t (*reads)(const char *path, void *data, size_t n, int64_t offset);
    bool (*writes)(const char *path, const void *data, size_t n, int64_t offset);
    bool (*resizes)(const char *path, int64_t size);
    int64_t (*size)(const char *path);
    bool (*removes)(const char *path);
    const char *(*directory)(void);
    void (*draw)(void *bytes, size_t n); /* random numbers */
    int (*fault)(void);                  /* a code of SQLite's with which the call that has begun fails; 0: none */
} SqliteHooks;
extern const SqliteHooks sqlite_hooks;

#endif
