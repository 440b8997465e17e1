/* Calls with which the kernel moves bytes to a standard stream, which the program never has: sendfile, splice,
 * copy_file_range. While recording they are read beside it: out of a file again, where they came from; out of a pipe
 * before, as a copy (tee). Where neither can be done the recording ends, with a sentence. */
#define _GNU_SOURCE
#include "base/core.h"
#include "crossing/crossing.h"
#include "files/inside.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define LARGEST_COPY (1u << 20) /* what a pipe may hold */

typedef struct {
    int from, to;
    PyObject *count;
    Py_ssize_t count_at;    /* among args; -1: by name */
    int64_t from_at, to_at; /* -1: at the descriptor's position */
} Transfer;

static PyObject *
given(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, Py_ssize_t at, const char *name)
{
    if (at < nargs)
        return args[at];
    for (Py_ssize_t i = 0; kwnames && i < PyTuple_GET_SIZE(kwnames); i++)
        if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, i), name) == 0)
            return args[nargs + i];
    return NULL;
}

static int64_t
number_or(PyObject *value, int64_t otherwise)
{
    if (value == NULL || !PyLong_Check(value))
        return otherwise; /* an exception that is set stays */
    int overflow;
    int64_t number = PyLong_AsLongLongAndOverflow(value, &overflow);
    return overflow ? otherwise : number;
}

/* sendfile(out_fd, in_fd, offset, count); splice and copy_file_range(src, dst, count, offset_src, offset_dst). */
static Transfer
read_arguments(const Gate *g, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    bool sends = strcmp(g->name, "sendfile") == 0;
    Transfer t = {.count_at = sends ? 3 : 2};
    t.to = (int)number_or(given(args, nargs, kwnames, sends ? 0 : 1, sends ? "out_fd" : "dst"), -1);
    t.from = (int)number_or(given(args, nargs, kwnames, sends ? 1 : 0, sends ? "in_fd" : "src"), -1);
    t.from_at = number_or(given(args, nargs, kwnames, sends ? 2 : 3, sends ? "offset" : "offset_src"), -1);
    t.to_at = sends ? -1 : number_or(given(args, nargs, kwnames, 4, "offset_dst"), -1);
    t.count = given(args, nargs, kwnames, t.count_at, "count");
    return t;
}

void
kernel_moves(const Crossing *c, int *from, int *to)
{
    Transfer t = read_arguments(c->gate, c->args, c->nargs, NULL);
    *from = t.from;
    *to = t.to;
}

static PyObject *
call_with_count(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject *old,
                Py_ssize_t count)
{
    PyObject *copy[16], *number = PyLong_FromSsize_t(count), *result = NULL;
    Py_ssize_t n = nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    for (Py_ssize_t i = 0; i < n && i < 16; i++)
        copy[i] = args[i] == old && (i >= nargs || i == 2 || i == 3) ? number : args[i];
    if (number && n <= 16)
        result = gate_call_original(g, self, copy, nargs, kwnames);
    Py_XDECREF(number);
    return result;
}

/* The bytes that lie in a pipe, at most `most`, which stay there. They are waited for as the call itself waits. */
static ssize_t
copy_from_pipe(int from, uint8_t **data, size_t most)
{
    int own[2];
    ssize_t n = -1, got = 0;
    if (pipe2(own, O_CLOEXEC) < 0)
        return -1;
    fcntl(own[1], F_SETPIPE_SZ, LARGEST_COPY);
    Py_BEGIN_ALLOW_THREADS n = tee(from, own[1], most < LARGEST_COPY ? most : LARGEST_COPY, 0);
    Py_END_ALLOW_THREADS *data = n > 0 ? malloc((size_t)n) : NULL;
    while (*data && got < n) {
        ssize_t k = read(own[0], *data + got, (size_t)(n - got));
        if (k <= 0)
            break;
        got += k;
    }
    close(own[0]);
    close(own[1]);
    return n > 0 && got == n ? n : -1;
}

static PyObject *
move_from_pipe(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, const Transfer *t)
{
    uint8_t *data = NULL;
    int64_t asked = number_or(t->count, 0);
    ssize_t n = asked > 0 ? copy_from_pipe(t->from, &data, (size_t)asked) : -1;
    PyObject *result = n > 0 ? call_with_count(g, self, args, nargs, kwnames, t->count, n)
                             : gate_call_original(g, self, args, nargs, kwnames);
    int64_t moved = number_or(result, 0);
    if (result && n > 0 && moved <= n)
        stream_moved(t->to, t->to_at, data, (size_t)moved);
    else if (result && moved > 0)
        streams_end_with("bytes that the kernel moved from a pipe to a standard stream");
    free(data);
    return result;
}

static PyObject *
move_from_file(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, const Transfer *t)
{
    int64_t from = t->from_at >= 0 ? t->from_at : lseek(t->from, 0, SEEK_CUR), done = 0;
    PyObject *result = gate_call_original(g, self, args, nargs, kwnames);
    int64_t moved = number_or(result, 0);
    uint8_t *piece = result && moved > 0 ? malloc(LARGEST_COPY) : NULL;
    while (piece && done < moved) {
        ssize_t k =
            pread(t->from, piece, moved - done < LARGEST_COPY ? (size_t)(moved - done) : LARGEST_COPY, from + done);
        if (k <= 0)
            break;
        stream_moved(t->to, t->to_at < 0 ? -1 : t->to_at + done, piece, (size_t)k);
        done += k;
    }
    free(piece);
    if (done < moved)
        streams_end_with("bytes that the kernel moved from a file to a standard stream");
    return result;
}

static PyObject *
move(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, const Transfer *t)
{
    struct stat st;
    PyObject *result;
    if (fstat(t->from, &st) == 0 && S_ISREG(st.st_mode))
        return move_from_file(g, self, args, nargs, kwnames, t);
    if (fstat(t->from, &st) == 0 && S_ISFIFO(st.st_mode) && strcmp(g->name, "splice") == 0)
        return move_from_pipe(g, self, args, nargs, kwnames, t);
    result = gate_call_original(g, self, args, nargs, kwnames);
    if (number_or(result, 0) > 0)
        streams_end_with("bytes that the kernel moved to a standard stream");
    return result;
}

static PyObject *
os_transfer(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    Transfer t = core.mode == RECORD ? read_arguments(g, args, nargs, kwnames) : (Transfer){.to = -1};
    if (core.mode != RECORD || !fd_stream(t.to))
        return gate_regular(g, self, args, nargs, kwnames);
    Crossing c;
    cross_begin(&c, g, self, args, nargs, kwnames);
    return cross_end(&c, move(g, self, args, nargs, kwnames, &t));
}

const HandlerEntry stream_handlers[] = {{"os_transfer", os_transfer}, {NULL, NULL}};
