/* Calls that open a file of the layer, and that use a descriptor of one. */
#include "base/core.h"
#include "files/files.h"
#include "future/layer.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static int waiting = -1; /* was opened for the constructor of FileIO, which has not yet asked for it */

static uint32_t
new_mode(PyObject *given)
{
    return S_IFREG | ((uint32_t)number_of(given, 0777) & 07777 & ~usual_mask());
}

static bool
is_writing(int flags)
{
    return (flags & O_ACCMODE) != O_RDONLY;
}

static bool
is_permitted(const Where *where, int flags)
{
    Node *node = node_indexed(where->name->node);
    uint32_t mode = node ? node->mode : where->name->has_status ? (uint32_t)where->name->status[AT_MODE] : 0600;
    bool reads = (flags & O_ACCMODE) != O_WRONLY;
    return geteuid() == 0 || ((!is_writing(flags) || (mode & 0222)) && (!reads || (mode & 0444)));
}

/* What is wrong with opening a file that is there; 0: nothing, -1: not known. */
static int
error_of(const Where *where, int flags)
{
    size_t size;
    if ((flags & O_CREAT) && (flags & O_EXCL))
        return EEXIST;
    if (flags & O_DIRECTORY)
        return ENOTDIR;
    if (!is_permitted(where, flags))
        return EACCES;
    Name *name = where->name;
    bool is_cut = (flags & O_TRUNC) && is_writing(flags);
    if (is_cut || name->node >= 0 || known_content(name->path, &size) || (flags & O_ACCMODE) == O_WRONLY)
        return is_cut || name->node >= 0 || known_content(name->path, &size) || name->has_status ? 0 : -1;
    return -1;
}

static int
open_there(const Where *where, int flags)
{
    Name *name = where->name;
    if ((flags & O_TRUNC) && is_writing(flags)) {
        Node *node = node_indexed(node_of(name));
        node->is_known = true;
        node->changed = layer_now();
        if (!node_resize(node, 0))
            return -1;
        name_touch(name, IS_FILE, name->node);
    }
    else if (is_writing(flags))
        name_touch(name, IS_FILE, node_of(name));
    return node_opened(node_of(name), flags, 0, -1);
}

static int
open_new(const Where *where, int flags, PyObject *mode)
{
    int32_t node = node_new(new_mode(mode), true);
    name_touch(name_of(where->path), IS_FILE, node);
    return node_opened(node, flags, 0, -1);
}

/* 0 or an errno; -1: it is not known whether it could be opened. */
static int
open_at(const Where *where, int flags, PyObject *mode, int *fd)
{
    int error;
    bool is_there = where->kind == IS_FILE;
    switch (where->kind) {
    case IS_FILE:
        error = error_of(where, flags);
        break;
    case IS_MADE:
    case IS_DIRECTORY:
        error = (flags & O_CREAT) && (flags & O_EXCL) ? EEXIST : is_writing(flags) || (flags & O_CREAT) ? EISDIR : 0;
        if (error == 0)
            *fd = directory_opened(where->path, flags, -1);
        return error ? error : *fd < 0 ? errno : 0;
    case IS_ABSENT:
        error = name_parent_error(where->path);
        error = error == 0 && !(flags & O_CREAT) ? ENOENT : error;
        break;
    case IS_UNKNOWN: /* nobody has asked: whether it was there makes no difference, or it is taken to be free */
        error = (flags & O_CREAT) && (flags & (O_EXCL | O_TRUNC)) ? name_parent_error(where->path) : -1;
        break;
    default:
        error = -1;
    }
    if (error == 0)
        *fd = is_there ? open_there(where, flags) : open_new(where, flags, mode);
    return error ? error : *fd < 0 ? errno : 0;
}

static Taken
open_nameless(Crossing *c, const Where *where, int flags)
{
    if (where->kind != IS_MADE && where->kind != IS_DIRECTORY)
        return where->kind == IS_FILE     ? fails_with(ENOTDIR, where->object, NULL)
               : where->kind == IS_ABSENT ? fails_with(ENOENT, where->object, NULL)
                                          : NOT_HERE;
    int32_t node = node_new(new_mode(argument_of(c, 2, "mode")), true);
    node_indexed(node)->links = 0;
    int fd = node_opened(node, flags & ~O_TMPFILE, 0, -1);
    return fd < 0 ? fails_with(errno, where->object, NULL) : answered(PyLong_FromLong(fd));
}

Taken
call_open(Crossing *c)
{
    Where where;
    PyObject *path = argument_of(c, 0, "path");
    int flags = (int)number_of(argument_of(c, 1, "flags"), -1), fd = -1;
    bool is_new = flags >= 0 && (flags & O_CREAT) && (flags & O_EXCL);
    if (flags < 0 ||
        !name_where(path, argument_of(c, PY_SSIZE_T_MAX, "dir_fd"), !is_new && !(flags & O_NOFOLLOW), &where))
        return NOT_HERE;
    if ((flags & O_TMPFILE) == O_TMPFILE)
        return open_nameless(c, &where, flags);
    int error = open_at(&where, flags, argument_of(c, 2, "mode"), &fd);
    return error < 0 ? NOT_HERE : error ? fails_with(error, path, NULL) : answered(PyLong_FromLong(fd));
}

static int
flags_of(PyObject *mode)
{
    const char *text = mode && PyUnicode_Check(mode) ? PyUnicode_AsUTF8(mode) : NULL;
    if (text == NULL) {
        PyErr_Clear();
        return -1;
    }
    int access = strchr(text, '+') ? O_RDWR : strpbrk(text, "wxa") ? O_WRONLY : O_RDONLY;
    return access | (strchr(text, 'w')   ? O_CREAT | O_TRUNC
                     : strchr(text, 'x') ? O_CREAT | O_EXCL
                     : strchr(text, 'a') ? O_CREAT | O_APPEND
                                         : 0);
}

Taken
call_file_init(Crossing *c)
{
    Where where;
    int flags = flags_of(c->nargs > 1 ? c->args[1] : NULL), fd = -1;
    if (file_is_opened_by_program)
        return IS_PERFORMED; /* its opener makes a call of its own */
    if (PyLong_Check(c->args[0])) {
        Description *d = fd_description((int)number_of(c->args[0], -1));
        if (d)
            fd_take(d, false);
        return d ? IS_PERFORMED : NOT_HERE;
    }
    if (flags < 0 || !name_where(c->args[0], NULL, !(flags & O_EXCL), &where))
        return NOT_HERE;
    PyObject *mode = PyLong_FromLong(0666);
    int error = open_at(&where, flags, mode, &fd);
    Py_XDECREF(mode);
    if (error == 0 && fd_description(fd)->node < 0) {
        close(fd);
        error = EISDIR;
    }
    waiting = error == 0 ? fd : -1;
    return error < 0 ? NOT_HERE : error ? fails_with(error, c->args[0], NULL) : IS_PERFORMED;
}

int
layer_open_waiting(PyObject *path)
{
    int fd = waiting;
    waiting = -1;
    return fd;
}

/* ---- what is done with a descriptor ---- */

static bool
begins_with(const char *name, const char *const *list)
{
    for (; *list; list++)
        if (strncmp(name, *list, strlen(*list)) == 0)
            return true;
    return false;
}

/* Calls of FileIO say themselves that a file was not opened for them. */
Taken
call_uses(Crossing *c)
{
    static const char *const reading[] = {"read", "pread", "FileIO.read", NULL};
    static const char *const writing[] = {"write",           "pwrite", "FileIO.write", "ftruncate", "FileIO.truncate",
                                          "posix_fallocate", NULL};
    Description *d = fd_description(fd_of_call(c->self, c->args, c->nargs));
    const char *name = c->gate->name;
    bool reads = begins_with(name, reading), writes = begins_with(name, writing), is_file = strchr(name, '.') != NULL;
    if (d == NULL)
        return NOT_HERE;
    if (d->node < 0 && (reads || writes))
        return fails_with(reads ? EISDIR : EBADF, NULL, NULL);
    if (!is_file && ((reads && (d->flags & O_ACCMODE) == O_WRONLY) || (writes && !is_writing(d->flags))))
        return fails_with(name[0] == 'f' || name[0] == 'p' ? EINVAL : EBADF, NULL, NULL);
    if (reads && !node_indexed(d->node)->is_known)
        diverge("outside", c->gate, c, ""); /* only its size is known, and what was appended */
    fd_take(d, writes && (!is_file || is_writing(d->flags)));
    return IS_PERFORMED;
}

/* sendfile(out_fd, in_fd, offset, count); copy_file_range(src, dst, count, offset_src, offset_dst) */
Taken
call_transfers(Crossing *c)
{
    bool sends = strcmp(c->gate->name, "sendfile") == 0;
    PyObject *to = argument_of(c, sends ? 0 : 1, sends ? "out_fd" : "dst");
    PyObject *from = argument_of(c, sends ? 1 : 0, sends ? "in_fd" : "src");
    Description *target = fd_description((int)number_of(to, -1)), *source = fd_description((int)number_of(from, -1));
    if (target == NULL || source == NULL || target->node < 0 || source->node < 0 || target->node == source->node ||
        !node_indexed(source->node)->is_known || !is_writing(target->flags) || (source->flags & O_ACCMODE) == O_WRONLY)
        return NOT_HERE;
    fd_take(source, false);
    fd_take(target, true);
    return IS_PERFORMED;
}

/* Nothing is lost of a memory file, and the kernel lets no future ask a disk. */
Taken
call_sync(Crossing *c)
{
    PyObject *o = c->nargs > 0 ? c->args[0] : NULL;
    int fd = (int)number_of(o, -1);
    fd = o && file_fd(o) >= 0 ? file_fd(o) : o && wrapper_fd(o) >= 0 ? wrapper_fd(o) : fd;
    return fd_description(fd) ? answered(Py_NewRef(Py_None)) : NOT_HERE;
}
