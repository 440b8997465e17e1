/* The interpreter's frames, which each version of CPython lays out in another way. */
#ifndef REPLAYDBG_FRAMES_H
#define REPLAYDBG_FRAMES_H
#include "base/compat.h"

/* The topmost frame of Python code, or NULL. Frames that have not begun, and the shims of the C stack, are not frames.
 */
static inline _PyInterpreterFrame *
compat_top_frame(PyThreadState *ts)
{
#if PY_VERSION_HEX >= 0x030D0000
    _PyInterpreterFrame *frame = ts->current_frame;
#else
    _PyInterpreterFrame *frame = ts->cframe->current_frame;
#endif
    while (frame && _PyFrame_IsIncomplete(frame))
        frame = frame->previous;
    return frame;
}

static inline _PyInterpreterFrame *
compat_previous_frame(_PyInterpreterFrame *frame)
{
    frame = frame->previous;
    while (frame && _PyFrame_IsIncomplete(frame))
        frame = frame->previous;
    return frame;
}

/* Cuts the frames of our own start-up off the stack, so that the program's first frame is the bottom one. */
static inline void
compat_unlink_frames(PyThreadState *ts)
{
#if PY_VERSION_HEX >= 0x030D0000
    ts->current_frame = NULL;
#else
    ts->cframe->current_frame = NULL;
#endif
}

static inline PyCodeObject *
compat_frame_code(_PyInterpreterFrame *frame)
{
#if PY_VERSION_HEX >= 0x030E0000
    return (PyCodeObject *)PyStackRef_AsPyObjectBorrow(frame->f_executable);
#elif PY_VERSION_HEX >= 0x030D0000
    return (PyCodeObject *)frame->f_executable;
#else
    return frame->f_code;
#endif
}

/* Borrowed. */
static inline PyObject *
compat_frame_function(_PyInterpreterFrame *frame)
{
#if PY_VERSION_HEX >= 0x030E0000
    return PyStackRef_AsPyObjectBorrow(frame->f_funcobj);
#elif PY_VERSION_HEX >= 0x030C0000
    return frame->f_funcobj;
#else
    return (PyObject *)frame->f_func;
#endif
}

/* What the place of a local variable, or an entry of the value stack, holds: borrowed, or NULL. Since 3.14 such a word
 * has a tag, and an entry of the stack may be a number of the interpreter's own, which is no object. */
static inline PyObject *
compat_frame_value(const _PyInterpreterFrame *frame, int place)
{
#if PY_VERSION_HEX >= 0x030E0000
    _PyStackRef held = frame->localsplus[place];
    return PyStackRef_IsNullOrInt(held) ? NULL : PyStackRef_AsPyObjectBorrow(held);
#else
    return frame->localsplus[place];
#endif
}

static inline _PyInterpreterFrame *
compat_generator_frame(PyGenObject *generator)
{
#if PY_VERSION_HEX >= 0x030E0000
    return &generator->gi_iframe;
#else
    return (_PyInterpreterFrame *)generator->gi_iframe;
#endif
}

/* Borrowed; of a frame that a generator owns. */
static inline PyGenObject *
compat_frame_generator(_PyInterpreterFrame *frame)
{
#if PY_VERSION_HEX >= 0x030E0000
    return _PyGen_GetGeneratorFromFrame(frame);
#else
    return _PyFrame_GetGenerator(frame);
#endif
}

/* How many places of a frame that does not run are in use, its local variables among them. Negative: it runs. */
static inline int
compat_frame_places(const _PyInterpreterFrame *frame)
{
#if PY_VERSION_HEX >= 0x030E0000
    bool runs = frame->owner == FRAME_OWNED_BY_THREAD ||
                (frame->owner == FRAME_OWNED_BY_GENERATOR &&
                 compat_frame_generator((_PyInterpreterFrame *)frame)->gi_frame_state == FRAME_EXECUTING);
    return runs ? -1 : (int)(frame->stackpointer - frame->localsplus);
#else
    return frame->stacktop;
#endif
}

/* The interpreter's evaluation loop begins here: C code has called it. */
static inline bool
compat_frame_begins_loop(const _PyInterpreterFrame *frame)
{
#if PY_VERSION_HEX >= 0x030E0000
    return frame->previous == NULL || frame->previous->owner >= FRAME_OWNED_BY_INTERPRETER;
#elif PY_VERSION_HEX >= 0x030C0000
    return frame->previous == NULL || frame->previous->owner == FRAME_OWNED_BY_CSTACK;
#else
    return frame->is_entry;
#endif
}

static inline const void *
compat_frame_instr(_PyInterpreterFrame *frame)
{
#if PY_VERSION_HEX >= 0x030D0000
    return frame->instr_ptr;
#else
    return frame->prev_instr;
#endif
}

/* Offset in bytes of the instruction that a frame executes, as f_lasti. */
static inline int
compat_frame_lasti(_PyInterpreterFrame *frame)
{
    PyCodeObject *code = compat_frame_code(frame);
    return (int)((const char *)compat_frame_instr(frame) - (const char *)_PyCode_CODE(code));
}

/* Of a local variable, by its kind: it is a comprehension's that is compiled into the function around it. */
static inline bool
compat_is_hidden(int kind)
{
#ifdef CO_FAST_HIDDEN
    return kind & CO_FAST_HIDDEN;
#else
    return false;
#endif
}

#endif
