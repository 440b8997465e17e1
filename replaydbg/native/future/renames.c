/* Calls that make, move, change and remove names of the layer. */
#include "base/core.h"
#include "future/layer.h"
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static bool
is_directory(NameKind kind)
{
    return kind == IS_DIRECTORY || kind == IS_MADE;
}

/* 1: it has none; 0: it has some; -1: not known. */
static int
is_empty(const Where *where)
{
    Name *name;
    bool is_listed = where->kind == IS_MADE || (where->name && where->name->listing);
    for (uint32_t i = 0; (name = name_at(i)) != NULL; i++)
        if (name->kind != IS_UNKNOWN && name->kind != IS_ABSENT && name_child(name->path, where->path))
            return 0;
    for (size_t at = 0; where->name && at < where->name->listing_size;) {
        const char *child = where->name->listing + at;
        char path[2 * LONGEST_NAME];
        snprintf(path, sizeof path, "%s/%s", where->path, child);
        name = name_find(path);
        if (name == NULL || name->kind != IS_ABSENT)
            return 0;
        at += strlen(child) + 1;
    }
    return is_listed ? 1 : -1;
}

Taken
call_mkdir(Crossing *c)
{
    Where where;
    PyObject *path = argument_of(c, 0, "path");
    if (!name_where(path, argument_of(c, PY_SSIZE_T_MAX, "dir_fd"), false, &where))
        return NOT_HERE;
    if (where.kind != IS_ABSENT && where.kind != IS_UNKNOWN)
        return fails_with(EEXIST, path, NULL);
    int error = name_parent_error(where.path);
    if (error)
        return error < 0 ? NOT_HERE : fails_with(error, path, NULL);
    Name *made = name_of(where.path);
    name_touch(made, IS_MADE, -1);
    made->mode = (uint32_t)number_of(argument_of(c, 1, "mode"), 0777) & 01777 & ~usual_mask();
    return answered(Py_NewRef(Py_None));
}

Taken
call_rmdir(Crossing *c)
{
    Where where;
    PyObject *path = argument_of(c, 0, "path");
    if (!name_where(path, argument_of(c, PY_SSIZE_T_MAX, "dir_fd"), false, &where) || where.kind == IS_UNKNOWN ||
        where.kind == IS_OTHER)
        return NOT_HERE;
    if (!is_directory(where.kind))
        return fails_with(where.kind == IS_ABSENT ? ENOENT : ENOTDIR, path, NULL);
    int empty = is_empty(&where);
    if (empty <= 0)
        return empty < 0 ? NOT_HERE : fails_with(ENOTEMPTY, path, NULL);
    name_touch(name_of(where.path), IS_ABSENT, -1);
    return answered(Py_NewRef(Py_None));
}

static void
take_away(Name *name)
{
    Node *node = name->kind == IS_FILE ? node_indexed(name->node) : NULL;
    if (node)
        node->links--;
    name_touch(name, IS_ABSENT, -1);
}

Taken
call_unlink(Crossing *c)
{
    Where where;
    PyObject *path = argument_of(c, 0, "path");
    if (!name_where(path, argument_of(c, PY_SSIZE_T_MAX, "dir_fd"), false, &where))
        return NOT_HERE;
    switch (where.kind) {
    case IS_FILE:
    case IS_LINK:
        take_away(where.name);
        return answered(Py_NewRef(Py_None));
    case IS_ABSENT:
        return fails_with(name_parent_error(where.path) == ENOTDIR ? ENOTDIR : ENOENT, path, NULL);
    case IS_MADE:
    case IS_DIRECTORY:
        return fails_with(EISDIR, path, NULL);
    default:
        return NOT_HERE;
    }
}

/* ---- rename ---- */

static void
move_name(Name *from, Name *to)
{
    int32_t node = from->kind == IS_FILE ? node_of(from) : -1;
    char *target = from->target;
    name_touch(to, from->kind, node);
    to->target = target;
    to->mode = from->mode;
    from->target = NULL;
    name_touch(from, IS_ABSENT, -1);
}

static void
move_below(const char *from, const char *to)
{
    size_t n = strlen(from);
    char path[2 * LONGEST_NAME];
    Name *name;
    for (uint32_t i = 0; (name = name_at(i)) != NULL; i++)
        if (strncmp(name->path, from, n) == 0 && name->path[n] == '/' && name->kind != IS_UNKNOWN &&
            name->kind != IS_ABSENT) {
            snprintf(path, sizeof path, "%s%s", to, name->path + n);
            move_name(name, name_of(path));
        }
}

/* What is wrong with putting `from` in the place of `to`: 0: nothing, -1: not known. */
static int
error_of_rename(const Where *from, const Where *to)
{
    int empty = to->kind == IS_MADE || to->kind == IS_DIRECTORY ? is_empty(to) : 1;
    size_t n = strlen(from->path);
    if (from->kind == IS_ABSENT)
        return name_parent_error(from->path) == ENOTDIR ? ENOTDIR : ENOENT;
    if ((from->kind != IS_FILE && from->kind != IS_LINK && from->kind != IS_MADE) || to->kind == IS_OTHER)
        return -1;
    if (from->kind == IS_MADE && strncmp(to->path, from->path, n) == 0 && to->path[n] == '/')
        return EINVAL;
    if (from->kind == IS_MADE) {
        if (to->kind == IS_UNKNOWN || empty < 0)
            return -1;
        return to->kind == IS_FILE || to->kind == IS_LINK ? ENOTDIR : empty ? name_parent_error(to->path) : ENOTEMPTY;
    }
    return is_directory(to->kind) ? EISDIR : name_parent_error(to->path);
}

Taken
call_rename(Crossing *c)
{
    Where from, to;
    PyObject *old = argument_of(c, 0, "src"), *new = argument_of(c, 1, "dst");
    if (!name_where(old, argument_of(c, PY_SSIZE_T_MAX, "src_dir_fd"), false, &from) ||
        !name_where(new, argument_of(c, PY_SSIZE_T_MAX, "dst_dir_fd"), false, &to))
        return NOT_HERE;
    int error = error_of_rename(&from, &to);
    if (error)
        return error < 0 ? NOT_HERE : fails_with(error, old, new);
    if (strcmp(from.path, to.path) == 0)
        return answered(Py_NewRef(Py_None));
    Name *target = name_of(to.path);
    if (to.kind == IS_FILE && from.kind == IS_FILE && target->node >= 0 && target->node == from.name->node)
        return answered(Py_NewRef(Py_None)); /* two links of one file: rename() does nothing then */
    if (to.kind == IS_FILE)
        take_away(target);
    move_name(from.name, target);
    if (from.kind == IS_MADE)
        move_below(from.path, to.path);
    return answered(Py_NewRef(Py_None));
}

/* ---- links ---- */

static int
error_of_new(const Where *where)
{
    if (where->kind != IS_ABSENT && where->kind != IS_UNKNOWN)
        return EEXIST;
    return name_parent_error(where->path);
}

Taken
call_link(Crossing *c)
{
    Where from, to;
    PyObject *old = argument_of(c, 0, "src"), *new = argument_of(c, 1, "dst");
    if (!name_where(old, argument_of(c, PY_SSIZE_T_MAX, "src_dir_fd"), false, &from) ||
        !name_where(new, argument_of(c, PY_SSIZE_T_MAX, "dst_dir_fd"), false, &to) ||
        (from.kind != IS_FILE && from.kind != IS_ABSENT))
        return NOT_HERE;
    int error = from.kind == IS_ABSENT ? ENOENT : error_of_new(&to);
    if (error)
        return error < 0 ? NOT_HERE : fails_with(error, old, new);
    int32_t node = node_of(from.name);
    name_touch(from.name, IS_FILE, node);
    name_touch(name_of(to.path), IS_FILE, node);
    node_indexed(node)->links++;
    return answered(Py_NewRef(Py_None));
}

Taken
call_symlink(Crossing *c)
{
    Where to;
    PyObject *target = argument_of(c, 0, "src"), *new = argument_of(c, 1, "dst");
    if (target == NULL || (!PyUnicode_Check(target) && !PyBytes_Check(target)) ||
        !name_where(new, argument_of(c, PY_SSIZE_T_MAX, "dir_fd"), false, &to))
        return NOT_HERE;
    int error = error_of_new(&to);
    if (error)
        return error < 0 ? NOT_HERE : fails_with(error, target, new);
    PyObject *bytes = PyUnicode_Check(target) ? PyUnicode_EncodeFSDefault(target) : Py_NewRef(target);
    if (bytes == NULL)
        return answered(NULL);
    Name *name = name_of(to.path);
    name_touch(name, IS_LINK, -1);
    name->target = strdup(PyBytes_AS_STRING(bytes));
    Py_DECREF(bytes);
    return answered(Py_NewRef(Py_None));
}

/* ---- what changes a file by its name ---- */

/* Of a file: what is in it. NULL, and what came of the call, if there is none. */
static Node *
node_by_path(Crossing *c, PyObject *path, bool follows, Taken *taken)
{
    Where where;
    *taken = NOT_HERE;
    Description *d = path && PyLong_Check(path) ? fd_description((int)number_of(path, -1)) : NULL;
    if (d)
        return node_indexed(d->node);
    if (!name_where(path, argument_of(c, PY_SSIZE_T_MAX, "dir_fd"), follows, &where))
        return NULL;
    if (where.kind == IS_ABSENT)
        *taken = fails_with(name_parent_error(where.path) == ENOTDIR ? ENOTDIR : ENOENT, path, NULL);
    if (where.kind == IS_MADE)
        *taken = answered(Py_NewRef(Py_None)); /* the mode and the time of a directory */
    if (where.kind != IS_FILE)
        return NULL;
    int32_t node = node_of(where.name);
    name_touch(where.name, IS_FILE, node);
    return node_indexed(node);
}

Taken
call_truncate(Crossing *c)
{
    Taken taken;
    PyObject *path = argument_of(c, 0, "path");
    Node *node = node_by_path(c, path, true, &taken);
    long size = number_of(argument_of(c, 1, "length"), -1);
    if (node == NULL || size < 0)
        return node ? fails_with(EINVAL, path, NULL) : taken;
    node->changed = layer_now();
    return node_resize(node, size) ? answered(Py_NewRef(Py_None)) : fails_with(errno, path, NULL);
}

Taken
call_chmod(Crossing *c)
{
    Taken taken;
    PyObject *path = argument_of(c, 0, "path");
    long mode = number_of(argument_of(c, 1, "mode"), -1);
    if (mode < 0)
        return NOT_HERE;
    Where where;
    bool follows = !argument_is_false(c, "follow_symlinks");
    if (name_where(path, argument_of(c, PY_SSIZE_T_MAX, "dir_fd"), follows, &where) && where.kind == IS_MADE)
        where.name->mode = (uint32_t)mode & 07777;
    Node *node = node_by_path(c, path, follows, &taken);
    if (node == NULL)
        return taken;
    node->mode = (node->mode & S_IFMT) | ((uint32_t)mode & 07777);
    return answered(Py_NewRef(Py_None));
}

static uint64_t
ns_of(PyObject *pair, Py_ssize_t at, bool is_ns)
{
    PyObject *o = PyTuple_GET_ITEM(pair, at);
    if (is_ns)
        return PyLong_Check(o) ? PyLong_AsUnsignedLongLong(o) : 0;
    return (uint64_t)(PyNumber_Check(o) ? PyFloat_AsDouble(o) * 1e9 : 0);
}

Taken
call_utime(Crossing *c)
{
    Taken taken;
    PyObject *times = argument_of(c, 1, "times"), *ns = argument_of(c, PY_SSIZE_T_MAX, "ns");
    PyObject *pair = ns ? ns : times && times != Py_None ? times : NULL;
    if (pair && (!PyTuple_CheckExact(pair) || PyTuple_GET_SIZE(pair) != 2))
        return NOT_HERE;
    Node *node = node_by_path(c, argument_of(c, 0, "path"), !argument_is_false(c, "follow_symlinks"), &taken);
    if (node == NULL)
        return taken;
    node->accessed = pair ? ns_of(pair, 0, ns != NULL) : layer_now();
    node->changed = pair ? ns_of(pair, 1, ns != NULL) : layer_now();
    return PyErr_Occurred() ? answered(NULL) : answered(Py_NewRef(Py_None));
}

Taken
call_chdir(Crossing *c)
{
    Where where;
    PyObject *path = argument_of(c, 0, "path");
    if (!name_where(path, NULL, true, &where) || where.kind == IS_UNKNOWN || where.kind == IS_OTHER)
        return NOT_HERE;
    if (where.kind == IS_ABSENT || where.kind == IS_FILE)
        return fails_with(where.kind == IS_FILE ? ENOTDIR : ENOENT, path, NULL);
    names_go(where.path);
    return answered(Py_NewRef(Py_None));
}
