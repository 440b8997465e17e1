/* What a replay tells of itself, so that the replay of a redacted copy can be compared with one of the original: what
 * leaves the program, and how the program ends. Each event is compared with the log; but the log has digests alone of
 * what leaves, and they are computed anew, and it has nothing of what the program did after its last event. */
#include "base/core.h"
#include "crossing/crossing.h"
#include "ending/ending.h"
#include <errno.h>
#include <unistd.h>

enum { OUTPUT, CALL, END, THREAD }; /* replaydbg/redaction/told.py reads them */

/* two stacks of 60 frames at most, and an exception, with names of 4 KiB at most */
#define END_ROOM ((size_t)1 << 20)

static Buf end; /* memory of its own: the process may end in a signal handler */
static Buf raised, of_thread;

void
told_prepare(void)
{
    if (core.tells)
        end = (Buf){.data = memory_apart(END_ROOM), .size = END_ROOM, .is_fixed = true};
}

static bool
write_whole(const uint8_t *p, size_t n)
{
    while (n > 0) {
        ssize_t k = write(core.told_fd, p, n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return false;
        p += k;
        n -= (size_t)k;
    }
    return true;
}

/* Without it nothing is proven: the report has the error's number. */
_Noreturn static void
end_untold(void)
{
    char number[16];
    snprintf(number, sizeof number, "%d", errno ? errno : EIO);
    core.tells = false;
    diverge("output", NULL, NULL, number);
}

/* What kind, the number of the event that it belongs to, if no other one comes first, the length, and the bytes. */
static void
tell(uint64_t kind, const void *data, size_t n)
{
    int before = errno;
    const uint64_t head[] = {kind, core.crossings + 1, n};
    errno = 0;
    if (!write_whole((const uint8_t *)head, sizeof head) || !write_whole(data, n))
        end_untold();
    errno = before;
}

void
told_output(const void *data, size_t n)
{
    tell(OUTPUT, data, n);
}

static void
tell_call(const Buf *call)
{
    tell(CALL, call->data, call->used);
}

/* An exception, and where it was raised. */
static void
put_raised(Buf *b, PyObject *type, PyObject *value, PyObject *traceback)
{
    b->used = 0;
    buf_byte(b, TAG_TUPLE);
    buf_varint(b, 2);
    report_exception(b, type, value);
    report_frames(b, traceback);
}

/* The exception that ends the program; exit() is one, too. */
void
told_raised(PyObject *type, PyObject *value, PyObject *traceback)
{
    if (core.tells)
        put_raised(&raised, type, value, traceback);
}

static newfunc hook_args_new;

/* What threading.excepthook is given is made for each exception that ends a thread, whoever has put a hook of its own
 * there. */
static PyObject *
new_hook_args(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *made = hook_args_new(type, args, kwargs);
    if (made && core.tells && PyTuple_Check(made) && PyTuple_GET_SIZE(made) > 2) {
        put_raised(&of_thread, PyTuple_GET_ITEM(made, 0), PyTuple_GET_ITEM(made, 1), PyTuple_GET_ITEM(made, 2));
        tell(THREAD, of_thread.data, of_thread.used);
    }
    return made;
}

void
told_listen(void)
{
    PyObject *modules = PyImport_GetModuleDict(), *module = modules ? PyDict_GetItemString(modules, "_thread") : NULL;
    PyObject *type = module ? PyDict_GetItemString(PyModule_GetDict(module), "_ExceptHookArgs") : NULL;
    if (!core.tells || type == NULL || !PyType_Check(type))
        return;
    hook_args_new = ((PyTypeObject *)type)->tp_new;
    ((PyTypeObject *)type)->tp_new = new_hook_args;
}

/* The calls that are open, and then how it ends. Of several reasons for which the process ends, the first one counts. */
void
told_end(const char *how, int64_t number)
{
    if (!core.tells)
        return;
    unfinished_each(tell_call);
    buf_byte(&end, TAG_TUPLE);
    buf_varint(&end, 4);
    report_text(&end, how, strlen(how));
    report_number(&end, number);
    report_stack(&end);
    if (raised.used == 0)
        put_raised(&raised, NULL, NULL, NULL);
    buf_bytes(&end, raised.data, raised.used);
    tell(END, end.data, end.used);
    core.tells = false;
}
