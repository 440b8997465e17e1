/* A value that is changed where a future begins: a statement, run in the program inside its first call. For the log that
 * is a callback of the program's, so a replay runs it at the same place. */
#include "base/core.h"
#include "future/future.h"
#include "future/inside.h"
#include "log/log.h"
#include <frameobject.h>

/* The innermost frame of the program: not one of the interpreter's own library. New reference; NULL: there is none. */
static PyFrameObject *
frame_here(void)
{
    PyFrameObject *frame = PyThreadState_GetFrame(core.tstate);
    while (frame) {
        char file[LONGEST_NAME];
        PyCodeObject *code = PyFrame_GetCode(frame);
        text_copy(file, sizeof file, code->co_filename);
        Py_DECREF(code);
        if (strncmp(file, "<frozen ", 8) != 0 && !strstr(file, "/lib/python3."))
            return frame;
        PyFrameObject *back = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = back;
    }
    return NULL;
}

static int
run_in(PyFrameObject *frame, const char *source)
{
    PyObject *globals = PyFrame_GetGlobals(frame), *locals = PyFrame_GetLocals(frame);
    PyObject *code = locals ? Py_CompileString(source, "<set>", Py_file_input) : NULL;
    PyObject *result = code ? PyEval_EvalCode(code, globals, locals) : NULL;
#if PY_VERSION_HEX < 0x030D0000
    if (result && locals != globals)
        PyFrame_LocalsToFast(frame, 0);
#endif
    int rc = result ? 0 : -1;
    Py_XDECREF(result);
    Py_XDECREF(code);
    Py_XDECREF(locals);
    Py_XDECREF(globals);
    return rc;
}

static int
run(const char *source)
{
    Upcall upcall = upcall_enter();
    PyFrameObject *frame = frame_here();
    int rc = frame ? run_in(frame, source) : -1;
    Py_XDECREF(frame);
    upcall_leave(upcall);
    return rc;
}

void
statement_runs(const char *source)
{
    char problem[300];
    Buf b = {0};
    buf_varint(&b, CONTROL_CALLBACK << 2 | 2u);
    buf_byte(&b, TAG_TUPLE);
    buf_varint(&b, 2);
    buf_byte(&b, TAG_SMALL_INT + CALLBACK_STATEMENT);
    buf_byte(&b, TAG_STR);
    buf_str(&b, source, strlen(source));
    log_append(&event_log, &b);
    if (run(source) == 0)
        return;
    PyObject *type = PyErr_Occurred();
    snprintf(problem, sizeof problem, "another statement in --set: it raised %s",
             type ? ((PyTypeObject *)type)->tp_name : "an exception");
    diverge("outside", NULL, NULL, problem);
}

void
statement_again(int kind, Crossing *c, PyObject *recorded)
{
    PyObject *source = PyTuple_GET_SIZE(recorded) == 2 ? PyTuple_GET_ITEM(recorded, 1) : NULL;
    const char *text = source && PyUnicode_Check(source) ? PyUnicode_AsUTF8(source) : NULL;
    if (text == NULL)
        diverge("corrupt", c ? c->gate : NULL, c, "a statement cannot be read");
    if (run(text) < 0)
        PyErr_Clear();
}
