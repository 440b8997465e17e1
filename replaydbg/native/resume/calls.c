/* Calls in flight. A call was made, and the program ended before its event was in the log. The replay computes what the
 * program does next, with all arguments and bytes. So what may have been done without being logged is known: the next
 * call of the lane that ran, and those within which others had given way. The launcher finds out what came of them. */
#include "base/core.h"
#include "files/files.h"
#include "resume/inside.h"
#include "values/values.h"
#include <stdlib.h>

#define MOST_SHOWN 32 /* arguments; the call that starts a process has 23 */
#define MOST_ITEMS 32 /* of a tuple or list, such as an address or a command line */
#define MOST_LEVELS 2
#define MOST_DATA (16u << 20) /* bytes that are shown of what was to be written */

static Buf calls;
static uint64_t calls_count;

typedef struct {
    int lane;
    uint8_t *value;
    uint64_t n;
} Settled;
static Settled *settled;

static void report_argument(Buf *b, PyObject *v, int level);

static void
report_items(Buf *b, PyObject *v, int level)
{
    bool is_tuple = PyTuple_CheckExact(v);
    Py_ssize_t n = is_tuple ? PyTuple_GET_SIZE(v) : PyList_GET_SIZE(v);
    n = n < MOST_ITEMS ? n : MOST_ITEMS;
    buf_byte(b, is_tuple ? TAG_TUPLE : TAG_LIST);
    buf_varint(b, (uint64_t)n);
    for (Py_ssize_t i = 0; i < n; i++)
        report_argument(b, is_tuple ? PyTuple_GET_ITEM(v, i) : PyList_GET_ITEM(v, i), level + 1);
}

static void
report_argument(Buf *b, PyObject *v, int level)
{
    if (v == NULL || v == Py_None)
        buf_byte(b, TAG_NONE);
    else if (PyBool_Check(v))
        buf_byte(b, v == Py_True ? TAG_TRUE : TAG_FALSE);
    else if (PyUnicode_Check(v))
        report_name(b, v);
    else if (PyBytes_CheckExact(v) && PyBytes_GET_SIZE(v) < 8192) {
        buf_byte(b, TAG_BYTES);
        buf_str(b, PyBytes_AS_STRING(v), (size_t)PyBytes_GET_SIZE(v));
    }
    else if (PyLong_Check(v)) { /* also a member of an IntEnum, such as a signal */
        int overflow;
        long long number = PyLong_AsLongLongAndOverflow(v, &overflow);
        report_number(b, overflow ? (overflow < 0 ? INT64_MIN : INT64_MAX) : number);
    }
    else if (PyFloat_Check(v)) {
        double number = PyFloat_AS_DOUBLE(v);
        buf_byte(b, TAG_FLOAT);
        buf_bytes(b, &number, sizeof number);
    }
    else if ((PyTuple_CheckExact(v) || PyList_CheckExact(v)) && level < MOST_LEVELS)
        report_items(b, v, level);
    else {
        report_dict(b, 1);
        report_key(b, "type");
        report_text(b, Py_TYPE(v)->tp_name, strlen(Py_TYPE(v)->tp_name));
    }
}

/* Where in the program a lane is. */
static void
report_place(Buf *b, const Lane *lane)
{
    _PyInterpreterFrame *frame = lane->tstate ? compat_top_frame(lane->tstate) : NULL;
    PyCodeObject *code = frame ? compat_frame_code(frame) : NULL;
    int line = code ? PyCode_Addr2Line(code, compat_frame_lasti(frame)) : 0;
    report_key(b, "file");
    report_name(b, code ? code->co_filename : NULL);
    report_key(b, "line");
    report_number(b, line > 0 ? line : 0);
    report_key(b, "function");
    report_name(b, code ? code->co_qualname : NULL);
}

typedef struct {
    const Lane *lane;
    Gate *gate;
    PyObject *self, *const *args;
    Py_ssize_t nargs; /* without a keyword */
    PyObject *kwnames;
    const void *data;
    size_t length;
    bool is_open;
} InFlight;

static void
report_keywords(Buf *b, const InFlight *f)
{
    Py_ssize_t n = f->kwnames && f->args ? PyTuple_GET_SIZE(f->kwnames) : 0;
    report_dict(b, (uint64_t)n);
    for (Py_ssize_t i = 0; i < n; i++) {
        report_name(b, PyTuple_GET_ITEM(f->kwnames, i));
        report_argument(b, f->args[f->nargs + i], 0);
    }
}

static void
add(const InFlight *f)
{
    Buf *b = &calls;
    char name[160];
    Py_ssize_t shown = f->args == NULL ? 0 : f->nargs < MOST_SHOWN ? f->nargs : MOST_SHOWN;
    snprintf(name, sizeof name, "%s.%s", f->gate->module, f->gate->name);
    calls_count++;
    report_dict(b, 12);
    report_place(b, f->lane);
    report_key(b, "thread");
    report_number(b, f->lane->id);
    report_key(b, "name");
    report_text(b, f->lane->name ? f->lane->name : "", f->lane->name ? strlen(f->lane->name) : 0);
    report_key(b, "call");
    report_text(b, name, strlen(name));
    report_key(b, "open");
    buf_byte(b, f->is_open ? TAG_TRUE : TAG_FALSE);
    report_key(b, "fd");
    report_number(b, fd_of_call(f->self, f->args, shown));
    report_key(b, "args");
    report_list(b, (uint64_t)shown);
    for (Py_ssize_t i = 0; i < shown; i++)
        report_argument(b, f->args[i], 0);
    report_key(b, "keywords");
    report_keywords(b, f);
    report_key(b, "data");
    buf_byte(b, TAG_BYTES);
    buf_str(b, f->data ? f->data : "", f->length < MOST_DATA ? f->length : MOST_DATA);
    report_key(b, "data_length");
    report_number(b, (int64_t)f->length);
}

void
calls_of_others(void)
{
    for (int i = 0; i < lanes.made; i++) {
        const Lane *lane = lanes.at[i];
        const Crossing *c = lane && !lane->ended ? lane->within : NULL;
        if (c)
            add(&(InFlight){lane, c->gate, c->self, c->args, c->nargs, c->kwnames, c->leaving,
                            c->leaving ? c->leaving_length : 0, true});
    }
}

void
call_of_running(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    Py_buffer view = {0};
    bool leaves = (g->flags & GATE_DIGEST) && args && g->buffer < nargs && !PyUnicode_Check(args[g->buffer]) &&
                  PyObject_GetBuffer(args[g->buffer], &view, PyBUF_SIMPLE) == 0;
    PyErr_Clear();
    add(&(InFlight){lanes.running, g, self, args, nargs, kwnames, leaves ? view.buf : NULL,
                    leaves ? (size_t)view.len : 0, false});
    if (leaves)
        PyBuffer_Release(&view);
}

void
calls_report(Buf *b)
{
    report_list(b, calls_count);
    buf_bytes(b, calls.data, calls.used);
    free(calls.data);
    calls = (Buf){0};
}

/* ---- what is known of them ---- */

void
call_settle(int lane, bool is_done, const uint8_t *value, uint64_t n)
{
    if (!is_done)
        return;
    settled = grown(settled, (size_t)core.settled + 1, sizeof *settled);
    Settled *s = &settled[core.settled++];
    *s = (Settled){.lane = lane, .value = malloc(n + 1), .n = n};
    if (s->value)
        memcpy(s->value, value, n);
}

static Settled *
of_running(void)
{
    for (int i = 0; i < core.settled; i++)
        if (lanes.running && settled[i].lane == lanes.running->id)
            return &settled[i];
    return NULL;
}

bool
live_is_settled(void)
{
    return of_running() != NULL;
}

PyObject *
call_outcome(void)
{
    Settled *s = of_running();
    const uint8_t *p = s->value;
    TypeTable none = {0};
    PyObject *result = p ? value_decode(&p, s->value + s->n, &none, NULL, 0) : PyErr_NoMemory();
    free(s->value);
    *s = settled[--core.settled];
    return result;
}
