/* What follows from the recording, though nobody asked it then: whether a path is there, where the program has made or
 * removed it itself or where what it asked first says how it was, and the working directory. Edited code that asks
 * `exists` of its own temporary directory gets an answer.
 *
 * Only what follows is answered: that a path is there, and whether it is a file or a directory. Who wants more of it (a
 * size, a time) gets no answer: therefore stat() is answered only where a function asks that is known to look at
 * nothing else.
 *
 * How things were at the start is found by the launcher (replaydbg/replay/facts.py); what the program does to them is
 * followed here. Paths are compared as they are written: one with `..` in it, or one that is relative to a descriptor,
 * is not known. */
#include "base/core.h"
#include "code/code.h"
#include "crossing/crossing.h"
#include "lenient/inside.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

/* PHYSICAL: a directory, and no link to one */
enum { UNKNOWN, DIRECTORY, REGULAR, ABSENT, OWN_DIRECTORY, OWN_REGULAR, PHYSICAL };

/* by hash of the absolute path; 0: nothing is known (at_start), nothing has been done to it (today) */
static IdMap at_start, today;
static PyObject *cwd;      /* str; NULL: not known */
static bool is_on, is_all; /* is_all: nothing else makes files, such as C code */

static uint64_t
hash_path(const char *path, size_t n)
{
    return hash_bytes(path, n, 17);
}

int
facts_prepare(PyObject *facts)
{
    PyObject *paths = facts && PyDict_CheckExact(facts) ? PyDict_GetItemString(facts, "paths") : NULL, *path, *kind;
    Py_ssize_t at = 0;
    if (paths == NULL || !PyDict_CheckExact(paths))
        return 0;
    is_on = true;
    is_all = PyDict_GetItemString(facts, "all") == Py_True;
    cwd = Py_XNewRef(PyDict_GetItemString(facts, "cwd"));
    while (PyDict_Next(paths, &at, &path, &kind))
        if (PyBytes_CheckExact(path) && PyLong_CheckExact(kind))
            *idmap_slot(&at_start, hash_path(PyBytes_AS_STRING(path), (size_t)PyBytes_GET_SIZE(path))) =
                (uint32_t)PyLong_AsLong(kind);
    return 0;
}

/* ---- paths ---- */

typedef struct {
    char text[4096];
    size_t n;
} Path;

static const char *
text_of(PyObject *o)
{
    const char *text = o && PyUnicode_CheckExact(o) ? PyUnicode_AsUTF8(o)
                       : o && PyBytes_CheckExact(o) ? PyBytes_AS_STRING(o)
                                                    : NULL;
    PyErr_Clear();
    return text;
}

/* Absolute, without `.` and double strokes. False: it is not known which file is meant. */
static bool
read_path(PyObject *o, Path *path)
{
    const char *text = text_of(o), *base = text && text[0] != '/' ? text_of(cwd) : "";
    path->n = 0;
    if (text == NULL || base == NULL || text[0] == 0 || strlen(base) + strlen(text) + 2 > sizeof path->text)
        return false;
    for (int part = 0; part < 2; part++) {
        for (const char *p = part ? text : base; *p;) {
            size_t n = strcspn(p, "/");
            if (n == 2 && p[0] == '.' && p[1] == '.')
                return false;
            if (n && !(n == 1 && p[0] == '.')) {
                path->text[path->n++] = '/';
                memcpy(path->text + path->n, p, n);
                path->n += n;
            }
            p += n + (p[n] == '/');
        }
    }
    path->text[path->n] = 0;
    return path->n > 0;
}

size_t
facts_path(PyObject *o, char *text, size_t size)
{
    Path path;
    if (!read_path(o, &path) || path.n >= size)
        return 0;
    memcpy(text, path.text, path.n + 1);
    return path.n;
}

static int
kind_if_closed(const Path *path)
{
    uint32_t *own = idmap_slot(&today, hash_path(path->text, path->n));
    if (*own)
        return (int)*own;
    /* a directory that the program has made is empty, but for what it puts there; one that it removed is gone */
    for (size_t n = path->n; n > 0;) {
        while (n > 0 && path->text[n - 1] != '/')
            n--;
        n -= n > 0;
        uint32_t *above = n ? idmap_slot(&today, hash_path(path->text, n)) : NULL;
        if (above && (*above == ABSENT || *above == OWN_DIRECTORY))
            return ABSENT;
        if (above && *above)
            return UNKNOWN;
    }
    return (int)*idmap_slot(&at_start, hash_path(path->text, path->n));
}

/* That something is not there can have changed where others may make files. */
static int
kind_of(const Path *path)
{
    int kind = kind_if_closed(path);
    return kind == ABSENT && !is_all ? UNKNOWN : kind;
}

static bool
is_there(int kind)
{
    return kind != UNKNOWN && kind != ABSENT;
}

static bool
is_directory(int kind)
{
    return kind == DIRECTORY || kind == OWN_DIRECTORY || kind == PHYSICAL;
}

static int
kind_above(const Path *path)
{
    Path above = *path;
    while (above.n > 0 && above.text[above.n - 1] != '/')
        above.n--;
    above.n -= above.n > 0;
    above.text[above.n] = 0;
    return above.n ? kind_of(&above) : DIRECTORY;
}

static void
set_kind(const Path *path, uint32_t kind)
{
    *idmap_slot(&today, hash_path(path->text, path->n)) = kind;
}

/* ---- what the program does ---- */

static bool
is_named(const Crossing *c, const char *name)
{
    return strcmp(c->gate->name, name) == 0;
}

/* A path that is relative to a directory's descriptor. */
static bool
is_relative_to_descriptor(Crossing *c)
{
    static const char word[] = "dir_fd";
    const Buf *arguments = cross_arguments(c);
    return arguments == NULL || memmem(arguments->data, arguments->used, word, sizeof word - 1);
}

static long
number_at(Crossing *c, Py_ssize_t index, long otherwise)
{
    long found = index < c->nargs && PyLong_CheckExact(c->args[index]) ? PyLong_AsLong(c->args[index]) : otherwise;
    PyErr_Clear();
    return found;
}

static bool
is_for_writing(Crossing *c)
{
    if (strcmp(c->gate->module, "posix") == 0)
        return number_at(c, 1, 0) & (O_CREAT | O_TRUNC);
    const char *mode = c->nargs > 1 ? text_of(c->args[1]) : "r";
    return mode && strpbrk(mode, "wxa");
}

static bool
is_open(const Crossing *c)
{
    return (strcmp(c->gate->module, "posix") == 0 && is_named(c, "open")) || is_named(c, "FileIO.__init__");
}

/* A call that succeeded. */
void
facts_done(Crossing *c)
{
    static const char *const starts[] = {"fork",        "forkpty",      "vfork",  "fork_exec",
                                         "posix_spawn", "posix_spawnp", "system", NULL};
    Path path, other;
    for (int i = 0; is_on && starts[i]; i++)
        if (is_named(c, starts[i])) /* another program may do anything */
            is_on = false;
    if (strcmp(c->gate->module, "libc") == 0 || strcmp(c->gate->module, "_sqlite3") == 0)
        is_all = false; /* C code that may make files */
    if (!is_on || c->nargs < 1 || (strcmp(c->gate->module, "posix") != 0 && strcmp(c->gate->module, "_io") != 0))
        return;
    bool makes = is_named(c, "mkdir"), removes = is_named(c, "rmdir") || is_named(c, "unlink") || is_named(c, "remove");
    bool moves = is_named(c, "rename") || is_named(c, "replace"), opens = is_open(c), goes = is_named(c, "chdir");
    if (!(makes || removes || moves || opens || goes) || is_relative_to_descriptor(c) || !read_path(c->args[0], &path))
        return;
    if (makes)
        set_kind(&path, OWN_DIRECTORY);
    else if (removes)
        set_kind(&path, ABSENT);
    else if (opens && is_for_writing(c))
        set_kind(&path, OWN_REGULAR);
    else if (moves && c->nargs > 1 && read_path(c->args[1], &other)) {
        int kind = kind_of(&path);
        /* What lay in a directory lies elsewhere now: that is not followed. */
        set_kind(&other, kind == OWN_REGULAR || kind == REGULAR ? OWN_REGULAR
                         : is_directory(kind)                   ? DIRECTORY
                                                                : UNKNOWN);
        set_kind(&path, ABSENT);
    }
    else if (goes) {
        Py_XDECREF(cwd);
        cwd = PyUnicode_DecodeFSDefaultAndSize(path.text, (Py_ssize_t)path.n);
        PyErr_Clear();
    }
}

/* ---- what it asks ---- */

/* Whether a function asks that looks at nothing but whether it is there, and of which kind. */
static bool
is_only_of_kind(void)
{
    static const char *const names[] = {"exists",
                                        "lexists",
                                        "isfile",
                                        "isdir",
                                        "Path.exists",
                                        "Path.is_dir",
                                        "Path.is_file",
                                        "PathBase.exists",
                                        "PathBase.is_dir",
                                        "PathBase.is_file",
                                        "makedirs",
                                        "Path.mkdir",
                                        "_joinrealpath",
                                        "realpath",
                                        "islink",
                                        "Path.is_symlink",
                                        NULL};
    PyThreadState *thread = report_thread();
    _PyInterpreterFrame *frame = thread ? compat_top_frame(thread) : NULL;
    for (int depth = 0; frame && depth < 2; depth++, frame = compat_previous_frame(frame)) {
        PyCodeObject *code = compat_frame_code(frame);
        const char *name = code_is_library(code) ? PyUnicode_AsUTF8(code->co_qualname) : NULL;
        PyErr_Clear();
        for (int i = 0; name && names[i]; i++)
            if (strcmp(name, names[i]) == 0)
                return true;
    }
    return false;
}

static PyObject *
raise_of(int number, PyObject *path)
{
    errno = number;
    return PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, path);
}

static PyObject *
as_stat(int kind)
{
    PyObject *posix = PyImport_GetModule(PyUnicode_InternFromString("posix"));
    PyObject *type = posix ? PyObject_GetAttrString(posix, "stat_result") : NULL;
    int mode = is_directory(kind) ? S_IFDIR | 0700 : S_IFREG | 0600;
    PyObject *result = type ? PyObject_CallFunction(type, "((iiiiiiiiii))", mode, 0, 0, 1, 0, 0, 0, 0, 0, 0) : NULL;
    Py_XDECREF(type);
    Py_XDECREF(posix);
    return result;
}

static PyObject *
answer_of_path(Crossing *c, const Path *path, bool *is_known)
{
    int kind = kind_of(path);
    *is_known = true;
    if (is_named(c, "stat") || is_named(c, "lstat")) {
        if (kind == ABSENT)
            return raise_of(ENOENT, c->args[0]);
        bool may_be_link = (kind == DIRECTORY || kind == REGULAR) && is_named(c, "lstat");
        if (kind != UNKNOWN && !may_be_link && is_only_of_kind())
            return as_stat(kind);
    }
    else if (is_named(c, "access") && (kind == ABSENT || (is_there(kind) && number_at(c, 1, -1) == F_OK)))
        return PyBool_FromLong(kind != ABSENT);
    else if (is_named(c, "mkdir") && is_there(kind))
        return raise_of(EEXIST, c->args[0]);
    else if (is_named(c, "mkdir") && kind == ABSENT && kind_above(path) == OWN_DIRECTORY)
        return Py_NewRef(Py_None);
    else if ((is_named(c, "rmdir") || is_named(c, "unlink") || is_named(c, "remove") || is_named(c, "listdir")) &&
             kind == ABSENT)
        return raise_of(ENOENT, c->args[0]);
    else if ((is_named(c, "unlink") || is_named(c, "remove")) && kind == OWN_REGULAR)
        return Py_NewRef(Py_None);
    else if (is_named(c, "chdir") && is_directory(kind))
        return Py_NewRef(Py_None);
    else if (is_open(c) && kind == ABSENT && !is_for_writing(c))
        return raise_of(ENOENT, c->args[0]);
    *is_known = false;
    return NULL;
}

/* The outcome of a call that no event answers; `is_known`: it follows from what was recorded. */
PyObject *
facts_answer(Crossing *c, bool *is_known)
{
    Path path;
    *is_known = false;
    bool is_posix = strcmp(c->gate->module, "posix") == 0;
    if (!is_on || (!is_posix && strcmp(c->gate->module, "_io") != 0))
        return NULL;
    if (is_posix && cwd && (is_named(c, "getcwd") || is_named(c, "getcwdb"))) {
        *is_known = true;
        return is_named(c, "getcwd") ? Py_NewRef(cwd) : PyUnicode_EncodeFSDefault(cwd);
    }
    if (c->nargs < 1 || is_relative_to_descriptor(c) || !read_path(c->args[0], &path))
        return NULL;
    return answer_of_path(c, &path, is_known);
}
