/* Calls that ask the layer. What the recorded run was told is told again, unless the program has changed it since. */
#include "base/core.h"
#include "files/files.h"
#include "future/layer.h"
#include "values/values.h"
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static PyObject *
status_object(const int64_t *fields)
{
    Buf b = {0};
    buf_byte(&b, TAG_STAT);
    for (int i = 0; i < STATUS_FIELDS; i++)
        buf_varint(&b, (uint64_t)fields[i] << 1 ^ (uint64_t)(fields[i] >> 63));
    const uint8_t *p = b.data;
    PyObject *result = value_decode(&p, b.data + b.used, &event_types, NULL, 0);
    free(b.data);
    return result;
}

static PyObject *
status_of_node(const Node *node)
{
    int64_t size = node_size(node), now = (int64_t)node->changed;
    int64_t fields[STATUS_FIELDS] = {node->mode,
                                     (int64_t)node->inode,
                                     (int64_t)node->device,
                                     node->links,
                                     geteuid(),
                                     getegid(),
                                     size,
                                     (int64_t)node->accessed,
                                     now,
                                     now,
                                     4096,
                                     (size + 511) / 512};
    return status_object(fields);
}

static PyObject *
status_of_directory(const char *path, uint32_t mode)
{
    int64_t now = (int64_t)layer_now();
    int64_t inode = (int64_t)(hash_bytes(path, strlen(path), 0) >> 16);
    int64_t fields[STATUS_FIELDS] = {S_IFDIR | mode, inode, 0x7264, 2,   geteuid(), getegid(),
                                     4096,           now,   now,    now, 4096,      8};
    return status_object(fields);
}

static PyObject *
status_of_link(const Name *name)
{
    int64_t now = (int64_t)layer_now(), size = (int64_t)strlen(name->target);
    int64_t fields[STATUS_FIELDS] = {
        S_IFLNK | 0777, (int64_t)(intptr_t)name, 0x7264, 1, geteuid(), getegid(), size, now, now, now, 4096};
    return status_object(fields);
}

/* NULL without an exception: not known. */
static PyObject *
status_of(const Where *where)
{
    Name *name = where->name;
    switch (where->kind) {
    case IS_FILE:
        if (name->node >= 0 && (name->is_touched || !name->has_status))
            return status_of_node(node_indexed(name->node));
        return name->has_status ? status_object(name->status) : NULL;
    case IS_MADE:
        return status_of_directory(where->path, name->mode);
    case IS_LINK:
        return name->is_touched && name->target ? status_of_link(name) : NULL;
    case IS_DIRECTORY:
    case IS_OTHER:
        return name && name->has_status ? status_object(name->status) : NULL;
    default:
        return NULL;
    }
}

/* What it was told of a path in the recorded run is left to known.c. */
static bool
is_as_told(const Crossing *c, const char *path)
{
    const uint8_t *end;
    bool is_raised;
    return !name_is_touched(path) && known_answer(c, &end, &is_raised) != NULL;
}

static Taken
told(PyObject *result)
{
    return result || PyErr_Occurred() ? answered(result) : NOT_HERE;
}

static Taken
ask_status(Crossing *c, PyObject *path, bool follows)
{
    Where where;
    if (!name_where(path, argument_of(c, PY_SSIZE_T_MAX, "dir_fd"), follows, &where) || is_as_told(c, where.path))
        return NOT_HERE;
    if (where.kind == IS_ABSENT)
        return fails_with(name_parent_error(where.path) == ENOTDIR ? ENOTDIR : ENOENT, path, NULL);
    return told(status_of(&where));
}

Taken
call_fstat(Crossing *c)
{
    Description *d = fd_description((int)number_of(argument_of(c, 0, "fd"), -1));
    if (d == NULL)
        return NOT_HERE;
    if (d->node >= 0)
        return answered(status_of_node(node_indexed(d->node)));
    Name *name = name_find(d->path);
    if (name && name->has_status)
        return answered(status_object(name->status));
    return answered(status_of_directory(d->path, name && name->kind == IS_MADE ? name->mode : 0755));
}

Taken
call_stat(Crossing *c)
{
    PyObject *path = argument_of(c, 0, "path");
    return path && PyLong_Check(path) ? call_fstat(c) : ask_status(c, path, !argument_is_false(c, "follow_symlinks"));
}

Taken
call_lstat(Crossing *c)
{
    return ask_status(c, argument_of(c, 0, "path"), false);
}

Taken
call_access(Crossing *c)
{
    Where where;
    PyObject *path = argument_of(c, 0, "path");
    long asked = number_of(argument_of(c, 1, "mode"), -1);
    if (asked < 0 || !name_where(path, argument_of(c, PY_SSIZE_T_MAX, "dir_fd"), true, &where) ||
        is_as_told(c, where.path))
        return NOT_HERE;
    if (where.kind == IS_ABSENT)
        return answered(Py_NewRef(Py_False));
    if (where.kind == IS_UNKNOWN || (where.kind != IS_FILE && where.kind != IS_MADE && asked != F_OK))
        return NOT_HERE;
    if (asked == F_OK)
        return answered(Py_NewRef(Py_True));
    bool is_made = where.kind == IS_MADE;
    Node *node = is_made ? NULL : node_indexed(where.name->node);
    if (!is_made && node == NULL && !where.name->has_status)
        return NOT_HERE;
    uint32_t mode = is_made ? where.name->mode : node ? node->mode : (uint32_t)where.name->status[AT_MODE];
    bool is_root = geteuid() == 0, can_read = is_root || (mode & 0444), can_write = is_root || (mode & 0222);
    bool is_allowed =
        (!(asked & R_OK) || can_read) && (!(asked & W_OK) || can_write) && (!(asked & X_OK) || (mode & 0111));
    return answered(PyBool_FromLong(is_allowed));
}

Taken
call_readlink(Crossing *c)
{
    Where where;
    PyObject *path = argument_of(c, 0, "path");
    if (!name_where(path, argument_of(c, PY_SSIZE_T_MAX, "dir_fd"), false, &where) || is_as_told(c, where.path))
        return NOT_HERE;
    if (where.kind == IS_ABSENT)
        return fails_with(ENOENT, path, NULL);
    if (where.kind == IS_FILE || where.kind == IS_MADE)
        return fails_with(EINVAL, path, NULL);
    if (where.kind != IS_LINK || where.name->target == NULL)
        return NOT_HERE;
    const char *target = where.name->target;
    return answered(PyBytes_Check(path) ? PyBytes_FromString(target) : PyUnicode_DecodeFSDefault(target));
}

Taken
call_getcwd(Crossing *c)
{
    const char *directory = names_directory();
    if (directory[0] == 0)
        return NOT_HERE;
    bool is_bytes = strcmp(c->gate->name, "getcwdb") == 0;
    return answered(is_bytes ? PyBytes_FromString(directory) : PyUnicode_DecodeFSDefault(directory));
}

/* A file of the layer has no attributes but the usual ones. */
Taken
call_listxattr(Crossing *c)
{
    Where where;
    if (!name_where(argument_of(c, 0, "path"), NULL, !argument_is_false(c, "follow_symlinks"), &where))
        return NOT_HERE;
    bool is_ours = where.kind == IS_MADE || (where.kind == IS_FILE && where.name->is_touched);
    return is_ours ? answered(PyList_New(0)) : NOT_HERE;
}

/* ---- entries of a directory ---- */

static bool
path_of_entry(const Crossing *c, bool follows, Where *where)
{
    const char *path = entry_path(c->self);
    PyObject *absolute = path ? PyUnicode_DecodeFSDefault(path) : Py_NewRef(direntry_path(c->self));
    bool is_good = absolute && name_where(absolute, NULL, follows, where);
    PyErr_Clear();
    Py_XDECREF(absolute);
    where->object = direntry_path(c->self);
    return is_good;
}

Taken
call_entry(Crossing *c)
{
    Where where;
    const char *asked = strchr(c->gate->name, '.') + 1;
    bool follows = strcmp(asked, "is_symlink") != 0 && !argument_is_false(c, "follow_symlinks");
    if (!path_of_entry(c, follows, &where))
        return NOT_HERE;
    bool is_there = where.kind != IS_ABSENT, is_known = where.kind != IS_UNKNOWN && where.kind != IS_OTHER;
    if (strcmp(asked, "stat") == 0 || strcmp(asked, "inode") == 0) {
        PyObject *status = status_of(&where);
        if (!is_there)
            return fails_with(ENOENT, where.object, NULL);
        if (status == NULL || strcmp(asked, "stat") == 0)
            return told(status);
        PyObject *inode = Py_NewRef(PyStructSequence_GET_ITEM(status, 1));
        Py_DECREF(status);
        return answered(inode);
    }
    if (!is_known)
        return NOT_HERE;
    bool is_it = strcmp(asked, "is_dir") == 0    ? where.kind == IS_MADE || where.kind == IS_DIRECTORY
                 : strcmp(asked, "is_file") == 0 ? where.kind == IS_FILE
                                                 : strcmp(asked, "is_symlink") == 0 && where.kind == IS_LINK;
    return answered(PyBool_FromLong(is_it));
}
