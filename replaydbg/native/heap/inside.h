/* What the files of this folder have of each other. */
#ifndef REPLAYDBG_HEAP_INSIDE_H
#define REPLAYDBG_HEAP_INSIDE_H
#include "base/core.h"
#include "heap/heap.h"

/* record.c */
uint64_t heap_taken(void); /* the number of the latest snapshot; 0: there is none */
typedef struct {
    uint8_t *data;
    size_t used, size; /* bytes */
} Column;

/* table.c */
void column_grow(Column *c, size_t n); /* leaves the walk if there is no memory */
void heap_release(void);               /* all that was taken */

static inline void *
column_room(Column *c, size_t n)
{
    /* it leads somewhere, also where there is nothing */
    if (__builtin_expect(c->size - c->used < n || c->data == NULL, 0))
        column_grow(c, n);
    c->used += n;
    return c->data + c->used - n;
}

static inline void
column_put32(Column *c, uint32_t v)
{
    *(uint32_t *)column_room(c, 4) = v;
}

static inline void
column_put64(Column *c, uint64_t v)
{
    *(uint64_t *)column_room(c, 8) = v;
}

typedef struct {
    uint64_t key; /* 0: free */
    uint32_t value;
} PointerEntry;

typedef struct {
    PointerEntry *at;
    size_t used, mask;
} PointerMap;
void pointers_resize(PointerMap *map, size_t size);

/* The entry of a key, or where it goes; then its key is 0 still, and the caller sets both and counts it. */
static inline PointerEntry *
pointers_find(PointerMap *map, uint64_t key)
{
    if (__builtin_expect(map->used * 3 >= map->mask * 2, 0)) /* fresh memory costs as much as the looking up */
        pointers_resize(map, map->at ? (map->mask + 1) * (map->mask < 1 << 16 ? 4 : 2) : 1 << 12);
    size_t i = (size_t)(key * 0x9E3779B97F4A7C15u >> 20) & map->mask;
    while (map->at[i].key && map->at[i].key != key)
        i = (i + 1) & map->mask;
    return &map->at[i];
}

static inline void
pointers_expect(const PointerMap *map, uint64_t key)
{
    __builtin_prefetch(&map->at[(size_t)(key * 0x9E3779B97F4A7C15u >> 20) & map->mask]);
}

/* Texts that are there once. */
typedef struct {
    Column data, ends;
    PointerMap places; /* by a hash */
} TextTable;
uint32_t texts_place(TextTable *t, const uint8_t *text, size_t n);
typedef struct {
    HeapLimits limits;
    /* by node, in the order in which they were met */
    Column address, type, size, value, since, first_edge;
    Column target, label, floats;
    PointerMap nodes, labels, module_names;
    TextTable strings, types;
    Column type_facts, members;
    PointerMap types_known;
    uint32_t frames, modules; /* so many nodes of these two kinds come first */
    uint32_t class_label, cell_label, frame_type;
    uint32_t here;        /* the node that is looked at */
    uint64_t referents;   /* of those of C code that were seen of it */
    const void *own_dict; /* its dictionary, whose items are its own; or NULL */
    uint32_t named_end;   /* of its references that have names: before this one */
    Column root_nodes, root_ends, root_texts;
    uint64_t nodes_cut, edges_cut, items_cut, containers_cut;
} Heap;

/* heap.c */
extern Heap heap;
_Noreturn void heap_give_up(void); /* no memory: heap_capture() returns -1 */
enum { KIND_PLAIN, KIND_INDEX, KIND_MEMBER, KIND_VALUE, KIND_REFERENT, KIND_WEAK = 8 };
#define MOST_LABEL (((uint64_t)1 << 28) - 1)

static inline uint32_t
label_of(unsigned kind, uint64_t number)
{
    return (uint32_t)((number < MOST_LABEL ? number : MOST_LABEL) << 4 | kind);
}

static inline uint32_t
node_count(void)
{
    return (uint32_t)(heap.address.used / 8);
}
#define NO_NODE UINT32_MAX
uint32_t node_add(uint64_t address); /* one that is not there yet; NO_NODE: there are too many */

static inline uint32_t
node_at(uint64_t address)
{
    PointerEntry *e = pointers_find(&heap.nodes, address);
    return e->key ? e->value : node_add(address);
}

/* write.c */
int heap_put_out(int fd, const HeapOccasion *occasion); /* 0, or -1 with errno */

/* check.c */
void heap_check_prepare(PyObject *asked);
void heap_check(const char *path); /* of the snapshot */

/* walk.c */
void heap_expand(uint32_t node);
void edge_add(uint32_t label, PyObject *to);
typedef enum {
    IS_LEAF,
    IS_INT,
    IS_FLOAT,
    IS_STR,
    IS_BYTES,
    IS_BYTEARRAY,
    IS_LIST,
    IS_TUPLE,
    IS_DICT,
    IS_SET,
    IS_FUNCTION,
    IS_CELL,
    IS_GENERATOR,
    IS_FRAME,
    IS_MODULE,
    IS_TYPE,
    IS_CODE,
    IS_WEAKREF,
    IS_EXCEPTION,
    IS_TRACEBACK,
    IS_DEQUE,
    IS_ARRAY,
    IS_NDARRAY,
    IS_BUILTIN,
    IS_CONSTANT,
    IS_OTHER
} How;

typedef struct {
    PyTypeObject *type;
    uint32_t name; /* in heap.types */
    How how;       /* of the part that is written in C */
    uint32_t first_member, member_count;
    bool is_mine; /* a class of the program's modules: its instances name it */
    bool is_gc, is_generator;
    uint32_t fixed_size; /* with what lies before the object */
} TypeFacts;

typedef struct {
    uint32_t label;
    uint32_t offset;
} Member;

/* types.c */
const TypeFacts *type_facts(PyTypeObject *type); /* until the next call */
bool heap_is_mine(PyTypeObject *type);
enum {
    STYLE_ATTRIBUTE,
    STYLE_KEY,
    STYLE_LOCAL,
    STYLE_CELL,
    STYLE_GENERATOR,
    STYLE_COROUTINE,
    STYLE_ASYNCGEN,
    STYLE_MEMBER
};

/* text.c */
uint32_t label_named(int style, PyObject *name); /* an exact str */
uint32_t label_member(const char *name);
uint32_t label_text(const char *text);
uint32_t label_numbered(const char *before, uint64_t number, const char *after);
uint32_t label_key(PyObject *key, Py_ssize_t at); /* of an item of a dictionary */
uint32_t value_of(PyObject *o, How how);
uint32_t value_of_frame(_PyInterpreterFrame *frame);

/* size.c */
uint64_t size_of(PyObject *o, const TypeFacts *t);
uint64_t size_of_values(PyObject *o, PyDictValues *values);
uint64_t size_of_storage(PyObject *dict); /* of a dictionary: its keys */
uint64_t size_of_owned(PyObject *o);      /* of one that only its holder has, else 0 */

#endif
