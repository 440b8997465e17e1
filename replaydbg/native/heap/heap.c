/* Pictures of the heap: where the walk begins, its order, and what is written of it. See heap.h. */
#include "base/core.h"
#include "heap/inside.h"
#include "lanes/lanes.h"
#include <errno.h>
#include <setjmp.h>
#include <stdio.h>

Heap heap;
static jmp_buf way_out;

void
heap_give_up(void)
{
    longjmp(way_out, 1);
}

uint32_t
node_add(uint64_t address)
{
    uint32_t node = node_count();
    if (node >= heap.limits.nodes)
        return NO_NODE;
    column_put64(&heap.address, address);
    column_put64(&heap.size, 0);
    column_put32(&heap.type, 0);
    column_put32(&heap.value, 0);
    column_put32(&heap.since, 0);
    *pointers_find(&heap.nodes, address) = (PointerEntry){address, node};
    heap.nodes.used++;
    return node;
}

/* ---- where it begins ---- */

static void
root_add(const uint8_t *text, size_t n, uint32_t node)
{
    if (node == NO_NODE)
        return;
    column_put32(&heap.root_nodes, node);
    memcpy(column_room(&heap.root_texts, n), text, n);
    column_put32(&heap.root_ends, (uint32_t)heap.root_texts.used);
}

static void
frame_root(const Lane *lane, _PyInterpreterFrame *frame)
{
    uint8_t text[1200];
    PyCodeObject *code = compat_frame_code(frame);
    int id = lane ? lane->id : 0;
    size_t n = (size_t)snprintf((char *)text, 300, lane && lane->name ? "thread %d (%.200s): " : "thread %d: ", id,
                                lane ? lane->name : "");
    n += text_of_name(text + n, 800, code->co_qualname);
    n += (size_t)snprintf((char *)text + n, 40, "() line %d", PyCode_Addr2Line(code, compat_frame_lasti(frame)));
    bool is_generators = frame->owner == FRAME_OWNED_BY_GENERATOR;
    root_add(text, n,
             node_at((uint64_t)(uintptr_t)(is_generators ? (void *)compat_frame_generator(frame) : (void *)frame)));
}

/* Frames of generators are the generators; they come after the others, whose nodes are the first. */
static void
frame_roots(const Lane *lane, PyThreadState *ts, bool of_generators)
{
    for (_PyInterpreterFrame *frame = compat_top_frame(ts); frame; frame = compat_previous_frame(frame))
        if ((frame->owner == FRAME_OWNED_BY_GENERATOR) == of_generators)
            frame_root(lane, frame);
}

static void
each_lane(void (*visit)(const Lane *, PyThreadState *, bool), bool choice)
{
    if (!lanes.is_on) {
        visit(NULL, compat_attached(), choice);
        return;
    }
    for (int i = 0; i < lanes.made; i++)
        if (lanes.at[i] && !lanes.at[i]->ended && (lanes.at[i] == lanes.running || lanes.at[i]->tstate))
            visit(lanes.at[i], lanes.at[i] == lanes.running ? core.tstate : lanes.at[i]->tstate, choice);
}

static void
other_roots(const Lane *lane, PyThreadState *ts, bool unused)
{
    char text[80];
    size_t n = (size_t)snprintf(text, sizeof text, "thread %d: context", lane ? lane->id : 0);
    if (ts->context)
        root_add((uint8_t *)text, n, node_at((uint64_t)(uintptr_t)ts->context));
    n = (size_t)snprintf(text, sizeof text, "thread %d: exception", lane ? lane->id : 0);
    for (_PyErr_StackItem *e = ts->exc_info; e; e = e->previous_item)
        if (e->exc_value && e->exc_value != Py_None)
            root_add((uint8_t *)text, n, node_at((uint64_t)(uintptr_t)e->exc_value));
}

/* ---- modules ---- */

static size_t
text_named(PyObject *dict, const char *name, uint8_t *to, size_t room)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (dict && PyDict_Next(dict, &at, &key, &value))
        if (PyUnicode_CheckExact(key) && PyUnicode_CompareWithASCIIString(key, name) == 0)
            return text_of_name(to, room - 1, value);
    return 0;
}

static bool
is_below(const char *path, const char *directory)
{
    size_t n = strlen(directory);
    return n && strncmp(path, directory, n) == 0 && path[n] == '/';
}

/* Neither of the standard library nor installed, and written in Python: or the program itself. */
static bool
is_programs(PyObject *module, PyObject *name, const char *library)
{
    char path[4096];
    if (heap.limits.all || PyUnicode_CompareWithASCIIString(name, "__main__") == 0)
        return true;
    path[text_named(PyModule_GetDict(module), "__file__", (uint8_t *)path, sizeof path)] = 0;
    return path[0] && !is_below(path, library) && !strstr(path, "/site-packages/") && !strstr(path, "/dist-packages/");
}

static void
module_roots(PyThreadState *ts)
{
    PyObject *modules = compat_modules(ts->interp), *name, *module;
    Py_ssize_t at = 0;
    char library[4096];
    library[text_named(ts->interp->sysdict, "_stdlib_dir", (uint8_t *)library, sizeof library)] = 0;
    while (modules && PyDict_Next(modules, &at, &name, &module)) {
        if (!PyUnicode_CheckExact(name) || !PyModule_Check(module) || !is_programs(module, name, library))
            continue;
        uint8_t text[1024];
        size_t n = text_of_name(text, sizeof text, name);
        uint64_t key = hash_bytes(text, n, 9);
        PointerEntry *e = pointers_find(&heap.module_names, key ? key : 1);
        if (e->key == 0) {
            *e = (PointerEntry){key ? key : 1, 0};
            heap.module_names.used++;
        }
        root_add(text, n, node_at((uint64_t)(uintptr_t)module));
    }
}

static void
given_roots(PyObject *roots)
{
    PyObject *name, *o;
    Py_ssize_t at = 0;
    uint8_t text[1024];
    while (PyDict_Next(roots, &at, &name, &o))
        root_add(text, text_of_name(text, sizeof text, name), node_at((uint64_t)(uintptr_t)o));
}

/* ---- the walk ---- */

static void
find_roots(PyObject *roots, PyObject *exception)
{
    if (roots) {
        heap.limits.all = true;
        given_roots(roots);
        return;
    }
    each_lane(frame_roots, false);
    heap.frames = node_count();
    module_roots(compat_attached());
    heap.modules = node_count() - heap.frames;
    each_lane(frame_roots, true);
    each_lane(other_roots, false);
    if (exception)
        root_add((const uint8_t *)"exception", 9, node_at((uint64_t)(uintptr_t)exception));
}

static void
begin(void)
{
    column_room(&heap.target, 0);
    column_room(&heap.label, 0);
    texts_place(&heap.strings, (const uint8_t *)"", 0);
    heap.class_label = label_text(".__class__");
    heap.cell_label = label_text(".cell_contents");
    heap.frame_type = texts_place(&heap.types, (const uint8_t *)"<frame>", 7);
}

static void
walk(void)
{
    for (uint32_t node = 0; node < node_count(); node++) {
        uint64_t *ahead = (uint64_t *)heap.address.data + node + 6;
        if (node + 6 < node_count())
            __builtin_prefetch((void *)(uintptr_t)*ahead);
        column_put32(&heap.first_edge, (uint32_t)(heap.target.used / 4));
        heap_expand(node);
    }
    column_put32(&heap.first_edge, (uint32_t)(heap.target.used / 4));
}

int
heap_capture(int fd, const HeapLimits *limits, const HeapOccasion *occasion, PyObject *roots)
{
    memset(&heap, 0, sizeof heap);
    heap.limits = *limits;
    volatile int failed = ENOMEM;
    if (setjmp(way_out) == 0) {
        begin();
        find_roots(roots, occasion->exception);
        walk();
        failed = heap_put_out(fd, occasion) < 0 ? errno : 0;
    }
    heap_release();
    memset(&heap, 0, sizeof heap);
    errno = failed;
    return failed ? -1 : 0;
}
