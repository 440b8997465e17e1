/* The extension module. It is loaded by the bootstrap command without being entered into sys.modules. */
#include "heap.h"

static PyObject *
py_boot(PyObject *module, PyObject *path)
{
    PyObject *file = PyUnicode_EncodeFSDefault(path), *name, *value;
    Py_ssize_t i = 0;
    PyObject_GC_UnTrack(module); /* the tool's own objects are out of the collector's sight, and so out of gc.get_objects() */
    PyObject_GC_UnTrack(PyModule_GetDict(module));
    while (PyDict_Next(PyModule_GetDict(module), &i, &name, &value))
        if (PyCFunction_Check(value))
            PyObject_GC_UnTrack(value);
    if (file)
        boot(PyBytes_AS_STRING(file)); /* comes back only with an exception set */
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

static PyMethodDef methods[] = {
    {"capture", py_capture, METH_VARARGS, "capture(fd, roots, nodes, edges, items, text)\n--\n\nWrite a snapshot of what `roots` lead to."},
    {"boot", py_boot, METH_O, "boot(directory)\n--\n\nRun the program that the boot file in `directory` describes; never returns."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {
#if PY_VERSION_HEX >= 0x030C0000
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_core", "The part of replaydbg that runs inside a recorded or replayed program.", 0, methods, slots,
    NULL, NULL, NULL};

PyMODINIT_FUNC
PyInit__core(void)
{
    return PyModuleDef_Init(&definition);
}
