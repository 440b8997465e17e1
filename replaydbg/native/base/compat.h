/* The differences between the versions of CPython that the core meets, each under one name. Those of frames are in
 * base/frames.h, and those of the recursion limit in base/recursion.h. */
#ifndef REPLAYDBG_COMPAT_H
#define REPLAYDBG_COMPAT_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#define PY_SSIZE_T_CLEAN
#ifndef Py_BUILD_CORE_MODULE
#define Py_BUILD_CORE_MODULE 1
#endif
#include <Python.h>
/* setup.py says the same in a sentence (supported.py); here, before the internal headers, for whoever builds in another
 * way. */
#if PY_VERSION_HEX < 0x030B0000 || PY_VERSION_HEX >= 0x030F0000
#error "replaydbg's native core supports CPython 3.11 to 3.14"
#endif
#if PY_VERSION_HEX >= 0x030E0000 && PY_VERSION_HEX < 0x030E0500
#error "replaydbg's native core does not know the incremental garbage collector of CPython 3.14.0 to 3.14.4"
#endif
#ifdef Py_GIL_DISABLED
#error "replaydbg's native core does not support free-threaded builds"
#endif
#ifdef Py_DEBUG
#error "replaydbg's native core does not support debug builds"
#endif
#if PY_VERSION_HEX >= 0x030D0000
#include <internal/pycore_ceval.h>
#endif
#include <internal/pycore_frame.h>
#include <internal/pycore_interp.h>
#include <internal/pycore_pystate.h>
#include <internal/pycore_runtime.h>
#if PY_VERSION_HEX >= 0x030C0000
#include <internal/pycore_instruments.h>
#endif
#if PY_VERSION_HEX >= 0x030D0000
#include <internal/pycore_setobject.h>
#endif
#if PY_VERSION_HEX >= 0x030E0000
#include <internal/pycore_gc.h>
#include <internal/pycore_genobject.h>
#include <internal/pycore_interpframe.h>
#include <internal/pycore_stackref.h>
#include <internal/pycore_tstate.h>
#endif
#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>
#include <string.h>

#if PY_VERSION_HEX >= 0x030C0000
#define CODE_EXTRA_INDEX PyUnstable_Eval_RequestCodeExtraIndex
#define CODE_GET_EXTRA PyUnstable_Code_GetExtra
#define CODE_SET_EXTRA PyUnstable_Code_SetExtra
#else
#define CODE_EXTRA_INDEX _PyEval_RequestCodeExtraIndex
#define CODE_GET_EXTRA _PyCode_GetExtra
#define CODE_SET_EXTRA _PyCode_SetExtra
#endif

/* Identity: the words before an object that its type asks for, the hash of an address, and what a weak reference refers
 * to. */
#if PY_VERSION_HEX >= 0x030C0000
#define COMPAT_PREHEADER Py_TPFLAGS_PREHEADER
#else
#define COMPAT_PREHEADER Py_TPFLAGS_MANAGED_DICT
#endif
#if PY_VERSION_HEX >= 0x030D0000
#define COMPAT_HASH_POINTER(p) Py_HashPointer(p)
#else
#define COMPAT_HASH_POINTER(p) _Py_HashPointer(p)
#endif
#define compat_weakref_object(ref) (((PyWeakReference *)(ref))->wr_object)

/* The thread state that holds the interpreter's lock, or NULL; since 3.12: if this thread does. */
static inline PyThreadState *
compat_attached(void)
{
#if PY_VERSION_HEX >= 0x030D0000
    return PyThreadState_GetUnchecked();
#else
    return _PyThreadState_UncheckedGet();
#endif
}

/* A signal has come whose handler has not run yet. `is_tripped` alone may also be left over from a handler that raised.
 */
static inline bool
compat_signals_tripped(void)
{
#if PY_VERSION_HEX >= 0x030C0000
#if PY_VERSION_HEX >= 0x030D0000
#define IS_SET(flag) _Py_atomic_load_int_relaxed(&_PyRuntime.signals.flag)
#else
#define IS_SET(flag) _Py_atomic_load_relaxed(&_PyRuntime.signals.flag)
#endif
    if (IS_SET(is_tripped))
        for (int i = 1; i < Py_NSIG; i++)
            if (IS_SET(handlers[i].tripped))
                return true;
    return false;
#undef IS_SET
#else
    return _Py_atomic_load_relaxed(&_PyRuntime.ceval.signals_pending);
#endif
}

/* The interpreter's lock, with what its waiters share. */
typedef struct _gil_runtime_state Gil;

static inline Gil *
compat_gil(void)
{
#if PY_VERSION_HEX >= 0x030C0000
    return _PyRuntime.interpreters.main->ceval.gil;
#else
    return &_PyRuntime.ceval.gil;
#endif
}

static inline bool
compat_gil_is_free(Gil *gil)
{
#if PY_VERSION_HEX >= 0x030D0000
    return _Py_atomic_load_int_relaxed(&gil->locked) == 0;
#else
    return _Py_atomic_load_relaxed(&gil->locked) == 0;
#endif
}

/* 3.11 keeps one note for all threads that an exception has been raised in one of them from outside
 * (PyThreadState_SetAsyncExc). While it is there, each thread looks at every check, and one that is traced makes the
 * first check of a function again and again: nobody may run with it but the thread that it is for, which notes it anew
 * when it takes the interpreter's lock. */
static inline void
compat_forget_raised(void)
{
#if PY_VERSION_HEX < 0x030C0000
    PyInterpreterState *interp = _PyRuntime.interpreters.main;
    if (interp) /* not after its end */
        interp->ceval.pending.async_exc = 0;
#endif
}

/* Borrowed, or NULL: at the interpreter's end there are none. */
static inline PyObject *
compat_modules(PyInterpreterState *interp)
{
#if PY_VERSION_HEX >= 0x030C0000
    return interp->imports.modules;
#else
    return interp->modules;
#endif
}

/* Borrowed: the type keeps it. Static types of the interpreter have theirs elsewhere since 3.12. */
static inline PyObject *
compat_type_dict(PyTypeObject *type)
{
#if PY_VERSION_HEX >= 0x030C0000
    PyObject *dict = PyType_GetDict(type);
    Py_XDECREF(dict);
    return dict;
#else
    return type->tp_dict;
#endif
}

/* The interpreter refuses to run a main program twice; the bootstrap command, which never ends, is the first. */
static inline void
compat_main_not_running(PyThreadState *ts)
{
#if PY_VERSION_HEX >= 0x030C0000
    _PyInterpreterState_SetNotRunningMain(ts->interp);
#endif
}

static inline PyConfig *
compat_config(PyThreadState *ts)
{
    return (PyConfig *)&ts->interp->config;
}

/* Since 3.13 the interpreter remembers what it put first into sys.path, and names it when an import looks shadowed. */
static inline void
compat_set_path0(PyConfig *config, wchar_t *path)
{
#if PY_VERSION_HEX >= 0x030D0000
    PyMem_RawFree(config->sys_path_0);
    config->sys_path_0 = path;
#else
    PyMem_RawFree(path);
#endif
}

static inline void
compat_forget_path0(PyConfig *config)
{
    compat_set_path0(config, NULL);
}

/* Since 3.14 others can have a script run in this process wherever it stands (sys.remote_exec), and there are builds that
 * compile the program at run time, whose frames do not show where they are. A recorded program has neither. */
static inline void
compat_run_plainly(PyThreadState *ts)
{
#if PY_VERSION_HEX >= 0x030E0000
    compat_config(ts)->remote_debug = 0;
    ts->interp->jit = false;
#endif
}

/* Since 3.12 an allocation only schedules a collection; the evaluation loop runs it at its next check. */
static inline bool
compat_collection_scheduled(PyThreadState *ts)
{
#if PY_VERSION_HEX >= 0x030D0000
    return _Py_eval_breaker_bit_is_set(ts, _PY_GC_SCHEDULED_BIT);
#elif PY_VERSION_HEX >= 0x030C0000
    return _Py_atomic_load_relaxed(&ts->interp->ceval.gc_scheduled);
#else
    return false;
#endif
}

static inline void
compat_schedule_collection(PyThreadState *ts)
{
#if PY_VERSION_HEX >= 0x030D0000
    _Py_set_eval_breaker_bit(ts, _PY_GC_SCHEDULED_BIT);
#elif PY_VERSION_HEX >= 0x030C0000
    _Py_atomic_store_relaxed(&ts->interp->ceval.gc_scheduled, 1);
    _Py_atomic_store_relaxed(&ts->interp->ceval.eval_breaker, 1);
#endif
}

static inline void
compat_unschedule_collection(PyThreadState *ts)
{
#if PY_VERSION_HEX >= 0x030D0000
    _Py_unset_eval_breaker_bit(ts, _PY_GC_SCHEDULED_BIT);
#elif PY_VERSION_HEX >= 0x030C0000
    _Py_atomic_store_relaxed(&ts->interp->ceval.gc_scheduled, 0); /* the breaker itself goes down at the next check */
#endif
}

/* What a weak reference leads to, or None: a new reference. */
static inline PyObject *
compat_weakref_target(PyObject *weak)
{
#if PY_VERSION_HEX >= 0x030D0000
    PyObject *target;
    return PyWeakref_GetRef(weak, &target) > 0 ? target : Py_NewRef(Py_None);
#else
    return Py_NewRef(PyWeakref_GET_OBJECT(weak));
#endif
}

static inline bool
compat_is_finalizing(void)
{
#if PY_VERSION_HEX >= 0x030D0000
    return Py_IsFinalizing();
#else
    return _Py_IsFinalizing();
#endif
}

/* Since 3.12 there is no fork while the interpreter is being finalized; in 3.12.0 and 3.12.1 that begins with the
 * functions of atexit. */
static inline bool
compat_refuses_to_fork(void)
{
#if PY_VERSION_HEX >= 0x030C0000 && PY_VERSION_HEX < 0x030D0000
    return compat_is_finalizing() || (Py_Version < 0x030C0200 && _PyInterpreterState_GET()->finalizing);
#else
    return PY_VERSION_HEX >= 0x030D0000 && compat_is_finalizing();
#endif
}

/* A type's subclasses: a dictionary of weak references, or NULL. That of a type of the interpreter's image is kept apart
 * since 3.12, and since 3.13 those of some extension modules are, too. */
static inline PyObject *
compat_subclasses(PyTypeObject *type)
{
#if PY_VERSION_HEX >= 0x030C0000
    if (type->tp_flags & _Py_TPFLAGS_STATIC_BUILTIN) {
        struct types_state *types = &_PyInterpreterState_GET()->types;
        size_t index = (size_t)type->tp_subclasses - 1; /* its own table's */
#if PY_VERSION_HEX >= 0x030D0000
        if (index < _Py_MAX_MANAGED_STATIC_BUILTIN_TYPES && types->builtins.initialized[index].type == type)
            return types->builtins.initialized[index].tp_subclasses;
        if (index < _Py_MAX_MANAGED_STATIC_EXT_TYPES && types->for_extensions.initialized[index].type == type)
            return types->for_extensions.initialized[index].tp_subclasses;
#else
        if (index < _Py_MAX_STATIC_BUILTIN_TYPES && types->builtins[index].type == type)
            return types->builtins[index].tp_subclasses;
#endif
        return NULL;
    }
#endif
    return (PyObject *)type->tp_subclasses;
}

#endif
