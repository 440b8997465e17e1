/* What others see waits for the log, so that it never comes from events that a power cut undoes (`record --durable`).
 * Which gates these are stands in replaydbg/gates/outputs.py. */
#include "base/core.h"
#include "crossing/inside.h"
#include "log/log.h"
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

/* Regular files keep what is written for themselves until the program synchronises them, which is an output of its own.
 * /dev/null keeps it for ever. */
bool
output_stays(int fd)
{
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return fd >= 0; /* the call fails */
    if (S_ISCHR(st.st_mode))
        return st.st_rdev == makedev(1, 3);
    int flags = S_ISREG(st.st_mode) ? fcntl(fd, F_GETFL) : -1;
    return flags >= 0 && !(flags & O_DSYNC); /* O_SYNC has that bit, too */
}

static int
descriptor_of(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    if (g->is_method)
        return file_fd(self);
    long fd = nargs > 0 && PyLong_Check(args[0]) ? PyLong_AsLong(args[0]) : -1;
    PyErr_Clear(); /* it is out of range: the call says so */
    return fd < 0 || fd > INT32_MAX ? -1 : (int)fd;
}

/* A signal that came meanwhile would be met by the call only when it has ended: so its handler runs now, as the
 * interpreter runs it within calls that a signal interrupts. */
bool
output_may_leave(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
    if ((g->flags & (GATE_OUTPUT | GATE_AT_ONCE)) != GATE_OUTPUT || core.mode != RECORD || core.depth == 0 ||
        (g->flags & GATE_UNLESS_FILE && output_stays(descriptor_of(g, self, args, nargs))))
        return true;
    crossing_hooks.await_log();
    return !compat_signals_tripped() || PyErr_CheckSignals() == 0;
}
