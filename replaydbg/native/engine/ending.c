/* How a process of the engine ends: the program's exit, a signal, and a diversion that cannot answer. */
#include "base/core.h"
#include "clock/clock.h"
#include "crossing/crossing.h"
#include "engine/inside.h"
#include "signals/signals.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Of a diversion, in place of an answer. */
_Noreturn static void
fail(const char *why)
{
    Buf b = engine_message();
    buf_bytes(&b, why, strlen(why));
    engine_send('X', &b);
    leave_process(0);
}

static void
end_with(const char *kind, int status)
{
    Buf b = engine_message();
    report_dict(&b, 9);
    report_key(&b, "kind");
    report_text(&b, kind, strlen(kind));
    report_key(&b, "own");
    report_number(&b, (int64_t)stepclock.last_own);
    report_key(&b, "status");
    report_number(&b, status);
    report_key(&b, "count");
    report_number(&b, (int64_t)stepclock.count);
    report_key(&b, "event");
    report_number(&b, (int64_t)core.crossings);
    report_key(&b, "unsure");
    report_number(&b, (int64_t)signals_unsure());
    report_key(&b, "unsure_place");
    signals_report_unsure(&b);
    engine_report_written(&b);
    engine_send('E', &b);
}

void
engine_exit(int status)
{
    if (engine.diverting)
        fail("it ended the process in which it was tried");
    end_with("exit", status);
}

void
engine_would_wait(const char *what)
{
    char text[200];
    snprintf(text, sizeof text, "it would wait for another thread: %s", what);
    fail(text);
}

void
engine_asks_outside(const char *what)
{
    char text[200];
    snprintf(text, sizeof text, "%s() asks for something outside the program, which is not available in the past",
             what);
    fail(text);
}

/* Objects that lay themselves out for a terminal see that there is none. */
static PyObject *
engine_outcome(Gate *gate)
{
    static const char *const asks_for_terminal[] = {"isatty", "FileIO.isatty", "FileIO._isatty_open_only"};
    for (size_t i = 0; i < sizeof asks_for_terminal / sizeof *asks_for_terminal; i++)
        if (strcmp(gate->name, asks_for_terminal[i]) == 0)
            Py_RETURN_FALSE;
    if (strcmp(gate->name, "get_terminal_size") == 0) {
        errno = ENOTTY;
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    if (strcmp(gate->name, "get_native_id") == 0) /* an import of `threading` asks for it */
        return PyLong_FromLong(syscall(SYS_gettid));
    PyErr_Format(PyExc_RuntimeError,
                 "%s.%s() asks for something outside the program, which is not available in the past", gate->module,
                 gate->name);
    return NULL;
}

/* C code has crashed, perhaps as it did when it was recorded, or has sent the signal to the process. */
void
engine_is_killed(int signum)
{
    char text[80];
    if (engine.diverting) {
        snprintf(text, sizeof text, "it crashed the process in which it was tried (signal %d)", signum);
        fail(text);
    }
    clocks_report();
    end_with("signal", signum);
    leave_process(128 + signum);
}

/* ---- crossings in a diversion ---- */

/* Whether a format has numbers alone: not the names of days and months, which depend on the language, nor the zone. */
static bool
is_numeric_format(PyObject *format)
{
    static const char numeric[] = "%CDFGHIMRSTUVWYdegjklmntuwy";
    const char *p = PyUnicode_Check(format) ? PyUnicode_AsUTF8(format) : NULL;
    PyErr_Clear();
    for (; p && *p; p++)
        if (*p == '%' && (*++p == 0 || strchr(numeric, *p) == NULL))
            return false;
    return p != NULL;
}

/* Whether the answer depends on the arguments alone: objects show dates that they have. */
static bool
is_computed(const Crossing *c)
{
    if (strcmp(c->gate->module, "time") != 0 || c->kwnames)
        return false;
    if (strcmp(c->gate->name, "strftime") == 0)
        return c->nargs == 2 && is_numeric_format(c->args[0]);
    bool is_one_of_these = strcmp(c->gate->name, "gmtime") == 0 || strcmp(c->gate->name, "asctime") == 0;
    return is_one_of_these && c->nargs == 1 && c->args[0] != Py_None;
}

PyObject *
engine_answer(Crossing *c)
{
    if (is_computed(c))
        return gate_call_original(c->gate, c->self, c->args, c->nargs, c->kwnames);
    return engine_outcome(c->gate);
}

PyObject *
engine_cross_end(Crossing *c, PyObject *result)
{
    return c->perform ? result : engine_answer(c);
}
