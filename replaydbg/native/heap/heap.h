/* Pictures of the heap: which objects the program can reach, what they are, and which holds which.
 *
 *   heap.c        where the walk begins
 *   heap_write.c  what is written of it
 *   heap_walk.c   what each object refers to, by which step
 *   heap_types.c  what is known of each type
 *   heap_text.c   values and steps as text
 *   heap_size.c   how large an object is
 *   heap_table.c  columns that grow, and the tables of addresses and texts
 *   heap_record.c when one is taken while the program is recorded
 *   heap_since.c  since when an object is the one at its address
 *
 * It is one call on borrowed pointers. Nothing of the program runs in it and nothing is made in it: no repr, no len(), no __sizeof__, no
 * dictionary of an instance, no frame object; its memory is its own. */
#ifndef REPLAYDBG_HEAP_H
#define REPLAYDBG_HEAP_H
#include "base/core.h"

/* ---- heap_table.c ---- */
typedef struct {
    uint8_t *data;
    size_t used, size; /* bytes */
} Column;
void column_grow(Column *c, size_t n);          /* leaves the walk if there is no memory */
void heap_release(void);                        /* all that was taken */

static inline void *
column_room(Column *c, size_t n)
{
    if (__builtin_expect(c->size - c->used < n || c->data == NULL, 0)) /* it leads somewhere, also where there is nothing */
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
    uint64_t key;      /* 0: free */
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

/* ---- heap.c: the walk ---- */
typedef struct {
    uint64_t nodes, edges;  /* at most so many */
    uint64_t items;         /* of one container */
    uint32_t text;          /* characters of a value */
    bool all;               /* the modules of the standard library and those that are installed, too */
} HeapLimits;
#define HEAP_LIMITS ((HeapLimits){.nodes = 20000000, .edges = 80000000, .items = 1000000, .text = 80})

/* What a snapshot is called, and when it is taken. */
typedef struct {
    uint64_t number, event, step, time_ns;
    const char *name, *reason;
    PyObject *exception;     /* that ends the program, or NULL: the frames that it passed are gone but for what it holds */
} HeapOccasion;

typedef struct {
    HeapLimits limits;
    /* by node, in the order in which they were met */
    Column address, type, size, value, since, first_edge;
    Column target, label, floats;
    PointerMap nodes, labels, module_names;
    TextTable strings, types;
    Column type_facts, members;
    PointerMap types_known;
    uint32_t frames, modules;   /* so many nodes of these two kinds come first */
    uint32_t class_label, cell_label, frame_type;
    uint32_t here;              /* the node that is looked at */
    uint64_t referents;         /* of those of C code that were seen of it */
    const void *own_dict;       /* its dictionary, whose items are its own; or NULL */
    uint32_t named_end;         /* of its references that have names: before this one */
    Column root_nodes, root_ends, root_texts;
    uint64_t nodes_cut, edges_cut, items_cut, containers_cut;
} Heap;
extern Heap heap;
/* Writes what is reached from frames and modules, or from `roots` (a dict of names and objects) alone, to `fd`. 0, or -1 with errno. */
int heap_capture(int fd, const HeapLimits *limits, const HeapOccasion *occasion, PyObject *roots);
_Noreturn void heap_give_up(void);              /* no memory: heap_capture() returns -1 */

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
uint32_t node_add(uint64_t address);            /* one that is not there yet; NO_NODE: there are too many */

static inline uint32_t
node_at(uint64_t address)
{
    PointerEntry *e = pointers_find(&heap.nodes, address);
    return e->key ? e->value : node_add(address);
}

/* ---- heap_write.c ---- */
int heap_put_out(int fd, const HeapOccasion *occasion); /* 0, or -1 with errno */

/* ---- heap_check.c ---- */
void heap_check_prepare(PyObject *asked);
void heap_check(const char *path); /* of the snapshot */

/* ---- heap_walk.c ---- */
void heap_expand(uint32_t node);
void edge_add(uint32_t label, PyObject *to);

/* ---- heap_types.c ---- */
typedef enum {
    IS_LEAF, IS_INT, IS_FLOAT, IS_STR, IS_BYTES, IS_BYTEARRAY, IS_LIST, IS_TUPLE, IS_DICT, IS_SET, IS_FUNCTION, IS_CELL, IS_GENERATOR, IS_FRAME,
    IS_MODULE, IS_TYPE, IS_CODE, IS_WEAKREF, IS_EXCEPTION, IS_TRACEBACK, IS_DEQUE, IS_ARRAY, IS_NDARRAY, IS_BUILTIN, IS_CONSTANT, IS_OTHER
} How;
typedef struct {
    PyTypeObject *type;
    uint32_t name;               /* in heap.types */
    How how;                     /* of the part that is written in C */
    uint32_t first_member, member_count;
    bool is_mine;                /* a class of the program's modules: its instances name it */
    bool is_gc, is_generator;
    uint32_t fixed_size;         /* with what lies before the object */
} TypeFacts;
typedef struct {
    uint32_t label;
    uint32_t offset;
} Member;
const TypeFacts *type_facts(PyTypeObject *type); /* until the next call */
bool heap_is_mine(PyTypeObject *type);
#define TYPE_NAME_ROOM 2048
size_t heap_type_name(uint8_t text[TYPE_NAME_ROOM], PyTypeObject *type);

/* ---- heap_text.c ---- */
enum { STYLE_ATTRIBUTE, STYLE_KEY, STYLE_LOCAL, STYLE_CELL, STYLE_GENERATOR, STYLE_COROUTINE, STYLE_ASYNCGEN, STYLE_MEMBER };
uint32_t label_named(int style, PyObject *name);  /* an exact str */
uint32_t label_member(const char *name);
uint32_t label_text(const char *text);
uint32_t label_numbered(const char *before, uint64_t number, const char *after);
uint32_t label_key(PyObject *key, Py_ssize_t at); /* of an item of a dictionary */
uint32_t value_of(PyObject *o, How how);
uint32_t value_of_frame(_PyInterpreterFrame *frame);
size_t text_of_name(uint8_t *to, size_t room, PyObject *name);

/* ---- heap_size.c ---- */
uint64_t size_of(PyObject *o, const TypeFacts *t);
uint64_t size_of_values(PyObject *o, PyDictValues *values);
uint64_t size_of_storage(PyObject *dict);         /* of a dictionary: its keys */
uint64_t size_of_owned(PyObject *o);              /* of one that only its holder has, else 0 */

/* ---- heap_since.c ---- */
uint32_t heap_since(uint64_t block);              /* where the memory of an object begins */
void since_begin(uint64_t number);                /* of the next snapshot */
uintptr_t block_of_object(PyObject *o);           /* identity.c */
void identity_watch_reused(void);                 /* identity.c: of types that keep dead objects, too, it is seen when one dies */

#endif
