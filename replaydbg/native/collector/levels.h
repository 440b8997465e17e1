/* How full the interpreter's free lists of tracked objects are. The collector's count does not know of objects that come
 * from such a list or go to one, so when the next collection comes depends on them: see collector.h. */
#ifndef REPLAYDBG_LEVELS_H
#define REPLAYDBG_LEVELS_H
#include "base/core.h"
#include <internal/pycore_context.h>
#if PY_VERSION_HEX >= 0x030E0000
#include <internal/pycore_freelist.h>
#endif

#if PY_VERSION_HEX >= 0x030E0000

/* All lists have one form, and there are more of them. */
#define FREE_LISTS (core.tstate->interp->object_state.freelists)
#define TUPLE_SIZES PyTuple_MAXSAVESIZE
#define TUPLE_SIZES_TAKEN PyTuple_MAXSAVESIZE

typedef Py_ssize_t Level;
typedef struct {
    Level tuples[TUPLE_SIZES]; /* of sizes 1, 2 ... */
    Level lists, dicts, contexts, slices, list_iterators, tuple_iterators, functions, methods_of_classes, methods;
} Levels;

static inline void
levels_note(Levels *levels)
{
    const struct _Py_freelists *free = &FREE_LISTS;
    for (int i = 0; i < TUPLE_SIZES; i++)
        levels->tuples[i] = free->tuples[i].size;
    levels->lists = free->lists.size;
    levels->dicts = free->dicts.size;
    levels->contexts = free->contexts.size;
    levels->slices = free->slices.size;
    levels->list_iterators = free->list_iters.size;
    levels->tuple_iterators = free->tuple_iters.size;
    levels->functions = free->pycfunctionobject.size;
    levels->methods_of_classes = free->pycmethodobject.size;
    levels->methods = free->pymethodobjects.size;
}

static inline bool
levels_differ(const Levels *levels)
{
    Levels now;
    levels_note(&now);
    return memcmp(&now, levels, sizeof now) != 0;
}

#else

#ifndef WITH_FREELISTS
#error "replaydbg's native core needs a CPython with free lists, which every ordinary build has"
#endif

#if PY_VERSION_HEX >= 0x030D0000
#define FREE_LISTS (core.tstate->interp->object_state.freelists)
#define FREE_TUPLES FREE_LISTS.tuples.items
#define TUPLES_NUMFREE FREE_LISTS.tuples.numfree
#define FREE_LISTS_ITEMS FREE_LISTS.lists.items
#define LISTS_NUMFREE FREE_LISTS.lists.numfree
#define FREE_DICTS FREE_LISTS.dicts.items
#define DICTS_NUMFREE FREE_LISTS.dicts.numfree
#define FREE_SLICE FREE_LISTS.slices.slice_cache
#define FREE_CONTEXTS FREE_LISTS.contexts.items
#define CONTEXTS_NUMFREE FREE_LISTS.contexts.numfree
#else
#define FREE_LISTS (*core.tstate->interp)
#define FREE_TUPLES FREE_LISTS.tuple.free_list
#define TUPLES_NUMFREE FREE_LISTS.tuple.numfree
#define FREE_LISTS_ITEMS FREE_LISTS.list.free_list
#define LISTS_NUMFREE FREE_LISTS.list.numfree
#define FREE_DICTS FREE_LISTS.dict_state.free_list
#define DICTS_NUMFREE FREE_LISTS.dict_state.numfree
#define FREE_SLICE FREE_LISTS.slice_cache
#define FREE_CONTEXTS FREE_LISTS.context.freelist
#define CONTEXTS_NUMFREE FREE_LISTS.context.numfree
#endif
#define TUPLE_SIZES PyTuple_NFREELISTS
#define TUPLE_SIZES_TAKEN (PyTuple_NFREELISTS - 1) /* those of the last size are only given back */

/* How many objects each free list of tracked objects holds. */
typedef int Level;
typedef struct {
    Level tuples[TUPLE_SIZES]; /* of sizes 1, 2 ... */
    Level lists, dicts, contexts, slices;
} Levels;

static inline void
levels_note(Levels *levels)
{
    memcpy(levels->tuples, TUPLES_NUMFREE, sizeof levels->tuples);
    levels->lists = LISTS_NUMFREE;
    levels->dicts = DICTS_NUMFREE;
    levels->contexts = CONTEXTS_NUMFREE;
    levels->slices = FREE_SLICE != NULL;
}

static inline bool
levels_differ(const Levels *levels)
{
    uint64_t now[TUPLE_SIZES / 2], before[TUPLE_SIZES / 2], difference = 0;
    memcpy(now, TUPLES_NUMFREE, sizeof now);
    memcpy(before, levels->tuples, sizeof before);
    for (int i = 0; i < TUPLE_SIZES / 2; i++)
        difference |= now[i] ^ before[i];
    return difference | (uint64_t)((LISTS_NUMFREE ^ levels->lists) | (DICTS_NUMFREE ^ levels->dicts) |
                                   (CONTEXTS_NUMFREE ^ levels->contexts) | ((FREE_SLICE != NULL) ^ levels->slices));
}

#endif

/* levels.c: makes and frees objects until the lists are as full as `levels` has it. */
void levels_restore(const Levels *levels);

#endif
