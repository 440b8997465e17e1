/* For tests alone: wherever the core does work of its own, allocates and frees at random, so that what the program sees
 * may not depend on it. Off unless the boot file has a seed, see `orders_of_tests` in replaydbg/config.py. What is kept
 * alive is untracked: the tool keeps nothing where the program's collector sees it. */
#include "base/core.h"
#include "collector/collector.h"

bool perturbing;

#define KEPT 2048
#define MOST_AT_ONCE 120 /* more than any free list of lists and dictionaries holds */

static uint64_t state, drift_at;
static PyObject *kept[KEPT];
static void *blocks[KEPT];

static uint32_t
below(uint32_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 32) % n;
}

static PyObject *
some_tuple(void)
{
    Py_ssize_t n = below(24);
    PyObject *tuple = PyTuple_New(n);
    for (Py_ssize_t i = 0; tuple && i < n; i++)
        PyTuple_SET_ITEM(tuple, i, Py_NewRef(Py_None));
    return tuple;
}

static PyObject *
some_dict(void)
{
    static const char *const keys[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    PyObject *dict = PyDict_New();
    for (uint32_t i = 0, n = below(8); dict && i < n; i++)
        if (PyDict_SetItemString(dict, keys[i], Py_None) < 0)
            Py_CLEAR(dict);
    return dict;
}

static PyObject *
some_method(void)
{
    PyObject *list = PyList_New(0);
    PyObject *method = list ? PyObject_GetAttrString(list, "append") : NULL;
    if (list)
        PyObject_GC_UnTrack(list);
    Py_XDECREF(list);
    return method;
}

/* New objects of the kinds that have free lists, and of some that have none. */
static PyObject *
some_object(uint32_t kind)
{
    switch (kind) {
    case 0:
        return PyList_New((Py_ssize_t)below(20));
    case 1:
        return some_dict();
    case 2:
        return some_tuple();
    case 3:
        return PyFloat_FromDouble(0.5 + below(1000));
    case 4:
        return PySlice_New(NULL, NULL, NULL);
    case 5:
        return PyList_New(0);
    case 6:
        return PyObject_CallNoArgs((PyObject *)&PyBaseObject_Type);
    case 7:
        return PyBytes_FromStringAndSize(NULL, (Py_ssize_t)below(600));
    case 8:
        return PyUnicode_New((Py_ssize_t)below(300) + 2, 127);
    case 9:
        return PySet_New(NULL);
    case 10:
        return PyLong_FromLong(1000000 + (long)below(1000000));
    default:
        return some_method();
    }
}

static void
keep(PyObject *object)
{
    static bool tracked[KEPT]; /* some types insist, when they free an object, that it is */
    uint32_t place = below(KEPT);
    PyObject *old = kept[place];
    if (old && tracked[place])
        PyObject_GC_Track(old);
    kept[place] = object;
    tracked[place] = object && PyObject_IS_GC(object) && PyObject_GC_IsTracked(object);
    if (tracked[place])
        PyObject_GC_UnTrack(object);
    Py_XDECREF(old);
}

/* Many of one kind at once: empties its free list; what is dropped afterwards fills it. */
static void
drain_and_fill(void)
{
    PyObject *many[MOST_AT_ONCE];
    uint32_t n = 1 + below(MOST_AT_ONCE), kind = below(6);
    for (uint32_t i = 0; i < n; i++)
        many[i] = some_object(kind);
    for (uint32_t i = 0; i < n; i++) {
        if (below(2))
            keep(many[i]);
        else
            Py_XDECREF(many[i]);
    }
}

void
perturb_now(void)
{
    if (drift_at && core.crossings >= drift_at) {
        collector.count += 200; /* this is what the program finds after the crossing */
        drift_at = 0;
    }
    if (state == 0)
        return;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    for (uint32_t n = below(12); n > 0; n--) {
        PyObject *object = some_object(below(12));
        if (below(3) == 0)
            keep(object);
        else
            Py_XDECREF(object);
    }
    if (below(8) == 0)
        drain_and_fill();
    for (uint32_t n = below(3); n > 0; n--) { /* moves the addresses of what the program makes next */
        uint32_t place = below(KEPT);
        PyObject_Free(blocks[place]);
        blocks[place] = PyObject_Malloc(1 + below(512));
    }
    PyErr_Clear();
    PyErr_Restore(type, value, traceback);
}

void
perturb_load(uint64_t seed)
{
    state = seed * 0x9E3779B97F4A7C15u + 1;
    perturbing = true;
}

void
perturb_collector(uint64_t event)
{
    drift_at = event;
    perturbing = true;
}
