/* Clocks and entropy that C code takes by itself: datetime, the random module's seeding, the profiler. */
#include "base/core.h"
#include "collector/collector.h"
#include "crossing/crossing.h"
#include "gates/gates.h"
#include <datetime.h>
#include <sys/random.h>

/* ---- datetime: only fields cross; the object is made anew by the program's own class, outside the crossing ---- */

static PyObject *
fields_of(PyObject *dt)
{
    return Py_BuildValue("(iiiiiiii)", PyDateTime_GET_YEAR(dt), PyDateTime_GET_MONTH(dt), PyDateTime_GET_DAY(dt),
                         PyDateTime_DATE_GET_HOUR(dt), PyDateTime_DATE_GET_MINUTE(dt), PyDateTime_DATE_GET_SECOND(dt),
                         PyDateTime_DATE_GET_MICROSECOND(dt), PyDateTime_DATE_GET_FOLD(dt));
}

static PyObject *
build_datetime(PyObject *cls, PyObject *fields, PyObject *tz)
{
    int f[8];
    if (!PyArg_ParseTuple(fields, "iiiiiiii", &f[0], &f[1], &f[2], &f[3], &f[4], &f[5], &f[6], &f[7]))
        return NULL;
    if (cls == (PyObject *)PyDateTimeAPI->DateTimeType)
        return PyDateTimeAPI->DateTime_FromDateAndTimeAndFold(f[0], f[1], f[2], f[3], f[4], f[5], f[6], tz, f[7],
                                                              PyDateTimeAPI->DateTimeType);
    PyObject *dt = PyObject_CallFunction(cls, "iiiiiiiO", f[0], f[1], f[2], f[3], f[4], f[5], f[6], tz);
    if (dt && f[7] && PyDateTime_Check(dt))
        ((PyDateTime_DateTime *)dt)->fold = 1;
    return dt;
}

/* The crossing: what the clock says, as fields, of UTC or of local time. */
static PyObject *
now_fields(Gate *g, Handler real, PyObject *tz)
{
    Crossing c;
    PyObject *base = (PyObject *)PyDateTimeAPI->DateTimeType;
    cross_begin(&c, g, NULL, NULL, 0, NULL);
    PyObject *outcome = NULL;
    if (c.perform) {
        PyObject *dt = real(g, base, &tz, tz ? 1 : 0, NULL);
        outcome = dt ? fields_of(dt) : NULL;
        Py_XDECREF(dt);
    }
    outcome = cross_end(&c, outcome);
    cross_expect_outcome(&c, outcome == NULL || PyTuple_Check(outcome));
    return outcome;
}

static PyObject *
dt_now(Gate *g, PyObject *cls, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    PyObject *tz = nargs == 1 ? args[0] : Py_None;
    if (kwnames && PyTuple_GET_SIZE(kwnames) == 1 && nargs == 0 &&
        PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(kwnames, 0), "tz") == 0)
        tz = args[0];
    else if (nargs > 1 || kwnames)
        return gate_call_original(g, cls, args, nargs, kwnames);
    if (tz != Py_None && !PyTZInfo_Check(tz))
        return gate_call_original(g, cls, args, nargs, kwnames); /* it says so */
    PyObject *fields = now_fields(g, gate_call_original, tz == Py_None ? NULL : PyDateTimeAPI->TimeZone_UTC);
    if (fields == NULL)
        return NULL;
    PyObject *dt = build_datetime(cls, fields, tz);
    Py_DECREF(fields);
    if (dt == NULL || tz == Py_None)
        return dt;
    PyObject *local = PyObject_CallMethod(tz, "fromutc", "O", dt);
    Py_DECREF(dt);
    return local;
}

static PyObject *
dt_utcnow(Gate *g, PyObject *cls, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    if (nargs || kwnames)
        return gate_call_original(g, cls, args, nargs, kwnames);
#if PY_VERSION_HEX >= 0x030C0000
    /* the warning is shown by Python code of the program: before the crossing, where the interpreter has it too */
    if (PyErr_WarnEx(
            PyExc_DeprecationWarning,
            "datetime.datetime.utcnow() is deprecated and scheduled for removal in a future version. Use timezone-aware "
            "objects to represent datetimes in UTC: datetime.datetime.now(datetime.UTC).",
            1) < 0)
        return NULL;
#endif
    Gate *now = gate_named("_datetime", "datetime.now");
    PyObject *fields = now ? now_fields(now, gate_call_original, PyDateTimeAPI->TimeZone_UTC) : NULL;
    PyObject *dt = fields ? build_datetime(cls, fields, Py_None) : NULL;
    Py_XDECREF(fields);
    return dt;
}

/* ---- the Mersenne Twister's seeding ---- */

static PyTypeObject *random_type;
static Gate *seed_gate;
#define SEED_BYTES 32

static PyObject *
entropy(Gate *g)
{
    Crossing c;
    cross_begin(&c, g, NULL, NULL, 0, NULL);
    PyObject *bytes = NULL;
    if (c.perform) {
        bytes = PyBytes_FromStringAndSize(NULL, SEED_BYTES);
        if (bytes && getrandom(PyBytes_AS_STRING(bytes), SEED_BYTES, 0) != SEED_BYTES) {
            Py_CLEAR(bytes);
            PyErr_SetFromErrno(PyExc_OSError);
        }
    }
    return cross_end(&c, bytes);
}

static PyObject *
random_seed(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    if (nargs > 1 || kwnames || (nargs == 1 && args[0] != Py_None)) {
        draws_seeded(self, false);
        return gate_call_original(g, self, args, nargs, kwnames); /* the seed is the program's */
    }
    PyObject *bytes = entropy(g);
    if (bytes == NULL)
        return NULL;
    PyObject *number = _PyLong_FromByteArray((const unsigned char *)PyBytes_AS_STRING(bytes), SEED_BYTES, 1, 0);
    PyObject *result = number ? gate_call_original(g, self, &number, 1, NULL) : NULL;
    draws_seeded(self, true);
    Py_XDECREF(number);
    Py_DECREF(bytes);
    return result;
}

static bool
unseeded(PyObject *args, PyObject *kwds)
{
    return (PyTuple_GET_SIZE(args) == 0 || PyTuple_GET_ITEM(args, 0) == Py_None) &&
           (kwds == NULL || PyDict_GET_SIZE(kwds) == 0);
}

/* The constructor of the C type seeds by itself. Where Python code has its own __init__, that calls seed(), which is
 * gated. */
static initproc original_random_init;
static newfunc original_random_new;

static int
seed_anew(PyObject *self, PyObject *args, PyObject *kwds)
{
    if (gate_passes())
        return 0;
    if (!unseeded(args, kwds)) {
        draws_seeded(self, false);
        return 0;
    }
    PyObject *done = random_seed(seed_gate, self, NULL, 0, NULL);
    Py_XDECREF(done);
    cross_settle();
    return done ? 0 : -1;
}

static int
random_init(PyObject *self, PyObject *args, PyObject *kwds)
{
    int rc = original_random_init(self, args, kwds);
    return rc < 0 ? rc : seed_anew(self, args, kwds);
}

static PyObject *
random_new(PyTypeObject *type, PyObject *args, PyObject *kwds)
{
    PyObject *self = original_random_new(type, args, kwds);
    if (self && type->tp_init == PyBaseObject_Type.tp_init && seed_anew(self, args, kwds) < 0)
        Py_CLEAR(self);
    return self;
}

/* The first releases of 3.11 seed in tp_new, later ones in tp_init. */
static void
install_random(PyObject *module)
{
    random_type = (PyTypeObject *)PyDict_GetItemString(PyModule_GetDict(module), "Random");
    seed_gate = gate_named("_random", "Random.seed");
    if (random_type == NULL || seed_gate == NULL || seed_gate->original == NULL)
        return;
    if (random_type->tp_init == PyBaseObject_Type.tp_init) {
        original_random_new = random_type->tp_new;
        random_type->tp_new = random_new;
        return;
    }
    original_random_init = random_type->tp_init;
    random_type->tp_init = random_init;
    patch_wrapper(random_type, "__init__", (void *)random_init);
}

/* ---- cProfile: its own C clock is replaced by the gated one ---- */

static initproc original_profiler_init;

static int
profiler_init(PyObject *self, PyObject *args, PyObject *kwds)
{
    if (gate_passes() || PyTuple_GET_SIZE(args) > 0 || (kwds && PyDict_GetItemString(kwds, "timer")))
        return original_profiler_init(self, args, kwds);
    PyObject *time = PyImport_ImportModule("time");
    PyObject *timer = time ? PyObject_GetAttrString(time, "perf_counter") : NULL;
    PyObject *more = kwds ? PyDict_Copy(kwds) : PyDict_New();
    int rc = timer && more && PyDict_SetItemString(more, "timer", timer) == 0 ? original_profiler_init(self, args, more)
                                                                              : -1;
    Py_XDECREF(more);
    Py_XDECREF(timer);
    Py_XDECREF(time);
    return rc;
}

static void
patch_init(PyObject *module, const char *name, initproc *original, initproc replacement)
{
    PyObject *type = PyDict_GetItemString(PyModule_GetDict(module), name);
    if (type == NULL || *original)
        return;
    *original = ((PyTypeObject *)type)->tp_init;
    ((PyTypeObject *)type)->tp_init = replacement;
    patch_wrapper((PyTypeObject *)type, "__init__", (void *)replacement);
}

/* ---- profiles: in the order of what was called; the profiler's own is that of addresses ---- */

/* What an entry is ordered by. Code objects may share a name (two texts given to `exec`, two lambdas of a line): then the
 * columns decide, then the number of calls and the times, which are recorded. */
static PyObject *
key_of_entry(PyObject *entry)
{
    PyObject *what = PyStructSequence_GET_ITEM(entry, 0), *name, *columns;
    if (PyCode_Check(what)) {
        PyCodeObject *code = (PyCodeObject *)what;
        name = PyUnicode_FromFormat("%U:%d:%U", code->co_filename, code->co_firstlineno, code->co_qualname);
        columns = Py_NewRef(code->co_linetable);
    }
    else {
        name = PyObject_Str(what);
        columns = PyBytes_FromStringAndSize(NULL, 0);
    }
    if (name && columns)
        return Py_BuildValue("(NNOOOO)", name, columns, PyStructSequence_GET_ITEM(entry, 1),
                             PyStructSequence_GET_ITEM(entry, 2), PyStructSequence_GET_ITEM(entry, 3),
                             PyStructSequence_GET_ITEM(entry, 4));
    Py_XDECREF(name);
    Py_XDECREF(columns);
    return NULL;
}

/* Sorts a list of entries, and the list of calls in each. */
static int
order_entries(PyObject *entries)
{
    Py_ssize_t n = PyList_GET_SIZE(entries);
    PyObject *named = PyList_New(n);
    int rc = named ? 0 : -1;
    for (Py_ssize_t i = 0; rc == 0 && i < n; i++) {
        PyObject *entry = PyList_GET_ITEM(entries, i), *key = key_of_entry(entry);
        PyObject *pair = key ? Py_BuildValue("(NnO)", key, i, entry) : NULL;
        PyObject *calls = Py_SIZE(entry) > 5 ? PyStructSequence_GET_ITEM(entry, 5) : NULL;
        rc = pair == NULL || (calls && PyList_CheckExact(calls) && order_entries(calls) < 0) ? -1 : 0;
        PyList_SET_ITEM(named, i, pair);
    }
    rc = rc < 0 ? -1 : PyList_Sort(named);
    for (Py_ssize_t i = 0; rc == 0 && i < n; i++) {
        PyObject *entry = Py_NewRef(PyTuple_GET_ITEM(PyList_GET_ITEM(named, i), 2));
        rc = PyList_SetItem(entries, i, entry);
    }
    Py_XDECREF(named);
    return rc;
}

static PyObject *
profile_entries(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    PyObject *entries = gate_call_original(g, self, args, nargs, kwnames);
    if (entries == NULL || !PyList_CheckExact(entries))
        return entries;
    own_work_begin(); /* how many tuples live at once depends on the order that there was */
    int rc = order_entries(entries);
    own_work_end();
    if (rc < 0)
        Py_CLEAR(entries);
    return entries;
}

const HandlerEntry clock_handlers[] = {{"profile_entries", profile_entries},
                                       {"dt_now", dt_now},
                                       {"dt_utcnow", dt_utcnow},
                                       {"random_seed", random_seed},
                                       {NULL, NULL}};

int
datetime_module_loaded(PyObject *module, const char *name)
{
    if (strcmp(name, "_datetime") == 0) {
        /* not PyDateTime_IMPORT: that would import `datetime`, which is being imported right now */
        PyObject *capsule = PyDict_GetItemString(PyModule_GetDict(module), "datetime_CAPI");
        if (capsule && PyDateTimeAPI == NULL)
            PyDateTimeAPI = PyCapsule_GetPointer(capsule, PyDateTime_CAPSULE_NAME);
        PyErr_Clear();
    }
    else if (strcmp(name, "_random") == 0 && random_type == NULL) {
        install_random(module);
        draws_install(random_type);
    }
    else if (strcmp(name, "_lsprof") == 0)
        patch_init(module, "Profiler", &original_profiler_init, profiler_init);
    return 0;
}
