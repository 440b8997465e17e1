/* What the program has changed of its process: settings that the kernel or the interpreter keeps for it. A replay changes
 * nothing; when it goes live, they are made again. */
#include "base/core.h"
#include "crossing/crossing.h"
#include "resume/inside.h"
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#define MOST_NUMBERS 4

typedef struct {
    const char *module, *name;
    int keys;     /* so many of its first arguments say what is set: the last call with the same ones counts */
    bool is_ours; /* it concerns this process and what it has, and nothing that the fence keeps from a future */
} Setting;
static const Setting settings[] = {
    {"_signal", "set_wakeup_fd", 0, true}, {"_signal", "siginterrupt", 1, true}, {"posix", "set_blocking", 1, false},
    {"posix", "setpriority", 2, false},    {"resource", "setrlimit", 1, false},  {"posix", "nice", MOST_NUMBERS, false},
};

typedef struct {
    const Gate *gate;
    int count, keys;
    bool is_pair; /* the last two are one argument */
    bool is_over; /* another one came later */
    long numbers[MOST_NUMBERS];
} Made;
static Made *made;
static size_t made_count;
static uint64_t blocked; /* signals, by number less one */
static bool mask_is_set;

static bool
take_number(PyObject *v, Made *m)
{
    int overflow;
    if (v == NULL || !PyLong_Check(v) || m->count == MOST_NUMBERS)
        return false;
    m->numbers[m->count++] = PyLong_AsLongAndOverflow(v, &overflow);
    return overflow == 0;
}

static bool
take_arguments(const Crossing *c, Made *m)
{
    for (Py_ssize_t i = 0; i < c->nargs; i++) {
        PyObject *v = c->args[i];
        m->is_pair = PyTuple_CheckExact(v) && PyTuple_GET_SIZE(v) == 2;
        if (m->is_pair ? i + 1 != c->nargs || !take_number(PyTuple_GET_ITEM(v, 0), m) ||
                             !take_number(PyTuple_GET_ITEM(v, 1), m)
                       : !take_number(v, m))
            return false;
    }
    return true;
}

static void
note_setting(const Crossing *c, int keys)
{
    Made m = {.gate = c->gate, .keys = keys};
    if (!take_arguments(c, &m))
        return;
    for (size_t i = 0; i < made_count; i++)
        if (made[i].gate == m.gate && memcmp(made[i].numbers, m.numbers, (size_t)keys * sizeof *m.numbers) == 0)
            made[i].is_over |= keys < MOST_NUMBERS;
    made = grown(made, made_count + 1, sizeof *made);
    made[made_count++] = m;
}

/* pthread_sigmask(how, signals): the outcome is the mask before. */
static void
note_mask(const Crossing *c)
{
    int overflow;
    long how = c->nargs == 2 && PyLong_Check(c->args[0]) ? PyLong_AsLongAndOverflow(c->args[0], &overflow) : -1;
    PyObject *signals = how < 0 ? NULL : PySequence_Fast(c->args[1], "");
    uint64_t given = 0;
    for (Py_ssize_t i = 0; signals && i < PySequence_Fast_GET_SIZE(signals); i++) {
        PyObject *v = PySequence_Fast_GET_ITEM(signals, i);
        long number = PyLong_Check(v) ? PyLong_AsLongAndOverflow(v, &overflow) : 0;
        if (number > 0 && number <= 64)
            given |= (uint64_t)1 << (number - 1);
    }
    PyErr_Clear();
    Py_XDECREF(signals);
    if (signals == NULL)
        return;
    blocked = how == SIG_BLOCK ? blocked | given : how == SIG_UNBLOCK ? blocked & ~given : given;
    mask_is_set = true;
}

void
process_follow(const Crossing *c)
{
    const char *module = c->gate->module, *name = c->gate->name;
    if (strcmp(module, "_signal") == 0 && strcmp(name, "pthread_sigmask") == 0)
        note_mask(c);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if ((settings[i].is_ours || !core.is_future) && strcmp(module, settings[i].module) == 0 &&
            strcmp(name, settings[i].name) == 0)
            note_setting(c, settings[i].keys);
}

static void
make(const Made *m)
{
    PyObject *args[MOST_NUMBERS];
    int n = m->is_pair ? m->count - 1 : m->count;
    for (int i = 0; i < n; i++)
        args[i] = m->is_pair && i == n - 1 ? Py_BuildValue("(ll)", m->numbers[i], m->numbers[i + 1])
                                           : PyLong_FromLong(m->numbers[i]);
    PyObject *done = gate_call_original((Gate *)m->gate, NULL, args, n, NULL);
    PyErr_Clear(); /* it was allowed to the program that is gone, and is not to this one */
    Py_XDECREF(done);
    for (int i = 0; i < n; i++)
        Py_XDECREF(args[i]);
}

void
process_continue(void)
{
    for (size_t i = 0; i < made_count; i++)
        if (!made[i].is_over)
            make(&made[i]);
    free(made);
    made = NULL;
    made_count = 0;
    if (!mask_is_set)
        return;
    sigset_t set;
    sigemptyset(&set);
    for (int number = 1; number <= 64; number++)
        if (blocked >> (number - 1) & 1)
            sigaddset(&set, number);
    pthread_sigmask(SIG_SETMASK, &set, NULL);
}
