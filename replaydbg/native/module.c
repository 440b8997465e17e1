/* The extension module. It is loaded by the bootstrap command without being entered into sys.modules. */
#include "core.h"

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

static PyMethodDef methods[] = {
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
