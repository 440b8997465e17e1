/* The net inside the interpreter: a hook for CPython's audit events, in both modes; in a replay the kernel's net is
 * there too (fence.c).
 *
 * Gates stand around the C functions that raise audit events. In a replay a gated function does not run and raises
 * none; while recording it runs inside its crossing. So an event that arrives outside every crossing, and is not the
 * importer's, comes from code that no gate covers. Recording notes it, once for each kind; a replay ends there if it
 * changes something outside.
 *
 * The table names events of C functions alone. Those that Python modules raise (tempfile.*, shutil.*, subprocess.Popen,
 * pdb.Pdb ...) come before a crossing, or mean nothing.
 *
 * The hook sees every id() and every sys._getframe(), so it looks at two characters before it does anything else, and
 * makes no object. / */
#include "base/core.h"
#include "crossing/crossing.h"
#include "ending/ending.h"
#include "future/future.h"
#include "engine/engine.h"
#include "guard/asked.h"
#include "guard/guard.h"
#include "heap/heap.h"
#include "identity/identity.h"
#include "lanes/lanes.h"
#include "log/log.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#if PY_VERSION_HEX >= 0x030D0000
#define THREAD_STATE_OR_NULL PyThreadState_GetUnchecked
#else
#define THREAD_STATE_OR_NULL _PyThreadState_UncheckedGet
#endif

typedef enum {
    ONLY_NOTED,   /* something comes in, or stays in the process */
    REFUSED,      /* changes something outside */
    IF_IT_WRITES, /* as its arguments say */
} Severity;

typedef struct {
    const char *event;
    Severity severity;
    bool noted;
} Row;

static Row table[] = {
    {"open", IF_IT_WRITES},
    {"os.chflags", REFUSED},
    {"os.chmod", REFUSED},
    {"os.chown", REFUSED},
    {"os.exec", REFUSED},
    {"os.fork", REFUSED},
    {"os.forkpty", REFUSED},
    {"os.getxattr", ONLY_NOTED},
    {"os.kill", REFUSED},
    {"os.killpg", REFUSED},
    {"os.link", REFUSED},
    {"os.listdir", ONLY_NOTED},
    {"os.listxattr", ONLY_NOTED},
    {"os.lockf", REFUSED},
    {"os.mkdir", REFUSED},
    {"os.posix_spawn", REFUSED},
    {"os.remove", REFUSED},
    {"os.removexattr", REFUSED},
    {"os.rename", REFUSED},
    {"os.rmdir", REFUSED},
    {"os.scandir", ONLY_NOTED},
    {"os.setns", REFUSED},
    {"os.setxattr", REFUSED},
    {"os.symlink", REFUSED},
    {"os.system", REFUSED},
    {"os.truncate", REFUSED},
    {"os.unshare", REFUSED},
    {"os.utime", REFUSED},
    {"socket.__new__", REFUSED},
    {"socket.bind", REFUSED},
    {"socket.connect", REFUSED},
    {"socket.getaddrinfo", REFUSED},
    {"socket.gethostbyaddr", REFUSED},
    {"socket.gethostbyname", REFUSED},
    {"socket.gethostname", ONLY_NOTED},
    {"socket.getnameinfo", REFUSED},
    {"socket.getservbyname", ONLY_NOTED},
    {"socket.getservbyport", ONLY_NOTED},
    {"socket.sendmsg", REFUSED},
    {"socket.sendto", REFUSED},
    {"socket.sethostname", REFUSED},
    {"syslog.openlog", REFUSED},
    {"syslog.syslog", REFUSED},
    {"fcntl.flock", REFUSED},
    {"fcntl.ioctl", ONLY_NOTED},
    {"fcntl.lockf", REFUSED},
    {"ctypes.call_function", ONLY_NOTED},
    {"ctypes.dlopen", ONLY_NOTED},
    {"mmap.__new__", ONLY_NOTED},
    {"signal.pthread_kill", ONLY_NOTED},
    {"sqlite3.load_extension", ONLY_NOTED},
};
enum { ROWS = sizeof table / sizeof *table };

static inline bool
may_be_ours(const char *event)
{
    switch (event[0]) {
    case 'o':
        return event[1] == 's' || event[1] == 'p';
    case 's':
        return event[1] == 'o' || event[1] == 'i' || event[1] == 'q' ||
               (event[1] == 'y' && event[2] == 's' && event[3] == 'l');
    case 'f':
    case 'm':
        return event[1] == 'c' || event[1] == 'm';
    case 'c':
        return event[1] == 't';
    default:
        return false;
    }
}

static Row *
find_row(const char *event)
{
    for (int i = 0; i < ROWS; i++)
        if (strcmp(table[i].event, event) == 0)
            return &table[i];
    return NULL;
}

/* ---- arguments, read without making anything ---- */
static PyObject *
argument(PyObject *args, Py_ssize_t i)
{
    return args && PyTuple_CheckExact(args) && i < PyTuple_GET_SIZE(args) ? PyTuple_GET_ITEM(args, i) : NULL;
}

static const char *
text_of(PyObject *value)
{
    if (value && PyUnicode_CheckExact(value) && PyUnicode_IS_COMPACT_ASCII(value))
        return PyUnicode_DATA(value);
    return value && PyBytes_CheckExact(value) ? PyBytes_AS_STRING(value) : NULL;
}

static long
number_of(PyObject *value, long otherwise)
{
    int overflow;
    long number = value && PyLong_CheckExact(value) ? PyLong_AsLongAndOverflow(value, &overflow) : otherwise;
    return number;
}

/* open(path, mode, flags): the mode is None where os.open raises it, the flags are 0 where C's fopen does. */
static bool
opens_to_write(PyObject *args)
{
    const char *mode = text_of(argument(args, 1));
    long flags = number_of(argument(args, 2), 0);
    return (mode && strpbrk(mode, "wax+")) || (flags & (O_ACCMODE | O_CREAT | O_TRUNC));
}

/* The parser, when it has found a syntax error, opens the file that the source is said to come from, to show its line;
 * if it cannot, it takes the line from the source itself. That is where a replay takes it from: the file may have
 * changed since. */
static bool
parser_opens(const char *event, PyObject *args)
{
    const char *mode = text_of(argument(args, 1));
    return event[0] == 'o' && event[1] == 'p' && mode && strcmp(mode, "rb") == 0 &&
           number_of(argument(args, 2), -1) == 0;
}

static bool
is_in_brackets(const char *text)
{
    size_t n = text ? strlen(text) : 0;
    return n > 2 && text[0] == '<' && text[n - 1] == '>';
}

/* What a library asks of the C library is recorded, except for those that modules of the interpreter use: those modules
 * are recorded instead (libc/lead.c). */
static bool
is_left_alone(const char *library)
{
    static const char *const names[] = {"libssl", "libcrypto", "libsqlite3", "libreadline", "libcurses", "libncurses"};
    for (size_t i = 0; library && i < sizeof names / sizeof *names; i++)
        if (strstr(library, names[i]))
            return true;
    return false;
}

/* Of some events most occurrences touch nothing: memory without a file, the process's own symbols. */
static bool
is_harmless(const char *event, PyObject *args)
{
    if (event[0] == 'm')
        return number_of(argument(args, 0), -1) == -1;
    if (strcmp(event, "open") == 0) /* "<unknown>": source that came from no file, whose syntax error is to be shown */
        return is_in_brackets(text_of(argument(args, 0))) && !opens_to_write(args);
    return strcmp(event, "ctypes.dlopen") == 0 && !is_left_alone(text_of(argument(args, 0)));
}

static void
describe(char *text, size_t size, const char *event, PyObject *args)
{
    const char *first = text_of(argument(args, 0));
    if (first)
        snprintf(text, size, "%s(\"%.180s\")", event, first);
    else
        snprintf(text, size, "%s(...)", event);
}

/* ---- the hook ---- */

/* Raised where the parser opens a file in a replay. One for all times, made before the program begins: the parser drops
 * it at once, and a fresh one would leave the tuple of its arguments in a free list, in the replay alone. */
static PyObject *no_such_file;

static bool
in_importer(PyThreadState *ts)
{
    _PyInterpreterFrame *frame = compat_top_frame(ts);
    const char *file = frame ? text_of(compat_frame_code(frame)->co_filename) : NULL;
    return file && (strncmp(file, "<frozen importlib", 17) == 0 || strncmp(file, "<frozen zipimport", 17) == 0);
}

static void
end_before(const char *what)
{
    if (core.mode == REPLAY)
        cross_at_end() ? diverge("end", NULL, NULL, "") : diverge("unsupported", NULL, NULL, what);
    note("unsupported", what);
    log_fail(4);
}

/* The interpreter reads what is typed by C code of its own. */
void
guard_interactive_begins(void)
{
    if (core.mode != OBSERVE)
        end_before("interactive mode");
}

static bool
hear_of_snapshot(const char *event, PyObject *args)
{
    if (event[0] == 'r' && strcmp(event, "replaydbg.mark") == 0) {
        mark_asked(args);
        return true;
    }
    if (event[0] == 'r' && strcmp(event, "replaydbg.cut") == 0) {
        cut_asked(args);
        return true;
    }
    if (event[0] == 'r' && strcmp(event, "replaydbg.snapshot") == 0)
        heap_asked(args);
    else if (event[0] == 's' && strcmp(event, "sys.excepthook") == 0)
        heap_uncaught(argument(args, 2));
    else {
        if (event[0] == 's' && strcmp(event, "sys.unraisablehook") == 0)
            heap_unraisable(argument(args, 1));
        return false;
    }
    return true;
}

static int
hook(const char *event, PyObject *args, void *data)
{
    char text[256];
    /* A module or a command is run by the interpreter itself: here it says which exception ended it. */
    if (engine.is_on && strcmp(event, "sys.excepthook") == 0 && PyTuple_GET_SIZE(args) > 2 && core.lane == 0)
        engine_uncaught(PyTuple_GET_ITEM(args, 1), PyTuple_GET_ITEM(args, 2));
    if ((core.mode == REPLAY || core.mode == RECORD) && event[0] == 's' && strcmp(event, "sys.excepthook") == 0 &&
        PyTuple_GET_SIZE(args) > 3 && core.lane == 0)
        outcome_uncaught(PyTuple_GET_ITEM(args, 1), PyTuple_GET_ITEM(args, 2), PyTuple_GET_ITEM(args, 3));
    if (core.lenient && event[0] == 'r' && strcmp(event, "replaydbg.over") == 0)
        outcome_told(argument(args, 0));
    if (core.is_future && core.mode == RECORD && event[0] == 'r' && strcmp(event, "replaydbg.mark") == 0)
        future_marked(argument(args, 0));
    if (core.mode == RECORD && !core.is_future && hear_of_snapshot(event, args))
        return 0;
    int rc;
    if (event[0] == 'r' && asked_hears(event, args, &rc))
        return rc;
    if (event[0] == 'c' && strcmp(event, "cpython.run_interactivehook") == 0)
        guard_interactive_begins();
    if (event[0] == 'c' && strcmp(event, "cpython._PySys_ClearAuditHooks") == 0)
        lanes_interpreter_ends();
    if (!may_be_ours(event))
        return 0;
    PyThreadState *ts = THREAD_STATE_OR_NULL();
    if (ts == NULL || (ts == core.tstate && core.depth > 0))
        return 0;
    if (core.tstate && ts->interp != core.tstate->interp) {
        identity_share(); /* it begins in this thread: nobody else runs yet */
        if (core.mode != OBSERVE)
            end_before("a second interpreter"); /* nothing that it does would be a crossing */
    }
    if (core.mode == OBSERVE)
        return 0;
    if (core.mode == REPLAY && parser_opens(event, args)) {
        PyErr_Restore(Py_NewRef((PyObject *)Py_TYPE(no_such_file)), Py_NewRef(no_such_file), NULL);
        return -1;
    }
    Row *row = find_row(event);
    if (row == NULL || (core.mode == RECORD && row->noted) || is_harmless(event, args) || in_importer(ts))
        return 0;
    describe(text, sizeof text, event, args);
    if (core.mode == RECORD) {
        row->noted = true;
        note("uncovered", text);
    }
    else if (row->severity == REFUSED || (row->severity == IF_IT_WRITES && opens_to_write(args)))
        diverge("refused", NULL, NULL, text);
    return 0;
}

int
guard_record(void)
{
    return PySys_AddAuditHook(hook, NULL);
}

int
guard_replay(void)
{
    no_such_file = PyObject_CallFunction(PyExc_FileNotFoundError, "s", "a replay shows the source that was compiled");
    if (no_such_file == NULL)
        return -1;
    PyObject_GC_UnTrack(no_such_file);
    return fence_seal() < 0 ? -1 : PySys_AddAuditHook(hook, NULL);
}
