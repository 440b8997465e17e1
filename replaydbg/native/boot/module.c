/* The extension module. It is loaded by the bootstrap command without being entered into sys.modules. */
#include "base/core.h"
#include "boot/boot.h"
#include "guard/guard.h"
#include "heap/heap.h"
#include "log/log.h"

/* A replay's boot file is a memory file: its descriptor is given, since only /proc would have a name for it. */
static PyObject *
py_boot(PyObject *module, PyObject *from)
{
    PyObject *file = PyLong_Check(from) ? NULL : PyUnicode_EncodeFSDefault(from), *name, *value;
    int fd = PyLong_Check(from) ? (int)PyLong_AsLong(from) : -1;
    Py_ssize_t i = 0;
    /* the tool's own objects are out of the collector's sight, and so out of gc.get_objects() */
    PyObject_GC_UnTrack(module);
    PyObject_GC_UnTrack(PyModule_GetDict(module));
    while (PyDict_Next(PyModule_GetDict(module), &i, &name, &value))
        if (PyCFunction_Check(value))
            PyObject_GC_UnTrack(value);
    if (!PyErr_Occurred())
        boot_program(file ? PyBytes_AS_STRING(file) : NULL, fd); /* comes back only if it cannot begin */
    if (!PyErr_Occurred()) /* Ctrl-C came, and a step took it for a failure of its own */
        PyErr_SetNone(PyExc_KeyboardInterrupt);
    Py_XDECREF(file);
    return NULL;
}

/* For the tests: a snapshot of what `roots`, a dict, lead to, in a process that is neither recorded nor replayed. */
static PyObject *
py_capture(PyObject *module, PyObject *args)
{
    HeapLimits limits = HEAP_LIMITS;
    int fd;
    PyObject *roots;
    unsigned long long nodes, edges, items, text;
    if (!PyArg_ParseTuple(args, "iO!KKKK", &fd, &PyDict_Type, &roots, &nodes, &edges, &items, &text))
        return NULL;
    limits.nodes = nodes;
    limits.edges = edges;
    limits.items = items;
    limits.text = (uint32_t)text;
    HeapOccasion occasion = {.number = 1, .name = "", .reason = "asked"};
    if (heap_prepare() < 0)
        return NULL;
    if (heap_capture(fd, &limits, &occasion, roots) < 0)
        return PyErr_SetFromErrno(PyExc_OSError);
    Py_RETURN_NONE;
}

/* For `doctor` and the tests: the fence of a replay around this process, for good. What it refuses ends the process,
 * and is reported to the descriptor. */
static PyObject *
py_fence(PyObject *module, PyObject *fd)
{
    PyObject *boot = PyDict_New();
    int report = PyLong_Check(fd) ? (int)PyLong_AsLong(fd) : -1;
    if (boot == NULL)
        return NULL;
    core.report_fd = fd_keep(report);
    int rc = fence_raise(boot) < 0 ? -1 : fence_seal();
    Py_DECREF(boot);
    if (rc < 0)
        return PyErr_SetFromErrno(PyExc_OSError);
    Py_RETURN_NONE;
}

/* For the tests: the digest of bytes that follow those with the digest `before`. */
static PyObject *
py_stream_digest(PyObject *module, PyObject *args)
{
    unsigned long long before;
    Py_buffer data;
    if (!PyArg_ParseTuple(args, "Ky*", &before, &data))
        return NULL;
    PyObject *digest = PyLong_FromUnsignedLongLong(stream_digest(before, data.buf, (size_t)data.len));
    PyBuffer_Release(&data);
    return digest;
}

static PyObject *
py_system_calls(PyObject *module, PyObject *unused)
{
    PyObject *all = PyDict_New();
    for (int i = 0; all && i < system_call_count; i++) {
        PyObject *number = PyLong_FromLong(system_calls[i].number),
                 *row = Py_BuildValue("(si)", system_calls[i].name, system_calls[i].kind);
        if (number == NULL || row == NULL || PyDict_SetItem(all, number, row) < 0)
            Py_CLEAR(all);
        Py_XDECREF(number);
        Py_XDECREF(row);
    }
    return all;
}

static PyMethodDef methods[] = {
    {"descriptors", without_proc_descriptors, METH_NOARGS,
     "descriptors()\n--\n\nReturn the open descriptors of this process."},
    {"first_environment", without_proc_environment, METH_NOARGS,
     "first_environment()\n--\n\nReturn the environment that this process was started with; an empty list where that is unknown."},
    {"fence", py_fence, METH_O, "fence(report_fd)\n--\n\nPut up the fence of a replay around this process, for good."},
    {"system_calls", py_system_calls, METH_NOARGS,
     "system_calls()\n--\n\nReturn the names and kinds of all system calls by their numbers."},
    {"capture", py_capture, METH_VARARGS,
     "capture(fd, roots, nodes, edges, items, text)\n--\n\nWrite a snapshot of what `roots` lead to."},
    {"stream_digest", py_stream_digest, METH_VARARGS,
     "stream_digest(before, data)\n--\n\nReturn the digest of bytes behind others, as transfers have it."},
    {"boot", py_boot, METH_O,
     "boot(file)\n--\n\nRun the program that the boot file describes, given by its path or descriptor; never returns."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {
#if PY_VERSION_HEX >= 0x030C0000
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                                        "_core",
                                        "The part of replaydbg that runs inside a recorded or replayed program.",
                                        0,
                                        methods,
                                        slots,
                                        NULL,
                                        NULL,
                                        NULL};

PyMODINIT_FUNC
PyInit__core(void)
{
    return PyModuleDef_Init(&definition);
}
