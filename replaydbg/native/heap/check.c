/* Invariants at a snapshot while a program is recorded: those that it gave to replaydbg.check(), and those of the
 * command line.
 *
 * They run in the copy of the process that has just written the snapshot, as an evaluation of the debugger's would:
 * what asks for something outside raises, and what would wait for another thread ends the copy. What they say lies
 * beside the snapshot. */
#include "base/core.h"
#include "clock/clock.h"
#include "collector/collector.h"
#include "heap/inside.h"
#include <fcntl.h>
#include <stdio.h>
#include <sys/time.h>
#include <unistd.h>

#define LONGEST 10 /* seconds */

static PyObject *given; /* a list of expressions, or NULL */

static const char source[] =
    "def said(what, space):\n"
    "    try:\n"
    "        value = eval(what, space) if type(what) is str else what()\n"
    "        return (bool(value) if type(what) is str else value is not False), ''\n"
    "    except BaseException as error:\n"
    "        text = f'{type(error).__name__}: {error}'.removesuffix(': ')[:500]\n"
    "        return (False if isinstance(error, AssertionError) else None), text\n"
    "main = modules['__main__'].__dict__\n"
    "asked = getattr(modules.get('replaydbg'), 'invariants', [])\n"
    "results = [(name, *said(what, main)) for name, what in [*asked, *((each, each) for each in given or ())]]\n"
    "answer = repr(results).encode('utf-8', 'backslashreplace')\n";

static bool
is_anything_asked(void)
{
    PyObject *module = PyDict_GetItemString(PyImport_GetModuleDict(), "replaydbg");
    PyObject *list =
        module && PyModule_Check(module) ? PyDict_GetItemString(PyModule_GetDict(module), "invariants") : NULL;
    return (list && PyList_Check(list) && PyList_GET_SIZE(list)) || given;
}

/* What cannot be written whole is cut, and then said to be unreadable by whoever reads it. */
static void
write_answer(const char *path, const char *answer, size_t n)
{
    char name[4300];
    snprintf(name, sizeof name, "%s.checks", path);
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    while (fd >= 0 && n > 0) {
        ssize_t written = write(fd, answer, n);
        if (written <= 0)
            break;
        answer += written;
        n -= (size_t)written;
    }
    if (fd >= 0)
        close(fd);
}

/* In the copy, which ends after it. */
void
heap_check(const char *path)
{
    if (!is_anything_asked())
        return;
    static const char unknown[] = "[('the invariants', None, 'they ended the copy of the program in which they ran')]";
    write_answer(path, unknown, sizeof unknown - 1); /* stands if it does */
    setitimer(ITIMER_REAL, &(struct itimerval){.it_value.tv_sec = LONGEST}, NULL);
    set_mode(REPLAY);
    set_diverting(true);
    /* or it would take what they ask the outside for a part of the crossing at which this copy was made */
    core.depth = 0;
    collector_join(&core.tstate->interp->gc); /* so that gc.get_objects() finds what the crossing has made */
    ticks_slice(UINT64_MAX);
    PyErr_Clear();
    compat_room_make(core.tstate);
    PyObject *code = Py_CompileString(source, "<invariants>", Py_file_input), *space = PyDict_New();
    if (code && space && PyDict_SetItemString(space, "__builtins__", core.tstate->interp->builtins) == 0 &&
        PyDict_SetItemString(space, "modules", PyImport_GetModuleDict()) == 0 &&
        PyDict_SetItemString(space, "given", given ? given : Py_None) == 0 && PyEval_EvalCode(code, space, space)) {
        PyObject *answer = PyDict_GetItemString(space, "answer");
        if (answer && PyBytes_Check(answer))
            write_answer(path, PyBytes_AS_STRING(answer), (size_t)PyBytes_GET_SIZE(answer));
    }
}

void
heap_check_prepare(PyObject *asked)
{
    PyObject *list = PyDict_GetItemString(asked, "checks");
    if (list == NULL || !PyList_CheckExact(list))
        return;
    given = Py_NewRef(list);
    PyObject_GC_UnTrack(given); /* a replay has none */
}
