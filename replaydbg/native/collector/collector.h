/* The collector of the program is left alone: automatic collection stays on, and what the tool allocates and frees
 * moves nothing.
 *
 * CPython collects when a count of allocations passes a threshold, and the count knows two things alone: a tracked
 * object that was taken from the allocator adds one, and one that was given back takes one away. What comes from a free
 * list or goes to one does not count; so the next collection depends on the count and on how full the free lists of
 * tracked types are. A stretch of the tool's own work (a crossing, above all: a real listing while recording, decoding
 * in replay) therefore begins by noting both and ends by putting both back. No collection begins within. Then both
 * modes leave every stretch as they entered it, and what the program allocates in between is the same: its collections
 * come at the same allocations. What a crossing hands to the program counts as if the program had made it itself at
 * that moment, from the free lists as they were: the program will free it, and a count that is only taken from would
 * never bring a collection.
 *
 * What survives a collection counts as well, for the next full one. So the program's generations hold the program's
 * objects alone: what is made in a crossing is linked into a list of its own, which no collection sees, and joins the
 * youngest generation when the crossing ends. Program code that runs before that (an upcall, another lane) and collects
 * finds the same objects in both modes, although only the recorded program has a C function in the middle of its work.
 *
 * The free lists of asynchronous generators' helpers and of MemoryErrors are left out: no C function in a crossing
 * makes the former, and the latter are raised the same in both modes. Floats and the keys of dictionaries are not
 * tracked. / */
#ifndef REPLAYDBG_COLLECTOR_H
#define REPLAYDBG_COLLECTOR_H
#include "base/core.h"
#include "collector/levels.h"

/* own_work.c */
/* Between these two nothing is a crossing, and what is allocated or freed does not move the program's next collection.
 */
void own_work_begin(void);
void own_work_end(void);
/* NULL, or what the program gets of the tool's work besides the outcome of a crossing */
void own_work_gives(PyObject *made);

/* perturb.c */
extern bool perturbing;
void perturb_load(uint64_t seed);
void perturb_collector(uint64_t event); /* from this event on, collections come elsewhere */
void perturb_now(void);

static inline void
perturb(void)
{
    if (__builtin_expect(perturbing, 0))
        perturb_now();
}

typedef struct {
    int count; /* of the youngest generation: allocations minus deallocations since its last collection */
    int collecting;
    bool scheduled; /* a collection waits for the evaluation loop */
    bool has_levels;
    Levels levels;
    PyGC_Head made; /* what was tracked since the tool began; empty while the program runs */
} Collector;

/* The collector's numbers when the program begins. */
typedef struct {
    int counts[NUM_GENERATIONS];
    Py_ssize_t long_lived; /* how many objects survived the last full collection; -1: those that are alive then */
} CollectorStart;

/* garbage.c */
extern Collector collector;                         /* as the program left it, while the tool works */
void collector_give(PyObject *made);                /* within the tool's work: the program gets this, and made it */
void collector_give_exception(void);                /* the same of the exception that is set */
void collector_hold(void);                          /* boot.c: from the start of its work */
void collector_settle(const CollectorStart *start); /* boot.c: the same beginning for the program in both modes */
void collector_numbers(uint64_t numbers[4]);        /* collections of each generation, and a digest of the rest */
bool collector_agrees(const uint64_t recorded[4], char *detail, size_t size);

/* What a crossing has made, apart while program code runs inside it or another lane does. NULL: nothing. The list lives
 * on the heap: the interpreter may end a thread in a crossing, and then its objects stay linked. */
PyGC_Head *collector_set_aside(void);       /* before collector_resume() */
void collector_take_back(PyGC_Head *aside); /* after collector_pause() */

static inline void
gc_list_clear(PyGC_Head *list)
{
    list->_gc_next = list->_gc_prev = (uintptr_t)list;
}

void gc_list_append(PyGC_Head *list, PyGC_Head *from); /* `from` is empty then */

static inline bool
gc_list_is_empty(const PyGC_Head *list)
{
    return list->_gc_next == (uintptr_t)list;
}

/* The tool begins to work. `makes_nothing`: it will make no tracked object and free none, whatever the mode. While
 * `collecting` is set no collection begins and none is scheduled; one that is scheduled already waits until the tool
 * has finished. */
static inline void
collector_pause(bool makes_nothing)
{
    struct _gc_runtime_state *gc = &core.tstate->interp->gc;
    collector.count = gc->generations[0].count;
    collector.collecting = gc->collecting;
    collector.scheduled = compat_collection_scheduled(core.tstate);
    collector.has_levels = false;
    gc->collecting = 1;
    /* 3.12 asks for nothing else, wherever C code looks for signals: a large multiplication in os.stat() does */
    if (collector.scheduled)
        compat_unschedule_collection(core.tstate);
    if (!makes_nothing || perturbing) {
        levels_note(&collector.levels);
        collector.has_levels = true;
        gc->generation0 = &collector.made;
    }
}

/* The program's objects go to the youngest generation again, and what the tool has made is added at its end. */
static inline void
collector_join(struct _gc_runtime_state *gc)
{
    gc->generation0 = &gc->generations[0].head;
    if (!gc_list_is_empty(&collector.made))
        gc_list_append(&gc->generations[0].head, &collector.made);
}

/* Without an object made or freed: for a lane that the interpreter ended in the middle of a crossing. */
static inline void
collector_put_back(void)
{
    struct _gc_runtime_state *gc = &PyInterpreterState_Main()->gc;
    collector_join(gc);
    gc->generations[0].count = collector.count;
    gc->collecting = collector.collecting;
}

static inline void
collector_resume(void)
{
    struct _gc_runtime_state *gc = &core.tstate->interp->gc;
    if (collector.has_levels && levels_differ(&collector.levels))
        levels_restore(&collector.levels);
    collector_join(gc);
    gc->generations[0].count = collector.count;
    gc->collecting = collector.collecting;
    if (collector.scheduled)
        compat_schedule_collection(core.tstate);
}

/* own_work_end(), for the end of each crossing. */
static inline void
work_end(void)
{
    perturb();
    if (--core.depth == 0)
        collector_resume();
}

#endif
