/* Memory maps. In replay a map of a file lies over a memory file with the recorded content; one without a file is real
 * in both modes. What other processes write there later: shared.c. */
#include "base/core.h"
#include "collector/collector.h"
#include "crossing/crossing.h"
#include "files/files.h"
#include "lanes/lanes.h"
#include "log/log.h"
#include "memory/inside.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static newfunc original_mmap;
static destructor original_dealloc;
static Gate *mmap_gate;
#define LARGEST_MAP (200u << 20)
#define HIGH                                                                                                           \
    800 /* below the descriptors that the replay keeps for itself where the limit is the usual 1024, see fd_keep() */

/* mmap(fileno, length, flags, prot, access, offset) */
enum { FILENO, LENGTH, FLAGS, PROT, ACCESS, OFFSET };
enum { ACCESS_DEFAULT, ACCESS_READ, ACCESS_WRITE, ACCESS_COPY };

static PyObject *
argument(PyObject *args, PyObject *kwds, int place)
{
    static const char *const names[] = {"fileno", "length", "flags", "prot", "access", "offset"};
    if (PyTuple_GET_SIZE(args) > place)
        return PyTuple_GET_ITEM(args, place);
    return kwds ? PyDict_GetItemString(kwds, names[place]) : NULL;
}

static long long
number(PyObject *args, PyObject *kwds, int place, long long otherwise)
{
    PyObject *value = argument(args, kwds, place);
    long long n = value && PyLong_Check(value) ? PyLong_AsLongLong(value) : otherwise;
    PyErr_Clear();
    return n;
}

static MapKind
kind_of(PyObject *args, PyObject *kwds)
{
    long long access = number(args, kwds, ACCESS, ACCESS_DEFAULT);
    if (access == ACCESS_DEFAULT) {
        bool is_shared = number(args, kwds, FLAGS, MAP_SHARED) & MAP_SHARED;
        bool is_written = number(args, kwds, PROT, PROT_READ | PROT_WRITE) & PROT_WRITE;
        return !is_shared ? MAP_IS_PRIVATE : is_written ? MAP_IS_WRITTEN : MAP_IS_READ;
    }
    return access == ACCESS_READ ? MAP_IS_READ : access == ACCESS_WRITE ? MAP_IS_WRITTEN : MAP_IS_PRIVATE;
}

/* Out of the way: a map has a descriptor of its own, which must get the number that it had when this was recorded, or
 * the program's next one would be put over it. */
static int
move_high(int low)
{
    int fd = low < 0 ? -1 : fcntl(low, F_DUPFD_CLOEXEC, HIGH);
    if (fd >= 0)
        close(low);
    return fd < 0 ? low : fd;
}

/* The memory file that stands for `file`, of at least `total` bytes from where the program's map begins, with the
 * recorded content there. Maps of one file share their memory in a replay too. */
static int
memory_file(const uint8_t *data, size_t n, uint64_t file, long long total, long long offset)
{
    struct stat st;
    int other = shared_descriptor(file), fd = move_high(other < 0 ? memfd_create("map", 0) : dup(other));
    long long size;
    if (__builtin_add_overflow(offset, total < (long long)n ? (long long)n : total, &size))
        size = LLONG_MAX;
    if (fd < 0 || fstat(fd, &st) < 0 || (st.st_size < size && ftruncate(fd, (off_t)size) < 0))
        return -1;
    for (size_t done = 0; done < n;) {
        ssize_t k = pwrite(fd, data + done, n - done, (off_t)(offset + (long long)done));
        if (k <= 0)
            break;
        done += (size_t)k;
    }
    return fd;
}

/* The same call for another descriptor. */
static PyObject *
map_descriptor(PyTypeObject *type, PyObject *args, PyObject *kwds, int fd)
{
    bool by_place = PyTuple_GET_SIZE(args) > 0;
    PyObject *first = PyLong_FromLong(fd), *map = NULL, *all = NULL, *named = kwds ? PyDict_Copy(kwds) : NULL;
    /* a slice of all would be the tuple itself */
    if (by_place && (all = PyTuple_GetSlice(args, 0, PyTuple_GET_SIZE(args)))) {
        Py_SETREF(all, PyTuple_New(PyTuple_GET_SIZE(args)));
        for (Py_ssize_t i = 0; all && i < PyTuple_GET_SIZE(args); i++)
            PyTuple_SET_ITEM(all, i, Py_NewRef(i ? PyTuple_GET_ITEM(args, i) : first));
    }
    else if (!by_place && named && PyDict_SetItemString(named, "fileno", first) == 0)
        all = Py_NewRef(args);
    if (all)
        map = original_mmap(type, all, named);
    Py_XDECREF(all);
    Py_XDECREF(named);
    Py_XDECREF(first);
    return map;
}

static PyObject *
map_recorded(PyTypeObject *type, PyObject *args, PyObject *kwds, Crossing *c, uint64_t file, long long total)
{
    long long begin = number(args, kwds, OFFSET, 0);
    int fd = memory_file(c->fill, c->fill_length, file, total, begin < 0 ? 0 : begin);
    own_work_begin();
    PyObject *map = map_descriptor(type, args, kwds, fd);
    own_work_end();
    if (fd >= 0)
        close(fd);
    if (map) /* it has a descriptor of its own, with the lowest number that was free */
        shared_map_move_descriptor(map, move_high);
    return map;
}

/* The length without zeros, and without what cannot be read, at the end. */
static size_t
without_zeros(const uint8_t *data, size_t n)
{
    const uint8_t *page = NULL; /* the last that was found to be there */
    while (n > 0) {
        const uint8_t *here = (const uint8_t *)((uintptr_t)(data + n - 1) & ~(uintptr_t)4095);
        if (here != page && !memory_is_there(here)) {
            n = here > data ? (size_t)(here - data) : 0;
            continue;
        }
        page = here;
        if (n >= 8 && n % 8 == 0 && *(const uint64_t *)(data + n - 8) == 0)
            n -= 8;
        else if (data[n - 1] == 0)
            n--;
        else
            break;
    }
    return n;
}

/* How much of it must be kept: what follows is zero. A file without blocks is not even read. */
static size_t
length_without_zeros(const uint8_t *data, size_t n, int fd)
{
    struct stat st;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_blocks == 0)
        return 0;
    return without_zeros(data, n);
}

/* What a new map holds becomes the crossing's content: the copy that later looks are compared with, if there is one.
 * The outcome is its length and a number for its file. */
static PyObject *
content_of(Crossing *c, PyObject *map, int fd, MapKind kind)
{
    Py_buffer view;
    if (PyObject_GetBuffer(map, &view, PyBUF_SIMPLE) < 0) {
        PyErr_Clear();
        return Py_BuildValue("(ii)", 0, 0);
    }
    size_t n = length_without_zeros(view.buf, (size_t)view.len, fd);
    if (n > LARGEST_MAP) {
        note("large", "a memory map of more than 200 MiB");
        log_fail(4);
        n = 0;
    }
    uint64_t file = shared_file(fd);
    const uint8_t *copy = shared_map_made(map, fd, file, kind, n);
    c->fill = copy ? copy : view.buf;
    c->fill_length = n;
    PyObject *outcome = Py_BuildValue("(nKi)", view.len, (unsigned long long)file, (int)kind);
    PyBuffer_Release(&view); /* the memory stays: the map is not closed before the crossing ends */
    return outcome;
}

static PyObject *
mmap_new(PyTypeObject *type, PyObject *args, PyObject *kwds)
{
    long fd = (long)number(args, kwds, FILENO, -1);
    MapKind kind = kind_of(args, kwds);
    if (gate_passes())
        return original_mmap(type, args, kwds);
    if (fd < 0) { /* memory without a file: new, and ours alone until there is a child */
        uint64_t size = (uint64_t)number(args, kwds, LENGTH, 0);
        if (!shortage_ask(size)) {
            errno = ENOMEM;
            return PyErr_SetFromErrno(PyExc_OSError);
        }
        PyObject *map = original_mmap(type, args, kwds);
        if (map == NULL && errno == ENOMEM && PyErr_ExceptionMatches(PyExc_OSError))
            shortage_met(size);
        if (map)
            shared_map_made(map, -1, 0, kind, 0);
        return map;
    }
    if (core.mode == RECORD && kind == MAP_IS_WRITTEN && stream_is_map((int)fd))
        streams_end_with("a memory map of the file that standard output or error is written to");
    Crossing c;
    cross_begin(&c, mmap_gate, NULL, ((PyTupleObject *)args)->ob_item, PyTuple_GET_SIZE(args), NULL);
    PyObject *map = c.perform ? original_mmap(type, args, kwds) : NULL;
    bool replayed = !c.perform;
    PyObject *outcome = cross_end(&c, map ? content_of(&c, map, (int)fd, kind) : NULL);
    if (replayed && outcome) {
        long long total = 0;
        unsigned long long file = 0;
        int recorded; /* the kind, for readers of the log: keywords are not in it */
        if (!PyArg_ParseTuple(outcome, "LK|i", &total, &file, &recorded))
            PyErr_Clear(); /* a recording by an older version */
        if ((map = map_recorded(type, args, kwds, &c, file, total)))
            shared_map_made(map, -1, file, kind, 0);
    }
    if (map)
        shared_map_is_ready(map);
    Py_XDECREF(outcome);
    own_work_gives(map);
    cross_settle();
    return map;
}

static void
mmap_dealloc(PyObject *map)
{
    shared_map_gone(map);
    original_dealloc(map);
}

/* A larger map shows what its file holds there: that is taken from outside, as when it was made. */
static PyObject *
map_resize(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    size_t before, after;
    shared_map_data(self, &before);
    if (gate_passes())
        return gate_call_original(g, self, args, nargs, kwnames);
    Crossing c;
    cross_begin(&c, g, self, args, nargs, kwnames);
    PyObject *result = gate_call_original(g, self, args, nargs, kwnames);
    bool is_done = result != NULL;
    uint8_t *data = shared_map_data(self, &after);
    if (core.mode == RECORD && is_done && after > before) {
        c.fill = data + before;
        c.fill_length = without_zeros(c.fill, after - before);
    }
    bool replayed = core.mode == REPLAY;
    result = cross_end(&c, result);
    if (replayed && is_done && result && after > before && c.fill_length && c.fill_length <= after - before)
        shared_map_extend(self, before, c.fill, c.fill_length);
    return result;
}

const HandlerEntry map_handlers[] = {{"map_resize", map_resize}, {NULL, NULL}};

int
maps_module_loaded(PyObject *module, const char *name)
{
    PyTypeObject *type;
    if (strcmp(name, "mmap") != 0 || original_mmap || !(mmap_gate = gate_named("mmap", "mmap.__new__")) ||
        !(type = (PyTypeObject *)PyDict_GetItemString(PyModule_GetDict(module), "mmap")))
        return 0;
    original_mmap = type->tp_new;
    type->tp_new = mmap_new;
    original_dealloc = type->tp_dealloc;
    type->tp_dealloc = mmap_dealloc;
    return 0;
}
