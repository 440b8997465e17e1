/* The closed world of a future: what becomes of each call, by the row of its gate (replaydbg/gates/closed_world.py). The fence
 * keeps everything inside in any case. Here it is decided what the program can go on with: what has a true answer. */
#include "base/core.h"
#include "files/files.h"
#include "future/inside.h"
#include "future/turns.h"
#include "resume/resume.h"
#include "signals/signals.h"
#include "sqlite/sqlite.h"
#include "values/values.h"
#include <sys/stat.h>
#include <unistd.h>

enum { SEED_BYTES = 32 };

static bool stands_in[MOST_LOOKED_AT]; /* by descriptor: a file, in the place of one of the recorded run */
static ino_t nothing;                  /* the socket that stands for those of the recorded run */
static uint64_t state;                 /* of what is drawn */

void
closed_begin(uint64_t seed)
{
    struct stat st;
    state = seed ^ 0x6675747572657321u; /* not the numbers by which lanes are chosen */
    nothing = fstat(core.socket_fd, &st) == 0 ? st.st_ino : 0;
    for (int fd = 0; fd < MOST_LOOKED_AT; fd++)
        stands_in[fd] = fd != 1 && fd != 2 && !fd_stream(fd) && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    layer_load();
    layer_begin();
    sqlite_becomes_future();
}

/* splitmix64, as in lanes.c */
static uint64_t
draw(void)
{
    uint64_t z = state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

void
future_draws(void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((char *)bytes)[i] = (char)draw();
}

static PyObject *
drawn_bytes(const Crossing *c)
{
    Py_ssize_t n = c->nargs > 0 && PyLong_Check(c->args[0]) ? PyLong_AsSsize_t(c->args[0]) : SEED_BYTES;
    PyObject *bytes = n < 0 ? NULL : PyBytes_FromStringAndSize(NULL, n);
    if (bytes == NULL && !PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError, "negative argument not allowed");
    for (Py_ssize_t i = 0; bytes && i < n; i++)
        PyBytes_AS_STRING(bytes)[i] = (char)draw();
    return bytes;
}

PyObject *
future_answers(const Crossing *c)
{
    const uint8_t *end = NULL;
    bool is_raised = false;
    PyObject *kept;
    if (layer_answers(&kept))
        return kept;
    if (c->gate->flags & GATE_DRAWN)
        return drawn_bytes(c);
    const uint8_t *p = known_answer(c, &end, &is_raised);
    PyObject *result = p ? value_decode(&p, end, &event_types, c->args, c->nargs) : NULL;
    if (result == NULL && !PyErr_Occurred())
        diverge("outside", c->gate, (Crossing *)c, "");
    return result;
}

/* What stands for a file, a socket or a device of the recorded run leads nowhere, or has its old content. */
static bool
is_inside(int fd)
{
    struct stat st;
    if (fd < 0)
        return true; /* it is closed, and the call says so */
    if (fd_stream(fd) || layer_has(fd) || group_future_has(fd))
        return true;
    if (fd == 0 || fstat(fd, &st) < 0)
        return fd != 0;
    if (S_ISREG(st.st_mode))
        return fd >= MOST_LOOKED_AT || !stands_in[fd];
    return S_ISSOCK(st.st_mode) ? st.st_ino != nothing : !S_ISCHR(st.st_mode) && !S_ISDIR(st.st_mode);
}

/* Of an int, a file or a socket; -2: it is none of these, and only the program knows. */
static int
descriptor_of(PyObject *o)
{
    int overflow, fd = file_fd(o);
    fd = fd == -2 ? socket_fd(o) : fd;
    if (fd != -2 || !PyLong_CheckExact(o))
        return fd == -2 ? wrapper_fd(o) : fd;
    long number = PyLong_AsLongAndOverflow(o, &overflow);
    return overflow || number < 0 || number > INT32_MAX ? -1 : (int)number;
}

static bool
are_inside(PyObject *list)
{
    PyObject **items = PySequence_Fast_ITEMS(list);
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list); i++) {
        int fd = descriptor_of(items[i]);
        if (fd == -2 || !is_inside(fd))
            return false;
    }
    return true;
}

/* The first field of the object is a dictionary by descriptor. */
static bool
polls_inside(PyObject *poll)
{
    PyObject *watched, *fd, *events;
    Py_ssize_t at = 0;
    memcpy(&watched, (char *)poll + sizeof(PyObject), sizeof watched);
    if (watched == NULL || !PyDict_CheckExact(watched))
        return false;
    while (PyDict_Next(watched, &at, &fd, &events))
        if (!is_inside(descriptor_of(fd)))
            return false;
    return true;
}

/* select.select() has lists of them, an epoll object one and is one; all others have one. */
static bool
stays_inside(const Crossing *c)
{
    if (strcmp(c->gate->name, "socket.__init__") == 0) /* on a descriptor that is there */
        return c->nargs > 3 && PyLong_Check(c->args[3]) && is_inside(descriptor_of(c->args[3]));
    if (strcmp(c->gate->name, "kill") == 0)
        return c->nargs > 0 && signals_names_itself(c->args[0]);
    if (strcmp(c->gate->name, "FileIO.__init__") == 0)
        return PyLong_Check(c->args[0]) && is_inside(descriptor_of(c->args[0]));
    if (strcmp(c->gate->name, "poll().poll") == 0)
        return polls_inside(c->self);
    if (strcmp(c->gate->module, "select") != 0)
        return is_inside(fd_of_call(c->self, c->args, c->nargs));
    for (Py_ssize_t i = 0; i < c->nargs && i < 3; i++) {
        PyObject *o = c->args[i];
        bool is_list = PyList_CheckExact(o) || PyTuple_CheckExact(o);
        if (is_list && !are_inside(o))
            return false;
        if (!is_list && i == 0) {
            int fd = descriptor_of(o);
            if (fd == -2 || !is_inside(fd))
                return false;
        }
    }
    return true;
}

void
future_asks(Crossing *c)
{
    unsigned flags = c->gate->flags;
    live_install_handlers();
    turns_event();
    if (faults_take(c)) {
        c->is_answered = true;
        c->perform = false;
        return;
    }
    if (layer_takes(c) || (flags & GATE_STAYS) || family_takes(c))
        return;
    const uint8_t *end;
    bool is_raised;
    if ((flags & GATE_DRAWN) || ((flags & GATE_ASKS) && known_answer(c, &end, &is_raised))) {
        c->is_answered = true;
        c->perform = false;
        return;
    }
    if (strcmp(c->gate->name, "getpid") == 0)
        return; /* the program has never asked: any number will do */
    if (!(flags & GATE_IF_INSIDE) || !stays_inside(c))
        diverge("outside", c->gate, c, "");
}

/* What pytest does then, to report it and to go on with other tests, is not asked for; most of it would need files. */
void
future_marked(PyObject *text)
{
    static char mark[1 << 15];
    if (text == NULL || !PyUnicode_CheckExact(text))
        return;
    text_copy(mark, sizeof mark, text);
    if (strncmp(mark, "{\"do\": \"raised\"", 15) == 0 || strncmp(mark, "{\"do\": \"end\"", 12) == 0)
        diverge("test", NULL, NULL, mark);
}

PyObject *
future_performed(const Crossing *c, PyObject *result)
{
    layer_performed(c, result);
    return faults_after(c, result);
}
