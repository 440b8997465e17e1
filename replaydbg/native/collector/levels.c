/* Putting the free lists back. A list that is too full gives objects back to the allocator, as the interpreter itself does
 * when it clears it. One that is too empty is hidden while an object of its kind is made (which then comes from the
 * allocator), and gets that one when it is dropped. */
#include "collector/levels.h"
#include "base/core.h"

#if PY_VERSION_HEX >= 0x030E0000

static PyObject *
new_context(Py_ssize_t unused)
{
    return PyContext_New();
}

static PyObject *
new_slice(Py_ssize_t unused)
{
    return PySlice_New(NULL, NULL, NULL);
}

static PyObject *
new_dict(Py_ssize_t unused)
{
    return PyDict_New();
}

static PyObject *
new_iterator(PyObject *of)
{
    PyObject *iterator = of ? PyObject_GetIter(of) : NULL;
    Py_XDECREF(of);
    return iterator;
}

static PyObject *
new_list_iterator(Py_ssize_t unused)
{
    return new_iterator(PyList_New(0));
}

static PyObject *
new_tuple_iterator(Py_ssize_t unused)
{
    return new_iterator(PyTuple_New(0));
}

static PyObject *
nothing(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    Py_RETURN_NONE;
}

static PyObject *
nothing_of_class(PyObject *self, PyTypeObject *type, PyObject *const *args, size_t nargs, PyObject *names)
{
    Py_RETURN_NONE;
}

static PyObject *
new_function(Py_ssize_t unused)
{
    static PyMethodDef definition = {"nothing", (PyCFunction)(void (*)(void))nothing, METH_FASTCALL, NULL};
    return PyCFunction_NewEx(&definition, NULL, NULL);
}

static PyObject *
new_method_of_class(Py_ssize_t unused)
{
    static PyMethodDef definition = {"nothing", (PyCFunction)(void (*)(void))nothing_of_class,
                                     METH_METHOD | METH_FASTCALL | METH_KEYWORDS, NULL};
    return PyCMethod_New(&definition, Py_None, NULL, &PyBaseObject_Type);
}

static PyObject *
new_method(Py_ssize_t unused)
{
    return PyMethod_New(Py_None, Py_None);
}

static void
restore(struct _Py_freelist *list, Level level, PyObject *(*make)(Py_ssize_t), Py_ssize_t size)
{
    while (list->size > level)
        PyObject_GC_Del(_PyFreeList_PopNoStats(list));
    while (list->size < level) {
        struct _Py_freelist hidden = *list;
        *list = (struct _Py_freelist){NULL, 0};
        PyObject *fresh = make(size);
        *list = hidden;
        if (fresh == NULL)
            break;
        Py_DECREF(fresh);
    }
}

/* The kinds whose making takes objects of other kinds come before these. */
static void
restore_all(const Levels *levels)
{
    struct _Py_freelists *free = &FREE_LISTS;
    restore(&free->contexts, levels->contexts, new_context, 0);
    restore(&free->slices, levels->slices, new_slice, 0);
    restore(&free->list_iters, levels->list_iterators, new_list_iterator, 0);
    restore(&free->tuple_iters, levels->tuple_iterators, new_tuple_iterator, 0);
    restore(&free->pycfunctionobject, levels->functions, new_function, 0);
    restore(&free->pycmethodobject, levels->methods_of_classes, new_method_of_class, 0);
    restore(&free->pymethodobjects, levels->methods, new_method, 0);
    restore(&free->dicts, levels->dicts, new_dict, 0);
    restore(&free->lists, levels->lists, PyList_New, 0);
    for (int i = 0; i < TUPLE_SIZES; i++)
        restore(&free->tuples[i], levels->tuples[i], PyTuple_New, i + 1);
}

#else

static void
restore_lists(int level)
{
    while (LISTS_NUMFREE > level)
        PyObject_GC_Del(FREE_LISTS_ITEMS[--LISTS_NUMFREE]);
    while (LISTS_NUMFREE < level) {
        int now = LISTS_NUMFREE;
        LISTS_NUMFREE = 0;
        PyObject *fresh = PyList_New(0);
        LISTS_NUMFREE = now;
        if (fresh == NULL)
            break;
        Py_DECREF(fresh);
    }
}

static void
restore_dicts(int level)
{
    while (DICTS_NUMFREE > level)
        PyObject_GC_Del(FREE_DICTS[--DICTS_NUMFREE]);
    while (DICTS_NUMFREE < level) {
        int now = DICTS_NUMFREE;
        DICTS_NUMFREE = 0;
        PyObject *fresh = PyDict_New();
        DICTS_NUMFREE = now;
        if (fresh == NULL)
            break;
        Py_DECREF(fresh);
    }
}

static void
restore_tuples(int i, int level)
{
    while (TUPLES_NUMFREE[i] > level) {
        PyTupleObject *dead = FREE_TUPLES[i];
        FREE_TUPLES[i] = (PyTupleObject *)dead->ob_item[0]; /* the next one */
        TUPLES_NUMFREE[i]--;
        PyObject_GC_Del(dead);
    }
    while (TUPLES_NUMFREE[i] < level) {
        PyTupleObject *chain = FREE_TUPLES[i];
        int now = TUPLES_NUMFREE[i];
        FREE_TUPLES[i] = NULL;
        TUPLES_NUMFREE[i] = 0;
        PyObject *fresh = PyTuple_New(i + 1);
        FREE_TUPLES[i] = chain;
        TUPLES_NUMFREE[i] = now;
        if (fresh == NULL)
            break;
        Py_DECREF(fresh);
    }
}

static void
restore_contexts(int level)
{
    while (CONTEXTS_NUMFREE > level) {
        PyContext *dead = FREE_CONTEXTS;
        FREE_CONTEXTS = (PyContext *)dead->ctx_weakreflist; /* the next one */
        CONTEXTS_NUMFREE--;
        dead->ctx_weakreflist = NULL;
        PyObject_GC_Del(dead);
    }
    while (CONTEXTS_NUMFREE < level) {
        PyContext *chain = FREE_CONTEXTS;
        int now = CONTEXTS_NUMFREE;
        FREE_CONTEXTS = NULL;
        CONTEXTS_NUMFREE = 0;
        PyObject *fresh = PyContext_New();
        FREE_CONTEXTS = chain;
        CONTEXTS_NUMFREE = now;
        if (fresh == NULL)
            break;
        Py_DECREF(fresh);
    }
}

static void
restore_slice(int level)
{
    if (FREE_SLICE != NULL && level == 0) {
        PySliceObject *dead = FREE_SLICE;
        FREE_SLICE = NULL;
        PyObject_GC_Del(dead);
    }
    else if (FREE_SLICE == NULL && level) {
        PyObject *fresh = PySlice_New(NULL, NULL, NULL);
        Py_XDECREF(fresh);
    }
}

static void
restore_all(const Levels *levels)
{
    restore_contexts(levels->contexts); /* first: making one makes other objects too */
    restore_slice(levels->slices);
    restore_dicts(levels->dicts);
    restore_lists(levels->lists);
    for (int i = 0; i < TUPLE_SIZES; i++)
        restore_tuples(i, levels->tuples[i]);
}

#endif

void
levels_restore(const Levels *levels)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    restore_all(levels);
    PyErr_Clear();
    PyErr_Restore(type, value, traceback);
}
