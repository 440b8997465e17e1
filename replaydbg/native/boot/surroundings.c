/* The program's surroundings, which its interpreter was not started with. In a replay that has a small environment of
 * our own and options that are on a list (replay/start_state.py): a recording may be of anybody, and what it says must
 * not shape anything before the fence. Behind the fence the recorded environment and the rest of the interpreter's
 * state come back here. While recording, the bootstrap has another hash seed, and no variables that -E ignores. */
#include "boot/inside.h"
#include "world/world.h"
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static PyObject *
entry(PyObject *boot, const char *key)
{
    PyObject *v = PyDict_GetItemString(boot, key);
    return v ? v : Py_None;
}

static bool
is_variable(PyObject *pair)
{
    return PyTuple_CheckExact(pair) && PyTuple_GET_SIZE(pair) == 2 && PyBytes_Check(PyTuple_GET_ITEM(pair, 0)) &&
           PyBytes_Check(PyTuple_GET_ITEM(pair, 1));
}

/* NAME=VALUE, owned by the environment from then on. */
static char *
variable_text(PyObject *pair)
{
    PyObject *name = PyTuple_GET_ITEM(pair, 0), *value = PyTuple_GET_ITEM(pair, 1);
    size_t before = (size_t)PyBytes_GET_SIZE(name), after = (size_t)PyBytes_GET_SIZE(value);
    char *text = malloc(before + after + 2);
    if (text) {
        memcpy(text, PyBytes_AS_STRING(name), before);
        text[before] = '=';
        memcpy(text + before + 1, PyBytes_AS_STRING(value), after + 1);
    }
    return text;
}

/* Fills the C library's environment, which is empty, and the interpreter's. Not by setenv(), which compares each
 * variable with all before it: a header with 400,000 of them took a minute. */
static int
set_variables(PyObject *known, PyObject *pairs)
{
    Py_ssize_t n = PyList_GET_SIZE(pairs);
    char **all = calloc((size_t)n + 1, sizeof *all);
    if (all == NULL)
        return -1;
    environ = all;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *pair = PyList_GET_ITEM(pairs, i);
        if (!is_variable(pair) || (all[i] = variable_text(pair)) == NULL ||
            PyDict_SetItem(known, PyTuple_GET_ITEM(pair, 0), PyTuple_GET_ITEM(pair, 1)) < 0)
            return -1;
    }
    return 0;
}

/* A locale that the interpreter coerced at its start stands in the environment, last. given: what it was started with,
 * or None. */
static int
keep_coerced(PyObject *known, const char *now, PyObject *given)
{
    if (now == NULL || (PyBytes_Check(given) && strcmp(now, PyBytes_AS_STRING(given)) == 0))
        return 0;
    PyObject *name = PyBytes_FromString("LC_CTYPE"), *value = PyBytes_FromString(now);
    int rc = name && value && setenv("LC_CTYPE", now, 1) == 0 ? PyDict_SetItem(known, name, value) : -1;
    Py_XDECREF(name);
    Py_XDECREF(value);
    return rc;
}

/* In the order in which the recorded interpreter had them: a program may print its environment. */
static int
restore_variables(PyObject *pairs, PyObject *given_ctype)
{
    PyObject *posix = PyImport_ImportModule("posix");
    PyObject *known = posix ? PyDict_GetItemString(PyModule_GetDict(posix), "environ") : NULL;
    Py_XDECREF(posix);
    if (known == NULL || !PyDict_CheckExact(known))
        return -1;
    char *ctype = getenv("LC_CTYPE");
    ctype = ctype ? strdup(ctype) : NULL;
    clearenv();
    PyDict_Clear(known);
    int rc = set_variables(known, pairs);
    if (rc == 0)
        rc = keep_coerced(known, ctype, given_ctype);
    free(ctype);
    tzset(); /* TZ was not there when the interpreter asked for the time zone */
    if (rc < 0 && !PyErr_Occurred())
        PyErr_SetString(PyExc_RuntimeError, "replaydbg: the recorded environment cannot be restored");
    return rc;
}

static int
restore_x_options(PyObject *pairs)
{
    PyObject *options = PySys_GetObject("_xoptions");
    if (options == NULL || !PyDict_CheckExact(options))
        return 0;
    PyDict_Clear(options);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(pairs); i++) {
        PyObject *pair = PyList_GET_ITEM(pairs, i);
        if (PyDict_SetItem(options, PyTuple_GET_ITEM(pair, 0), PyTuple_GET_ITEM(pair, 1)) < 0)
            return -1;
    }
    return 0;
}

/* What depends on where the interpreter is installed, besides what fix_paths() restores; older recordings do not have
 * it. */
static int
restore_places(void)
{
    static const char *const names[] = {"platlibdir", "_stdlib_dir"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        PyObject *value = PySys_GetObject(names[i]);
        PyObject *fixed = value ? world_fixed_if_known("sys", names[i], value) : NULL;
        if (value && (fixed == NULL || PySys_SetObject(names[i], fixed) < 0)) {
            Py_XDECREF(fixed);
            return -1;
        }
        Py_XDECREF(fixed);
    }
    return 0;
}

int
surroundings_restore(PyObject *boot)
{
    PyObject *pairs = entry(boot, "environment"), *x_options = entry(boot, "xoptions");
    if (PyList_CheckExact(pairs) && restore_variables(pairs, entry(boot, "start_ctype")) < 0)
        return -1;
    if (PyList_CheckExact(x_options) &&
        (restore_x_options(x_options) < 0 || PySys_SetObject("pycache_prefix", entry(boot, "pycache_prefix")) < 0))
        return -1;
    return restore_places();
}

/* ---- warning options ---- */

static PyObject *held;

void
surroundings_hold_warnings(PyObject *options)
{
    held = PyList_CheckExact(options) && PyList_GET_SIZE(options) > 0 ? Py_NewRef(options) : NULL;
}

static bool
is_of_bytes(PyObject *option)
{
    const char *text = option && PyUnicode_Check(option) ? PyUnicode_AsUTF8(option) : NULL;
    PyErr_Clear();
    return text && strstr(text, "::BytesWarning") != NULL;
}

/* As the interpreter does at its start: -W and PYTHONWARNINGS go before what -b adds, and the module `warnings` reads
 * them when it is imported. If it was imported already, for options of the interpreter's own, it is given the list
 * again: the last ones win. */
void
surroundings_warnings(void)
{
    PyObject *list = held ? PySys_GetObject("warnoptions") : NULL;
    if (list == NULL || !PyList_CheckExact(list)) {
        Py_CLEAR(held);
        return;
    }
    Py_ssize_t n = PyList_GET_SIZE(list), at = n > 0 && is_of_bytes(PyList_GET_ITEM(list, n - 1)) ? n - 1 : n;
    bool was_loaded = PyDict_GetItemString(PyImport_GetModuleDict(), "warnings") != NULL;
    int rc = PyList_SetSlice(list, at, at, held);
    Py_CLEAR(held);
    PyObject *warnings = rc == 0 ? PyImport_ImportModule("warnings") : NULL, *done = NULL;
    if (warnings && was_loaded)
        done = PyObject_CallMethod(warnings, "_processoptions", "O", list);
    if (PyErr_Occurred())
        PyErr_Print();
    Py_XDECREF(done);
    Py_XDECREF(warnings);
}
