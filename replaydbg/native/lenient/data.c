/* Data files that belong to the code: on request those below a moved directory are read where they lie today, as its
 * modules are. Only reading is done really (the fence allows no more), and only of the files that the launcher names;
 * all else comes from the recording.
 *
 * A file that is opened so has a descriptor far from those of the recording, whose numbers are given to placeholders.
 */
#include "base/core.h"
#include "crossing/crossing.h"
#include "lenient/inside.h"
#include "world/world.h"
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#define LOWEST 512
#define MOST_OPEN 65536

static IdMap named; /* by hash of a path as recorded: 1 */
static bool is_on;
static uint8_t opened[MOST_OPEN / 8]; /* by descriptor */

static uint64_t
hash_path(const char *path, size_t n)
{
    return hash_bytes(path, n, 19);
}

int
data_prepare(PyObject *paths)
{
    Py_ssize_t n = paths && PyList_CheckExact(paths) ? PyList_GET_SIZE(paths) : 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *path = PyList_GET_ITEM(paths, i);
        if (PyBytes_CheckExact(path))
            *idmap_slot(&named, hash_path(PyBytes_AS_STRING(path), (size_t)PyBytes_GET_SIZE(path))) = 1;
    }
    is_on = n > 0;
    return 0;
}

/* A new reference: where the file lies today, or NULL if it is none of those (no exception set). */
static PyObject *
place_of(PyObject *file)
{
    char text[4096];
    size_t n = facts_path(file, text, sizeof text);
    PyObject *path = n ? PyUnicode_DecodeFSDefaultAndSize(text, (Py_ssize_t)n) : NULL,
             *place = path ? world_moved_path(path) : NULL;
    Py_XDECREF(path);
    PyErr_Clear();
    if (place) /* that it is none of them is an answer, too: with other code it may be one */
        world_looked("data", text);
    if (place && *idmap_slot(&named, hash_path(text, n)) == 0)
        Py_CLEAR(place);
    return place;
}

/* The constructor of FileIO asks: a descriptor of the real file; -1: it is not one of those; -2: an exception is set.
 */
int
data_open(PyObject *file, PyObject *mode)
{
    const char *how = is_on && PyUnicode_Check(mode) ? PyUnicode_AsUTF8(mode) : NULL;
    PyErr_Clear();
    PyObject *place = how && strpbrk(how, "wax+") == NULL ? place_of(file) : NULL;
    PyObject *bytes = place ? PyUnicode_EncodeFSDefault(place) : NULL;
    Py_XDECREF(place);
    PyErr_Clear();
    if (bytes == NULL)
        return -1;
    int low = open(PyBytes_AS_STRING(bytes), O_RDONLY | O_CLOEXEC), high = low;
    if (low >= 0 && low < LOWEST) {
        high = fcntl(low, F_DUPFD_CLOEXEC, LOWEST);
        close(low);
    }
    Py_DECREF(bytes);
    if (high < 0) {
        PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, file);
        return -2;
    }
    if (high < MOST_OPEN)
        opened[high / 8] |= (uint8_t)(1 << high % 8);
    return high;
}

static bool
is_opened(int fd)
{
    return fd >= LOWEST && fd < MOST_OPEN && opened[fd / 8] & 1 << fd % 8;
}

/* Whether a call is about one of these files: then `result` is what the real function gave (NULL with an exception
 * set). */
bool
data_call(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject **result)
{
    static const char *const asking[] = {"stat", "lstat", "access", "listdir", NULL};
    if (!is_on)
        return false;
    bool is_file = self && is_opened(file_fd(self));
    long fd = nargs > 0 && PyLong_CheckExact(args[0]) && g->flags & GATE_ARGS && strcmp(g->module, "posix") == 0
                  ? PyLong_AsLong(args[0])
                  : -1;
    PyErr_Clear();
    if (is_file || (fd >= LOWEST && fd < MOST_OPEN && is_opened((int)fd))) {
        int closes = strcmp(g->name, "FileIO.close") == 0 ? file_fd(self)
                     : strcmp(g->name, "close") == 0      ? (int)fd
                                                          : -1;
        if (closes >= 0 && closes < MOST_OPEN)
            opened[closes / 8] &= (uint8_t)~(1 << closes % 8);
        *result = gate_call_original(g, self, args, nargs, kwnames);
        return true;
    }
    /* pathlib gives `follow_symlinks` by name */
    Py_ssize_t all = nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    if (nargs < 1 || all > 8 || strcmp(g->module, "posix") != 0)
        return false;
    for (int i = 0; asking[i]; i++)
        if (strcmp(g->name, asking[i]) == 0) {
            PyObject *path = PyOS_FSPath(args[0]), *place = path ? place_of(path) : NULL, *copy[8];
            PyErr_Clear();
            Py_XDECREF(path);
            if (place == NULL)
                return false;
            memcpy(copy, args, (size_t)all * sizeof *copy);
            copy[0] = place;
            *result = gate_call_original(g, self, copy, nargs, kwnames);
            Py_DECREF(place);
            return true;
        }
    return false;
}
