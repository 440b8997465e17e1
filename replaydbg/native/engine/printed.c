/* When lines are printed: a stream that leads to a file or a pipe keeps them and writes them later, often at the
 * program's end. What its text layer is given is counted while the index is made, so that a line of output leads to the
 * line that printed it. */
#include "base/core.h"
#include "clock/clock.h"
#include "engine/inside.h"
#include <string.h>

static PyCFunction write_original;
static PyObject *streams[2]; /* names in sys */
static PyObject *sys_dict;   /* borrowed */
static int to_fd = -1;
static Buf printed;

static int
stream_of(PyObject *file)
{
    for (int i = 0; i < 2; i++)
        if (PyDict_GetItem(sys_dict, streams[i]) == file)
            return i + 1;
    return 0;
}

static int64_t
newlines_in(PyObject *text)
{
    Py_ssize_t n = PyUnicode_GET_LENGTH(text), kind = PyUnicode_KIND(text);
    const uint8_t *data = PyUnicode_DATA(text);
    int64_t found = 0;
    for (Py_ssize_t i = 0; i < n; i++)
        found += PyUnicode_READ(kind, data, i) == '\n';
    return found;
}

/* Of the function that prints: others may have run since, to make what is printed. */
static uint64_t
line_that_prints(void)
{
    _PyInterpreterFrame *frame = compat_top_frame(core.tstate);
    const Activation *a = frame ? activation_find(frame) : NULL;
    return a && a->last ? a->last : stepclock.count;
}

static PyObject *
write_text(PyObject *file, PyObject *text)
{
    uint64_t count = stepclock.count, line = line_that_prints(), point = stepclock.point + 1;
    int stream = to_fd >= 0 && PyUnicode_Check(text) ? stream_of(file) : 0;
    if (PyUnicode_Check(text) && stream_of(file))
        points_write();
    PyObject *result = write_original(file, text);
    if (stream == 0 || result == NULL)
        return result;
    report_list(&printed, 5);
    report_number(&printed, (int64_t)count);
    report_number(&printed, stream);
    report_number(&printed, newlines_in(text));
    report_number(&printed, (int64_t)line);
    report_number(&printed, (int64_t)point);
    if (printed.used > 60000)
        report_send(to_fd, &printed);
    return result;
}

void
printed_send(void)
{
    if (to_fd >= 0)
        report_send(to_fd, &printed);
}

void
printed_ignore(void)
{
    to_fd = -1;
}

void
printed_take(int fd)
{
    to_fd = write_original ? fd : -1;
}

/* In place: whoever has the method has it from there. */
int
printed_prepare(int fd)
{
    PyObject *io = PyImport_ImportModule("_io"), *type = io ? PyObject_GetAttrString(io, "TextIOWrapper") : NULL;
    PyObject *method = type ? PyObject_GetAttrString(type, "write") : NULL;
    sys_dict = PyThreadState_Get()->interp->sysdict;
    streams[0] = PyUnicode_InternFromString("__stdout__");
    streams[1] = PyUnicode_InternFromString("__stderr__");
    printed = (Buf){.data = memory_apart(1u << 17), .size = 1u << 17, .is_fixed = true};
    if (method && streams[0] && streams[1] && Py_IS_TYPE(method, &PyMethodDescr_Type)) {
        PyMethodDef *def = ((PyMethodDescrObject *)method)->d_method;
        if ((def->ml_flags & (METH_O | METH_VARARGS | METH_FASTCALL | METH_KEYWORDS)) == METH_O) {
            write_original = def->ml_meth;
            def->ml_meth = write_text;
            to_fd = fd;
        }
    }
    Py_XDECREF(method);
    Py_XDECREF(type);
    Py_XDECREF(io);
    return PyErr_Occurred() ? -1 : 0;
}
