/* The readline module. At a terminal input() reads a line by it, in one crossing. In a replay GNU readline is not
 * started: it would set the terminal, and read terminfo and its own settings. What of it computes (history, bindings,
 * delimiters) runs in both modes.
 *
 * The program's functions that it calls while a line is typed (completers, hooks) run where the log says, as callbacks.
 */
#include "base/core.h"
#include "collector/collector.h"
#include "crossing/crossing.h"
#include "gates/inside.h"
#include "log/log.h"
#include "values/values.h"
#include <dlfcn.h>
#include <stdlib.h>

/* Numbers of the CALLBACK record, behind that of a warning. */
enum { COMPLETER, STARTUP_HOOK, PRE_INPUT_HOOK, DISPLAY_HOOK, HOOKS };
static const char *const setters[HOOKS] = {"set_completer", "set_startup_hook", "set_pre_input_hook",
                                           "set_completion_display_matches_hook"};
static PyObject *hooks[HOOKS]; /* the program's own */
static bool adds_by_itself = true;

/* ---- it is not started in a replay ---- */

static int
not_started(void)
{
    return 0;
}

static void *
our_dlopen(const char *path, int flags)
{
    static const Relink functions[] = {{"rl_initialize", (void *)not_started}, {NULL, NULL}};
    static Relinking module = {.functions = functions, .only_named = "readline."};
    void *library = dlopen(path, flags);
    if (library && path && strstr(path, "/readline."))
        relink(&module); /* before the interpreter runs what begins in it */
    return library;
}

int
readline_prepare(void)
{
    static const Relink functions[] = {{"dlopen", (void *)our_dlopen}, {NULL, NULL}};
    static Relinking interpreter = {.functions = functions, .only_interpreter = true};
    if (core.mode == REPLAY)
        relink(&interpreter);
    return 0;
}

/* ---- functions of the program's ---- */

static void
record_call(int hook, PyObject *args)
{
    Buf b = {0};
    Py_ssize_t n = PyTuple_GET_SIZE(args);
    buf_varint(&b, CONTROL_CALLBACK << 2 | 2u);
    buf_byte(&b, TAG_TUPLE);
    buf_varint(&b, (uint64_t)n + 1);
    buf_byte(&b, (uint8_t)(TAG_SMALL_INT + CALLBACK_READLINE + hook));
    for (Py_ssize_t i = 0; i < n; i++)
        if (value_encode(&b, PyTuple_GET_ITEM(args, i), ENCODE_RESULT, &event_types, NULL, 0) < 0)
            buf_byte(&b, TAG_NONE);
    log_append(&event_log, &b);
}

static PyObject *
called(int hook, PyObject *function, PyObject *args)
{
    if (core.mode != RECORD || core.depth == 0)
        return PyObject_Call(function, args, NULL);
    shared_crossing(false, GATE_HEARS);
    record_call(hook, args);
    Upcall upcall = upcall_enter();
    PyObject *result = PyObject_Call(function, args, NULL);
    upcall_leave(upcall);
    return result;
}

static PyObject *
called_completer(PyObject *f, PyObject *args)
{
    return called(COMPLETER, f, args);
}
static PyObject *
called_startup(PyObject *f, PyObject *args)
{
    return called(STARTUP_HOOK, f, args);
}
static PyObject *
called_pre_input(PyObject *f, PyObject *args)
{
    return called(PRE_INPUT_HOOK, f, args);
}
static PyObject *
called_display(PyObject *f, PyObject *args)
{
    return called(DISPLAY_HOOK, f, args);
}

static PyMethodDef wrappers[HOOKS] = {{"hook", called_completer, METH_VARARGS, NULL},
                                      {"hook", called_startup, METH_VARARGS, NULL},
                                      {"hook", called_pre_input, METH_VARARGS, NULL},
                                      {"hook", called_display, METH_VARARGS, NULL}};

static int
hook_of(const Gate *g)
{
    int hook = 0;
    while (hook < HOOKS - 1 && strcmp(setters[hook], g->name) != 0)
        hook++;
    return hook;
}

static PyObject *
set_hook(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    if (nargs != 1 || kwnames || !PyCallable_Check(args[0])) {
        PyObject *done = gate_call_original(g, self, args, nargs, kwnames);
        if (done)
            Py_CLEAR(hooks[hook_of(g)]);
        return done;
    }
    int hook = hook_of(g);
    own_work_begin();
    PyObject *wrapped = PyCFunction_NewEx(&wrappers[hook], args[0], NULL);
    if (wrapped)
        PyObject_GC_UnTrack(wrapped);
    own_work_end();
    PyObject *done = wrapped ? gate_call_original(g, self, &wrapped, 1, NULL) : NULL;
    Py_XDECREF(wrapped);
    if (done)
        Py_XSETREF(hooks[hook], Py_NewRef(args[0]));
    return done;
}

static PyObject *
get_completer(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    PyObject *completer = gate_call_original(g, self, args, nargs, kwnames);
    if (completer && PyCFunction_CheckExact(completer) &&
        ((PyCFunctionObject *)completer)->m_ml == &wrappers[COMPLETER])
        Py_SETREF(completer, Py_NewRef(PyCFunction_GET_SELF(completer)));
    return completer;
}

void
readline_called_back(int kind, Crossing *c, PyObject *recorded)
{
    int hook = kind - CALLBACK_READLINE;
    if (hook < 0 || hook >= HOOKS || hooks[hook] == NULL)
        diverge("call", NULL, NULL, "the recorded call of a readline hook has no hook to call");
    PyObject *args = PyTuple_GetSlice(recorded, 1, PyTuple_GET_SIZE(recorded));
    PyObject *function = Py_NewRef(hooks[hook]);
    Upcall upcall = upcall_enter();
    PyObject *result = args ? PyObject_Call(function, args, NULL) : NULL;
    upcall_leave(upcall);
    PyErr_Clear(); /* readline shows none, and goes on */
    Py_XDECREF(result);
    Py_XDECREF(args);
    Py_DECREF(function);
}

/* ---- history ---- */

static PyObject *
call_readline(const char *name, const char *format, ...)
{
    PyObject *module = PyDict_GetItemString(PyImport_GetModuleDict(), "readline"), *result = NULL;
    PyObject *function = module ? PyObject_GetAttrString(module, name) : NULL;
    va_list values;
    va_start(values, format);
    PyObject *args = function ? Py_VaBuildValue(format, values) : NULL;
    va_end(values);
    if (args)
        result = PyObject_Call(function, args, NULL);
    Py_XDECREF(args);
    Py_XDECREF(function);
    return result;
}

static long
history_length(void)
{
    PyObject *length = call_readline("get_current_history_length", "()");
    long n = length ? PyLong_AsLong(length) : 0;
    Py_XDECREF(length);
    return n;
}

static PyObject *
history(void)
{
    PyObject *lines = PyList_New(0);
    for (long i = 1, n = history_length(); lines && i <= n; i++) {
        PyObject *line = call_readline("get_history_item", "(l)", i);
        if (line == NULL || PyList_Append(lines, line) < 0)
            Py_CLEAR(lines);
        Py_XDECREF(line);
    }
    return lines;
}

/* The outcome in the log is the history as it was then. */
static PyObject *
read_history(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    Crossing c;
    cross_begin(&c, g, self, args, nargs, kwnames);
    PyObject *lines = NULL, *done = c.perform ? gate_call_original(g, self, args, nargs, kwnames) : NULL;
    if (done)
        lines = history();
    Py_XDECREF(done);
    bool replayed = !c.perform;
    lines = cross_end(&c, lines);
    if (lines == NULL)
        return NULL;
    own_work_begin();
    if (replayed && PyList_Check(lines)) {
        Py_XDECREF(call_readline("clear_history", "()"));
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(lines); i++)
            Py_XDECREF(call_readline("add_history", "(O)", PyList_GET_ITEM(lines, i)));
        PyErr_Clear();
    }
    own_work_end();
    Py_DECREF(lines);
    Py_RETURN_NONE;
}

static PyObject *
set_auto_history(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    PyObject *done = gate_call_original(g, self, args, nargs, kwnames);
    if (done && nargs == 1)
        adds_by_itself = PyObject_IsTrue(args[0]) > 0;
    return done;
}

/* As readline does it with each line that is typed. */
void
readline_typed(PyObject *line)
{
    if (!adds_by_itself || !PyUnicode_Check(line) || PyUnicode_GET_LENGTH(line) == 0)
        return;
    own_work_begin();
    PyObject *last = call_readline("get_history_item", "(l)", history_length());
    if (PyDict_GetItemString(PyImport_GetModuleDict(), "readline") &&
        (last == NULL || last == Py_None || PyUnicode_Compare(last, line) != 0))
        Py_XDECREF(call_readline("add_history", "(O)", line));
    Py_XDECREF(last);
    PyErr_Clear();
    own_work_end();
}

const HandlerEntry readline_handlers[] = {{"readline_hook", set_hook},
                                          {"readline_completer", get_completer},
                                          {"readline_read_history", read_history},
                                          {"readline_auto_history", set_auto_history},
                                          {NULL, NULL}};
