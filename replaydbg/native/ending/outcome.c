/* How the program ended: the exception that nobody caught, and what an expression is worth then. Told to the launcher,
 * in any replay that asks for it. Reporting an exception runs none of the program's code, except in a lenient
 * replay. */
#include "base/core.h"
#include "clock/clock.h"
#include "code/code.h"
#include "collector/collector.h"
#include "crossing/crossing.h"
#include "ending/ending.h"
#include "lenient/lenient.h"
#include "world/world.h"
#include <stdlib.h>
#include <unistd.h>

static int ending_fd = -1;
static char *check; /* the expression, or NULL */
static Buf uncaught, checked, said;
static PyObject *reported; /* only compared: a script's comes twice */

/* ---- the exception ---- */

static bool
is_plain(PyObject *o)
{
    return o == Py_None || PyUnicode_CheckExact(o) || PyBytes_CheckExact(o) || PyLong_CheckExact(o) ||
           PyFloat_CheckExact(o) || PyBool_Check(o);
}

/* Whether str() of it runs C code alone. */
static bool
is_harmless(PyObject *value)
{
    PyTypeObject *base = Py_TYPE(value);
    while (base && (base->tp_flags & Py_TPFLAGS_HEAPTYPE))
        base = base->tp_base;
    PyObject *args = ((PyBaseExceptionObject *)value)->args;
    if (base == NULL || base->tp_str != Py_TYPE(value)->tp_str || args == NULL || !PyTuple_CheckExact(args))
        return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); i++)
        if (!is_plain(PyTuple_GET_ITEM(args, i)))
            return false;
    return true;
}

static void
put_text(Buf *b, PyObject *value, Py_ssize_t most)
{
    PyObject *text = NULL;
    if (value && PyExceptionInstance_Check(value) && (core.lenient || is_harmless(value)))
        text = PyObject_Str(value);
    PyErr_Clear();
    if (text && PyUnicode_GET_LENGTH(text) > most)
        Py_CLEAR(text);
    if (text && PyUnicode_GET_LENGTH(text) == 0)
        report_text(b, "", 0);
    else if (text)
        report_name(b, text);
    else
        buf_byte(b, TAG_NONE);
    Py_XDECREF(text);
}

/* What is compared is told as a whole or not at all: a part of a secret has no pseudonym. */
void
report_exception(Buf *b, PyObject *type, PyObject *value)
{
    enum { MOST = 1000 };
    if (type == NULL || !PyType_Check(type)) {
        buf_byte(b, TAG_NONE);
        return;
    }
    own_work_begin();
    PyTypeObject *t = (PyTypeObject *)type;
    PyObject *module = t->tp_flags & Py_TPFLAGS_HEAPTYPE ? PyDict_GetItemString(t->tp_dict, "__module__") : NULL;
    PyObject *name = PyType_GetQualName(t);
    buf_byte(b, TAG_TUPLE);
    buf_varint(b, 3);
    report_name(b, module);
    report_name(b, name);
    Py_XDECREF(name);
    put_text(b, value, MOST);
    PyErr_Clear();
    own_work_end();
}

static uint64_t
length_of(PyObject *traceback)
{
    uint64_t n = 0;
    for (PyObject *t = traceback; t && PyTraceBack_Check(t); t = (PyObject *)((PyTracebackObject *)t)->tb_next)
        n++;
    return n;
}

/* The innermost frames, innermost last. */
void
report_frames(Buf *b, PyObject *traceback)
{
    enum { MOST = 60 };
    uint64_t n = length_of(traceback), left_out = n > MOST ? n - MOST : 0;
    report_list(b, n - left_out);
    for (PyTracebackObject *t = (PyTracebackObject *)traceback; n > 0; t = t->tb_next, n--) {
        if (left_out) {
            left_out--;
            continue;
        }
        PyCodeObject *code = PyFrame_GetCode(t->tb_frame);
        int line = PyCode_Addr2Line(code, t->tb_lasti);
        buf_byte(b, TAG_TUPLE);
        buf_varint(b, 4);
        report_name(b, code->co_filename);
        report_number(b, line > 0 ? line : 0);
        report_name(b, code->co_qualname);
        buf_byte(b, code_is_library(code) ? TAG_TRUE : TAG_FALSE);
        Py_DECREF(code);
    }
}

/* Its name alone: the text may be long, and is in the output. */
static void
note_exception(PyObject *type)
{
    own_work_begin();
    PyObject *name = PyType_Check(type) ? PyType_GetQualName((PyTypeObject *)type) : NULL;
    const char *text = name ? PyUnicode_AsUTF8(name) : NULL;
    if (text)
        note_in_file("exception", text);
    Py_XDECREF(name);
    PyErr_Clear();
    own_work_end();
}

void
outcome_uncaught(PyObject *type, PyObject *value, PyObject *traceback)
{
    core.outcome_is_known = true;
    if (core.mode == RECORD)
        note_exception(type);
    told_raised(type, value, traceback);
    if (ending_fd < 0 || value == reported)
        return;
    reported = value;
    own_work_begin();
    uncaught.used = 0;
    PyObject *name = PyType_Check(type) ? PyType_GetQualName((PyTypeObject *)type) : NULL;
    report_name(&uncaught, name);
    Py_XDECREF(name);
    PyErr_Clear();
    put_text(&uncaught, value, PY_SSIZE_T_MAX);
    report_frames(&uncaught, traceback);
    own_work_end();
}

/* ---- the expression ---- */

static void
put_check(const char *verdict, PyObject *error)
{
    checked.used = 0;
    report_text(&checked, verdict, strlen(verdict));
    if (error) {
        PyObject *name = PyType_GetQualName(Py_TYPE(error));
        report_name(&checked, name);
        put_text(&checked, error, PY_SSIZE_T_MAX);
        Py_XDECREF(name);
        return;
    }
    report_text(&checked, "", 0);
    report_text(&checked, "", 0);
}

/* In the program's own process, among what `__main__` has; what it asks the outside is refused. */
static void
evaluate(void)
{
    PyObject *type, *value, *traceback;
    if (check == NULL || checked.used)
        return;
    PyErr_Fetch(&type, &value, &traceback);
    core.outcome_is_known = true;
    PyObject *dict = PyModule_GetDict(PyImport_AddModule("__main__"));
    PyObject *result = PyRun_String(check, Py_eval_input, dict, dict);
    int holds = result ? PyObject_IsTrue(result) : -1;
    Py_XDECREF(result);
    PyObject *error_type = NULL, *error = NULL, *error_traceback = NULL;
    PyErr_Fetch(&error_type, &error, &error_traceback);
    PyErr_NormalizeException(&error_type, &error, &error_traceback);
    put_check(holds < 0 ? "raised" : holds ? "holds" : "fails", error);
    Py_XDECREF(error_type);
    Py_XDECREF(error);
    Py_XDECREF(error_traceback);
    PyErr_Restore(type, value, traceback);
}

void
outcome_script_ends(void)
{
    PyObject *type, *value, *traceback;
    if (ending_fd < 0 && !core.tells)
        return;
    PyErr_Fetch(&type, &value, &traceback);
    told_raised(type, value, traceback);
    if (type && !PyErr_GivenExceptionMatches(type, PyExc_SystemExit)) {
        own_work_begin();
        PyErr_NormalizeException(&type, &value, &traceback);
        own_work_end();
        outcome_uncaught(type, value, traceback);
    }
    evaluate();
    PyErr_Restore(type, value, traceback);
}

/* A module or a command is run by the interpreter itself: its last act before it takes the program apart is to call
 * what wants to be called at the end, and this was the first to ask. */
static PyObject *
at_exit(PyObject *self, PyObject *unused)
{
    evaluate();
    Py_RETURN_NONE;
}

static PyMethodDef at_exit_def = {"check", at_exit, METH_NOARGS, NULL};

static int
ask_at_exit(void)
{
    PyObject *modules = PyImport_GetModuleDict(), *had = PyDict_GetItemString(modules, "atexit");
    PyObject *atexit = PyImport_ImportModule("atexit"), *function = PyCFunction_NewEx(&at_exit_def, NULL, NULL);
    PyObject *done = atexit && function ? PyObject_CallMethod(atexit, "register", "O", function) : NULL;
    int rc = done ? 0 : -1;
    if (rc == 0 && had == NULL)
        rc = PyDict_DelItemString(modules, "atexit");
    Py_XDECREF(done);
    Py_XDECREF(function);
    Py_XDECREF(atexit);
    return rc;
}

int
outcome_prepare(PyObject *boot)
{
    PyObject *fd = PyDict_GetItemString(boot, "ending_fd"), *text = PyDict_GetItemString(boot, "check");
    PyObject *kind = PyDict_GetItemString(boot, "kind");
    if (fd && PyLong_Check(fd))
        ending_fd = fd_keep((int)PyLong_AsLong(fd));
    PyObject *other = PyDict_GetItemString(boot, "reseed");
    draws_prepare(ending_fd >= 0, other && PyLong_Check(other) ? PyLong_AsUnsignedLongLongMask(other) : 0);
    if (text == NULL || !PyUnicode_Check(text))
        return 0;
    check = strdup(PyUnicode_AsUTF8(text));
    return kind && PyUnicode_CompareWithASCIIString(kind, "script") == 0 ? 0 : ask_at_exit();
}

/* ---- the report ---- */

void
ending_goes_to(int fd)
{
    ending_fd = fd;
}

/* The program says itself what came of what it was run for, which is less than all that it does: a test, of a session
 * of tests. In a lenient replay nothing more is asked then. */
void
outcome_told(PyObject *text)
{
    if (!core.lenient || engine.is_on || text == NULL || !PyUnicode_CheckExact(text))
        return;
    own_work_begin();
    report_name(&said, text);
    own_work_end();
    clocks_report();
    ending_report();
    leave_process(0);
}

void
ending_report(void)
{
    Buf b = {0};
    told_end("call", 0);
    if (ending_fd < 0 || engine.is_on)
        return;
    report_dict(&b, 9);
    liberties_report(&b);
    draws_report(&b);
    looked_report(&b);
    report_key(&b, "said");
    report_list(&b, said.used ? 1 : 0);
    if (said.used)
        buf_bytes(&b, said.data, said.used);
    report_key(&b, "uncaught");
    report_list(&b, uncaught.used ? 3 : 0);
    if (uncaught.used)
        buf_bytes(&b, uncaught.data, uncaught.used);
    report_key(&b, "check");
    report_list(&b, checked.used ? 3 : 0);
    if (checked.used)
        buf_bytes(&b, checked.data, checked.used);
    report_send(ending_fd, &b);
    ending_fd = -1;
}
