/* What the program asks the recorder for: replaydbg.key(), replaydbg.moment(), replaydbg.checkpoint(), and whether it is
 * recorded at all.
 *
 * An audit event reaches us without any module of ours in the program. Its first argument is a list, into which the
 * answer goes; outside a recording it stays empty. Answers that do not follow from what is replayed are crossings of
 * the rows of module `replaydbg`, so a replay and a resumed program get the recorded ones. */
#include "base/core.h"
#include "code/code.h"
#include "crossing/crossing.h"
#include "guard/asked.h"
#include "heap/heap.h"
#include "log/log.h"
#include "values/values.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LONGEST_RUN 64 /* characters */
#define LONGEST_RECORDING 255

static char run_id[LONGEST_RUN + 1], recording_name[LONGEST_RECORDING + 1];

static void
take_text(PyObject *boot, const char *name, char *to, size_t size)
{
    PyObject *given = PyDict_GetItemString(boot, name);
    const char *text = given && PyUnicode_Check(given) ? PyUnicode_AsUTF8(given) : NULL;
    PyErr_Clear(); /* a name that is no UTF-8 */
    snprintf(to, size, "%s", text ? text : "");
}

void
asked_prepare(PyObject *boot)
{
    take_text(boot, "run", run_id, sizeof run_id);
    take_text(boot, "name", recording_name, sizeof recording_name); /* without a process of a group */
    checkpoint_prepare(boot);
}

PyObject *
asked_crossing(const char *name, PyObject *(*perform)(PyObject *given), PyObject *given)
{
    Gate *g = gate_named("replaydbg", name);
    PyObject *result = NULL;
    if (g == NULL) /* the recording was made without that row */
        return NULL;
    do {
        Crossing c;
        PyErr_Clear();
        cross_begin(&c, g, NULL, NULL, 0, NULL);
        result = cross_end(&c, c.perform ? perform(given) : NULL);
    } while (result == NULL && cross_again());
    cross_settle();
    return result;
}

/* An idempotency key has the run's id, the thread and the number of this event, so each one is given once. A program
 * that is resumed before the event makes the same one again. */
static PyObject *
make_key(PyObject *unused)
{
    char process[16] = "";
    if (group_number() > 1)
        snprintf(process, sizeof process, ".%u", group_number());
    return PyUnicode_FromFormat("%s%s-%d-%llu", run_id, process, core.lane, (unsigned long long)core.crossings + 1);
}

static int
put_answer(PyObject *list, PyObject *answer)
{
    if (answer == NULL)
        return PyErr_Occurred() ? -1 : 0;
    int rc = PyList_Append(list, answer);
    Py_DECREF(answer);
    return rc;
}

/* The place of this event, and what the program notes there: its kind and a text, by which it is found. */
static PyObject *
make_moment(PyObject *noted)
{
    char process[16] = "";
    if (group_number() > 1)
        snprintf(process, sizeof process, "/%u", group_number());
    PyObject *place =
        PyUnicode_FromFormat("%s%s:%llu:0", recording_name, process, (unsigned long long)core.crossings + 1);
    PyObject *result = place ? PyTuple_Pack(3, place, PyTuple_GET_ITEM(noted, 0), PyTuple_GET_ITEM(noted, 1)) : NULL;
    Py_XDECREF(place);
    return result;
}

/* Two plain texts: of an object of a subclass, the log would have the text alone. */
static PyObject *
moment_noted(PyObject *args)
{
    PyObject *noted = PyTuple_GET_SIZE(args) == 3 ? PyTuple_GetSlice(args, 1, 3) : NULL;
    if (noted && PyUnicode_CheckExact(PyTuple_GET_ITEM(noted, 0)) && PyUnicode_CheckExact(PyTuple_GET_ITEM(noted, 1)))
        return noted;
    Py_XDECREF(noted);
    return NULL;
}

static int
put_moment(PyObject *list, PyObject *args)
{
    PyObject *noted = moment_noted(args);
    if (noted == NULL)
        return PyErr_Occurred() ? -1 : 0;
    int rc = put_answer(list, asked_crossing("moment", make_moment, noted));
    Py_DECREF(noted);
    return rc;
}

/* Of a callback of quiesce(). Its UTF-8 would stay with the text if Python made it: this one is ours. */
static void
note_problem(PyObject *given)
{
    uint8_t text[1000];
    if (core.mode != RECORD || !PyUnicode_CheckExact(given))
        return;
    text[text_of_name(text, sizeof text - 5, given)] = 0;
    note("quiesce", (const char *)text);
}

bool
asked_hears(const char *event, PyObject *args, int *rc)
{
    static const char own[] = "replaydbg.";
    PyObject *list = args && PyTuple_CheckExact(args) && PyTuple_GET_SIZE(args) ? PyTuple_GET_ITEM(args, 0) : NULL;
    if (event[0] != 'r' || strncmp(event, own, sizeof own - 1) != 0 || list == NULL || !PyList_CheckExact(list))
        return false;
    event += sizeof own - 1;
    *rc = 0;
    if (core.mode == OBSERVE || core.depth > 0 || core.tstate != PyThreadState_Get())
        return true;
    if (strcmp(event, "key") == 0 && *run_id)
        *rc = put_answer(list, asked_crossing("key", make_key, NULL));
    else if (strcmp(event, "moment") == 0)
        *rc = put_moment(list, args);
    else if (strcmp(event, "recorded") == 0)
        *rc = put_answer(list, Py_NewRef(Py_True));
    else if (strcmp(event, "problem") == 0 && PyTuple_GET_SIZE(args) > 1)
        note_problem(PyTuple_GET_ITEM(args, 1));
    else if (strcmp(event, "checkpoint") == 0)
        *rc = put_answer(list, checkpoint_due(args));
    else if (strcmp(event, "continue") == 0 && PyTuple_GET_SIZE(args) > 1)
        *rc = put_answer(list, checkpoint_continue(PyTuple_GET_ITEM(args, 1)));
    return true;
}
