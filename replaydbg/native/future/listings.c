/* What is in a directory of the layer: what the recording shows of it, without what was removed, and with what was made.
 */
#include "base/core.h"
#include "files/files.h"
#include "future/layer.h"
#include "future/turns.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    uint64_t iterator; /* its address */
    char *directory;
    PyObject *path, *names; /* as it was given; a list */
    Py_ssize_t next;
} Scan;
static Scan *scans;
static size_t scan_count;
static IdMap entries; /* by address: 1 more than the index of the path */
static char **entry_paths;
static uint32_t entry_count;

static bool
add_name(PyObject *list, const char *name, bool is_bytes)
{
    PyObject *o = is_bytes ? PyBytes_FromString(name) : PyUnicode_DecodeFSDefault(name);
    int rc = o ? PyList_Append(list, o) : -1;
    Py_XDECREF(o);
    return rc == 0;
}

/* NULL without an exception: not known. */
static PyObject *
names_in(const Where *where, bool is_bytes)
{
    const Name *directory = where->name;
    const char *listing = where->kind == IS_DIRECTORY && directory ? directory->listing : NULL, *child;
    char path[2 * LONGEST_NAME];
    Name *name, *above;
    turns_look(turns_path(where->path, PATH_LISTING));
    if (where->kind != IS_MADE && listing == NULL)
        return NULL;
    PyObject *list = PyList_New(0);
    for (size_t at = 0; list && listing && at < directory->listing_size; at += strlen(listing + at) + 1) {
        snprintf(path, sizeof path, "%s/%s", strcmp(where->path, "/") ? where->path : "", listing + at);
        if (name_kind(path, &above) != IS_ABSENT && !add_name(list, listing + at, is_bytes))
            Py_CLEAR(list);
    }
    for (uint32_t i = 0; list && (name = name_at(i)) != NULL; i++) {
        bool is_there = name->kind != IS_UNKNOWN && name->kind != IS_ABSENT;
        child = is_there ? name_child(name->path, where->path) : NULL;
        if (child && !(listing && name_is_listed(directory, child)) && !add_name(list, child, is_bytes))
            Py_CLEAR(list);
    }
    return list;
}

static bool
is_changed(const char *directory)
{
    Name *name;
    for (uint32_t i = 0; (name = name_at(i)) != NULL; i++)
        if (name->is_touched && name_child(name->path, directory))
            return true;
    return name_is_touched(directory);
}

/* The directory that a call is about: by a path, a descriptor, or where the program is. */
static bool
directory_of(const Crossing *c, Where *where, PyObject **path)
{
    PyObject *given = argument_of(c, 0, "path");
    Description *d = given && PyLong_Check(given) ? fd_description((int)number_of(given, -1)) : NULL;
    bool is_here = given == NULL || given == Py_None;
    const char *text = d ? d->path : is_here ? names_directory() : NULL;
    *path = given && !is_here ? given : NULL;
    if (text == NULL)
        return given && name_where(given, NULL, true, where);
    PyObject *absolute = PyUnicode_DecodeFSDefault(text);
    bool is_good = absolute && name_where(absolute, NULL, true, where);
    Py_XDECREF(absolute);
    return is_good;
}

static Taken
names_of(const Crossing *c, Where *where, PyObject **path, PyObject **names)
{
    *names = NULL;
    if (!directory_of(c, where, path) || where->kind == IS_UNKNOWN || where->kind == IS_OTHER)
        return NOT_HERE;
    if (where->kind == IS_ABSENT || where->kind == IS_FILE)
        return fails_with(where->kind == IS_FILE ? ENOTDIR : ENOENT, *path, NULL);
    *names = names_in(where, *path && PyBytes_Check(*path));
    return *names || PyErr_Occurred() ? IS_ANSWERED : NOT_HERE;
}

Taken
call_listdir(Crossing *c)
{
    Where where;
    PyObject *path, *names;
    const uint8_t *end;
    bool is_raised, is_told = known_answer(c, &end, &is_raised) != NULL;
    if (is_told && directory_of(c, &where, &path) && !is_changed(where.path))
        return NOT_HERE;
    Taken taken = names_of(c, &where, &path, &names);
    return taken == IS_ANSWERED && (names || PyErr_Occurred()) ? answered(names) : taken;
}

/* ---- scandir ---- */

Taken
call_scandir(Crossing *c)
{
    Where where;
    PyObject *path, *names;
    Taken taken = names_of(c, &where, &path, &names);
    if (taken != IS_ANSWERED || names == NULL)
        return taken;
    scans = grown(scans, scan_count + 1, sizeof *scans);
    /* the iterator is made afterwards, see layer_scan_made() */
    scans[scan_count++] = (Scan){0, strdup(where.path), Py_XNewRef(path), names, 0};
    return answered(Py_NewRef(Py_None));
}

static void
drop_scan(size_t at)
{
    free(scans[at].directory);
    Py_XDECREF(scans[at].path);
    Py_XDECREF(scans[at].names);
    scans[at] = scans[--scan_count];
}

void
layer_scan_made(PyObject *iterator)
{
    uint64_t address = (uint64_t)(uintptr_t)iterator;
    for (size_t i = 0; i < scan_count; i++)
        if (scans[i].iterator == address)
            drop_scan(i--); /* of one that was there before, at the same address */
    for (size_t i = 0; i < scan_count; i++)
        if (scans[i].iterator == 0)
            scans[i].iterator = address;
}

static PyObject *
joined(PyObject *path, PyObject *name)
{
    if (path == NULL || PyLong_Check(path))
        return path == NULL && PyUnicode_Check(name) ? PyUnicode_FromFormat("./%U", name) : Py_NewRef(name);
    if (PyUnicode_Check(path)) {
        Py_ssize_t n = PyUnicode_GET_LENGTH(path);
        bool ends = n > 0 && PyUnicode_READ_CHAR(path, n - 1) == '/';
        return PyUnicode_FromFormat(ends ? "%U%U" : "%U/%U", path, name);
    }
    bool ends = PyBytes_GET_SIZE(path) > 0 && PyBytes_AS_STRING(path)[PyBytes_GET_SIZE(path) - 1] == '/';
    return PyBytes_FromFormat(ends ? "%s%s" : "%s/%s", PyBytes_AS_STRING(path), PyBytes_AS_STRING(name));
}

static PyObject *
entry_in(const Scan *scan, PyObject *name)
{
    PyObject *path = joined(scan->path, name), *entry = path ? direntry_make(name, path) : NULL;
    PyObject *bytes = PyUnicode_Check(name) ? PyUnicode_EncodeFSDefault(name) : Py_NewRef(name);
    char text[2 * LONGEST_NAME];
    Py_XDECREF(path);
    if (entry && bytes) {
        const char *base = strcmp(scan->directory, "/") ? scan->directory : "";
        snprintf(text, sizeof text, "%s/%s", base, PyBytes_AS_STRING(bytes));
        entry_paths = grown(entry_paths, entry_count + 1, sizeof *entry_paths);
        entry_paths[entry_count++] = strdup(text);
        *idmap_slot(&entries, (uint64_t)(uintptr_t)entry) = entry_count;
    }
    Py_XDECREF(bytes);
    return entry;
}

const char *
entry_path(PyObject *entry)
{
    uint32_t *slot = idmap_slot(&entries, (uint64_t)(uintptr_t)entry);
    return *slot ? entry_paths[*slot - 1] : NULL;
}

Taken
call_scandir_next(Crossing *c)
{
    for (size_t i = 0; i < scan_count; i++) {
        Scan *scan = &scans[i];
        if (scan->iterator != (uint64_t)(uintptr_t)c->self)
            continue;
        if (scan->next == PyList_GET_SIZE(scan->names)) {
            drop_scan(i);
            return answered(Py_NewRef(Py_None));
        }
        return answered(entry_in(scan, PyList_GET_ITEM(scan->names, scan->next++)));
    }
    return NOT_HERE;
}
