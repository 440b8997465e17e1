/* Faults of a future: the launcher says which call of which gates is to fail, and how (replaydbg/gates/faults.py). What
 * comes of it is an event like any other one: the recording of the future replays without knowing of faults. */
#include "base/core.h"
#include "clock/clock.h"
#include "collector/collector.h"
#include "files/files.h"
#include "future/inside.h"
#include "future/layer.h"
#include "values/values.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const Fault *faults; /* of this future */
static uint32_t fault_count, seen[MOST_FAULTS];
static bool has_come[MOST_FAULTS];
static int after_call;  /* the call is made, and then fails with this */
static int sqlite_code; /* a call of SQLite's has begun, and fails with this */
static bool mixes;      /* the call is made, and then its list is turned round */

void
faults_begin(const Fault *given, uint32_t count)
{
    faults = given;
    fault_count = count < MOST_FAULTS ? count : MOST_FAULTS;
}

static bool
is_among(const Fault *fault, uint32_t from, uint32_t count, int id)
{
    for (uint32_t i = from; i < from + count && i < MOST_FAULT_GATES; i++)
        if (fault->gates[i] == id)
            return true;
    return false;
}

/* ---- where ---- */

/* The line of the program that leads to this call: not one of the interpreter's own library. */
static void
line_here(char *to, size_t size)
{
    char file[LONGEST_NAME];
    strcpy(to, "?");
    for (_PyInterpreterFrame *frame = compat_top_frame(core.tstate); frame; frame = compat_previous_frame(frame)) {
        PyCodeObject *code = compat_frame_code(frame);
        text_copy(file, sizeof file, code->co_filename);
        if (strncmp(file, "<frozen ", 8) == 0 || strstr(file, "/lib/python3."))
            continue;
        const char *name = strrchr(file, '/');
        snprintf(to, size, "%.250s:%d", name ? name + 1 : file, PyCode_Addr2Line(code, compat_frame_lasti(frame)));
        return;
    }
}

/* The launcher reads it in the log: number of the fault, gate and line. */
static void
note_fault(uint32_t number, const Crossing *c)
{
    char line[300], text[600];
    line_here(line, sizeof line);
    snprintf(text, sizeof text, "%u %s.%s at %s", number, c->gate->module, c->gate->name, line);
    note("fault", text);
    has_come[number] = true;
}

/* ---- kinds ---- */

static PyObject *
path_of(const Crossing *c)
{
    PyObject *first = c->nargs > 0 ? c->args[0] : NULL;
    return first && (PyUnicode_Check(first) || PyBytes_Check(first)) ? first : NULL;
}

/* SQLite has codes of its own, which say what failed. */
static int
code_of(const char *call, int error)
{
    static const struct {
        const char *call;
        int code;
    } codes[] = {{"file.read", 10 | 1 << 8},     {"file.write", 10 | 3 << 8},  {"file.sync", 10 | 4 << 8},
                 {"file.truncate", 10 | 6 << 8}, {"vfs.delete", 10 | 10 << 8}, {"vfs.open", 14}};
    for (size_t i = 0; error != ENOSPC && i < sizeof codes / sizeof *codes; i++)
        if (strcmp(codes[i].call, call) == 0)
            return codes[i].code;
    return error == ENOSPC ? 13 : 10;
}

int
fault_of_sqlite(void)
{
    int code = sqlite_code;
    sqlite_code = 0;
    return code;
}

static bool
fails(Crossing *c, int error)
{
    if (strcmp(c->gate->module, "_sqlite3") == 0) {
        sqlite_code = code_of(c->gate->name, error);
        return false;
    }
    if (c->gate->flags & GATE_BOTH) { /* one that closes: it is closed all the same */
        after_call = error;
        return false;
    }
    PyObject *path = path_of(c);
    if (strcmp(c->gate->module, "_socket") == 0)
        path = NULL;
    fails_with(error, path, NULL);
    return true;
}

/* What is there now: a call that would wait is left alone. */
static bool
is_ready(int fd, short events)
{
    struct pollfd asked = {fd, events, 0};
    return poll(&asked, 1, 0) > 0;
}

static bool
writes_less(const Crossing *c, int fd)
{
    Py_buffer view;
    PyObject *data = c->nargs > c->gate->buffer ? c->args[c->gate->buffer] : NULL;
    if (data == NULL || !is_ready(fd, POLLOUT) || PyObject_GetBuffer(data, &view, PyBUF_SIMPLE) < 0) {
        PyErr_Clear();
        return false;
    }
    ssize_t n = view.len > 1 ? write(fd, view.buf, (size_t)view.len / 2) : -1;
    PyBuffer_Release(&view);
    if (n > 0)
        answered(PyLong_FromSsize_t(n));
    return n > 0;
}

static bool
fills_less(Crossing *c, int fd)
{
    static uint8_t *data;
    Py_buffer view;
    if (c->nargs <= c->gate->buffer || PyObject_GetBuffer(c->args[c->gate->buffer], &view, PyBUF_WRITABLE) < 0) {
        PyErr_Clear();
        return false;
    }
    size_t most = (size_t)view.len / 2;
    PyBuffer_Release(&view);
    free(data);
    data = malloc(most + 1);
    ssize_t n = most > 0 && data ? read(fd, data, most) : -1;
    if (n <= 0)
        return false;
    c->fill = data;
    c->fill_length = (size_t)n;
    answered(PyLong_FromSsize_t(n));
    return true;
}

static bool
reads_less(Crossing *c, int fd)
{
    if (!is_ready(fd, POLLIN))
        return false;
    if (c->gate->flags & GATE_FILLS)
        return fills_less(c, fd);
    PyObject *asked = c->gate->is_method ? argument_of(c, 0, "size") : argument_of(c, 1, "length");
    long most = number_of(asked, 0) / 2;
    if (most < 1)
        return false;
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, most);
    ssize_t n = bytes ? read(fd, PyBytes_AS_STRING(bytes), (size_t)most) : -1;
    if (n <= 0) {
        Py_XDECREF(bytes);
        return false;
    }
    if (n < most)
        _PyBytes_Resize(&bytes, n);
    answered(bytes);
    return true;
}

static bool
is_short(Crossing *c)
{
    int fd = fd_of_call(c->self, c->args, c->nargs);
    bool writes = c->gate->flags & GATE_DIGEST;
    if (fd < 0)
        return false;
    Description *d = fd_description(fd);
    if (d)
        fd_take(d, writes);
    return writes ? writes_less(c, fd) : reads_less(c, fd);
}

/* What it returns is the value, or the exception that it makes: of a type of the interpreter's own. */
static bool
gives_outcome(const Fault *fault)
{
    const uint8_t *p = fault->data;
    PyObject *value = value_decode(&p, fault->data + fault->length, &event_types, NULL, 0);
    if (fault->error == 0 || value == NULL) {
        answered(value);
        return true;
    }
    PyObject *type = PyTuple_Check(value) && PyTuple_GET_SIZE(value) == 2
                         ? PyDict_GetItemWithError(PyEval_GetBuiltins(), PyTuple_GET_ITEM(value, 0))
                         : NULL;
    if (type && PyExceptionClass_Check(type)) {
        PyObject *made = PyObject_CallObject(type, PyTuple_GET_ITEM(value, 1));
        if (made)
            PyErr_SetObject((PyObject *)Py_TYPE(made), made);
        Py_XDECREF(made);
    }
    Py_DECREF(value);
    answered(NULL);
    return true;
}

/* The call that begins is its own. Returns whether its outcome is known. */
static bool
comes(const Fault *fault, uint32_t number, Crossing *c)
{
    bool is_known = false, has_effect = true;
    switch (fault->kind) {
    case FAULT_ERROR:
        is_known = fails(c, fault->error);
        break;
    case FAULT_TIMEOUT:
        PyErr_SetString(PyExc_TimeoutError, "timed out");
        answered(NULL);
        is_known = true;
        break;
    case FAULT_SHORT:
        is_known = has_effect = is_short(c);
        break;
    case FAULT_STEP:
        simulated_steps(fault->value);
        break;
    case FAULT_ORDER:
        mixes = true;
        break;
    case FAULT_OUTCOME:
        is_known = gives_outcome(fault);
        break;
    default:
        has_effect = false;
    }
    if (has_effect)
        note_fault(number, c);
    return is_known;
}

static bool
is_standard_stream(const Crossing *c)
{
    int fd = fd_of_call(c->self, c->args, c->nargs);
    return fd >= 0 && (fd <= 2 || fd_stream(fd));
}

bool
faults_take(Crossing *c)
{
    for (uint32_t i = 0; i < fault_count; i++) {
        const Fault *fault = &faults[i];
        if (fault->kind == FAULT_STATEMENT && !has_come[i] && core.depth == 1) {
            char source[MOST_FAULT_DATA + 1] = {0};
            memcpy(source, fault->data, fault->length);
            note_fault(i, c);
            statement_runs(source);
            continue;
        }
        bool is_counted = is_among(fault, 0, fault->count, c->gate->id);
        if (has_come[i] && fault->rest && is_among(fault, fault->count, fault->rest, c->gate->id) &&
            !is_standard_stream(c) && fails(c, fault->error))
            return true; /* the disk stays full */
        if (has_come[i] || !is_counted || (i > 0 && !has_come[i - 1]) || is_standard_stream(c))
            continue;
        if (++seen[i] == fault->at)
            return comes(fault, i, c);
    }
    return false;
}

/* ---- of a call that was made ---- */

static void
turn_round(PyObject *result)
{
    if (PyList_CheckExact(result))
        PyList_Reverse(result);
    for (Py_ssize_t i = 0; PyTuple_CheckExact(result) && i < PyTuple_GET_SIZE(result); i++)
        if (PyList_CheckExact(PyTuple_GET_ITEM(result, i)))
            PyList_Reverse(PyTuple_GET_ITEM(result, i));
}

PyObject *
faults_after(const Crossing *c, PyObject *result)
{
    if (mixes && result)
        turn_round(result);
    mixes = false;
    if (after_call == 0)
        return result;
    errno = after_call;
    after_call = 0;
    Py_XDECREF(result);
    return PyErr_SetFromErrno(PyExc_OSError);
}
