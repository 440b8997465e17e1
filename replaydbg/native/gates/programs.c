/* Programs that are started in a group of processes: each has a row before it runs, and joins the group if it is a
 * Python. What it needs for that is in two variables of its environment. A program that is given none gets them with
 * the C environment. Where one is given they are put into a copy; the crossing has the program's own arguments. */
#include "base/core.h"
#include "crossing/crossing.h"
#include "gates/inside.h"
#include "log/log.h"
#include <stdlib.h>

#define MOST_ARGUMENTS 40
#define PRELOAD "LD_PRELOAD"

/* ---- the environment of fork_exec: a list of b"NAME=VALUE" ---- */

static PyObject *
with_preload(const char *form, const char *given)
{
    char *value = group_preload(given);
    PyObject *made = value ? PyBytes_FromFormat(form, value) : NULL;
    free(value);
    return made;
}

static bool
put_preload(PyObject *list)
{
    static const char start[] = PRELOAD "=";
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
        PyObject *item = PyList_GET_ITEM(list, i);
        if (!PyBytes_Check(item) || strncmp(PyBytes_AS_STRING(item), start, sizeof start - 1) != 0)
            continue;
        PyObject *changed = with_preload(PRELOAD "=%s", PyBytes_AS_STRING(item) + sizeof start - 1);
        return changed && PyList_SetItem(list, i, changed) == 0;
    }
    PyObject *added = with_preload(PRELOAD "=%s", NULL);
    bool done = added && PyList_Append(list, added) == 0;
    Py_XDECREF(added);
    return done;
}

static PyObject *
changed_list(PyObject *given, const char *variable)
{
    PyObject *list = PySequence_List(given), *own = PyBytes_FromString(variable);
    if (list == NULL || own == NULL || PyList_Append(list, own) < 0 || !put_preload(list))
        Py_CLEAR(list);
    Py_XDECREF(own);
    return list;
}

/* ---- that of posix_spawn and execve: a mapping ---- */

/* The key under which the program has a variable: text or bytes. */
static PyObject *
key_of(PyObject *dict, const char *name)
{
    PyObject *text = PyUnicode_FromString(name), *bytes = PyBytes_FromString(name);
    PyObject *key = bytes && PyDict_Contains(dict, bytes) == 1 ? bytes : text;
    Py_XINCREF(key);
    Py_XDECREF(text);
    Py_XDECREF(bytes);
    return key;
}

static PyObject *
changed_mapping(PyObject *given, const char *variable)
{
    PyObject *dict = PyDict_New(), *key = NULL, *value = NULL, *own = NULL, *before = NULL;
    const char *equals = strchr(variable, '=');
    if (dict == NULL || PyDict_Update(dict, given) < 0 || (key = key_of(dict, PRELOAD)) == NULL)
        goto failed;
    PyObject *has = PyDict_GetItemWithError(dict, key);
    if (PyErr_Occurred() || (has && !PyUnicode_FSConverter(has, &before)))
        goto failed;
    value = with_preload("%s", before ? PyBytes_AS_STRING(before) : NULL);
    own = PyBytes_FromString(equals + 1);
    PyObject *name = PyBytes_FromStringAndSize(variable, equals - variable);
    if (!value || !own || !name || PyDict_SetItem(dict, name, own) < 0 || PyDict_SetItem(dict, key, value) < 0) {
        Py_XDECREF(name);
        goto failed;
    }
    Py_DECREF(name);
    goto done;
failed:
    Py_CLEAR(dict);
done:
    Py_XDECREF(key);
    Py_XDECREF(value);
    Py_XDECREF(own);
    Py_XDECREF(before);
    return dict;
}

/* ---- the call ---- */

/* The place of the argument that is an environment; -1: there is none, or it is None. */
static Py_ssize_t
place_of_environment(const Gate *g, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    bool has_list = strcmp(g->name, "fork_exec") == 0;
    Py_ssize_t at = has_list ? 5 : 2;
    if (!has_list && strncmp(g->name, "posix_spawn", 11) != 0 && strcmp(g->name, "execve") != 0)
        return -1;
    for (Py_ssize_t i = 0; !has_list && kwnames && i < PyTuple_GET_SIZE(kwnames); i++)
        if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, i), "env") == 0)
            return args[nargs + i] == Py_None ? -1 : nargs + i;
    return at < nargs && args[at] != Py_None ? at : -1;
}

/* Within a crossing. With an environment that cannot be read, the call says so. */
PyObject *
program_perform(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, unsigned row)
{
    PyObject *copy[MOST_ARGUMENTS], *changed = NULL;
    Py_ssize_t n = nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    if (!group_programs_join() || n > MOST_ARGUMENTS)
        return gate_call_original(g, self, args, nargs, kwnames);
    memcpy(copy, args, (size_t)n * sizeof *copy);
    Py_ssize_t at = place_of_environment(g, args, nargs, kwnames);
    char *variable = at < 0 ? NULL : group_variable(row);
    if (variable)
        changed = (strcmp(g->name, "fork_exec") == 0 ? changed_list : changed_mapping)(args[at], variable);
    free(variable);
    PyErr_Clear();
    if (changed)
        copy[at] = changed;
    group_tell(row);
    PyObject *result = gate_call_original(g, self, copy, nargs, kwnames);
    group_tell(0);
    Py_XDECREF(changed);
    return result;
}

PyObject *
program_start(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, unsigned row)
{
    Py_ssize_t n = nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0), have = 0;
    PyObject *copy[MOST_ARGUMENTS], *result = NULL;
    if (row == 0 || n > MOST_ARGUMENTS)
        return gate_regular(g, self, args, nargs, kwnames);
    for (; have < n; have++) /* __fspath__ is program code: it runs before the crossing, not inside */
        if ((copy[have] = g->flags & GATE_PATH && is_path_object(args[have]) ? PyOS_FSPath(args[have])
                                                                             : Py_NewRef(args[have])) == NULL)
            break;
    if (have == n) {
        Crossing c;
        cross_begin(&c, g, self, copy, nargs, kwnames);
        result = cross_end(&c, c.perform ? program_perform(g, self, copy, nargs, kwnames, row) : NULL);
    }
    while (have > 0)
        Py_DECREF(copy[--have]);
    return result;
}
