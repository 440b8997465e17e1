/* How a file is opened: the constructor of `FileIO`. In replay the object is a genuine one on a placeholder descriptor.
 */
#include "base/core.h"
#include "collector/collector.h"
#include "crossing/crossing.h"
#include "files/files.h"
#include <internal/pycore_fileutils.h>

static initproc original_init;
static Gate *init_gate;
static PyObject *block_size_name;
bool file_is_opened_by_program;

static PyObject *
give_self(PyObject *self, PyObject *args)
{
    return Py_NewRef(self);
}

/* Calls the program's opener from inside the crossing: an upcall. */
static PyObject *
call_opener(PyObject *opener, PyObject *args)
{
    Upcall upcall = upcall_enter();
    PyObject *fd = PyObject_CallObject(opener, args);
    upcall_leave(upcall);
    return fd;
}

static PyMethodDef give_self_def = {"opener", give_self, METH_VARARGS, NULL};
static PyMethodDef call_opener_def = {"opener", call_opener, METH_VARARGS, NULL};

typedef struct {
    PyObject *file, *mode, *closefd, *opener;
} Opening;

static int
init_really(PyObject *self, Opening *o, PyObject *opener)
{
    PyObject *args = PyTuple_Pack(4, o->file, o->mode, o->closefd, opener);
    if (args == NULL)
        return -1;
    int rc = original_init(self, args, NULL);
    Py_DECREF(args);
    return rc;
}

/* The descriptor and the block size. Of a file that was opened for appending also its size, at which the constructor
 * has put the offset: no other event need show it. */
static PyObject *
init_outcome(PyObject *self, const Opening *o, int rc)
{
    if (rc < 0)
        return NULL;
    PyObject *size = PyObject_GetAttrString(self, "_blksize");
    bool appends = PyUnicode_FindChar(o->mode, 'a', 0, PyUnicode_GET_LENGTH(o->mode), 1) >= 0;
    long long end = appends ? (long long)lseek(file_fd(self), 0, SEEK_CUR) : -1;
    if (size == NULL || end < 0)
        return size ? Py_BuildValue("(iN)", file_fd(self), size) : NULL;
    return Py_BuildValue("(iNL)", file_fd(self), size, end);
}

static int
init_with_opener(Crossing *c, PyObject *self, Opening *o)
{
    PyObject *opener = PyCFunction_NewEx(&call_opener_def, o->opener, NULL);
    int rc = opener ? init_really(self, o, opener) : -1;
    Py_XDECREF(opener);
    PyObject *result = cross_end(c, init_outcome(self, o, rc));
    Py_XDECREF(result);
    return result ? 0 : -1;
}

/* A second __init__ closes the first file: before the placeholder of the new one takes its number. */
static void
forget_file(PyObject *self)
{
    int fd = file_fd(self), none = -1;
    PyObject *closefd = fd >= 0 ? PyObject_GetAttrString(self, "closefd") : NULL;
    if (closefd == Py_True)
        close(fd);
    Py_XDECREF(closefd);
    memcpy((char *)self + sizeof(PyObject), &none, sizeof none);
}

/* On a descriptor that is there already. */
static int
init_on(PyObject *self, Opening *o, int fd)
{
    PyObject *number = PyLong_FromLong(fd), *opener = number ? PyCFunction_NewEx(&give_self_def, number, NULL) : NULL;
    int rc = opener ? init_really(self, o, opener) : -1;
    Py_XDECREF(opener);
    Py_XDECREF(number);
    return rc;
}

static int
init_performed(PyObject *self, Opening *o)
{
    int known = __builtin_expect(core.is_future, 0) && !PyLong_Check(o->file) ? files_hooks.open_known(o->file) : -1;
    return known < 0 ? init_really(self, o, Py_None) : init_on(self, o, known);
}

/* How much a buffer reads at once. Since 3.14 it is in what fstat() returned when the file was opened: of a placeholder,
 * that is another file. */
static int
set_block_size(PyObject *self, unsigned long size)
{
#if PY_VERSION_HEX >= 0x030E0000
    struct { /* private to CPython's fileio.c */
        PyObject_HEAD int fd;
        unsigned flags;
        struct _Py_stat_struct *stat_atopen;
    } *file = (void *)self;
    if (file->stat_atopen == NULL && (file->stat_atopen = PyMem_Calloc(1, sizeof *file->stat_atopen)) == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    file->stat_atopen->st_blksize = (blksize_t)size;
    return 0;
#else
    PyObject *block = PyLong_FromUnsignedLong(size);
    int rc = block ? PyObject_GenericSetAttr(self, block_size_name, block) : -1;
    Py_XDECREF(block);
    return rc;
#endif
}

/* Replay: a genuine FileIO on a placeholder, with the block size that the real file had. */
static int
init_on_placeholder(PyObject *self, Opening *o, PyObject *outcome)
{
    int fd, rc;
    unsigned size;
    long long end;
    if (!PyArg_ParseTuple(outcome, "iI|L", &fd, &size, &end))
        return -1;
    own_work_begin();
    forget_file(self);
    if (PyLong_Check(o->file))
        rc = init_really(self, o, Py_None);
    else {
        fd_place(fd, -1);
        rc = init_on(self, o, fd);
    }
    if (rc == 0)
        rc = set_block_size(self, size);
    own_work_end();
    return rc;
}

static int
init_crossing(PyObject *self, Opening *o)
{
    int real = __builtin_expect(core.lenient, 0) && o->opener == Py_None ? files_hooks.open_data(o->file, o->mode) : -1;
    if (real != -1)
        return real < 0 ? -1 : init_on(self, o, real);
    Crossing c;
    PyObject *args[] = {o->file, o->mode};
    file_is_opened_by_program = o->opener != Py_None;
    cross_begin(&c, init_gate, self, args, 2, NULL);
    if (o->opener != Py_None) {
        int done = init_with_opener(&c, self, o);
        return cross_again() ? init_crossing(self, o) : done;
    }
    PyObject *result = cross_end(&c, c.perform ? init_outcome(self, o, init_performed(self, o)) : NULL);
    int rc = result ? 0 : -1;
    if (cross_again())
        return init_crossing(self, o);
    if (result && !c.perform)
        rc = init_on_placeholder(self, o, result);
    Py_XDECREF(result);
    if (rc == 0 && !PyLong_Check(o->file))
        fd_opened(file_fd(self), -1);
    return rc;
}

/* A class over FileIO with a __setattr__ of its own: the constructor sets `name` through it, which is program code. The
 * crossing is then only the opening, by a plain helper object; the program's object is made on its descriptor, outside
 * of the crossing. */
static int
init_in_two_steps(PyObject *self, Opening *o)
{
    PyObject *none = PyTuple_New(0), *helper = none ? fileio_type->tp_new(fileio_type, none, NULL) : NULL;
    Py_XDECREF(none);
    if (helper == NULL || init_crossing(helper, o) < 0) {
        Py_XDECREF(helper);
        return -1;
    }
    int fd = file_fd(helper), nothing = -1;
    /* the descriptor is not the helper's to close */
    memcpy((char *)helper + sizeof(PyObject), &nothing, sizeof nothing);
    PyObject *number = PyLong_FromLong(fd), *opener = number ? PyCFunction_NewEx(&give_self_def, number, NULL) : NULL;
    PyObject *size = PyObject_GetAttrString(helper, "_blksize");
    int rc = opener && size ? init_really(self, o, PyLong_Check(o->file) ? Py_None : opener) : -1;
    if (rc == 0)
        rc = set_block_size(self, PyLong_AsUnsignedLong(size));
    if (rc < 0 && !PyLong_Check(o->file))
        fd_closed(fd);
    Py_XDECREF(size);
    Py_XDECREF(opener);
    Py_XDECREF(number);
    Py_DECREF(helper);
    return rc;
}

/* The opening sets `name`, for which the object gets its dictionary: that goes to the program. */
static int
init_giving_dict(PyObject *self, Opening *o)
{
    PyObject **dict = _PyObject_GetDictPtr(self);
    bool had = dict == NULL || *dict != NULL;
    int rc = init_crossing(self, o);
    if (!had)
        own_work_gives(*dict);
    return rc;
}

static int
fileio_init(PyObject *self, PyObject *args, PyObject *kwds)
{
    static char *names[] = {"file", "mode", "closefd", "opener", NULL};
    if (gate_passes())
        return original_init(self, args, kwds);
    Opening o = {NULL, NULL, Py_True, Py_None};
    if (!PyArg_ParseTupleAndKeywords(args, kwds, "O|OOO", names, &o.file, &o.mode, &o.closefd, &o.opener)) {
        PyErr_Clear();
        return original_init(self, args, kwds); /* it says what is wrong with the arguments */
    }
    PyObject *mode = o.mode ? Py_NewRef(o.mode) : PyUnicode_FromString("r");
    PyObject *path = PyLong_Check(o.file) ? Py_NewRef(o.file) : PyOS_FSPath(o.file);
    int rc;
    if (path == NULL && is_path_object(o.file))
        rc = -1; /* its __fspath__ raised */
    else if (path == NULL || mode == NULL || !PyUnicode_Check(mode)) {
        PyErr_Clear();
        rc = original_init(self, args, kwds);
    }
    else {
        o.file = path;
        o.mode = mode;
        rc = Py_TYPE(self)->tp_setattro == fileio_type->tp_setattro ? init_giving_dict(self, &o)
                                                                    : init_in_two_steps(self, &o);
    }
    Py_XDECREF(path);
    Py_XDECREF(mode);
    cross_settle();
    return rc;
}

static void
wrappers_loaded(PyObject *module)
{
    static const char *const names[][2] = {
        {"BufferedReader", "raw"}, {"BufferedWriter", "raw"}, {"BufferedRandom", "raw"}, {"TextIOWrapper", "buffer"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        PyObject *type = PyDict_GetItemString(PyModule_GetDict(module), names[i][0]);
        if (type && PyType_Check(type))
            wrapper_known((PyTypeObject *)type, member_offset((PyTypeObject *)type, names[i][1]));
    }
}

int
fileio_module_loaded(PyObject *module, const char *name)
{
    if (strcmp(name, "_io") != 0 || fileio_type)
        return 0;
    init_gate = gate_named("_io", "FileIO.__init__");
    PyObject *type = PyDict_GetItemString(PyModule_GetDict(module), "FileIO");
    block_size_name = PyUnicode_InternFromString("_blksize");
    if (init_gate == NULL || type == NULL || block_size_name == NULL)
        return 0;
    fileio_type = (PyTypeObject *)type;
    original_init = fileio_type->tp_init;
    fileio_type->tp_init = fileio_init;
    patch_wrapper(fileio_type, "__init__", (void *)fileio_init);
    wrappers_loaded(module);
    return 0;
}
