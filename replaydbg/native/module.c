/* The extension module. It is loaded by the bootstrap command without being entered into sys.modules. */
#include "core.h"

static PyObject *
py_boot(PyObject *module, PyObject *path)
{
    PyObject *file = PyUnicode_EncodeFSDefault(path);
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
