/* What a place in pure computation is known by, so that a replay finds it again: a signal came there, and nothing was
 * counted.
 *
 * First the stack: code, instruction and simple locals of each frame. Where a loop goes round with the same locals (its
 * state is an attribute, an element of a list, a global of another module, the position of an iterator), that is not
 * enough; so the state that the frames can reach is added, the nearest first, up to a bound. It comes in levels: that
 * of the topmost frame and the nearest few objects differs already in most rounds of such a loop, and a replay looks no
 * further then.
 *
 * Nothing here runs program code, makes an object or depends on an address, and all of it is the same in a recording
 * and its replay. */
#include "base/core.h"
#include "code/code.h"
#include "collector/collector.h"
#include "lanes/lanes.h"
#include "signals/inside.h"
#include <internal/pycore_dict.h>
#include <stdlib.h>

enum {
    MOST_OBJECTS = 1024, /* 50 to 100 ns each */
    TABLE_SIZE = 4096,
    MOST_ITEMS = 128, /* of one container */
    MOST_FRAMES = 64,
    MOST_NAMES = 64,
    MOST_MODULES = 8,
    NEAR_OBJECTS = 8,
    ENDS = 256 /* bytes of a long text, at both ends */
};
/* the first: of the topmost frame alone */
static const int level_ends[PLACE_LEVELS] = {NEAR_OBJECTS, 0, 8, 32, 128, MOST_OBJECTS};

#define mix place_mix

/* ---- values that are what they are ---- */

static uint64_t
hash_ends(const void *data, size_t n, uint64_t seed)
{
    if (n <= 2 * ENDS)
        return hash_bytes(data, n, seed);
    return hash_bytes((const char *)data + n - ENDS, ENDS, hash_bytes(data, ENDS, mix(seed, n)));
}

/* Such as the handle of a library that ctypes has opened. */
static bool
is_address(PyObject *v)
{
    int overflow;
    long long n = PyLong_AsLongLongAndOverflow(v, &overflow);
    return !overflow && n > 0 && place_may_be_address((uint64_t)n);
}

static uint64_t
hash_integer(PyObject *v, uint64_t seed)
{
    if (is_address(v))
        return mix(seed, 0);
    PyLongObject *n = (PyLongObject *)v;
#if PY_VERSION_HEX >= 0x030C0000
    size_t digits = n->long_value.lv_tag >> 3;
    return hash_ends(n->long_value.ob_digit, digits * sizeof(digit), mix(seed, n->long_value.lv_tag & 3));
#else
    size_t digits = (size_t)Py_ABS(Py_SIZE(v));
    return hash_ends(n->ob_digit, digits * sizeof(digit), mix(seed, Py_SIZE(v) < 0));
#endif
}

/* False: it is none. */
static bool
hash_value(PyObject *v, uint64_t *h)
{
    if (PyLong_Check(v))
        *h = hash_integer(v, *h);
    else if (PyFloat_Check(v) || PyComplex_CheckExact(v))
        *h = hash_bytes((char *)v + sizeof(PyObject), PyFloat_Check(v) ? sizeof(double) : sizeof(Py_complex), *h);
    else if (PyUnicode_Check(v))
        *h = hash_ends(PyUnicode_DATA(v), (size_t)PyUnicode_GET_LENGTH(v) * PyUnicode_KIND(v), *h);
    else if (PyBytes_Check(v))
        *h = hash_ends(PyBytes_AS_STRING(v), (size_t)PyBytes_GET_SIZE(v), *h);
    else if (PyByteArray_CheckExact(v))
        *h = hash_ends(PyByteArray_AS_STRING(v), (size_t)PyByteArray_GET_SIZE(v), *h);
    else
        return false;
    return true;
}

/* The commonest values, several times as fast as the rest of this file has it, which must stay as it is: recordings of
 * earlier versions have its results. */
bool
place_hash_quickly(PyObject *v, uint64_t *h)
{
    enum { LONG_TEXT = 4096 }; /* its hash is kept, but the program may make a longer one each time */
    if (PyLong_CheckExact(v)) {
#if PY_VERSION_HEX >= 0x030C0000
        if (((PyLongObject *)v)->long_value.lv_tag >= 2 << 3) /* digits */
            return false;
        *h = mix(*h, (uint64_t)PyUnstable_Long_CompactValue((PyLongObject *)v));
#else
        if (Py_SIZE(v) < -1 || Py_SIZE(v) > 1)
            return false;
        *h = mix(*h, (uint64_t)(Py_SIZE(v) * (Py_ssize_t)((PyLongObject *)v)->ob_digit[0]));
#endif
        return true;
    }
    if (PyUnicode_CheckExact(v) && PyUnicode_GET_LENGTH(v) <= LONG_TEXT) {
        *h = mix(*h, (uint64_t)PyObject_Hash(v)); /* its seed is recorded */
        return true;
    }
    if (PyFloat_CheckExact(v)) {
        uint64_t bits;
        double number = PyFloat_AS_DOUBLE(v);
        memcpy(&bits, &number, sizeof bits);
        *h = mix(*h, bits);
        return true;
    }
    return false;
}

static uint64_t
hash_type(PyObject *v, uint64_t h)
{
    const char *name = Py_TYPE(v)->tp_name;
    return hash_bytes(name, strlen(name), h);
}

/* ---- the stack ---- */

uint64_t
place_hash_simple(PyObject *v, uint64_t h, int depth)
{
    if (v == NULL)
        return mix(h, 0);
    if (hash_value(v, &h))
        return h;
    Py_ssize_t n = PyList_CheckExact(v) || PyTuple_CheckExact(v) ? Py_SIZE(v) : -1;
    if (PyDict_CheckExact(v))
        n = PyDict_GET_SIZE(v);
    h = mix(hash_type(v, h), (uint64_t)n);
    if (depth > 0 && (PyTuple_CheckExact(v) || PyList_CheckExact(v)))
        for (Py_ssize_t i = 0; i < Py_SIZE(v) && i < 8; i++)
            h = place_hash_simple(PySequence_Fast_GET_ITEM(v, i), h, depth - 1);
    return h;
}

static uint64_t
hash_frame(_PyInterpreterFrame *frame, uint64_t h)
{
    PyCodeObject *code = compat_frame_code(frame);
    h = hash_text(code->co_filename, hash_text(code->co_qualname, h));
    h = mix(mix(h, (uint64_t)code->co_firstlineno), (uint64_t)stack_place(frame).unit);
    for (int i = 0; i < code->co_nlocalsplus; i++)
        h = place_hash_simple(compat_frame_value(frame, i), h, 1);
    if (!(code->co_flags & CO_OPTIMIZED) && frame->f_locals && PyDict_CheckExact(frame->f_locals)) {
        Py_ssize_t pos = 0;
        PyObject *key, *value;
        while (PyDict_Next(frame->f_locals, &pos, &key, &value))
            h = place_hash_simple(value, place_hash_simple(key, h, 0), 1);
    }
    return h;
}

static uint64_t
hash_stack(void)
{
    uint64_t h = 0;
    for (_PyInterpreterFrame *f = compat_top_frame(core.tstate); f; f = compat_previous_frame(f))
        h = hash_frame(f, h);
    return h;
}

/* ---- what the frames can reach ---- */

static struct {
    PyObject *queue[MOST_OBJECTS];
    int head, tail;
    struct {
        const void *object;
        uint32_t walk;
        int number;
    } seen[TABLE_SIZE];
    uint32_t walk;
    uint64_t h;
    int items;       /* still to be visited of the object that is looked into */
    bool is_partial; /* something was met that may change unseen */
    bool is_quick;   /* not for a place of an earlier version */
} walk;

/* The number of an object in the order in which this walk has met it: references to the same one are distinguished from what
 * refers to an equal one. */
static int
number_of(PyObject *o)
{
    size_t slot = ((uintptr_t)o >> 4) * 0x9E3779B97F4A7C15u >> 40 & (TABLE_SIZE - 1);
    for (; walk.seen[slot].walk == walk.walk; slot = (slot + 1) & (TABLE_SIZE - 1))
        if (walk.seen[slot].object == o)
            return walk.seen[slot].number;
    if (walk.tail == MOST_OBJECTS) {
        walk.is_partial = true;
        return -1;
    }
    walk.seen[slot].object = o;
    walk.seen[slot].walk = walk.walk;
    walk.seen[slot].number = walk.tail;
    walk.queue[walk.tail] = o;
    return walk.tail++;
}

static void
visit(PyObject *o)
{
    if (o == NULL || o == Py_None) {
        walk.h = mix(walk.h, o != NULL);
        return;
    }
    if (walk.is_quick && place_hash_quickly(o, &walk.h))
        return;
    if (hash_value(o, &walk.h) && !(Py_TYPE(o)->tp_flags & Py_TPFLAGS_HEAPTYPE) && !PyByteArray_Check(o))
        return;
    walk.h = hash_type(o, walk.h);
    if (!PyModule_Check(o) && !PyCode_Check(o))
        walk.h = mix(walk.h, (uint64_t)number_of(o));
}

static int
visit_some(PyObject *o, void *unused)
{
    if (walk.items-- <= 0) {
        walk.is_partial = true;
        return 1;
    }
    visit(o);
    return 0;
}

/* A class that Python code has made. */
static bool
is_of_python(PyTypeObject *type)
{
    return type->tp_flags & Py_TPFLAGS_HEAPTYPE && ((PyHeapTypeObject *)type)->ht_module == NULL && type->tp_traverse;
}

static PyObject *
look_up(PyObject *dict, PyObject *name)
{
    if (dict == NULL || !PyDict_CheckExact(dict) || ((PyDictObject *)dict)->ma_keys->dk_kind == DICT_KEYS_GENERAL)
        return NULL; /* a key might be of a class with an __eq__ of its own */
    return PyDict_GetItemWithError(dict, name);
}

static bool
is_importers(PyCodeObject *code)
{
    static const char prefix[] = "<frozen importlib";
    PyObject *file = code->co_filename;
    return PyUnicode_Check(file) && PyUnicode_IS_COMPACT_ASCII(file) &&
           PyUnicode_GET_LENGTH(file) >= (Py_ssize_t)sizeof prefix &&
           memcmp(PyUnicode_DATA(file), prefix, sizeof prefix - 1) == 0;
}

/* What the names in a function mean: globals, and globals of the modules among them. */
static void
visit_names(PyCodeObject *code, PyObject *globals)
{
    PyObject *modules[MOST_MODULES];
    int count = 0;
    Py_ssize_t n = Py_MIN(PyTuple_GET_SIZE(code->co_names), MOST_NAMES);
    walk.is_partial |= PyTuple_GET_SIZE(code->co_names) > MOST_NAMES;
    if (is_importers(code))
        return; /* what it has cached differs */
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *value = look_up(globals, PyTuple_GET_ITEM(code->co_names, i));
        if (value == NULL)
            continue;
        visit(value);
        PyObject *dict = PyModule_CheckExact(value) ? PyModule_GetDict(value) : NULL;
        if (dict == NULL || dict == core.tstate->interp->sysdict) /* `sys` has the importer's caches */
            continue;
        if (count < MOST_MODULES)
            modules[count++] = dict;
        else
            walk.is_partial = true;
    }
    for (int m = 0; m < count; m++)
        for (Py_ssize_t i = 0; i < n; i++) {
            PyObject *value = look_up(modules[m], PyTuple_GET_ITEM(code->co_names, i));
            if (value)
                visit(value);
        }
}

/* Numbers in an object that C code has made: words that are no addresses. */
static void
visit_words(PyObject *o, PyTypeObject *type)
{
    uint64_t word;
    const char *end = (const char *)o + type->tp_basicsize;
    for (const char *p = (const char *)o + sizeof(PyObject); p + sizeof word <= end; p += sizeof word) {
        memcpy(&word, p, sizeof word);
        if (!memory_may_be_address(word))
            walk.h = mix(walk.h, word);
    }
}

/* Iterators and their like, whose position is a number, and which keep nothing that depends on more than the program.
 */
static bool
has_position(PyTypeObject *type)
{
    static const char *const names[] = {"enumerate",         "zip",         "map",           "filter", "reversed",
                                        "collections.deque", "_io.BytesIO", "_random.Random"};
    const char *name = type->tp_name;
    size_t n = strlen(name);
    if (strncmp(name, "itertools.", 10) == 0 || strncmp(name, "datetime.", 9) == 0 ||
        (n >= 8 && strcmp(name + n - 8, "iterator") == 0))
        return true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static bool
only_refers(PyTypeObject *type)
{
    static const char *const names[] = {"functools.partial",
                                        "set",
                                        "frozenset",
                                        "cell",
                                        "method",
                                        "property",
                                        "classmethod",
                                        "staticmethod",
                                        "collections.defaultdict",
                                        "collections.OrderedDict",
                                        "types.SimpleNamespace"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(type->tp_name, names[i]) == 0)
            return true;
    return false;
}

static bool
never_changes(PyTypeObject *type)
{
    static const char *const names[] = {"getset_descriptor",
                                        "member_descriptor",
                                        "method_descriptor",
                                        "wrapper_descriptor",
                                        "classmethod_descriptor",
                                        "method-wrapper",
                                        "ellipsis",
                                        "NotImplementedType",
                                        "types.GenericAlias",
                                        "types.UnionType",
                                        "range",
                                        "slice",
                                        "mappingproxy"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(type->tp_name, names[i]) == 0)
            return true;
    return false;
}

static void
visit_generator(PyGenObject *gen)
{
    _PyInterpreterFrame *frame = compat_generator_frame(gen);
    walk.h = mix(walk.h, (uint64_t)(gen->gi_frame_state < FRAME_EXECUTING));
    if (gen->gi_frame_state >= FRAME_EXECUTING)
        return;
    walk.h = mix(walk.h, (uint64_t)stack_place(frame).unit);
    for (int i = 0, n = compat_frame_places(frame); i < n; i++) /* locals too */
        visit(compat_frame_value(frame, i));
    visit(compat_frame_function(frame));
}

static void
visit_class(PyTypeObject *type)
{
    Py_ssize_t pos = 0;
    PyObject *key, *value;
    walk.is_partial |= PyDict_GET_SIZE(type->tp_dict) > MOST_ITEMS;
    for (int i = 0; i < MOST_ITEMS && PyDict_Next(type->tp_dict, &pos, &key, &value); i++)
        if (PyUnicode_Check(key) && (PyFunction_Check(value) || PyUnicode_GET_LENGTH(key) < 2 ||
                                     PyUnicode_READ_CHAR(key, 0) != '_' || PyUnicode_READ_CHAR(key, 1) != '_'))
            visit(value);
    if (type->tp_base && is_of_python(type->tp_base))
        visit((PyObject *)type->tp_base);
}

static void
visit_items(PyObject *o)
{
    Py_ssize_t n = Py_SIZE(o);
    walk.h = mix(walk.h, (uint64_t)n);
    walk.is_partial |= n > MOST_ITEMS; /* contents.c takes their values, not what they refer to */
    for (Py_ssize_t i = 0; i < n; i++) {
        if (i == MOST_ITEMS / 2 && n > MOST_ITEMS)
            i = n - MOST_ITEMS / 2;
        visit(PyList_Check(o) ? PyList_GET_ITEM(o, i) : PyTuple_GET_ITEM(o, i));
    }
}

static void
visit_dict(PyObject *o)
{
    Py_ssize_t pos = 0;
    PyObject *key, *value;
    walk.h = mix(walk.h, (uint64_t)PyDict_GET_SIZE(o));
    walk.is_partial |= PyDict_GET_SIZE(o) > MOST_ITEMS;
    for (int i = 0; i < MOST_ITEMS && PyDict_Next(o, &pos, &key, &value); i++) {
        visit(key);
        visit(value);
    }
}

static void
visit_referents(PyObject *o)
{
    walk.items = MOST_ITEMS;
    if (Py_TYPE(o)->tp_traverse && PyType_IS_GC(Py_TYPE(o)))
        /* reads attributes where they are, without making a dictionary for them */
        Py_TYPE(o)->tp_traverse(o, visit_some, NULL);
}

static void
look_into(PyObject *o)
{
    PyTypeObject *type = Py_TYPE(o), *base = type;
    while (base && is_of_python(base))
        base = base->tp_base;
    if (PyType_Check(o)) {
        if (is_of_python((PyTypeObject *)o))
            visit_class((PyTypeObject *)o);
    }
    else if (PyFunction_Check(o)) {
        PyFunctionObject *f = (PyFunctionObject *)o;
        visit(f->func_closure);
        visit(f->func_defaults);
        visit(f->func_kwdefaults);
        visit(f->func_dict);
        visit_names((PyCodeObject *)f->func_code, f->func_globals);
    }
    else if (PyCFunction_Check(o)) {
        if (PyCFunction_GET_SELF(o))
            visit(PyCFunction_GET_SELF(o));
    }
    else if (PyGen_CheckExact(o) || PyCoro_CheckExact(o) || PyAsyncGen_CheckExact(o))
        visit_generator((PyGenObject *)o);
    else if (PyList_CheckExact(o) || PyTuple_CheckExact(o))
        visit_items(o);
    else if (PyDict_CheckExact(o))
        visit_dict(o);
    else {
        if (PyDict_Check(o))
            visit_dict(o);
        if (base && base != &PyBaseObject_Type && has_position(base))
            visit_words(o, base);
        else if (base == type && !only_refers(type)) {
            walk.is_partial |= !never_changes(type); /* of C code: unknown */
            return;
        }
        visit_referents(o);
    }
}

static void
visit_frame(_PyInterpreterFrame *frame)
{
    PyCodeObject *code = compat_frame_code(frame);
    int n = code->co_nlocalsplus + stack_place(frame).depth;
    for (int k = 0; k < n; k++)
        visit(compat_frame_value(frame, k));
    if (!(code->co_flags & CO_OPTIMIZED) && frame->f_locals && frame->f_locals != frame->f_globals &&
        PyDict_CheckExact(frame->f_locals))
        visit_dict(frame->f_locals);
}

static void
visit_frames(int most)
{
    _PyInterpreterFrame *top = compat_top_frame(core.tstate), *frame = top;
    for (int i = 0; frame && i < most; i++, frame = compat_previous_frame(frame))
        visit_frame(frame);
    PyCodeObject *last = NULL;
    frame = top;
    for (int i = 0; frame && i < most; i++, frame = compat_previous_frame(frame)) {
        if (compat_frame_code(frame) != last)
            visit_names(compat_frame_code(frame), frame->f_globals);
        last = compat_frame_code(frame);
    }
}

static void
walk_begin(int frames, bool is_quick)
{
    walk.is_quick = is_quick;
    if (++walk.walk == 0) {
        memset(walk.seen, 0, sizeof walk.seen);
        walk.walk = 1;
    }
    walk.head = walk.tail = 0;
    walk.is_partial = false;
    walk.h = 0;
    visit_frames(frames);
}

static uint64_t
walk_to_end_of(int level)
{
    while (walk.head < walk.tail && walk.head < level_ends[level])
        look_into(walk.queue[walk.head++]);
    return walk.h;
}

static uint64_t
near_state(bool is_quick)
{
    walk_begin(1, is_quick);
    return walk_to_end_of(0);
}

/* ---- the place ---- */

/* `computed`: since the last record, in us of CPU time; more of the contents is looked at then. */
void
place_here(Place *place, uint64_t computed)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    own_work_begin();
    _PyInterpreterFrame *top = compat_top_frame(core.tstate);
    place->code = top ? compat_frame_code(top) : NULL;
    place->lasti = top ? frame_place(top) : 0;
    place->ticks = lanes_place();
    place->fingerprint = hash_stack();
    place->levels = place->ticks ? 0 : PLACE_LEVELS;
    place->has_contents = place->levels > 0;
    place->computed = computed;
    if (place->levels) {
        place->state[0] = near_state(true);
        contents_here(&place->near, walk.queue, walk.tail, computed);
        walk_begin(MOST_FRAMES, true);
        for (int level = 1; level < PLACE_LEVELS; level++)
            place->state[level] = walk_to_end_of(level);
        contents_here(&place->all, walk.queue, walk.tail, computed);
    }
    own_work_end();
    PyErr_Restore(type, value, traceback);
}

/* The nearest of what is reached from the topmost frame. */
static bool
is_near_state(Place *place)
{
    if (place->levels == 0)
        return true;
    return near_state(place->has_contents) == place->state[0] &&
           (!place->has_contents || contents_are_here(&place->near, walk.queue, walk.tail, place->computed));
}

static bool
is_all_state(Place *place)
{
    bool is_here = true;
    if (place->levels)
        walk_begin(MOST_FRAMES, place->has_contents);
    for (int level = 1; is_here && level < place->levels; level++)
        is_here = walk_to_end_of(level) == place->state[level];
    return is_here && (!place->has_contents || contents_are_here(&place->all, walk.queue, walk.tail, place->computed));
}

bool
place_is_here(Place *place)
{
    /* There may be no frame, as at the end of the program, when the streams are flushed. */
    _PyInterpreterFrame *top = compat_top_frame(core.tstate);
    if ((top ? frame_place(top) : 0) != place->lasti || lanes_place() != place->ticks)
        return false;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    own_work_begin();
    bool is_here = is_near_state(place) && hash_stack() == place->fingerprint && is_all_state(place);
    own_work_end();
    PyErr_Restore(type, value, traceback);
    return is_here;
}

/* Whether all state that the frames can reach is seen: then two places that look the same are the same, and a loop that
 * comes back to one changes nothing. */
bool
place_is_all_visible(void)
{
    own_work_begin();
    walk_begin(MOST_FRAMES, true);
    walk_to_end_of(PLACE_LEVELS - 1);
    own_work_end();
    return !walk.is_partial && walk.tail < MOST_OBJECTS;
}

bool
place_is_same_instruction(const Place *place)
{
    _PyInterpreterFrame *top = compat_top_frame(core.tstate);
    return top && compat_frame_code(top) == place->code && frame_place(top) == place->lasti;
}
