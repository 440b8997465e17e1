/* Identity. What a program sees of an object's address (id(), hashes of objects, the addresses in reprs) differs in
 * each process, and with it the order of every set of objects. Here each object gets a serial number at the moment when
 * the program first asks, and an address made up from it. The numbers are kept by memory block in a table of ours; when
 * the block is freed they are dropped. */
#include "base/core.h"
#include "base/many.h"
#include "crossing/crossing.h"
#include "identity/inside.h"
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

/* Made-up addresses have the twelve digits of real ones, and lie where neither Linux nor a sanitizer maps anything.
 * They are a page apart, so that an id to which an offset was added is still recognized. */
#define FIRST_ADDRESS ((uintptr_t)0x2d0000000000)
#define APART 12
#define BEFORE 64 /* so much before the id still belongs to the object: its collector's header, for one */
#define NOT_COUNTED                                                                                                    \
    ((uint64_t)1 << 32) /* serials from here: first asked for inside a crossing, where the modes may differ */
#define DIVERTED ((uint64_t)1 << 33) /* and from here: asked for by the debugger alone */

/* ---- the table ---- */

typedef struct {
    uintptr_t block; /* start of the memory block; 0: no entry */
    uint64_t number; /* serial * 4 + distance of the object from the block's start / 16 */
} Entry;
static Entry *table;
static size_t table_mask, table_used;
static uint64_t next_serial = 1, next_not_counted = NOT_COUNTED;
/* how many entries' blocks have these bits; 255: that many or more. Most blocks that are freed end here */
static uint8_t *filter;
static size_t filter_mask;

/* Since 3.12 a second interpreter can have a lock of its own: then two threads may come here at once. Nothing is
 * recorded any more. */
static bool is_shared;
static pthread_mutex_t shared_lock = PTHREAD_MUTEX_INITIALIZER;

static inline void
enter(void)
{
    if (__builtin_expect(is_shared, 0))
        pthread_mutex_lock(&shared_lock);
}

static inline void
leave(void)
{
    if (__builtin_expect(is_shared, 0))
        pthread_mutex_unlock(&shared_lock);
}

void
identity_share(void)
{
    is_shared = true;
}

static PyMemAllocatorEx allocator; /* as it was */

static inline uint8_t *
filter_of(uintptr_t block)
{
    return &filter[block >> 4 & filter_mask];
}

static inline size_t
home(uintptr_t block)
{
    return (size_t)((uint64_t)(block >> 4) * 0x9E3779B97F4A7C15u >> 20) & table_mask;
}

/* Where the memory of an object begins: what the allocator gets back when it is freed. Objects that are part of the
 * interpreter's own image are never freed; for them it is the start of what they occupy, and so different for each,
 * too. */
static inline uintptr_t
block_of(PyObject *o)
{
    PyTypeObject *type = Py_TYPE(o);
    uintptr_t block = (uintptr_t)o;
    if (PyType_IS_GC(type) && (type->tp_is_gc == NULL || type->tp_is_gc(o)))
        block -= sizeof(PyGC_Head);
    if (type->tp_flags & COMPAT_PREHEADER)
        block -= 2 * sizeof(PyObject *);
    return block;
}

uintptr_t
block_of_object(PyObject *o)
{
    return block_of(o);
}

static Entry *
find(uintptr_t block)
{
    size_t i = home(block);
    while (table[i].block && table[i].block != block)
        i = (i + 1) & table_mask;
    return &table[i];
}

static inline void
count_in(uintptr_t block)
{
    uint8_t *count = filter_of(block);
    if (*count != 255)
        ++*count;
}

/* Large tables lie on large pages, where the kernel has some: each look goes to another place, and finding that place
 * costs most. */
static void *
zeroed(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        Py_FatalError("replaydbg: out of memory for the identities of objects");
    if (size >= 4u << 20)
        madvise(memory, size, MADV_HUGEPAGE);
    return memory;
}

static void
resize_table(size_t size)
{
    Entry *old = table;
    size_t old_size = table ? table_mask + 1 : 0;
    if (old)
        munmap(filter, old_size * 8);
    table = zeroed(size * sizeof *table);
    filter = zeroed(size * 8);
    table_mask = size - 1;
    filter_mask = size * 8 - 1;
    for (size_t i = 0; i < old_size; i++)
        if (old[i].block) {
            *find(old[i].block) = old[i];
            count_in(old[i].block);
        }
    if (old)
        munmap(old, old_size * sizeof *old);
}

/* Takes an entry out; those behind it that it had displaced move up. */
static void
forget(uintptr_t block)
{
    Entry *e = find(block);
    if (e->block == 0)
        return;
    uint8_t *count = filter_of(block);
    if (*count != 255)
        --*count;
    table_used--;
    size_t hole = (size_t)(e - table);
    for (size_t i = (hole + 1) & table_mask; table[i].block; i = (i + 1) & table_mask) {
        size_t distance = (i - home(table[i].block)) & table_mask;
        if (distance >= ((i - hole) & table_mask)) {
            table[hole] = table[i];
            hole = i;
        }
    }
    table[hole].block = 0;
}

/* ---- memory that is freed ---- */

/* Objects that are watched, or earlier objects at their addresses. Where the memory of an object begins depends on its
 * type, which need not exist yet. Each free looks them up, so bits by address come first: a block has one of three
 * addresses. */
#define MOST_BEFORE (sizeof(PyGC_Head) + 2 * sizeof(PyObject *))
#define WATCHED_BITS 8192u

static struct {
    int count;
    uintptr_t from[MOST_WATCHED];
    bool ended[MOST_WATCHED];
    uint8_t bits[WATCHED_BITS / 8];
} watched;

static inline uint32_t
watched_bit(uintptr_t block)
{
    return (uint32_t)(block >> 4) % WATCHED_BITS;
}

void
identity_watch_none(void)
{
    if (watched.count)
        memset(&watched, 0, sizeof watched);
}

void
identity_watch_end(int number, const void *o)
{
    for (; watched.count <= number; watched.count++)
        watched.from[watched.count] = UINTPTR_MAX / 2;
    watched.from[number] = (uintptr_t)o - MOST_BEFORE;
    watched.ended[number] = false;
    for (uintptr_t block = watched.from[number]; block - watched.from[number] <= MOST_BEFORE; block += 16) {
        uint32_t bit = watched_bit(block);
        watched.bits[bit / 8] |= (uint8_t)(1u << bit % 8);
    }
    identity_watch_reused();
}

bool
identity_has_ended(int number)
{
    bool has = watched.ended[number];
    watched.ended[number] = false;
    return has;
}

static void
ends(uintptr_t block)
{
    for (int i = 0; i < watched.count; i++)
        if (block - watched.from[i] <= MOST_BEFORE)
            watched.ended[i] = true;
}

static inline void
block_goes(uintptr_t block)
{
    uint32_t bit = watched_bit(block);
    if (__builtin_expect(watched.count && watched.bits[bit / 8] & 1u << bit % 8, 0))
        ends(block);
    if (__builtin_expect(since_is_kept, 0))
        since_freed(block);
    if (__builtin_expect(is_shared, 0) || *filter_of(block)) {
        enter();
        forget(block);
        leave();
    }
}

static void
free_block(void *ctx, void *p)
{
    block_goes((uintptr_t)p);
    allocator.free(ctx, p);
}

/* Only strings and tuples in the making are resized; whether they move is the allocator's matter, so they always count
 * as new. */
static void *
resize_block(void *ctx, void *p, size_t size)
{
    if (p)
        block_goes((uintptr_t)p);
    return allocator.realloc(ctx, p, size);
}

/* Some types keep dead objects for reuse and do not free their memory. Their deallocators are wrapped when one of them
 * is first asked for. None of these types has finalizers: what comes here will not be seen again. */
#if PY_VERSION_HEX >= 0x030E0000
#define MOST_REUSED 15
#else
#define MOST_REUSED 8
#endif
static struct {
    const char *name;
    /* its deallocator defers itself when the stack is deep, but only while it is the type's own: we do it then */
    bool in_trashcan;
    destructor original;
} reused[MOST_REUSED] = {
    {"list", true},
    {"tuple", true},
    {"dict", true},
    {"slice", false},
    {"_contextvars.Context", false},
    {"async_generator_asend", false},
    {"MemoryError", false},
    {"_asyncio.FutureIter", false},
#if PY_VERSION_HEX >= 0x030E0000
    {"builtin_function_or_method", false},
    {"builtin_method", false},
    {"method", false},
    {"list_iterator", false},
    {"tuple_iterator", false},
    {"range", false},
    {"range_iterator", false},
#endif
};

static inline void
reused_dealloc(int n, destructor wrapper, PyObject *o)
{
    block_goes(block_of(o));
    if (!reused[n].in_trashcan) {
        reused[n].original(o);
        return;
    }
    PyObject_GC_UnTrack(o);
    Py_TRASHCAN_BEGIN(o, wrapper) reused[n].original(o);
    Py_TRASHCAN_END
}

/* They would be taken for declarations. */
/* clang-format off */
#define REUSED(n) static void reused_##n(PyObject *o) { reused_dealloc(n, reused_##n, o); }
REUSED(0) REUSED(1) REUSED(2) REUSED(3) REUSED(4) REUSED(5) REUSED(6) REUSED(7)
#if PY_VERSION_HEX >= 0x030E0000
REUSED(8) REUSED(9) REUSED(10) REUSED(11) REUSED(12) REUSED(13) REUSED(14)
#endif
static const destructor reused_wrappers[MOST_REUSED] = {
    reused_0, reused_1, reused_2, reused_3, reused_4, reused_5, reused_6, reused_7,
#if PY_VERSION_HEX >= 0x030E0000
    reused_8, reused_9, reused_10, reused_11, reused_12, reused_13, reused_14,
#endif
};
/* clang-format on */

/* Floats are freed by specialised instructions too, which ask no deallocator, and reused in place by others; so are ints
 * since 3.14. One that has a number is kept alive instead, until it is found that nobody else has it. */
static struct {
    PyObject **kept;
    size_t used, size;
} numbers;

static bool
is_kept(PyObject *o)
{
#if PY_VERSION_HEX >= 0x030E0000
    if (PyLong_CheckExact(o))
        return !_Py_IsImmortal(o);
#endif
    return PyFloat_CheckExact(o);
}

static void
drop_numbers(void)
{
    size_t left = 0;
    for (size_t i = 0; i < numbers.used; i++) {
        PyObject *o = numbers.kept[i];
        if (Py_REFCNT(o) > 1) {
            numbers.kept[left++] = o;
            continue;
        }
        forget(block_of(o));
        Py_DECREF(o);
    }
    numbers.used = left;
}

static void
keep_number(PyObject *o)
{
    if (numbers.used == numbers.size) {
        drop_numbers();
        if (numbers.used * 2 >= numbers.size) { /* the next search comes after as many new ones as there are old ones */
            numbers.size = numbers.size ? numbers.size * 2 : 256;
            numbers.kept = realloc(numbers.kept, numbers.size * sizeof *numbers.kept);
            if (numbers.kept == NULL)
                Py_FatalError("replaydbg: out of memory for the identities of objects");
        }
    }
    numbers.kept[numbers.used++] = Py_NewRef(o);
}

static void
watch_type(PyTypeObject *type)
{
    static IdMap seen;
    if ((type->tp_flags & Py_TPFLAGS_HEAPTYPE) && type->tp_name[0] != '_')
        return;
    uint32_t *slot = idmap_slot(&seen, (uintptr_t)type >> 4);
    if (*slot)
        return;
    *slot = 1;
    for (int n = 0; n < MOST_REUSED; n++)
        if (strcmp(type->tp_name, reused[n].name) == 0 &&
            !(type->tp_flags & Py_TPFLAGS_BASETYPE && type->tp_flags & Py_TPFLAGS_HEAPTYPE)) {
            reused[n].original = type->tp_dealloc;
            type->tp_dealloc = reused_wrappers[n];
        }
}

void
identity_watch_reused(void)
{
    PyTypeObject *types[] = {&PyList_Type,  &PyTuple_Type,   &PyDict_Type,
                             &PySlice_Type, &PyContext_Type, &_PyAsyncGenASend_Type};
    for (size_t n = 0; n < sizeof types / sizeof *types; n++)
        watch_type(types[n]);
}

/* ---- asking ---- */

/* Whatever is asked in throw-away copies, and in whatever order: an object has one number as long as it lies there, and
 * no other one has it. */
static uint64_t
diverted_serial(uintptr_t block)
{
    return DIVERTED + (block >> 4 & UINT32_MAX);
}

static uint64_t
new_entry(Entry *e, PyObject *o, uintptr_t block)
{
    if (table_used * 2 > table_mask) {
        resize_table((table_mask + 1) * 2);
        e = find(block);
    }
    uint64_t serial = engine.diverting ? diverted_serial(block) : core.depth == 0 ? next_serial++ : next_not_counted++;
    e->block = block;
    e->number = serial << 2 | ((uintptr_t)o - block) >> 4;
    table_used++;
    count_in(block);
    if (is_kept(o)) {
        if (!is_shared)     /* else another interpreter might drop it */
            keep_number(o); /* may move entries */
    }
    else
        watch_type(Py_TYPE(o));
    return serial;
}

static inline uint64_t
serial_of(PyObject *o)
{
    uintptr_t block = block_of(o);
    enter();
    Entry *e = find(block);
    uint64_t serial = e->block ? e->number >> 2 : new_entry(e, o, block);
    leave();
    return serial;
}

uint64_t
identity_serials(void)
{
    return next_serial;
}

/* Where a replay leaves out what the recording had before, its objects have the numbers from there on that they had. */
void
identity_reach(uint64_t serial)
{
    if (serial > next_serial && serial < NOT_COUNTED)
        next_serial = serial;
}

uintptr_t
identity_address(PyObject *o)
{
    return FIRST_ADDRESS + (serial_of(o) << APART);
}

bool
identity_is_made_up(uintptr_t address)
{
    uint64_t serial = (address + BEFORE - FIRST_ADDRESS) >> APART;
    bool was_given = serial < next_serial || (serial >= NOT_COUNTED && serial < next_not_counted);
    return address > FIRST_ADDRESS && was_given;
}

void *
identity_memory(uintptr_t address)
{
    uint64_t serial = (address + BEFORE - FIRST_ADDRESS) >> APART;
    for (size_t i = 0; i <= table_mask; i++)
        if (table[i].block && table[i].number >> 2 == serial)
            return (char *)table[i].block + ((table[i].number & 3) << 4) +
                   (ptrdiff_t)(address - FIRST_ADDRESS - (serial << APART));
    return NULL;
}

uintptr_t
identity_known_address(const void *memory)
{
    uintptr_t address = 0;
    enter();
    /* as far as an object can be from its block's start */
    for (size_t distance = 0; distance < 4 && address == 0; distance++) {
        Entry *e = find((uintptr_t)memory - (distance << 4));
        if (e->block && (e->number & 3) == distance)
            address = FIRST_ADDRESS + (e->number >> 2 << APART);
    }
    leave();
    return address;
}

/* ---- hashes ---- */

Py_hash_t
identity_hash(PyObject *o)
{
    return (Py_hash_t)((FIRST_ADDRESS >> 4) + serial_of(o)); /* of the size that the interpreter's have */
}

static inline Py_hash_t
mixed(Py_hash_t a, Py_hash_t b)
{
    Py_hash_t h = a ^ b;
    return h == -1 ? -2 : h;
}

static Py_hash_t
hash_method(PyObject *o)
{
    Py_hash_t of_function = PyObject_Hash(PyMethod_GET_FUNCTION(o));
    return of_function == -1 ? -1 : mixed(identity_hash(PyMethod_GET_SELF(o)), of_function);
}

/* Equal builtin methods have the same C function; its address is numbered too. */
static Py_hash_t
hash_builtin(PyObject *o)
{
    static IdMap functions;
    static uint32_t count;
    PyCFunctionObject *f = (PyCFunctionObject *)o;
    uint32_t *number = idmap_slot(&functions, (uintptr_t)f->m_ml->ml_meth);
    if (*number == 0)
        *number = ++count;
    return mixed(f->m_self ? identity_hash(f->m_self) : 0, (Py_hash_t)((uint64_t)*number * 0x9E3779B97F4A7C15u >> 8));
}

/* The layout of a method-wrapper is private to CPython's descrobject.c: descriptor, then self. */
typedef struct {
    PyObject_HEAD PyObject *descr, *self;
} MethodWrapper;

static Py_hash_t
hash_method_wrapper(PyObject *o)
{
    MethodWrapper *w = (MethodWrapper *)o;
    return mixed(identity_hash(w->self), identity_hash(w->descr));
}

static hashfunc complex_original;

static Py_hash_t
hash_complex(PyObject *o)
{
    Py_complex c = PyComplex_AsCComplex(o);
    if (c.real == c.real && c.imag == c.imag)
        return complex_original(o);
    return identity_hash(o); /* equal to nothing, so any number will do */
}

/* ---- hashes of other types in C: by value, but some fall back to the address (a NaN, say) ---- */
#define MOST_HASHES 256
static hashfunc hash_originals[MOST_HASHES];
static int hash_count;

static inline Py_hash_t
hash_through(int n, PyObject *o)
{
    Py_hash_t h = hash_originals[n](o);
    return h == COMPAT_HASH_POINTER(o) ? identity_hash(o) : h;
}

#define HASH(n)                                                                                                        \
    static Py_hash_t hash_##n(PyObject *o)                                                                             \
    {                                                                                                                  \
        return hash_through(0##n - 01000, o);                                                                          \
    }
#define NAME(n) hash_##n,
MANY_256(HASH)
static const hashfunc hash_wrappers[MOST_HASHES] = {MANY_256(NAME)};

/* ---- which hash function stands for which ---- */
static IdMap known_hashes; /* hash function: 1 + number of ours in `hashes`, or LEFT_ALONE */
static hashfunc hashes[8 + MOST_HASHES];
static uint32_t hashes_used;
#define LEFT_ALONE UINT32_MAX

static void
stand_for(hashfunc original, hashfunc ours)
{
    hashes[hashes_used++] = ours;
    *idmap_slot(&known_hashes, (uintptr_t)original) = hashes_used;
    *idmap_slot(&known_hashes, (uintptr_t)ours) = LEFT_ALONE;
}

static hashfunc
hash_standing_for(hashfunc original)
{
    uint32_t known = original ? *idmap_slot(&known_hashes, (uintptr_t)original) : 0;
    return known && known != LEFT_ALONE ? hashes[known - 1] : NULL;
}

/* Of a type of the interpreter: what hashes by address there is known. */
void
identity_leave_hash(PyTypeObject *type)
{
    uint32_t *known = type->tp_hash ? idmap_slot(&known_hashes, (uintptr_t)type->tp_hash) : NULL;
    if (known && *known == 0)
        *known = LEFT_ALONE;
}

void
identity_patch_hash(PyTypeObject *type)
{
    hashfunc ours = hash_standing_for(type->tp_hash);
    if (ours == NULL)
        return;
    hashfunc original = type->tp_hash;
    type->tp_hash = ours;
    patch_wrapper_of(type, "__hash__", (void *)original, (void *)ours);
}

/* What is left as it is for want of room: where it is an address, that of the recording's process does not come again.
 */
void
identity_not_covered(const char *what, const char *of)
{
    char text[240];
    snprintf(text, sizeof text, "identity: %s of %s", what, of);
    note("uncovered", text);
}

/* A type of an extension module with a hash function of its own. */
void
identity_watch_hash(PyTypeObject *type)
{
    if (type->tp_hash == NULL || type->tp_hash == PyObject_HashNotImplemented || type->tp_hash == hash_in_python)
        return;
    if (*idmap_slot(&known_hashes, (uintptr_t)type->tp_hash))
        return;
    if (hash_count == MOST_HASHES) {
        identity_not_covered("hashes", type->tp_name);
        return;
    }
    hash_originals[hash_count] = type->tp_hash;
    stand_for(type->tp_hash, hash_wrappers[hash_count++]);
}

/* ---- id() ---- */

static bool ids_are_addresses; /* a setting: for programs that turn ids into pointers */

bool
identity_is_off(void)
{
    return ids_are_addresses;
}

static PyObject *
builtin_id(PyObject *module, PyObject *o)
{
    if (PySys_Audit("builtins.id", "O", o) < 0)
        return NULL;
    return PyLong_FromVoidPtr(ids_are_addresses ? (void *)o : (void *)identity_address(o));
}

static int
patch_id(void)
{
    static PyMethodDef ours;
    PyObject *f = PyDict_GetItemString(core.tstate->interp->builtins, "id");
    if (f == NULL || !PyCFunction_Check(f))
        return -1;
    ours = *((PyCFunctionObject *)f)->m_ml;
    ours.ml_meth = builtin_id;
    ((PyCFunctionObject *)f)->m_ml = &ours;
    return 0;
}

/* Contexts are ordered by the hashes of their variables, and their tree has a node more where two are alike. A variable
 * of the program's is numbered when it is made; one that C code makes by itself (that of `decimal`), when it is first
 * used. */
static newfunc context_variable_original;

static PyObject *
new_context_variable(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *o = context_variable_original(type, args, kwargs);
    if (o)
        identity_hash(o);
    return o;
}

static Py_hash_t
hash_context_variable(PyObject *o)
{
    return mixed(identity_hash(o), PyObject_Hash(((PyContextVar *)o)->var_name));
}

int
identity_install(bool real_ids)
{
    ids_are_addresses = real_ids;
    resize_table(1 << 12);
    if (patch_id() < 0)
        return -1;
    PyMem_GetAllocator(PYMEM_DOMAIN_OBJ, &allocator);
    PyMemAllocatorEx ours = allocator;
    ours.free = free_block;
    ours.realloc = resize_block;
    PyMem_SetAllocator(PYMEM_DOMAIN_OBJ, &ours);
    context_variable_original = PyContextVar_Type.tp_new;
    PyContextVar_Type.tp_new = new_context_variable;
    stand_for(PyContextVar_Type.tp_hash, hash_context_variable);
    complex_original = PyComplex_Type.tp_hash;
    stand_for(PyBaseObject_Type.tp_hash, identity_hash);
    stand_for(PyMethod_Type.tp_hash, hash_method);
    stand_for(PyCFunction_Type.tp_hash, hash_builtin);
    PyObject *wrapper = PyObject_GetAttrString(Py_None, "__repr__"); /* its type has no public name */
    if (wrapper == NULL)
        return -1;
    stand_for(Py_TYPE(wrapper)->tp_hash, hash_method_wrapper);
    Py_DECREF(wrapper);
    stand_for(PyComplex_Type.tp_hash, hash_complex);
    identity_watch_hash(&PyFloat_Type);
    if (instructions_install() < 0)
        return -1;
    return identity_types_install();
}
