/* The clocks that a resumed program reads. Those that must not go backwards go on from their last recorded reading: time
 * stands still from the end of one process to the beginning of the next, as while a machine sleeps. After a new start of
 * the machine the kernel's would be far behind. The wall clock is as it is. */
#include "base/core.h"
#include "clock/clock.h"
#include "resume/inside.h"
#include <math.h>
#include <time.h>

static uint64_t readings[MOST_CLOCKS]; /* ns, as recorded; 0: it was never read */
static int64_t shifts[MOST_CLOCKS];
static uint64_t wall; /* ns, the last recorded reading of the wall clock */

/* Which clock a function of `time` reads; -1: none of these. */
static clockid_t
clock_of(const Crossing *c)
{
    static const struct {
        const char *name;
        clockid_t which;
    } functions[] = {{"monotonic", CLOCK_MONOTONIC},
                     {"perf_counter", CLOCK_MONOTONIC},
                     {"process_time", CLOCK_PROCESS_CPUTIME_ID},
                     {"thread_time", CLOCK_THREAD_CPUTIME_ID},
                     {"clock_gettime", -1}};
    if (strcmp(c->gate->module, "time") != 0)
        return -1;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        const char *rest = c->gate->name + strlen(functions[i].name);
        if (strncmp(c->gate->name, functions[i].name, strlen(functions[i].name)) != 0 || (*rest && strcmp(rest, "_ns")))
            continue;
        long which = functions[i].which;
        if (which < 0 && c->nargs > 0 && PyLong_CheckExact(c->args[0])) {
            int overflow;
            which = PyLong_AsLongAndOverflow(c->args[0], &overflow);
        }
        bool is_wall = which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE || which == CLOCK_TAI;
        return which < 0 || which >= MOST_CLOCKS || is_wall ? -1 : (clockid_t)which;
    }
    return -1;
}

static uint64_t
nanoseconds(PyObject *reading)
{
    int overflow;
    if (PyFloat_CheckExact(reading))
        return (uint64_t)(PyFloat_AS_DOUBLE(reading) * 1e9);
    return PyLong_CheckExact(reading) ? (uint64_t)PyLong_AsLongLongAndOverflow(reading, &overflow) : 0;
}

uint64_t
clocks_last_wall(void)
{
    return wall;
}

void
clocks_follow(const Crossing *c, PyObject *result)
{
    clockid_t which = clock_of(c);
    if (strcmp(c->gate->module, "time") == 0 && strncmp(c->gate->name, "time", 4) == 0)
        wall = nanoseconds(result);
    if (which >= 0 && (PyFloat_CheckExact(result) || PyLong_CheckExact(result)))
        readings[which] = nanoseconds(result);
}

static PyObject *
shifted_by(PyObject *result, int64_t ns)
{
    PyObject *shifted = NULL;
    int overflow;
    if (ns == 0)
        return result;
    if (PyFloat_CheckExact(result))
        /* as `time` makes it of nanoseconds: else two processes of one time have readings that differ */
        shifted = PyFloat_FromDouble((double)(llround(PyFloat_AS_DOUBLE(result) * 1e9) + ns) / 1e9);
    else if (PyLong_CheckExact(result))
        shifted = PyLong_FromLongLong(PyLong_AsLongLongAndOverflow(result, &overflow) + ns);
    if (shifted == NULL)
        return result;
    Py_DECREF(result);
    return shifted;
}

PyObject *
clocks_shifted(const Crossing *c, PyObject *result)
{
    clockid_t which = result ? clock_of(c) : -1;
    return which < 0 ? result : shifted_by(result, shifts[which]);
}

/* Nothing is logged any more, so the reading is no crossing, and has the clock of the interpreter's own waits. */
PyObject *
clocks_unlogged(const Crossing *c, PyObject *result)
{
    clockid_t which = result ? clock_of(c) : -1;
    if (which < 0)
        return result;
    return shifted_by(result, shifts[which] - (which == CLOCK_MONOTONIC ? lane_clock_shift() : 0));
}

void
clocks_set_back(uint64_t ns)
{
    for (clockid_t i = 0; i < MOST_CLOCKS; i++)
        if (i != CLOCK_PROCESS_CPUTIME_ID && i != CLOCK_THREAD_CPUTIME_ID)
            shifts[i] -= (int64_t)ns;
}

uint64_t
clocks_reading(int clock)
{
    return readings[clock];
}

void
clocks_continue(void)
{
    for (clockid_t i = 0; i < MOST_CLOCKS; i++) {
        struct timespec now = {0};
        uint64_t latest = core.is_future ? resume_hooks.latest_reading(i, readings[i]) : 0;
        if (latest)
            shifts[i] = (int64_t)(latest - (simulated_clock(i) - resume_hooks.passed()));
        else if (readings[i] && clock_gettime(i, &now) == 0)
            shifts[i] = (int64_t)readings[i] - ((int64_t)now.tv_sec * 1000000000 + now.tv_nsec);
    }
}
