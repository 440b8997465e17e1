/* The module replaydbg.native._leaves: where the texts and bytes in an event log are, for the tool's side.
 *
 * When a recording is sealed, all of its log is looked through for secrets, which may be cut where one value ends and the
 * next begins. Decoding the log in Python takes longer than recording it did. This walks over its records, in the order of
 * log/entries/stream.py, and makes nothing of them. No byte is trusted: the log may be anybody's. Nothing of this runs in
 * a recorded program.
 */
#include "leaves/leaves.h"
#include "base/constants.h"

#define DEEPEST 200           /* containers in each other, as in log/coding/encode.py */
#define MOST_LEAVES (1 << 22) /* in one record: it bounds what a list of them takes */
#define SHAPE_ARGUMENTS 1
#define SHAPE_DIGEST 2
#define SHAPE_FILLED 4
#define DIGEST_BYTES 4
#define CHECKSUM_SLOTS 24 /* bytes */
#define CHECKSUM_FACTS 4
#define STAT_NUMBERS 13
#define MOST_CHUNKS 128

typedef struct {
    uint32_t gate;
    uint8_t shape;
} Site;

typedef struct {
    PyObject_HEAD Site *sites;
    size_t site_count, site_room;
    uint64_t arguments;
    uint64_t position; /* the end of the last whole record */
    uint64_t first;    /* what ends before it is passed over */
} Walker;

typedef enum { FINE, SHORT, MALFORMED, FAILED } State; /* FAILED: with an exception */

typedef struct {
    Walker *walker;
    const uint8_t *data;
    size_t size, pos;
    size_t needed; /* if SHORT: so many bytes of `data` at least */
    State state;
    Kind kind;
    uint64_t site, gate, arguments;
    Value *leaves; /* of this record */
    size_t count, room;
} Cursor;

/* ---- primitives ---- */

static int
fail(Cursor *c, State state)
{
    if (c->state == FINE)
        c->state = state;
    return 0;
}

/* Skip bytes; 0 if they are not there. */
static int
skip(Cursor *c, uint64_t size)
{
    if (c->state != FINE)
        return 0;
    if (size > c->size - c->pos) {
        c->needed = size > SIZE_MAX / 2 ? SIZE_MAX / 2 : c->pos + (size_t)size;
        return fail(c, SHORT);
    }
    c->pos += (size_t)size;
    return 1;
}

static uint64_t
number(Cursor *c)
{
    uint64_t value = 0;
    for (int shift = 0; c->state == FINE; shift += 7) {
        size_t at = c->pos;
        if (!skip(c, 1))
            break;
        uint8_t byte = c->data[at];
        if (shift > 63 || (shift == 63 && (byte & 0x7f) > 1)) {
            fail(c, MALFORMED);
            break;
        }
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return value;
    }
    return 0;
}

static void
add(Cursor *c, Kind kind, uint64_t start, uint64_t end)
{
    if (c->state != FINE || c->walker->position + c->pos <= c->walker->first)
        return;
    if (c->count >= MOST_LEAVES) {
        fail(c, MALFORMED);
        return;
    }
    if (c->count == c->room) {
        size_t room = c->room ? 2 * c->room : 64;
        Value *leaves = PyMem_Realloc(c->leaves, room * sizeof *leaves);
        if (!leaves) {
            PyErr_NoMemory();
            fail(c, FAILED);
            return;
        }
        c->leaves = leaves;
        c->room = room;
    }
    c->leaves[c->count] = (Value){kind, c->gate, c->site, c->arguments, c->count, start, end};
    c->count++;
}

/* A text or bytes: the length, then so many. */
static void
leaf(Cursor *c)
{
    uint64_t length = number(c);
    size_t start = c->pos;
    if (skip(c, length))
        add(c, c->kind, c->walker->position + start, c->walker->position + c->pos);
}

/* ---- values ---- */

static void value(Cursor *c, int depth);

static void
values(Cursor *c, int depth, int each)
{
    uint64_t count = number(c);
    if (c->state == FINE && count > (c->size - c->pos) / (size_t)each) { /* an element has a byte at least */
        c->needed = c->pos + (count > SIZE_MAX / 4 ? SIZE_MAX / 4 : (size_t)count * (size_t)each);
        fail(c, SHORT);
    }
    for (uint64_t i = 0; i < count * (uint64_t)each && c->state == FINE; i++)
        value(c, depth);
}

static void
numbers(Cursor *c, int count)
{
    for (int i = 0; i < count && c->state == FINE; i++)
        number(c);
}

static void
content(Cursor *c)
{
    uint64_t offset = number(c), length = number(c);
    if (length > UINT64_MAX - offset)
        fail(c, MALFORMED);
    add(c, CONTENT, offset, offset + length);
}

static void
value(Cursor *c, int depth)
{
    size_t at = c->pos;
    if (!skip(c, 1))
        return;
    uint8_t tag = c->data[at];
    if (tag >= TAG_SMALL_INT) {
        if (tag >= TAG_SMALL_INT_END)
            fail(c, MALFORMED);
        return;
    }
    if (depth > DEEPEST) {
        fail(c, MALFORMED);
        return;
    }
    switch (tag) {
    case TAG_NONE:
    case TAG_FALSE:
    case TAG_TRUE:
    case TAG_BUFFER_LEAVES:
    case TAG_BUFFER_FILLED:
        break;
    case TAG_INT:
    case TAG_ARGUMENT:
    case TAG_FILE:
        number(c);
        break;
    case TAG_BIG_INT:
        skip(c, number(c));
        break;
    case TAG_FLOAT:
        skip(c, 8);
        break;
    case TAG_COMPLEX:
        skip(c, 16);
        break;
    case TAG_STR:
    case TAG_BYTES:
    case TAG_BYTEARRAY:
    case TAG_OPAQUE:
        leaf(c);
        break;
    case TAG_TUPLE:
    case TAG_LIST:
    case TAG_SET:
    case TAG_FROZENSET:
        values(c, depth + 1, 1);
        break;
    case TAG_DICT:
        values(c, depth + 1, 2);
        break;
    case TAG_STRUCT:
        number(c);
        values(c, depth + 1, 1);
        break;
    case TAG_STAT:
        numbers(c, STAT_NUMBERS);
        break;
    case TAG_EXCEPTION:
        number(c);
        value(c, depth + 1);
        value(c, depth + 1);
        break;
    case TAG_CONTENT:
        content(c);
        break;
    case TAG_CUT: /* the tag of what was cut, its length, a digest, its beginning */
        skip(c, 1);
        number(c);
        skip(c, 8);
        skip(c, number(c));
        break;
    case TAG_DIR_ENTRY:
        value(c, depth + 1);
        value(c, depth + 1);
        break;
    default:
        fail(c, MALFORMED);
    }
}

/* ---- records ---- */

static void
define_site(Cursor *c)
{
    Walker *w = c->walker;
    uint64_t gate = number(c);
    numbers(c, 3); /* code, instruction, line */
    uint64_t shape = number(c);
    if (c->state != FINE)
        return;
    if (w->site_count == w->site_room) {
        size_t room = w->site_room ? 2 * w->site_room : 256;
        Site *sites = PyMem_Realloc(w->sites, room * sizeof *sites);
        if (!sites) {
            PyErr_NoMemory();
            fail(c, FAILED);
            return;
        }
        w->sites = sites;
        w->site_room = room;
    }
    w->sites[w->site_count++] = (Site){.gate = (uint32_t)gate, .shape = (uint8_t)(shape & 7)};
}

static void
define(Cursor *c, uint64_t what)
{
    c->kind = DEFINED;
    switch (what) {
    case DEFINES_CODE:
        leaf(c);
        leaf(c);
        number(c);
        break;
    case DEFINES_SITE:
        define_site(c);
        break;
    case DEFINES_ARGUMENTS:
        value(c, 0);
        if (c->state == FINE)
            c->walker->arguments++;
        break;
    case DEFINES_TYPE:
        leaf(c);
        leaf(c);
        break;
    default:
        fail(c, MALFORMED);
    }
}

static void
signal_between(Cursor *c)
{
    skip(c, 8);
    numbers(c, 2); /* instruction, ticks */
    uint64_t levels = number(c);
    if (levels > PLACE_WITH_CONTENTS)
        fail(c, MALFORMED);
    int has_contents = levels == PLACE_WITH_CONTENTS;
    skip(c, 8 * (has_contents ? PLACE_LEVELS : levels));
    if (!has_contents)
        return;
    number(c); /* the CPU time */
    for (int i = 0; i < 2; i++) {
        uint64_t size = number(c), chunks = number(c);
        if (c->state == FINE && (size == 0 || chunks > MOST_CHUNKS))
            fail(c, MALFORMED);
        skip(c, 8 * (c->state == FINE ? chunks : 0));
    }
}

static void
control(Cursor *c, uint64_t what)
{
    switch (what) {
    case CONTROL_CHECKSUM:
        skip(c, CHECKSUM_SLOTS);
        numbers(c, CHECKSUM_FACTS);
        return;
    case CONTROL_CALLBACK:
    case CONTROL_NOTE:
    case CONTROL_MARK:
        value(c, 0);
        return;
    case CONTROL_SIGNAL_INSIDE:
    case CONTROL_TIME:
    case CONTROL_END:
    case CONTROL_CHILD:
    case CONTROL_SERIALS:
    case CONTROL_CHAOS:
        number(c);
        return;
    case CONTROL_SIGNAL_BETWEEN:
        number(c);
        signal_between(c);
        return;
    case CONTROL_LANE:
        numbers(c, 3);
        return;
    case CONTROL_LANE_STARTED:
        number(c);
        value(c, 0);
        return;
    case CONTROL_STREAM:
        numbers(c, 6);
        skip(c, number(c));
        return;
    case CONTROL_MEMORY:
        numbers(c, 2);
        skip(c, number(c));
        return;
    case CONTROL_NO_MEMORY:
        numbers(c, 2);
        return;
    case CONTROL_COLLECTOR:
        numbers(c, 4);
        return;
    default:
        fail(c, MALFORMED);
    }
}

static void
crossing(Cursor *c, uint64_t site)
{
    Walker *w = c->walker;
    if (site < 1 || site > w->site_count) {
        fail(c, MALFORMED);
        return;
    }
    uint8_t shape = w->sites[site - 1].shape;
    c->site = site;
    c->gate = w->sites[site - 1].gate;
    if (shape & SHAPE_ARGUMENTS) {
        c->arguments = number(c);
        if (c->state == FINE && (c->arguments < 1 || c->arguments > w->arguments))
            fail(c, MALFORMED);
    }
    if (shape & SHAPE_DIGEST)
        skip(c, DIGEST_BYTES);
    value(c, 0);
    if (shape & SHAPE_FILLED)
        value(c, 0);
}

static void
record(Cursor *c)
{
    c->kind = RECORDED;
    c->site = c->gate = c->arguments = 0;
    c->count = 0;
    uint64_t head = number(c);
    if (c->state != FINE)
        return;
    if ((head & 3) == 2)
        control(c, head >> 2);
    else if ((head & 3) == 3)
        define(c, head >> 2);
    else
        crossing(c, head >> 2);
}

static PyTypeObject *sieve_type; /* the module keeps it */

typedef struct {
    PyObject *sieve; /* NULL: all leaves are wanted */
    Hints hints;
    PyObject *found;
} Wanted;

/* The leaves of a record that is whole. */
static int
keep(const Cursor *c, Wanted *wanted)
{
    for (size_t i = 0; i < c->count; i++) {
        const Value *v = &c->leaves[i];
        if (wanted->sieve) {
            const uint8_t *bytes = v->kind == CONTENT ? NULL : c->data + (v->start - c->walker->position);
            if (sieve_take(wanted->sieve, v, bytes, &wanted->hints, wanted->found) < 0)
                return -1;
            continue;
        }
        PyObject *leaf =
            Py_BuildValue("(iKKKKKK)", (int)v->kind, (unsigned long long)v->gate, (unsigned long long)v->site,
                          (unsigned long long)v->arguments, (unsigned long long)v->number, (unsigned long long)v->start,
                          (unsigned long long)v->end);
        int failed = !leaf || PyList_Append(wanted->found, leaf) < 0;
        Py_XDECREF(leaf);
        if (failed)
            return -1;
    }
    return 0;
}

/* Returns what is wanted of the whole records in data, where they end, and how many bytes of data the next record needs
 * at least: 0 if it is malformed. What it needs is passed again with more behind it. */
static PyObject *
walked(Walker *w, const Py_buffer *data, Wanted *wanted)
{
    Cursor c = {.walker = w, .data = data->buf, .size = (size_t)data->len};
    wanted->found = PyList_New(0);
    size_t end = 0;
    while (wanted->found && c.state == FINE && c.pos < c.size) {
        record(&c);
        if (c.state != FINE)
            break;
        end = c.pos;
        if (keep(&c, wanted) < 0)
            c.state = FAILED;
    }
    PyMem_Free(c.leaves);
    w->position += end;
    if (!wanted->found || c.state == FAILED) {
        Py_XDECREF(wanted->found);
        return NULL;
    }
    size_t needed = c.state == SHORT ? c.needed - end : c.state == MALFORMED ? 0 : 1;
    return Py_BuildValue("(Nnn)", wanted->found, (Py_ssize_t)end, (Py_ssize_t)needed);
}

/* walk(data): see walked(); all leaves. */
static PyObject *
walk(PyObject *self, PyObject *argument)
{
    Py_buffer data;
    Wanted wanted = {0};
    if (PyObject_GetBuffer(argument, &data, PyBUF_SIMPLE) < 0)
        return NULL;
    PyObject *result = walked((Walker *)self, &data, &wanted);
    PyBuffer_Release(&data);
    return result;
}

/* sift(data, sieve, hints): see walked(); what the sieve reports. */
static PyObject *
sift(PyObject *self, PyObject *args)
{
    Py_buffer data;
    Wanted wanted = {0};
    if (!PyArg_ParseTuple(args, "y*O!O!:sift", &data, sieve_type, &wanted.sieve, &PyList_Type, &wanted.hints.list))
        return NULL;
    PyObject *result = walked((Walker *)self, &data, &wanted);
    PyBuffer_Release(&data);
    return result;
}

static PyObject *
make(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    unsigned long long first = 0;
    if (!PyArg_ParseTuple(args, "|K:Walker", &first))
        return NULL;
    Walker *walker = (Walker *)type->tp_alloc(type, 0);
    if (walker)
        walker->first = first;
    return (PyObject *)walker;
}

static void
dealloc(PyObject *self)
{
    PyMem_Free(((Walker *)self)->sites);
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef walker_methods[] = {
    {"walk", walk, METH_O,
     PyDoc_STR("Return the leaves of whole records, where they end, and what the next one needs.")},
    {"sift", sift, METH_VARARGS, PyDoc_STR("Return what a sieve reports of them, and the same.")},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot walker_slots[] = {
    {Py_tp_doc,
     (void *)PyDoc_STR(
         "Walks over the records of one event log, from behind its header; what ends before `first` is passed over.")},
    {Py_tp_new, make},
    {Py_tp_dealloc, dealloc},
    {Py_tp_methods, walker_methods},
    {0, NULL},
};

static PyType_Spec walker_spec = {
    .name = "replaydbg.native._leaves.Walker",
    .basicsize = sizeof(Walker),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = walker_slots,
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "replaydbg.native._leaves",
    .m_doc = PyDoc_STR("Where the texts and bytes in an event log are, for the tool's side."),
};

PyMODINIT_FUNC
PyInit__leaves(void)
{
    PyObject *module = PyModule_Create(&definition);
    PyObject *walker = PyType_FromSpec(&walker_spec), *sieve = PyType_FromSpec(&sieve_spec);
    if (!module || !walker || !sieve || PyModule_AddObjectRef(module, "Walker", walker) < 0 ||
        PyModule_AddObjectRef(module, "Sieve", sieve) < 0)
        Py_CLEAR(module);
    sieve_type = (PyTypeObject *)sieve;
    Py_XDECREF(walker);
    return module;
}
