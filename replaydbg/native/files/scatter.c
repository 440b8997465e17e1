/* Calls that take several buffers at once: readv and writev, and their kin for sockets. */
#include "base/core.h"
#include "collector/collector.h"
#include "crossing/crossing.h"
#include "files/inside.h"
#include <stdlib.h>
#include <sys/socket.h>

typedef struct {
    PyObject *list;
    Py_buffer *views; /* of the first `count` items; fewer than the list has if one of them is no buffer */
    Py_ssize_t count;
    size_t total;
} Buffers;

/* What is no sequence of buffers is left to the real function, which says so. No exception is set afterwards. */
static void
buffers_get(Buffers *b, PyObject *sequence, int flags)
{
    *b = (Buffers){.list = sequence ? PySequence_Fast(sequence, "buffers") : NULL};
    Py_ssize_t n = b->list ? PySequence_Fast_GET_SIZE(b->list) : 0;
    b->views = malloc(((size_t)n + 1) * sizeof *b->views);
    while (b->views && b->count < n &&
           PyObject_GetBuffer(PySequence_Fast_GET_ITEM(b->list, b->count), &b->views[b->count], flags) == 0)
        b->total += (size_t)b->views[b->count++].len;
    PyErr_Clear();
}

static void
buffers_release(Buffers *b)
{
    while (b->count > 0)
        PyBuffer_Release(&b->views[--b->count]);
    free(b->views);
    Py_XDECREF(b->list);
}

static void
buffers_digest(Buffers *b, Crossing *c)
{
    for (Py_ssize_t i = 0; i < b->count; i++)
        cross_digest(c, b->views[i].buf, (size_t)b->views[i].len);
}

/* ---- what arrives ---- */

/* The real call has filled the buffers: their first `got` bytes are what the log gets. Returns memory to free. */
static uint8_t *
buffers_join(Buffers *b, size_t got, Crossing *c)
{
    uint8_t *joined = malloc(b->total + 1);
    size_t done = 0;
    for (Py_ssize_t i = 0; joined && i < b->count; done += (size_t)b->views[i++].len)
        memcpy(joined + done, b->views[i].buf, (size_t)b->views[i].len);
    c->fill = joined;
    c->fill_length = joined == NULL ? 0 : got < b->total ? got : b->total;
    return joined;
}

static void
buffers_fill(Buffers *b, const uint8_t *data, size_t left)
{
    for (Py_ssize_t i = 0; i < b->count && left > 0; i++) {
        size_t part = left < (size_t)b->views[i].len ? left : (size_t)b->views[i].len;
        memcpy(b->views[i].buf, data, part);
        data += part;
        left -= part;
    }
}

/* How many bytes came: the result, or its first item. */
static size_t
amount(PyObject *result)
{
    PyObject *number =
        PyTuple_CheckExact(result) && PyTuple_GET_SIZE(result) > 0 ? PyTuple_GET_ITEM(result, 0) : result;
    Py_ssize_t n = PyLong_CheckExact(number) ? PyLong_AsSsize_t(number) : 0;
    return n < 0 ? 0 : (size_t)n;
}

/* `place` is where among the arguments the buffers are. */
static PyObject *
fill_several(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, Py_ssize_t place)
{
    Buffers b;
    Crossing c;
    buffers_get(&b, nargs > place ? args[place] : NULL, PyBUF_WRITABLE);
    cross_begin(&c, g, self, args, nargs, kwnames);
    bool replayed = !c.perform;
    PyObject *result = c.perform ? gate_call_original(g, self, args, nargs, kwnames) : NULL;
    uint8_t *joined = result ? buffers_join(&b, amount(result), &c) : NULL;
    result = cross_end(&c, result);
    if (replayed && result)
        buffers_fill(&b, c.fill, c.fill_length);
    buffers_release(&b);
    free(joined);
    return result;
}

static PyObject *
os_readv(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    return fill_several(g, self, args, nargs, kwnames, 1);
}

/* ---- what leaves ---- */

/* writev, pwritev: the digest covers all buffers. */
static PyObject *
os_writev(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    Buffers b;
    Crossing c;
    buffers_get(&b, nargs > 1 ? args[1] : NULL, PyBUF_SIMPLE);
    long fd = nargs > 0 && PyLong_Check(args[0]) ? PyLong_AsLong(args[0]) : -1;
    PyErr_Clear();
    cross_begin(&c, g, self, args, nargs, kwnames);
    buffers_digest(&b, &c);
    PyObject *result = cross_end(&c, c.perform ? gate_call_original(g, self, args, nargs, kwnames) : NULL);
    size_t left = result ? amount(result) : 0;
    /* in one piece: it has one place in a file */
    if (core.mode == REPLAY && left > 0 && fd <= INT32_MAX && fd_stream((int)fd)) {
        uint8_t *joined = buffers_join(&b, left, &c);
        if (joined)
            stream_write((int)fd, joined, c.fill_length);
        free(joined);
    }
    if (stream_counts && fd >= 0 && fd <= INT32_MAX)
        stream_counted((int)fd, result ? (int64_t)amount(result) : 0);
    buffers_release(&b);
    return result;
}

/* ---- messages of sockets ---- */

/* sendmsg takes any iterables: they are used up before the crossing. What cannot be iterated is left to the real
 * function. NULL: the program's iterator raised. */
static PyObject *
as_list(PyObject *iterable)
{
    PyObject *iterator = PyList_Check(iterable) || PyTuple_Check(iterable) ? NULL : PyObject_GetIter(iterable);
    if (iterator == NULL) {
        PyErr_Clear();
        return Py_NewRef(iterable);
    }
    PyObject *list = PySequence_List(iterator);
    Py_DECREF(iterator);
    return list;
}

/* Each item is (level, type, data). It is not among the bytes that go through the channel. */
static void
digest_ancillary(PyObject *items, Crossing *c)
{
    PyObject *list = PyList_Check(items) || PyTuple_Check(items) ? items : NULL;
    uint64_t transfer = c->transfers[0].number;
    c->transfers[0].number = 0;
    for (Py_ssize_t i = 0; list && i < PySequence_Fast_GET_SIZE(list); i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(list, i);
        Py_buffer view;
        if (!PyTuple_Check(item) || PyTuple_GET_SIZE(item) != 3)
            continue;
        if (PyObject_GetBuffer(PyTuple_GET_ITEM(item, 2), &view, PyBUF_SIMPLE) == 0) {
            cross_digest(c, view.buf, (size_t)view.len);
            PyBuffer_Release(&view);
        }
        PyErr_Clear();
    }
    c->transfers[0].number = transfer;
}

#define MOST_ARGUMENTS 8

/* sendmsg(buffers, ancillary data, flags, address), sendmsg_afalg(buffers, *, op, iv, assoclen, flags). */
static PyObject *
socket_sendmsg(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    PyObject *copy[MOST_ARGUMENTS];
    Py_ssize_t n = nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0), lists = nargs < 2 ? nargs : 2, made = 0;
    if (n > MOST_ARGUMENTS)
        return gate_call_original(g, self, args, nargs, kwnames); /* it says that these are too many */
    memcpy(copy, args, (size_t)n * sizeof *copy);
    while (made < lists && (copy[made] = as_list(args[made])))
        made++;
    PyObject *result = NULL;
    if (made == lists) {
        Buffers b;
        Crossing c;
        buffers_get(&b, made > 0 ? copy[0] : NULL, PyBUF_SIMPLE);
        cross_begin(&c, g, self, copy, nargs, kwnames);
        buffers_digest(&b, &c);
        if (made > 1)
            digest_ancillary(copy[1], &c);
        result = cross_end(&c, c.perform ? gate_call_original(g, self, copy, nargs, kwnames) : NULL);
        buffers_release(&b);
    }
    while (made > 0)
        Py_DECREF(copy[--made]);
    return result;
}

void
each_received(PyObject *ancillary, void (*take)(int))
{
    for (Py_ssize_t i = 0; PyList_CheckExact(ancillary) && i < PyList_GET_SIZE(ancillary); i++) {
        PyObject *item = PyList_GET_ITEM(ancillary, i);
        int level, type;
        const char *data;
        Py_ssize_t n;
        own_work_begin();
        bool is_read = PyArg_ParseTuple(item, "iiy#", &level, &type, &data, &n);
        PyErr_Clear();
        own_work_end();
        for (Py_ssize_t at = 0;
             is_read && level == SOL_SOCKET && type == SCM_RIGHTS && at + (Py_ssize_t)sizeof(int) <= n;
             at += sizeof(int)) {
            int fd;
            memcpy(&fd, data + at, sizeof fd);
            if (fd >= 0)
                take(fd);
        }
    }
}

/* Descriptors that came with a message are new ones of this process. In a replay each that leads to no standard stream
 * is a socket that reaches nothing: whatever the program makes of it, a socket or a file, it can be made of that. */
static void
place_received(int fd)
{
    bool is_stream = stream_is_received(fd);
    if (core.mode == REPLAY && is_stream)
        fd_place(fd, -1);
    else if (core.mode == REPLAY)
        fd_place_socket(fd);
    fd_opened(fd, -1);
}

/* Both return the ancillary data second. */
static PyObject *
after_message(PyObject *result)
{
    if (result && PyTuple_CheckExact(result) && PyTuple_GET_SIZE(result) == 4)
        each_received(PyTuple_GET_ITEM(result, 1), place_received);
    return result;
}

static PyObject *
socket_recvmsg(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    return after_message(gate_regular(g, self, args, nargs, kwnames));
}

static PyObject *
socket_recvmsg_into(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    PyObject *copy[MOST_ARGUMENTS];
    if (nargs < 1 || nargs > MOST_ARGUMENTS || kwnames)
        return gate_call_original(g, self, args, nargs, kwnames);
    memcpy(copy, args, (size_t)nargs * sizeof *copy);
    if ((copy[0] = as_list(args[0])) == NULL)
        return NULL;
    PyObject *result = after_message(fill_several(g, self, copy, nargs, NULL, 0));
    Py_DECREF(copy[0]);
    return result;
}

const HandlerEntry scatter_handlers[] = {{"os_readv", os_readv},
                                         {"os_writev", os_writev},
                                         {"socket_sendmsg", socket_sendmsg},
                                         {"socket_recvmsg", socket_recvmsg},
                                         {"socket_recvmsg_into", socket_recvmsg_into},
                                         {NULL, NULL}};
