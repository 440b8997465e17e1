/* Expressions of the user's that are evaluated where breakpoints are met: conditions, and values that are logged. Python
 * is run for them in the program's own process, so it must not change what it looks at: code of the program is refused
 * meanwhile, and C code that changes something is by the probe (replaydbg/engine/probe/passages.py). Where something is
 * refused the process stands, and the debugger asks a copy, which takes a thousand times as long. */
#include "base/core.h"
#include "code/code.h"
#include "engine/inside.h"
#include "memory/memory.h"

/* Bytes after which a run stops; a message has room for 64 MB, and one answer is shorter than that. */
#define MOST_FOUND (4u << 20)

static PyObject *asked; /* by number of the breakpoint, from 1: None, or an answer as bytes */
static PyObject *skips; /* by number of the breakpoint, from 0: see skip_passages() */
static struct {
    Buf buf; /* what was found: apart, since the program's own memory is to stay as it is */
    uint64_t used, most;
    bool is_refused; /* the last one: a copy is to be asked */
} found;

void
passages_prepare(void)
{
    found.buf = (Buf){.data = memory_apart(2 * MOST_FOUND), .size = 2 * MOST_FOUND, .is_fixed = true};
}

/* answer_passages_by(function): what the probe answers by. */
PyObject *
passages_answer_by(PyObject *self, PyObject *function)
{
    Py_XSETREF(asked, Py_NewRef(function));
    Py_RETURN_NONE;
}

/* answering_passages(): that function; None: there is none. */
PyObject *
passages_answering(PyObject *self, PyObject *none)
{
    return Py_NewRef(asked ? asked : Py_None);
}

bool
passages_begin(const uint8_t *p, const uint8_t *end, uint64_t most)
{
    found.used = 0;
    found.buf.used = 0;
    found.most = most;
    asking_forget(&skips);
    if (p == end) {
        asking_forget(&asked);
        return true;
    }
    return asking_prepare(&asked, p, end);
}

bool
passages_are_asked(void)
{
    return asked != NULL;
}

/* No bytes: it was refused. */
static void
keep(int number, PyObject *answer)
{
    size_t size = (size_t)PyBytes_GET_SIZE(answer);
    found.is_refused |= size == 0 || size >= MOST_FOUND;
    report_list(&found.buf, 4);
    report_number(&found.buf, number);
    report_number(&found.buf, (int64_t)stepclock.count);
    report_number(&found.buf, core.lane);
    buf_byte(&found.buf, TAG_BYTES);
    buf_str(&found.buf, found.is_refused ? "" : PyBytes_AS_STRING(answer), found.is_refused ? 0 : size);
    found.used++;
}

static bool
is_named(PyCodeObject *code, const char *file)
{
    return text_is(code->co_filename, file);
}

/* In place of the interpreter's function that runs a frame. An exception before the first instruction ends the frame as
 * one of its own would. A generator that waits would be given it where it waits, and handle it: the guards let none be
 * resumed. */
static PyObject *
refuse_program(PyThreadState *ts, _PyInterpreterFrame *frame, int throwflag)
{
    PyCodeObject *code = compat_frame_code(frame);
    if (!is_named(code, "<probe>") && !is_named(code, "<expression>")) {
        found.is_refused = true;
        if (frame->owner == FRAME_OWNED_BY_GENERATOR)
            leave_process(0);
        if (!throwflag)
            PyErr_SetNone(PyExc_KeyboardInterrupt);
        throwflag = 1;
    }
    return _PyEval_EvalFrameDefault(ts, frame, throwflag);
}

/* A borrowed reference; NULL: the frame has no such variable, or the variable has no value. */
static PyObject *
local_named(_PyInterpreterFrame *frame, PyObject *name)
{
    PyCodeObject *code = compat_frame_code(frame);
    for (int i = 0; i < code->co_nlocalsplus; i++) {
        int kind = _PyLocals_GetKind(code->co_localspluskinds, i);
        PyObject *value = compat_frame_value(frame, i);
        if (compat_is_hidden(kind) || PyUnicode_Compare(PyTuple_GET_ITEM(code->co_localsplusnames, i), name) != 0)
            continue;
        return value && (kind & (CO_FAST_CELL | CO_FAST_FREE)) && PyCell_Check(value) ? PyCell_GET(value) : value;
    }
    return frame->f_locals && frame->f_locals != frame->f_globals ? PyDict_GetItemWithError(frame->f_locals, name)
                                                                  : NULL;
}

/* skip_passages(rules): for each breakpoint None, or names and addresses of objects. If all names have values, and none
 * of these is at one of the addresses, the answer is None. Finding this in Python would take thirty times as long. */
PyObject *
passages_skip(PyObject *self, PyObject *rules)
{
    if (PyList_CheckExact(rules))
        Py_XSETREF(skips, Py_NewRef(rules));
    Py_RETURN_NONE;
}

static bool
is_one_of(PyObject *value, PyObject *addresses)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(addresses); i++)
        if (PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(addresses, i)) == (uintptr_t)value)
            return true;
    return false;
}

static bool
is_skipped(int number)
{
    PyObject *rule = skips && number <= PyList_GET_SIZE(skips) ? PyList_GET_ITEM(skips, number - 1) : NULL;
    _PyInterpreterFrame *frame = rule && PyTuple_CheckExact(rule) ? compat_top_frame(core.tstate) : NULL;
    if (frame == NULL || (frame->f_locals && frame->f_locals != frame->f_globals))
        return false;
    PyObject *names = PyTuple_GET_ITEM(rule, 0);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++) {
        PyObject *name = PyTuple_GET_ITEM(names, i), *value = local_named(frame, name);
        value = value ? value : read_key(frame->f_globals, name);
        if (value == NULL || is_one_of(value, PyTuple_GET_ITEM(rule, 1)))
            return false;
    }
    return true;
}

static bool
is_enough(void)
{
    return found.used >= found.most || found.buf.used > MOST_FOUND;
}

/* Returns whether the run is to stop here: a copy is to be asked, or as much was found as was wanted. */
bool
passages_met(int number)
{
    PyObject *type, *value, *traceback;
    if (asked == NULL || is_skipped(number))
        return false;
    PyErr_Fetch(&type, &value, &traceback);
    Asking asking = asking_begin();
    _PyFrameEvalFunction runs = core.tstate->interp->eval_frame;
    core.tstate->interp->eval_frame = refuse_program;
    found.is_refused = false;
    PyObject *at = PyLong_FromLong(number), *answer = at ? PyObject_CallOneArg(asked, at) : NULL;
    if (answer == NULL || found.is_refused) /* who was refused may have been caught */
        Py_XSETREF(answer, PyBytes_FromStringAndSize("", 0));
    if (answer && PyBytes_Check(answer))
        keep(number, answer);
    Py_XDECREF(answer);
    Py_XDECREF(at);
    PyErr_Clear();
    core.tstate->interp->eval_frame = runs;
    asking_end(asking);
    PyErr_Restore(type, value, traceback);
    return found.is_refused || is_enough();
}

/* ---- at counts of lines, instead of where breakpoints are met ---- */

/* They stay in the order that came last. Where something is refused the run goes on: these are asked of copies later. */
static struct {
    const uint8_t *p, *end;
    uint64_t next;
} wanted = {.next = UINT64_MAX};

/* Returns false if it cannot be read, or does not ascend. */
static bool
next_wanted(uint64_t before)
{
    bool ok = true;
    uint64_t more = wanted.p < wanted.end ? read_varint(&wanted.p, wanted.end, &ok) : 0;
    wanted.next = more ? before + more : UINT64_MAX;
    return ok && (more || wanted.p == wanted.end);
}

bool
passages_begin_lines(const uint8_t *p, const uint8_t *end)
{
    wanted.p = p;
    wanted.end = end;
    return next_wanted(0);
}

uint64_t
passages_next_line(void)
{
    return wanted.next;
}

bool
passages_met_line(void)
{
    if (stepclock.count < wanted.next)
        return false;
    bool is_here = stepclock.count == wanted.next;
    if (!next_wanted(wanted.next))
        leave_process(0);
    if (is_here)
        passages_met(1);
    return is_here && is_enough();
}

void
passages_report(Buf *b)
{
    report_key(b, "evaluated");
    report_list(b, found.used);
    buf_bytes(b, found.buf.data, found.buf.used);
}

/* ---- the names that code sees ---- */

/* names_here(names): a dictionary of those of them that the code which is about to run sees, and of its builtins; None:
 * that is not known without a frame object, which the program might find. */
PyObject *
passages_names(PyObject *self, PyObject *names)
{
    _PyInterpreterFrame *frame = programs_frame(PyThreadState_Get());
    if (frame == NULL || (frame->f_locals && !PyDict_CheckExact(frame->f_locals)) || !PyTuple_CheckExact(names))
        Py_RETURN_NONE;
    PyObject *seen = PyDict_New();
    if (seen == NULL || PyDict_SetItemString(seen, "__builtins__", frame->f_builtins) < 0)
        goto failed;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++) {
        PyObject *name = PyTuple_GET_ITEM(names, i), *value = local_named(frame, name);
        if (value == NULL)
            value = PyDict_GetItemWithError(frame->f_globals, name);
        if (value ? PyDict_SetItem(seen, name, value) < 0 : PyErr_Occurred() != NULL)
            goto failed;
    }
    return seen;
failed:
    Py_XDECREF(seen);
    return NULL;
}
