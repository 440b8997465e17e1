/* Whether a value has changed: a place is a variable, and the attributes and items that lead from it to the value.
 * Looked up line by line without running Python: what only a property or a __getitem__ could tell is not followed. Or
 * it is what a question of the user's says (judge.c), for which Python is run.
 *
 * A change seen before a line was made after the line before it, by whoever ran then. That is not always the line
 * before: in `x = f()` the last line of f() lies between. Where it matters the debugger runs the last line again and
 * has us look at returns, too. */
#include "base/core.h"
#include "clock/clock.h"
#include "code/code.h"
#include "collector/collector.h"
#include "engine/inside.h"
#include "identity/identity.h"
#include "lanes/lanes.h"
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

enum { NO_WATCH, LOCAL, GLOBAL, OBJECT, JUDGED, MANY };
enum { ATTRIBUTE = 1, INDEX, KEY, CELL_INDEX, FIELD, ENTRY };
enum { STOPS = 1, LOOKS_AT_RETURNS = 2, CELL = 4 };
#define MOST_STEPS 32

typedef struct {
    int kind;
    PyObject *name; /* of ATTRIBUTE and KEY; of FIELD: of the type in C that has it */
    int64_t index;  /* of FIELD: where it lies in the object; of ENTRY: where the key lies that the dictionary holds */
    int64_t hash;   /* of ENTRY: that the dictionary keeps for the key */
} PathStep;

typedef struct {
    int kind, flags;
    uint64_t started; /* of the activation whose variable it is */
    int first_line;   /* of its code */
    PyObject *name, *module;
    PyObject *object; /* of OBJECT: where it lies, and which type it has; it may not live yet */
    PyTypeObject *type;
    PathStep steps[MOST_STEPS];
    int step_count;
    /* where it is now */
    _PyInterpreterFrame *frame;
    int slot; /* -1: it has no such variable */
    uint64_t signature;
    PyObject *value, *before; /* that it is of, and that it was of; only compared */
    bool stopped, is_new, is_generator;
    /* what was seen; born: the last change was that OBJECT came to be */
    uint64_t changes, first_seen, first_written, last_seen, last_written, born;
} Watched;

/* Usually one; a search for the last writes of several values watches them all in one run. `watch` is the current one. */
static Watched watched[MOST_WATCHED], *watch = watched;
static int watched_count;

/* ---- the frame of a local variable ---- */

static int
slot_named(PyCodeObject *code, PyObject *name)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(code->co_localsplusnames); i++)
        if (PyUnicode_Compare(PyTuple_GET_ITEM(code->co_localsplusnames, i), name) == 0)
            return (int)i;
    return -1;
}

/* Frames of functions lie on the stack of their thread, one after another, in chunks. */
static bool
is_on_stack(const PyThreadState *ts, const _PyInterpreterFrame *frame)
{
    PyObject **at = (PyObject **)frame;
    for (_PyStackChunk *chunk = ts->datastack_chunk; chunk; chunk = chunk->previous) {
        PyObject **top = chunk == ts->datastack_chunk ? ts->datastack_top : &chunk->data[chunk->top];
        if (at >= chunk->data && at < top)
            return true;
    }
    return false;
}

static bool
is_on_any_stack(const _PyInterpreterFrame *frame)
{
    for (int i = 0; i < lanes.made; i++)
        if (lanes.at[i] && lanes.at[i]->tstate && is_on_stack(lanes.at[i]->tstate, frame))
            return true;
    return false;
}

static bool
is_wanted(const Activation *a)
{
    return a && a->code && a->started == watch->started && a->first_line == watch->first_line;
}

static void
meet(const Activation *a)
{
    if (!is_wanted(a))
        return;
    watch->frame = a->frame;
    watch->is_generator = a->is_generator;
    watch->slot = slot_named(a->code, watch->name);
}

/* Whether it is among the callers of what a lane runs: what is known of a frame may be older than the one that lies
 * there now. */
static bool
is_running(const _PyInterpreterFrame *frame)
{
    for (int i = 0; i < lanes.made; i++) {
        PyThreadState *ts = lanes.at[i] ? lanes.at[i]->tstate : NULL;
        for (_PyInterpreterFrame *f = ts ? compat_top_frame(ts) : NULL; f; f = compat_previous_frame(f))
            if (f == frame)
                return true;
    }
    return false;
}

static bool
is_in_chunk_of(const PyThreadState *ts, const _PyInterpreterFrame *one, const _PyInterpreterFrame *other)
{
    for (_PyStackChunk *chunk = ts->datastack_chunk; chunk; chunk = chunk->previous)
        if ((PyObject **)one >= chunk->data && (uint8_t *)one < (uint8_t *)chunk + chunk->size)
            return (PyObject **)other >= chunk->data && (uint8_t *)other < (uint8_t *)chunk + chunk->size;
    return false;
}

/* A frame begins: where it lies below the watched one on the same stack, that one has ended, and its variables are
 * something else's memory. */
void
watch_start(_PyInterpreterFrame *frame)
{
    for (Watched *w = watched; w < watched + watched_count; w++)
        if (w->kind == LOCAL && w->frame && frame <= w->frame && frame->owner == FRAME_OWNED_BY_THREAD &&
            !w->is_generator && is_in_chunk_of(core.tstate, frame, w->frame))
            w->frame = NULL;
}

/* What is known of a generator's frame is forgotten when it dies; a function's stays until another one lies there. */
static bool
frame_lives(void)
{
    if (watch->frame == NULL)
        return false;
    const Activation *a = activation_at(watch->frame);
    if (is_wanted(a) && (a->is_generator ? compat_frame_generator(watch->frame)->gi_frame_state < FRAME_COMPLETED
                                         : is_on_any_stack(watch->frame)))
        return true;
    watch->frame = NULL;
    return false;
}

/* ---- from the variable to the value ---- */

static PyObject *
local_value(void)
{
    _PyInterpreterFrame *frame = watch->frame;
    PyCodeObject *code = compat_frame_code(frame);
    if (watch->slot < 0)
        return frame->f_locals && PyDict_CheckExact(frame->f_locals) ? read_key(frame->f_locals, watch->name) : NULL;
    PyObject *value = compat_frame_value(frame, watch->slot);
    int kind = _PyLocals_GetKind(code->co_localspluskinds, watch->slot);
    if (value && (kind & (CO_FAST_CELL | CO_FAST_FREE)) && PyCell_Check(value) && !(watch->flags & CELL))
        value = PyCell_GET(value);
    return value;
}

/* What has died may still look alive; where the sanitizer knows of it, it would end the process. */
static bool
may_be_read(PyObject *o)
{
#ifdef __SANITIZE_ADDRESS__
    return __asan_region_is_poisoned(o, sizeof *o) == NULL;
#else
    return o != NULL;
#endif
}

/* Where memory is freed the allocator puts an address: in the place of the count of references, of objects that the
 * collector does not know. */
static bool
is_count(Py_ssize_t references)
{
    return references > 0 && references < (Py_ssize_t)1 << 40;
}

static PyObject *
variable(void)
{
    if (watch->kind == LOCAL)
        return frame_lives() ? local_value() : NULL;
    if (watch->kind == OBJECT)
        return may_be_read(watch->object) && Py_TYPE(watch->object) == watch->type && is_count(Py_REFCNT(watch->object))
                   ? watch->object
                   : NULL;
    PyObject *module = read_key(PyImport_GetModuleDict(), watch->module);
    PyObject *dict = module && PyModule_Check(module) ? ((PyObject **)((char *)module + sizeof(PyObject)))[0] : NULL;
    return dict && PyDict_Check(dict) ? read_key(dict, watch->name) : NULL;
}

static PyObject *
item_at(PyObject *o, int64_t index)
{
    /* also of a class of the program's: the probe has seen that it computes no items */
    if (PyList_Check(o) || PyTuple_Check(o)) {
        Py_ssize_t n = Py_SIZE(o), i = index < 0 ? (Py_ssize_t)index + n : (Py_ssize_t)index;
        if (i < 0 || i >= n)
            return NULL;
        return PyList_Check(o) ? PyList_GET_ITEM(o, i) : PyTuple_GET_ITEM(o, i);
    }
    if (PyDict_Check(o))
        return read_number_key(o, index);
    PyTypeObject *deque = deque_type(o);
    return deque ? deque_item(o, deque, index) : NULL;
}

static bool
is_index(const PathStep *s)
{
    return s->kind == INDEX || s->kind == CELL_INDEX;
}

/* What the path leads to: an object, or numbers in the memory of one. */
typedef struct {
    PyObject *object; /* NULL: nothing */
    bool is_part;     /* only `elements` of it */
    Elements elements;
} Found;

static bool
enter(Found *found, const PathStep *s)
{
    if (!found->is_part)
        found->is_part = elements_of(&found->elements, found->object);
    if (!found->is_part || !elements_enter(&found->elements, s->index))
        return false;
    PyObject *held = elements_object(&found->elements);
    if (held) {
        found->object = held;
        found->is_part = false;
    }
    return true;
}

static bool
take_step(Found *found, const PathStep *s)
{
    PyObject *o = found->object;
    if (!found->is_part && s->kind != CELL_INDEX) {
        PyObject *next = s->kind == ATTRIBUTE ? read_attribute(o, s->name)
                         : s->kind == FIELD   ? read_field(o, s->name, s->index)
                         : s->kind == INDEX   ? item_at(o, s->index)
                         : !PyDict_Check(o)   ? NULL
                         : s->kind == ENTRY   ? read_entry(o, (PyObject *)(uintptr_t)s->index, (Py_hash_t)s->hash)
                                              : read_key(o, s->name);
        if (next) {
            found->object = next;
            return true;
        }
    }
    return is_index(s) && enter(found, s);
}

static Found
find_here(void)
{
    Found found; /* its elements are large, and mostly there are none */
    found.object = variable();
    found.is_part = false;
    for (int i = 0; found.object && i < watch->step_count; i++)
        if (!take_step(&found, &watch->steps[i]))
            found.object = NULL;
    return found;
}

static uint64_t
signature_here(void)
{
    Found found = find_here();
    watch->value = found.is_part ? NULL : found.object;
    return found.object == NULL ? 0 : found.is_part ? elements_hash(&found.elements) : signature_of(found.object);
}

/* Before an object that is known by its address was made, other things lie there, or nothing at all. What is read then
 * does not matter: we look for the last change. But it must not end the process. */
static sigjmp_buf way_out;
static volatile sig_atomic_t is_looking;

static void
fault(int signum)
{
    if (is_looking)
        siglongjmp(way_out, 1);
    engine_is_killed(signum);
}

static void
expect_faults(void)
{
    struct sigaction action = {.sa_handler = fault, .sa_flags = SA_NODEFER | SA_ONSTACK};
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
}

#define NO_OBJECT 0 /* as signature: none lies there */

static uint64_t
look(void)
{
    if (watch->kind == JUDGED)
        return judge(watch->signature);
    if (watch->kind != OBJECT) {
        watch->before = watch->value;
        return signature_here();
    }
    is_looking = 1;
    uint64_t found = NO_OBJECT;
    if (sigsetjmp(way_out, 0) == 0)
        found = variable() ? signature_here() | 1 : NO_OBJECT;
    is_looking = 0;
    return found;
}

/* Looks, and returns whether there is something else now than there was. */
static bool
is_changed(void)
{
    uint64_t before = watch->signature, now = watch->signature = look();
    bool has_ended = watch->kind == OBJECT && identity_has_ended((int)(watch - watched));
    watch->is_new = now != NO_OBJECT && (has_ended || before == NO_OBJECT);
    return now != before || (has_ended && now != NO_OBJECT);
}

/* ---- changes ---- */

static void
has_changed(uint64_t written)
{
    if (watch->kind == LOCAL && watch->frame == NULL)
        return; /* its function has ended */
    watch->changes++;
    watch->last_seen = stepclock.count;
    watch->last_written = written;
    watch->born = watch->kind == OBJECT && watch->is_new;
    if (watch->changes == 1) {
        watch->first_seen = watch->last_seen;
        watch->first_written = written;
    }
    watch->stopped = watch->flags & STOPS;
}

/* It is the object that it was, with another content. Immutable ones may be made anew in the same place. */
static bool
is_same_object(void)
{
    PyObject *o = watch->value;
    return o && o == watch->before && !PyLong_CheckExact(o) && !PyFloat_CheckExact(o) && !PyUnicode_CheckExact(o) &&
           !PyBytes_CheckExact(o);
}

static bool
is_in_cell(void)
{
    return watch->slot >= 0 && _PyLocals_GetKind(compat_frame_code(watch->frame)->co_localspluskinds, watch->slot) &
                                   (CO_FAST_CELL | CO_FAST_FREE);
}

/* Who binds a local variable is its own function, unless inner ones have it, too; who changes what it holds may be
 * anybody. */
static uint64_t
writer(uint64_t otherwise)
{
    const Activation *a =
        watch->kind == LOCAL && watch->step_count == 0 && watch->frame ? activation_find(watch->frame) : NULL;
    if (a == NULL || is_same_object() || is_in_cell())
        return otherwise;
    return a->last == stepclock.count ? a->before ? a->before : a->last : a->last;
}

/* When returns are looked at as well, what is seen at a line was done by its own function since the line before, or,
 * where it is the first one, by the caller. Otherwise it is enough to know the line before this one in the lane: it
 * will be run again. */
static uint64_t
line_before(_PyInterpreterFrame *frame)
{
    const Activation *a = watch->flags & LOOKS_AT_RETURNS ? activation_find(frame) : NULL;
    if (a && a->before)
        return a->before;
    for (frame = a ? compat_previous_frame(frame) : NULL; frame; frame = compat_previous_frame(frame))
        if ((a = activation_find(frame)) && a->last)
            return a->last;
    return lane_lines->before;
}

bool
watch_line(_PyInterpreterFrame *frame)
{
    for (watch = watched; watch < watched + watched_count; watch++) {
        if (watch->kind == LOCAL && watch->frame == NULL)
            meet(activation_find(frame));
        if (is_changed())
            has_changed(writer(line_before(frame)));
    }
    return watch_has_stopped();
}

/* Another lane goes on, or a function returns: what is changed by now, its last line did. */
static void
look_after(_PyInterpreterFrame *frame)
{
    if (!is_changed())
        return;
    frame = frame ? frame : compat_top_frame(core.tstate);
    const Activation *a = frame ? activation_find(frame) : NULL;
    /* the importer's run no lines that count */
    while (frame && (a == NULL || a->last == 0) && (frame = compat_previous_frame(frame)))
        a = activation_find(frame);
    has_changed(writer(a && a->last ? a->last : lane_lines ? lane_lines->last : stepclock.count));
}

void
watch_look(_PyInterpreterFrame *frame)
{
    if (core.tstate == NULL || stepclock.count == 0)
        return;
    for (watch = watched; watch < watched + watched_count; watch++)
        look_after(frame);
}

/* It is about to stand inside a line: what is changed by now, that line did, or what it called. */
void
watch_point(void)
{
    for (watch = watched; watch < watched + watched_count; watch++) {
        if (!is_changed() || (watch->kind == LOCAL && watch->frame == NULL))
            continue;
        const Activation *a = activation_find(compat_top_frame(core.tstate));
        has_changed(a && a->last ? a->last : stepclock.count);
    }
}

/* What is changed before a generator goes on was not done by the line in which it waited. */
void
watch_resume(_PyInterpreterFrame *frame)
{
    _PyInterpreterFrame *caller = compat_previous_frame(frame);
    if (caller)
        watch_look(caller);
}

bool
watch_looks_at_returns(void)
{
    for (int i = 0; i < watched_count; i++)
        if (watched[i].flags & LOOKS_AT_RETURNS)
            return true;
    return false;
}

bool
watch_is_set(void)
{
    return watched_count > 0;
}

bool
watch_has_stopped(void)
{
    for (int i = 0; i < watched_count; i++)
        if (watched[i].stopped)
            return true;
    return false;
}

static void
report_changes(Buf *b, const Watched *w)
{
    const uint64_t numbers[] = {w->changes, w->first_seen, w->first_written, w->last_seen, w->last_written, w->born};
    report_list(b, 6);
    for (int i = 0; i < 6; i++)
        report_number(b, (int64_t)numbers[i]);
}

void
watch_report(Buf *b)
{
    static const Watched none;
    report_key(b, "watches");
    report_list(b, watched_count ? (uint64_t)watched_count : 1);
    report_changes(b, watched_count ? watched : &none);
    for (int i = 1; i < watched_count; i++)
        report_changes(b, &watched[i]);
}

/* ---- the order ---- */

/* The names lie in memory of ours: in the program's, whoever watches would have other addresses than whoever does not.
 */
static _Alignas(16) uint8_t names[1 << 20];
static size_t names_used;

static void *
give_name(void *context, size_t n)
{
    size_t size = (n + 15) & ~(size_t)15;
    if (size > sizeof names - names_used)
        return NULL;
    names_used += size;
    return names + names_used - size;
}

static void *
give_clear_name(void *context, size_t n, size_t size)
{
    void *at = give_name(context, n * size);
    return at ? memset(at, 0, n * size) : NULL;
}

/* How long it was is not known: what lay behind it comes along. */
static void *
move_name(void *context, void *old, size_t n)
{
    uint8_t *at = give_name(context, n);
    size_t behind = old ? (size_t)(names + sizeof names - (uint8_t *)old) : 0;
    return at ? memmove(at, old ? old : at, n < behind ? n : behind) : NULL;
}

static void
keep_name(void *context, void *at)
{
}

static PyObject *
read_name(const uint8_t **p, const uint8_t *end, bool *ok)
{
    static PyMemAllocatorEx ours = {NULL, give_name, give_clear_name, move_name, keep_name};
    PyMemAllocatorEx programs;
    uint64_t n = read_varint(p, end, ok);
    /* decoding takes up to four bytes for each of them */
    if (!*ok || n > (uint64_t)(end - *p) || n > sizeof names / 8) {
        *ok = false;
        return NULL;
    }
    PyMem_GetAllocator(PYMEM_DOMAIN_OBJ, &programs);
    PyMem_SetAllocator(PYMEM_DOMAIN_OBJ, &ours);
    PyObject *name = PyUnicode_DecodeUTF8((const char *)*p, (Py_ssize_t)n, "surrogatepass");
    PyMem_SetAllocator(PYMEM_DOMAIN_OBJ, &programs);
    *p += n;
    *ok = name != NULL && PyObject_Hash(name) != -1;
    return name;
}

static int64_t
read_signed(const uint8_t **p, const uint8_t *end, bool *ok)
{
    uint64_t n = read_varint(p, end, ok);
    return (int64_t)(n >> 1) ^ -(int64_t)(n & 1);
}

static bool
read_place(const uint8_t *p, const uint8_t *end)
{
    bool ok = true;
    watch->started = read_varint(&p, end, &ok);
    watch->first_line = (int)read_varint(&p, end, &ok);
    watch->object = (PyObject *)(uintptr_t)read_varint(&p, end, &ok);
    watch->type = (PyTypeObject *)(uintptr_t)read_varint(&p, end, &ok);
    watch->module = read_name(&p, end, &ok);
    watch->name = read_name(&p, end, &ok);
    uint64_t n = ok ? read_varint(&p, end, &ok) : 0;
    ok &= n <= MOST_STEPS;
    for (watch->step_count = 0; ok && watch->step_count < (int)n; watch->step_count++) {
        PathStep *s = &watch->steps[watch->step_count];
        s->kind = (int)read_varint(&p, end, &ok);
        s->index = read_signed(&p, end, &ok);
        s->name = read_name(&p, end, &ok);
        s->hash = s->kind == ENTRY ? read_signed(&p, end, &ok) : 0;
    }
    return ok;
}

/* Begin to watch the current one; false: its order cannot be read. */
static bool
begin(int kind, const uint8_t *p, const uint8_t *end)
{
    bool ok = true;
    memset(watch, 0, sizeof *watch);
    watch->kind = kind;
    watch->flags = (int)read_varint(&p, end, &ok);
    if (!ok || kind <= NO_WATCH || kind > JUDGED || (kind == JUDGED && watched_count > 1))
        return false;
    if (kind == JUDGED) {
        if (!judge_begin(p, end))
            return false;
        watch->signature = look();
        return true;
    }
    own_work_begin();
    ok = read_place(p, end);
    own_work_end();
    if (!ok)
        return false;
    if (kind == LOCAL) {
        meet(activation_started(watch->started, watch->first_line));
        if (watch->frame && !watch->is_generator && !is_running(watch->frame))
            watch->frame = NULL;
    }
    if (kind == OBJECT) {
        expect_faults();
        identity_watch_end((int)(watch - watched), watch->object);
    }
    watch->signature = look();
    return true;
}

bool
watch_begin(const uint8_t *p, const uint8_t *end)
{
    bool ok = true;
    watch = watched;
    watch->kind = NO_WATCH;
    watched_count = 0;
    names_used = 0;
    identity_watch_none();
    uint64_t kind = read_varint(&p, end, &ok), n = ok && kind == MANY ? read_varint(&p, end, &ok) : 1;
    if (!ok || kind == NO_WATCH)
        return ok;
    if (n > MOST_WATCHED)
        return false;
    watched_count = (int)n;
    if (kind != MANY)
        return kind <= JUDGED && begin((int)kind, p, end);
    for (; ok && watch < watched + n; watch++) {
        uint64_t size = read_varint(&p, end, &ok);
        const uint8_t *next = p + size;
        if (!ok || size == 0 || size > (uint64_t)(end - p))
            return false;
        kind = read_varint(&p, next, &ok);
        ok = ok && kind <= OBJECT && begin((int)kind, p, next);
        p = next;
    }
    watch = watched;
    return ok;
}

/* Where the watched value lies, its type, and whether it is only a part of the object that lies there; zeros: it is not
 * there. */
void
watch_report_object(Buf *b)
{
    PyObject *volatile o = NULL;
    volatile bool is_part = false;
    volatile int64_t type = 0;
    is_looking = watch->kind == OBJECT; /* before it was made there may be no memory at its address */
    if (sigsetjmp(way_out, 0) == 0) {
        if (watch->kind != NO_WATCH) {
            Found found = find_here();
            o = found.object;
            is_part = found.is_part;
        }
        type = o ? (int64_t)(uintptr_t)Py_TYPE(o) : 0;
    }
    else
        o = NULL;
    is_looking = 0;
    report_list(b, 3);
    report_number(b, (int64_t)(uintptr_t)o);
    report_number(b, o ? type : 0);
    report_number(b, o && is_part);
}
