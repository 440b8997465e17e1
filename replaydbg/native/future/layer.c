/* Which calls are about files of the layer, or its sockets. Each is looked at when it begins; its outcome is kept until
 * it ends. */
#include "base/core.h"
#include "future/layer.h"
#include <errno.h>

enum { MOST_GATES = 4096 };
static const struct {
    const char *module, *names;
    LayerCall call;
} calls[] = {
    {"posix", "open", call_open},
    {"_io", "FileIO.__init__", call_file_init},
    {"posix", "mkdir", call_mkdir},
    {"posix", "rmdir", call_rmdir},
    {"posix", "unlink remove", call_unlink},
    {"posix", "rename replace", call_rename},
    {"posix", "link", call_link},
    {"posix", "symlink", call_symlink},
    {"posix", "truncate", call_truncate},
    {"posix", "chmod", call_chmod},
    {"posix", "utime", call_utime},
    {"posix", "chdir", call_chdir},
    {"posix", "stat", call_stat},
    {"posix", "lstat", call_lstat},
    {"posix", "fstat", call_fstat},
    {"posix", "access", call_access},
    {"posix", "readlink", call_readlink},
    {"posix", "listxattr", call_listxattr},
    {"posix", "getcwd getcwdb", call_getcwd},
    {"posix", "listdir", call_listdir},
    {"posix", "scandir", call_scandir},
    {"posix", "ScandirIterator.__next__", call_scandir_next},
    {"posix", "DirEntry.is_dir DirEntry.is_file DirEntry.is_symlink DirEntry.is_junction", call_entry},
    {"posix", "DirEntry.inode DirEntry.stat", call_entry},
    {"posix", "read readinto readv pread preadv write writev pwrite pwritev", call_uses},
    {"posix", "lseek ftruncate posix_fallocate isatty", call_uses},
    {"posix", "sendfile copy_file_range", call_transfers},
    {"posix", "fsync fdatasync posix_fadvise", call_sync},
    {"posix", "kill", call_kill},
    {"_socket", "socket.__init__", call_socket},
    {"_socket", "socket.bind", call_bind},
    {"_socket", "socket.connect socket.connect_ex", call_connect},
    {"_socket", "socket.listen socket._accept", call_listens},
    {"_socket", "socket.send socket.sendall socket.sendmsg socket.recv socket.recvfrom", call_moves},
    {"_socket", "socket.recv_into socket.recvfrom_into socket.shutdown", call_moves},
    {"_socket", "getaddrinfo", call_getaddrinfo},
    {"_io", "FileIO.read FileIO.readall FileIO.readinto FileIO.write", call_uses},
    {"_io", "FileIO.seek FileIO.tell FileIO.truncate FileIO.seekable FileIO.fileno", call_uses},
};
static LayerCall by_gate[MOST_GATES];

static struct {
    PyObject *result, *type, *value, *traceback;
} outcome; /* of the call that begins, until it ends: no other lane runs in between */

void
layer_begin(void)
{
    char name[64];
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        for (const char *at = calls[i].names; *at; at += strspn(at, " ")) {
            size_t n = strcspn(at, " ");
            memcpy(name, at, n);
            name[n] = 0;
            Gate *gate = gate_named(calls[i].module, name);
            if (gate && gate->id < MOST_GATES)
                by_gate[gate->id] = calls[i].call;
            at += n;
        }
    if (!layer_opens())
        diverge("outside", NULL, NULL, "a file that it had open at the moment");
}

bool
layer_takes(Crossing *c)
{
    LayerCall call = c->gate->id < MOST_GATES ? by_gate[c->gate->id] : NULL;
    Taken taken = call ? call(c) : NOT_HERE;
    if (taken == IS_ANSWERED) {
        c->is_answered = true;
        c->perform = false;
    }
    return taken != NOT_HERE;
}

bool
layer_answers(PyObject **result)
{
    bool is_known = outcome.result || outcome.type;
    *result = outcome.result;
    if (outcome.type)
        PyErr_Restore(outcome.type, outcome.value, outcome.traceback);
    outcome.result = outcome.type = outcome.value = outcome.traceback = NULL;
    return is_known;
}

bool
layer_has(int fd)
{
    return fd_description(fd) != NULL;
}

/* A copy of a descriptor leads to the same description. */
void
layer_performed(const Crossing *c, PyObject *result)
{
    bool is_copy = strcmp(c->gate->name, "dup") == 0 || strcmp(c->gate->name, "dup2") == 0;
    if (is_copy && result && PyLong_Check(result) && strcmp(c->gate->module, "posix") == 0)
        fd_copied((int)number_of(argument_of(c, 0, "fd"), -1), (int)number_of(result, -1));
    sockets_performed(c);
}

/* ---- arguments and outcomes ---- */

PyObject *
argument_of(const Crossing *c, Py_ssize_t at, const char *name)
{
    if (at < c->nargs)
        return c->args[at];
    for (Py_ssize_t i = 0; c->kwnames && i < PyTuple_GET_SIZE(c->kwnames); i++)
        if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(c->kwnames, i), name) == 0)
            return c->args[c->nargs + i];
    return NULL;
}

bool
argument_is_false(const Crossing *c, const char *name)
{
    PyObject *given = argument_of(c, PY_SSIZE_T_MAX, name);
    return given == Py_False || (given && PyLong_Check(given) && number_of(given, 1) == 0);
}

long
number_of(PyObject *o, long otherwise)
{
    int overflow;
    if (o == NULL || !PyLong_Check(o))
        return otherwise;
    long number = PyLong_AsLongAndOverflow(o, &overflow);
    return overflow ? otherwise : number;
}

Taken
answered(PyObject *result)
{
    outcome.result = result;
    if (result == NULL)
        PyErr_Fetch(&outcome.type, &outcome.value, &outcome.traceback);
    return IS_ANSWERED;
}

Taken
fails_with(int error, PyObject *path, PyObject *other)
{
    errno = error;
    return answered(PyErr_SetFromErrnoWithFilenameObjects(PyExc_OSError, path, other));
}
