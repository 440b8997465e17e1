/* What a crossing makes, what the program gets of it, the collector's state at the start of the program, and the
 * comparison of it: see collector.h. */
#include "base/core.h"
#include "collector/collector.h"
#include <stdlib.h>

Collector collector = {.made = {(uintptr_t)&collector.made, (uintptr_t)&collector.made}};

/* ---- what a crossing makes ---- */

void
gc_list_append(PyGC_Head *list, PyGC_Head *from)
{
    if (gc_list_is_empty(from))
        return;
    PyGC_Head *first = _PyGCHead_NEXT(from), *last = _PyGCHead_PREV(from), *end = _PyGCHead_PREV(list);
    _PyGCHead_SET_NEXT(end, first);
    _PyGCHead_SET_PREV(first, end);
    _PyGCHead_SET_NEXT(last, list);
    _PyGCHead_SET_PREV(list, last);
    gc_list_clear(from);
}

PyGC_Head *
collector_set_aside(void)
{
    PyGC_Head *aside = gc_list_is_empty(&collector.made) ? NULL : malloc(sizeof *aside);
    if (aside == NULL)
        return NULL; /* without memory, the program's collections see them */
    gc_list_clear(aside);
    gc_list_append(aside, &collector.made);
    return aside;
}

void
collector_take_back(PyGC_Head *aside)
{
    if (aside)
        gc_list_append(&collector.made, aside);
    free(aside);
}

/* ---- what the program gets ---- */

static void
take(Level *level)
{
    if (level && *level > 0)
        --*level;
    else
        collector.count++;
}

/* Only what is data comes out of a crossing, and nothing that refers to itself. */
void
collector_give(PyObject *made)
{
    if (!PyObject_IS_GC(made))
        return;
    Levels *levels = &collector.levels;
    Py_ssize_t i = 0, n = PyTuple_Check(made) || PyList_Check(made) ? Py_SIZE(made) : 0;
    if (PyTuple_CheckExact(made) && n == 0)
        return; /* there is one for all */
    take(!collector.has_levels      ? NULL
         : PyTuple_CheckExact(made) ? n <= TUPLE_SIZES_TAKEN ? &levels->tuples[n - 1] : NULL
         : PyList_CheckExact(made)  ? &levels->lists
         : PyDict_CheckExact(made)  ? &levels->dicts
                                    : NULL);
    if (PyDict_CheckExact(made)) {
        PyObject *key, *value;
        while (PyDict_Next(made, &i, &key, &value)) {
            collector_give(key);
            collector_give(value);
        }
    }
    for (i = 0; i < n; i++) {
        PyObject *item = PyTuple_Check(made) ? PyTuple_GET_ITEM(made, i) : PyList_GET_ITEM(made, i);
        if (item)
            collector_give(item);
    }
}

void
collector_give_exception(void)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (value && PyExceptionInstance_Check(value)) {
        collector.count++;
        collector_give(((PyBaseExceptionObject *)value)->args);
        if (((PyBaseExceptionObject *)value)->dict)
            collector_give(((PyBaseExceptionObject *)value)->dict);
    }
    PyErr_Restore(type, value, traceback);
}

/* ---- the beginning ---- */

/* Until the program begins, nothing is collected: the order of what is alive stays the order in which it was made. */
void
collector_hold(void)
{
    core.tstate->interp->gc.collecting = 1;
}

/* Full collections leave all that is alive in the oldest generation. Each of them untracks tuples whose items are
 * untracked; which ones at once depends on their order, so this goes on until there are no more. Free lists and
 * statistics begin empty. The numbers that decide when a generation is collected are those of a plain run: a bug that
 * shows where a collection comes must show as often. */
void
collector_settle(const CollectorStart *start)
{
    struct _gc_runtime_state *gc = &core.tstate->interp->gc;
    Py_ssize_t before;
    gc->collecting = 0;
    do {
        before = gc->long_lived_total;
        PyGC_Collect();
    } while (gc->long_lived_total != before);
    memset(&collector.levels, 0, sizeof collector.levels);
    levels_restore(&collector.levels);
    for (int i = 0; i < NUM_GENERATIONS; i++) {
        gc->generations[i].count = start->counts[i];
        memset(&gc->generation_stats[i], 0, sizeof gc->generation_stats[i]);
    }
    if (start->long_lived >= 0)
        gc->long_lived_total = start->long_lived;
    gc->long_lived_pending = 0;
    compat_unschedule_collection(core.tstate);
}

/* ---- is it the same in replay? ---- */

void
collector_numbers(uint64_t numbers[4])
{
    struct _gc_runtime_state *gc = &core.tstate->interp->gc;
    if (!collector.has_levels)
        levels_note(&collector.levels);
    collector.has_levels = true;
    uint64_t rest[] = {(uint64_t)collector.count, (uint64_t)gc->generations[1].count,
                       (uint64_t)gc->generations[2].count, (uint64_t)gc->long_lived_total,
                       (uint64_t)gc->long_lived_pending};
    uint64_t digest = hash_bytes(rest, sizeof rest, hash_bytes(&collector.levels, sizeof collector.levels, 0));
    for (int i = 0; i < NUM_GENERATIONS; i++)
        numbers[i] = (uint64_t)gc->generation_stats[i].collections;
    numbers[3] = (digest ^ digest >> 32) & 0xFFFFFFF; /* four bytes as a number of the log */
}

bool
collector_agrees(const uint64_t recorded[4], char *detail, size_t size)
{
    uint64_t now[4];
    collector_numbers(now);
    if (memcmp(now, recorded, 3 * sizeof *now) != 0)
        snprintf(detail, size, "%llu+%llu+%llu collections when it was recorded, %llu+%llu+%llu now",
                 (unsigned long long)recorded[0], (unsigned long long)recorded[1], (unsigned long long)recorded[2],
                 (unsigned long long)now[0], (unsigned long long)now[1], (unsigned long long)now[2]);
    else if (now[3] != recorded[3])
        snprintf(detail, size, "the next collection comes at another allocation (%d+%d+%d now)", collector.count,
                 core.tstate->interp->gc.generations[1].count, core.tstate->interp->gc.generations[2].count);
    else
        return true;
    return false;
}
