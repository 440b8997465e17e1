/* Directories: what scandir() yields. In replay the entries are genuine ones, filled from the log. */
#include "base/core.h"
#include "collector/collector.h"
#include "crossing/crossing.h"
#include "files/files.h"
#include <structmember.h>
#include <sys/stat.h>

/* ---- directory entries ---- */

PyTypeObject *direntry_type;
static Py_ssize_t name_offset, path_offset;
static destructor original_dealloc;

static PyObject **
slot_at(PyObject *o, Py_ssize_t offset)
{
    return (PyObject **)((char *)o + offset);
}

/* A genuine entry whose other fields stay empty: its methods are gated, so nothing ever reads them. */
PyObject *
direntry_make(PyObject *name, PyObject *path)
{
    PyObject *entry = direntry_type ? direntry_type->tp_alloc(direntry_type, 0) : NULL;
    if (entry) {
        *slot_at(entry, name_offset) = Py_NewRef(name);
        *slot_at(entry, path_offset) = Py_NewRef(path);
    }
    return entry;
}

PyObject *
direntry_name(PyObject *entry)
{
    return *slot_at(entry, name_offset);
}

PyObject *
direntry_path(PyObject *entry)
{
    return *slot_at(entry, path_offset);
}

/* Behind name and path the object keeps what stat() found, with links followed and without. */
static PyObject **
kept_stat(PyObject *entry, bool follows)
{
    return slot_at(entry, path_offset) + (follows ? 1 : 2);
}

/* In replay an entry keeps the results of stat() as a real one does: it is the same object each time, and the same with
 * links followed and without if the entry is no link. */
static PyObject *
keep_stat(PyObject *entry, bool follows, PyObject *result)
{
    PyObject **slot = kept_stat(entry, follows), *other = *kept_stat(entry, !follows);
    if (*slot == NULL && other) {
        PyObject *own = follows ? other : result; /* of the entry itself, not of what it links to */
        if (!PyTuple_Check(own) || PyTuple_GET_SIZE(own) == 0)
            diverge("corrupt", NULL, NULL, "a directory entry cannot be read");
        bool is_link = (PyLong_AsLong(PyStructSequence_GET_ITEM(own, 0)) & S_IFMT) == S_IFLNK;
        *slot = Py_NewRef(is_link ? result : other);
    }
    else if (*slot == NULL)
        *slot = Py_NewRef(result);
    PyObject *kept = Py_NewRef(*slot);
    Py_DECREF(result);
    return kept;
}

static PyObject *
direntry_stat(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    Crossing c;
    cross_begin(&c, g, self, args, nargs, kwnames);
    bool replayed = !c.perform,
         follows = kwnames == NULL || PyTuple_GET_SIZE(kwnames) == 0 || PyObject_IsTrue(args[nargs]) > 0;
    PyObject *result = cross_end(&c, c.perform ? gate_call_original(g, self, args, nargs, kwnames) : NULL);
    if (!replayed || result == NULL)
        return result;
    own_work_begin();
    result = keep_stat(self, follows, result);
    own_work_end();
    return result;
}

/* A real entry also keeps what is_dir() and the like had to look up, an entry in replay does not: that it is freed must
 * not count. */
static void
direntry_dealloc(PyObject *entry)
{
    if (core.tstate && PyThreadState_Get() == core.tstate) {
        own_work_begin();
        Py_CLEAR(*kept_stat(entry, true));
        Py_CLEAR(*kept_stat(entry, false));
        own_work_end();
    }
    original_dealloc(entry);
}

/* ---- scandir ---- */

static iternextfunc original_next;
static Gate *next_gate;

/* In replay the iterator is a real one over the root directory; what it yields comes from the log. */
static PyObject *
os_scandir(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    Crossing c;
    PyObject *path = nargs == 1 && !kwnames && is_path_object(args[0]) ? PyOS_FSPath(args[0]) : NULL;
    if (PyErr_Occurred())
        return NULL;
    PyObject *converted[] = {path};
    if (path)
        args = converted;
    cross_begin(&c, g, self, args, nargs, kwnames);
    PyObject *iterator = c.perform ? gate_call_original(g, self, args, nargs, kwnames) : NULL;
    bool replayed = !c.perform;
    PyObject *result = cross_end(&c, iterator ? Py_NewRef(Py_None) : NULL);
    if (replayed && result) {
        PyObject *root = PyUnicode_FromString("/");
        own_work_begin();
        iterator = gate_call_original(g, self, &root, 1, NULL);
        own_work_end();
        Py_DECREF(root);
        if (__builtin_expect(core.is_future, 0) && iterator)
            files_hooks.scan_made(iterator);
    }
    Py_XDECREF(result);
    Py_XDECREF(path);
    return iterator;
}

static PyObject *
scandir_next(PyObject *self)
{
    if (gate_passes())
        return original_next(self);
    Crossing c;
    cross_begin(&c, next_gate, self, NULL, 0, NULL);
    bool replayed = !c.perform;
    PyObject *entry = c.perform ? original_next(self) : NULL;
    if (c.perform && entry == NULL && !PyErr_Occurred())
        entry = Py_NewRef(Py_None); /* exhausted */
    entry = cross_end(&c, entry);
    if (cross_again())
        return scandir_next(self);
    bool has_ended = entry == Py_None;
    if (has_ended)
        Py_CLEAR(entry);
    if (has_ended && replayed) {
        own_work_begin();
        PyObject *closed = PyObject_CallMethod(self, "close", NULL);
        Py_XDECREF(closed);
        own_work_end();
    }
    cross_settle();
    return entry;
}

void
directories_install(PyObject *posix)
{
    if (direntry_type)
        return;
    PyObject *type = PyDict_GetItemString(PyModule_GetDict(posix), "DirEntry");
    next_gate = gate_named("posix", "ScandirIterator.__next__");
    if (type == NULL || next_gate == NULL)
        return;
    own_work_begin();
    PyObject *iterator = PyObject_CallMethod(posix, "scandir", "s", "/");
    own_work_end();
    if (iterator == NULL) {
        PyErr_Clear();
        return;
    }
    direntry_type = (PyTypeObject *)type;
    name_offset = member_offset(direntry_type, "name");
    path_offset = member_offset(direntry_type, "path");
    original_dealloc = direntry_type->tp_dealloc;
    direntry_type->tp_dealloc = direntry_dealloc;
    PyTypeObject *iterator_type = Py_TYPE(iterator);
    original_next = iterator_type->tp_iternext;
    iterator_type->tp_iternext = scandir_next;
    patch_wrapper(iterator_type, "__next__", (void *)scandir_next);
    PyObject *closed = PyObject_CallMethod(iterator, "close", NULL);
    Py_XDECREF(closed);
    Py_DECREF(iterator);
}

const HandlerEntry directory_handlers[] = {{"os_scandir", os_scandir}, {"direntry_stat", direntry_stat}, {NULL, NULL}};
