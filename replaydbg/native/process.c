/* Memory maps and selection; processes, and the end of a process. */
#include "core.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <structmember.h>
#include <unistd.h>

/* ---- memory maps ---- */

static newfunc original_mmap;
static Gate *mmap_gate;
#define LARGEST_MAP (200u << 20)

/* A memory file with the recorded content where the program's map begins. */
static int
memory_file(const uint8_t *data, size_t n, long long offset)
{
    int fd = memfd_create("map", 0);
    if (fd < 0 || ftruncate(fd, (off_t)(offset + (long long)n)) < 0)
        return -1;
    for (size_t done = 0; done < n;) {
        ssize_t k = pwrite(fd, data + done, n - done, (off_t)(offset + (long long)done));
        if (k <= 0)
            break;
        done += (size_t)k;
    }
    return fd;
}

static PyObject *
mmap_on_memory(PyTypeObject *type, PyObject *args, PyObject *kwds, Crossing *c)
{
    PyObject *offset = kwds ? PyDict_GetItemString(kwds, "offset") : NULL;
    if (offset == NULL && PyTuple_GET_SIZE(args) > 5)
        offset = PyTuple_GET_ITEM(args, 5);
    long long begin = offset ? PyLong_AsLongLong(offset) : 0;
    int fd = memory_file(c->fill, c->fill_length, begin < 0 ? 0 : begin);
    own_work_begin();
    PyObject *changed = PyTuple_GetSlice(args, 1, PyTuple_GET_SIZE(args));
    PyObject *first = Py_BuildValue("(i)", fd);
    PyObject *all = changed && first ? PySequence_Concat(first, changed) : NULL;
    PyObject *map = all ? original_mmap(type, all, kwds) : NULL;
    Py_XDECREF(all);
    Py_XDECREF(first);
    Py_XDECREF(changed);
    own_work_end();
    if (fd >= 0)
        close(fd);
    return map;
}

static PyObject *
mmap_new(PyTypeObject *type, PyObject *args, PyObject *kwds)
{
    long fd = PyTuple_GET_SIZE(args) > 0 && PyLong_Check(PyTuple_GET_ITEM(args, 0)) ? PyLong_AsLong(PyTuple_GET_ITEM(args, 0)) : -1;
    if (gate_passes() || fd < 0)
        return original_mmap(type, args, kwds);
    Crossing c;
    Py_buffer view = {0};
    cross_begin(&c, mmap_gate, NULL, ((PyTupleObject *)args)->ob_item, PyTuple_GET_SIZE(args), NULL);
    PyObject *map = NULL, *outcome = NULL;
    if (c.perform) {
        map = original_mmap(type, args, kwds);
        if (map && PyObject_GetBuffer(map, &view, PyBUF_SIMPLE) == 0) {
            outcome = PyLong_FromSsize_t(view.len);
            if (view.len > LARGEST_MAP) { /* its content is not even looked at: that would take seconds */
                note("large", "a memory map of more than 200 MiB");
                log_fail(4);
            }
            else {
                c.fill = view.buf;
                c.fill_length = (size_t)view.len;
            }
        }
        else if (map) {
            PyErr_Clear();
            outcome = PyLong_FromLong(-1);
        }
    }
    bool replayed = !c.perform;
    outcome = cross_end(&c, outcome);
    if (view.obj)
        PyBuffer_Release(&view);
    if (replayed && outcome)
        map = mmap_on_memory(type, args, kwds, &c);
    Py_XDECREF(outcome);
    own_work_gives(map);
    return map;
}

/* ---- select ---- */

/* Which of the objects given are ready is logged as their places in the lists given. */
static PyObject *
ready_places(PyObject *given, PyObject *ready)
{
    PyObject *items = PySequence_Fast(given, "select");
    PyObject *places = items ? PyList_New(0) : NULL;
    Py_ssize_t from = 0;
    for (Py_ssize_t i = 0; places && i < PyList_GET_SIZE(ready); i++) {
        while (from < PySequence_Fast_GET_SIZE(items) && PySequence_Fast_GET_ITEM(items, from) != PyList_GET_ITEM(ready, i))
            from++;
        PyObject *place = PyLong_FromSsize_t(from++);
        PyList_Append(places, place);
        Py_XDECREF(place);
    }
    Py_XDECREF(items);
    return places;
}

static PyObject *
ready_objects(PyObject *given, PyObject *places)
{
    PyObject *items = PySequence_Fast(given, "select");
    PyObject *ready = items ? PyList_New(0) : NULL;
    for (Py_ssize_t i = 0; ready && i < PyList_GET_SIZE(places); i++) {
        Py_ssize_t place = PyLong_AsSsize_t(PyList_GET_ITEM(places, i));
        if (place >= 0 && place < PySequence_Fast_GET_SIZE(items))
            PyList_Append(ready, PySequence_Fast_GET_ITEM(items, place));
    }
    Py_XDECREF(items);
    return ready;
}

static PyObject *
convert_ready(PyObject *const *args, PyObject *lists, PyObject *(*convert)(PyObject *, PyObject *))
{
    PyObject *out = lists ? PyTuple_New(3) : NULL;
    for (Py_ssize_t i = 0; out && i < 3; i++) {
        PyObject *part = convert(args[i], PyTuple_GET_ITEM(lists, i));
        if (part == NULL)
            Py_CLEAR(out);
        else
            PyTuple_SET_ITEM(out, i, part);
    }
    return out;
}

/* `fileno` may be program code: it runs before the crossing. */
static PyObject *
descriptor_of(PyObject *o)
{
    int fd = PyObject_AsFileDescriptor(o);
    return fd < 0 ? NULL : PyLong_FromLong(fd);
}

static PyObject *
descriptors_of(PyObject *items)
{
    PyObject *numbers = PyList_New(0);
    for (Py_ssize_t i = 0; numbers && i < PySequence_Fast_GET_SIZE(items); i++) {
        PyObject *number = descriptor_of(PySequence_Fast_GET_ITEM(items, i));
        if (number == NULL || PyList_Append(numbers, number) < 0)
            Py_CLEAR(numbers);
        Py_XDECREF(number);
    }
    return numbers;
}

static PyObject *
select_select(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    if (nargs < 3)
        return gate_call_original(g, self, args, nargs, kwnames);
    Crossing c;
    PyObject *copy[4] = {NULL}, *asked[4] = {NULL}; /* iterators would be used up by the first look */
    for (int i = 0; i < 3; i++) {
        copy[i] = PyErr_Occurred() ? NULL : PySequence_Fast(args[i], "arguments 1-3 must be sequences");
        asked[i] = copy[i] ? descriptors_of(copy[i]) : NULL;
    }
    if (nargs > 3)
        copy[3] = asked[3] = Py_NewRef(args[3]);
    PyObject *result = NULL;
    if (asked[0] && asked[1] && asked[2]) {
        cross_begin(&c, g, self, copy, nargs > 4 ? 4 : nargs, kwnames);
        PyObject *lists = c.perform ? gate_call_original(g, self, asked, nargs, kwnames) : NULL;
        PyObject *places = convert_ready(asked, lists, ready_places);
        Py_XDECREF(lists);
        places = cross_end(&c, places);
        result = places ? convert_ready(copy, places, ready_objects) : NULL;
        Py_XDECREF(places);
    }
    for (int i = 0; i < 4; i++) {
        Py_XDECREF(copy[i]);
        if (i < 3)
            Py_XDECREF(asked[i]);
    }
    return result;
}

/* epoll.register(fd, eventmask), modify, unregister: as above. */
static PyObject *
takes_descriptor(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    PyObject *copy[4];
    Py_ssize_t n = nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    if (nargs == 0 || n > 4 || PyLong_Check(args[0]))
        return gate_regular(g, self, args, nargs, kwnames);
    memcpy(copy, args, (size_t)n * sizeof *copy);
    if ((copy[0] = descriptor_of(args[0])) == NULL)
        return NULL;
    PyObject *result = gate_regular(g, self, copy, nargs, kwnames);
    Py_DECREF(copy[0]);
    return result;
}

static newfunc original_epoll;
static Gate *epoll_gate;

static PyObject *
epoll_new(PyTypeObject *type, PyObject *args, PyObject *kwds)
{
    if (gate_passes())
        return original_epoll(type, args, kwds);
    Crossing c;
    int fd = -1;
    cross_begin(&c, epoll_gate, NULL, NULL, 0, NULL);
    bool replayed = !c.perform;
    PyObject *epoll = original_epoll(type, args, kwds); /* harmless: in replay too the object is real */
    int *field = epoll ? (int *)((char *)epoll + sizeof(PyObject)) : NULL;
    PyObject *outcome = cross_end(&c, epoll ? PyLong_FromLong(*field) : NULL);
    if (outcome && replayed && epoll && (fd = (int)PyLong_AsLong(outcome)) != *field) {
        dup3(*field, fd, O_CLOEXEC);
        close(*field);
        *field = fd;
    }
    if (outcome == NULL)
        Py_CLEAR(epoll);
    Py_XDECREF(outcome);
    own_work_gives(epoll);
    return epoll;
}

/* ---- semaphores of multiprocessing ---- */

static newfunc original_semlock;
static Gate *semlock_gate;

/* In replay an object without a semaphore: all that it is asked comes from the log. SemLock(kind, value, maxvalue, name, unlink). */
static PyObject *
semlock_without_semaphore(PyTypeObject *type, PyObject *fields)
{
    own_work_begin();
    PyObject *rebuild = PyObject_GetAttrString((PyObject *)type, "_rebuild");
    PyObject *none = rebuild ? Py_BuildValue("(iOOO)", 0, PyTuple_GET_ITEM(fields, 0), PyTuple_GET_ITEM(fields, 2), Py_None) : NULL;
    PyObject *semlock = none ? PyObject_CallObject(rebuild, none) : NULL;
    Py_XDECREF(none);
    Py_XDECREF(rebuild);
    own_work_end();
    const char *name = semlock && !PyObject_IsTrue(PyTuple_GET_ITEM(fields, 4)) ? PyUnicode_AsUTF8(PyTuple_GET_ITEM(fields, 3)) : NULL;
    Py_ssize_t offset = name ? member_offset(type, "name") : 0;
    char *copy = offset ? PyMem_Malloc(strlen(name) + 1) : NULL;
    if (copy)
        *(char **)((char *)semlock + offset) = strcpy(copy, name);
    return semlock;
}

static PyObject *
semlock_new(PyTypeObject *type, PyObject *args, PyObject *kwds)
{
    static char *names[] = {"kind", "value", "maxvalue", "name", "unlink", NULL};
    PyObject *f[5];
    if (gate_passes())
        return original_semlock(type, args, kwds);
    if (!PyArg_ParseTupleAndKeywords(args, kwds, "OOOUO", names, &f[0], &f[1], &f[2], &f[3], &f[4])) {
        PyErr_Clear();
        return original_semlock(type, args, kwds); /* it says what is wrong with the arguments */
    }
    PyObject *fields = PyTuple_Pack(5, f[0], f[1], f[2], f[3], f[4]);
    if (fields == NULL)
        return NULL;
    Crossing c;
    cross_begin(&c, semlock_gate, NULL, f, 5, NULL);
    bool replayed = !c.perform;
    PyObject *semlock = c.perform ? original_semlock(type, args, kwds) : NULL;
    PyObject *outcome = cross_end(&c, semlock ? Py_NewRef(Py_None) : NULL);
    if (replayed && outcome)
        semlock = semlock_without_semaphore(type, fields);
    Py_XDECREF(outcome);
    Py_DECREF(fields);
    own_work_gives(semlock);
    return semlock;
}

/* ---- processes ---- */

/* The program's own at-fork functions are program code: they run before and after the crossing. */
static PyObject *
os_fork(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    Crossing c;
    PyOS_BeforeFork();
    cross_begin(&c, g, self, args, nargs, kwnames);
    pid_t pid = -1;
    if (c.perform) {
        pid = fork();
        if (pid == 0) {
            upcall_enter(); /* the child never comes to the end of the crossing */
            PyOS_AfterFork_Child();
            return PyLong_FromLong(0);
        }
    }
    PyObject *result = cross_end(&c, !c.perform ? NULL : pid < 0 ? PyErr_SetFromErrno(PyExc_OSError) : PyLong_FromLong(pid));
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyOS_AfterFork_Parent();
    PyErr_Restore(type, value, traceback);
    if (core.mode == RECORD && pid > 0) {
        uint64_t number = (uint64_t)pid;
        cross_control(CONTROL_CHILD, &number, 1);
    }
    return result;
}

static PyObject *
os_exit(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    Crossing c;
    long status = nargs > 0 && PyLong_Check(args[0]) ? PyLong_AsLong(args[0]) : -1;
    if (status == -1 && (PyErr_Occurred() || nargs == 0 || kwnames)) {
        PyErr_Clear();
        if (nargs == 0 || !PyLong_Check(args[0]))
            return gate_call_original(g, self, args, nargs, kwnames);
    }
    cross_begin(&c, g, self, args, nargs, kwnames);
    PyObject *none = cross_end(&c, Py_NewRef(Py_None));
    Py_XDECREF(none);
    cross_ended((int)status);
    if (core.mode == REPLAY)
        cross_expect_exit();
    clocks_report();
    _exit((int)status);
}

static PyObject *
os_abort(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    Crossing c;
    cross_begin(&c, g, self, args, nargs, kwnames);
    PyObject *none = cross_end(&c, Py_NewRef(Py_None));
    Py_XDECREF(none);
    clocks_report();
    return gate_call_original(g, self, args, nargs, kwnames);
}

/* If it succeeds nothing of this program is left: the recording ends before it. */
static PyObject *
os_exec(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    Crossing c;
    cross_begin(&c, g, self, args, nargs, kwnames);
    if (core.mode == RECORD) {
        note("exec", "the program replaced itself by another one; what that did is not recorded");
        log_reason(5);
    }
    PyObject *result = c.perform ? gate_call_original(g, self, args, nargs, kwnames) : NULL;
    if (core.mode == RECORD)
        log_reason(0); /* it failed: the program goes on */
    return cross_end(&c, result);
}

/* input(): with a terminal on both sides the interpreter reads the line in C, else it calls the streams' own methods. */
static PyObject *
builtin_input(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    PyObject *in = PySys_GetObject("stdin"), *out = PySys_GetObject("stdout");
    bool terminal = core.terminal_input && in && out && in == PySys_GetObject("__stdin__") && out == PySys_GetObject("__stdout__");
    if (!terminal)
        return gate_call_original(g, self, args, nargs, kwnames);
    PyObject *flushed = PyObject_CallMethod(out, "flush", NULL);
    Py_XDECREF(flushed);
    PyErr_Clear();
    Crossing c;
    cross_begin(&c, g, self, args, nargs, kwnames);
    bool replayed = !c.perform;
    PyObject *line = cross_end(&c, c.perform ? gate_call_original(g, self, args, nargs, kwnames) : NULL);
    if (replayed) { /* the interpreter asks on stderr, the readline module on stdout */
        int stream = PyDict_GetItemString(PyImport_GetModuleDict(), "readline") ? 1 : 2;
        PyObject *type, *value, *traceback; /* the end of the input is an exception that stays */
        PyErr_Fetch(&type, &value, &traceback);
        PyObject *prompt = nargs > 0 ? PyObject_Str(args[0]) : NULL;
        const char *text = prompt ? PyUnicode_AsUTF8(prompt) : NULL;
        const char *typed = line && PyUnicode_Check(line) ? PyUnicode_AsUTF8(line) : NULL;
        if (text)
            stream_show(stream, text, strlen(text));
        if (typed)
            stream_show(stream, typed, strlen(typed));
        stream_show(stream, "\n", 1);
        Py_XDECREF(prompt);
        PyErr_Restore(type, value, traceback);
    }
    return line;
}

/* The main thread's ident is computed, never an event: importlib reads it thousands of times. It is the same number for as long as the
 * process lives, also when the recording has ended: the program compares it with what it was told before. */
#define MAIN_IDENT 0x100000000000ul
static unsigned long main_ident; /* the real one */

static PyObject *
thread_ident(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    PyObject *ident = gate_call_original(g, self, args, nargs, kwnames);
    if (ident && PyLong_AsUnsignedLong(ident) == main_ident)
        Py_SETREF(ident, PyLong_FromUnsignedLong(MAIN_IDENT));
    return ident;
}

/* Where the program hands an ident back to C, the real one takes its place. */
static PyObject *
takes_ident(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    PyObject *copy[4];
    bool passes = gate_passes(), is_main = nargs > 0 && nargs <= 4 && kwnames == NULL && PyLong_Check(args[0]) &&
                                           PyLong_AsUnsignedLongMask(args[0]) == MAIN_IDENT;
    if (!is_main)
        return passes ? gate_call_original(g, self, args, nargs, kwnames) : gate_regular(g, self, args, nargs, kwnames);
    memcpy(copy, args, (size_t)nargs * sizeof *copy);
    copy[0] = PyLong_FromUnsignedLong(main_ident);
    PyObject *result;
    if (passes)
        result = gate_call_original(g, self, copy, nargs, NULL);
    else {
        Crossing c;
        cross_begin(&c, g, self, args, nargs, NULL); /* the log has the number that the program knows */
        result = cross_end(&c, c.perform ? gate_call_original(g, self, copy, nargs, NULL) : NULL);
    }
    Py_DECREF(copy[0]);
    return result;
}

/* A dictionary whose keys are idents: the main thread is found under the number that the program knows. */
static PyObject *
keyed_by_ident(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    PyObject *found = gate_call_original(g, self, args, nargs, kwnames), *fresh = found ? PyDict_New() : NULL, *key, *value;
    PyObject *ident = PyLong_FromUnsignedLong(MAIN_IDENT);
    Py_ssize_t i = 0;
    while (fresh && ident && PyDict_Next(found, &i, &key, &value))
        if (PyDict_SetItem(fresh, PyLong_AsUnsignedLong(key) == main_ident ? ident : key, value) < 0)
            Py_CLEAR(fresh);
    Py_XDECREF(ident);
    Py_XDECREF(found);
    return fresh;
}

/* A lock that the main thread holds shows its owner. */
static reprfunc rlock_repr_original;

static PyObject *
rlock_repr(PyObject *lock)
{
    PyObject *text = rlock_repr_original(lock), *real = PyUnicode_FromFormat("owner=%lu ", main_ident);
    PyObject *shown = PyUnicode_FromFormat("owner=%lu ", MAIN_IDENT);
    PyObject *result = text && real && shown ? PyUnicode_Replace(text, real, shown, 1) : NULL;
    Py_XDECREF(text);
    Py_XDECREF(real);
    Py_XDECREF(shown);
    return result;
}

static void
install_rlock(PyObject *module)
{
    PyTypeObject *type = (PyTypeObject *)PyDict_GetItemString(PyModule_GetDict(module), "RLock");
    if (type == NULL || rlock_repr_original)
        return;
    rlock_repr_original = type->tp_repr;
    type->tp_repr = rlock_repr;
    patch_wrapper(type, "__repr__", (void *)rlock_repr);
}

/* A collection runs finalizers, weak references' callbacks and gc.callbacks: program code, whose crossings come before the outcome. */
static PyObject *
gc_collect(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    Crossing c;
    cross_begin(&c, g, self, args, nargs, kwnames);
    int depth = upcall_enter();
    PyObject *found = gate_call_original(g, self, args, nargs, kwnames);
    upcall_leave(depth);
    return cross_end(&c, found);
}

/* wait3 and wait4 import `resource` for their result: in both modes, and before the crossing. */
static PyObject *
os_wait_usage(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    PyObject *resource = PyImport_ImportModule("resource");
    if (resource == NULL)
        return NULL;
    Py_DECREF(resource);
    return gate_regular(g, self, args, nargs, kwnames);
}

const HandlerEntry process_handlers[] = {
    {"gc_collect", gc_collect}, {"os_wait_usage", os_wait_usage},
    {"os_fork", os_fork}, {"os_exit", os_exit}, {"os_abort", os_abort}, {"os_exec", os_exec},
    {"select_select", select_select}, {"builtin_input", builtin_input}, {"thread_ident", thread_ident},
    {"takes_descriptor", takes_descriptor}, {"takes_ident", takes_ident}, {"keyed_by_ident", keyed_by_ident},
    {NULL, NULL}};

void
process_module_loaded(PyObject *module, const char *name)
{
    PyObject *dict = PyModule_GetDict(module), *type;
    if (main_ident == 0)
        main_ident = PyThread_get_thread_ident(); /* gates are installed in the main thread */
    if (strcmp(name, "posix") == 0)
        directories_install(module);
    else if (strcmp(name, "_thread") == 0)
        install_rlock(module);
    else if (strcmp(name, "mmap") == 0 && original_mmap == NULL && (type = PyDict_GetItemString(dict, "mmap"))) {
        if ((mmap_gate = gate_named("mmap", "mmap.__new__"))) {
            original_mmap = ((PyTypeObject *)type)->tp_new;
            ((PyTypeObject *)type)->tp_new = mmap_new;
        }
    }
    else if (strcmp(name, "_multiprocessing") == 0 && original_semlock == NULL && (type = PyDict_GetItemString(dict, "SemLock"))) {
        if ((semlock_gate = gate_named("_multiprocessing", "SemLock.__new__"))) {
            original_semlock = ((PyTypeObject *)type)->tp_new;
            ((PyTypeObject *)type)->tp_new = semlock_new;
        }
    }
    else if (strcmp(name, "select") == 0 && original_epoll == NULL && (type = PyDict_GetItemString(dict, "epoll"))) {
        if ((epoll_gate = gate_named("select", "epoll.__new__"))) {
            original_epoll = ((PyTypeObject *)type)->tp_new;
            ((PyTypeObject *)type)->tp_new = epoll_new;
        }
    }
}
