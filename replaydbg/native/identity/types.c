/* Installing identity: which types are patched, and what was hashed before. */
#include "base/core.h"
#include "collector/collector.h"
#include "identity/inside.h"
#include <stdlib.h>

hashfunc hash_in_python; /* the slot functions of classes that define the method in Python */
reprfunc repr_in_python;

/* ---- types ---- */

static void
patch_type(PyTypeObject *type)
{
    identity_patch_hash(type);
    identity_patch_repr(type);
}

/* All types that exist, each after one of its bases, in an order that is the same in every process. New list, or NULL.
 */
static PyObject *
all_types(void)
{
    PyObject *types = PyList_New(0), *method = PyObject_GetAttrString((PyObject *)&PyType_Type, "__subclasses__");
    IdMap seen = {0};
    if (types == NULL || method == NULL || PyList_Append(types, (PyObject *)&PyBaseObject_Type) < 0)
        return NULL;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(types); i++) {
        PyObject *below = PyObject_CallOneArg(method, PyList_GET_ITEM(types, i));
        if (below == NULL)
            return NULL;
        for (Py_ssize_t k = 0; k < PyList_GET_SIZE(below); k++) {
            uint32_t *slot = idmap_slot(&seen, (uintptr_t)PyList_GET_ITEM(below, k) >> 4);
            if (*slot == 0 && PyList_Append(types, PyList_GET_ITEM(below, k)) < 0)
                return NULL;
            *slot = 1;
        }
        Py_DECREF(below);
    }
    Py_DECREF(method);
    free(seen.keys);
    free(seen.ids);
    return types;
}

/* Types to look at; each is kept alive. */
typedef struct {
    PyTypeObject **all;
    size_t used, size;
} Types;

static bool
types_add(Types *types, PyTypeObject *type)
{
    if (types->used == types->size) {
        size_t size = types->size ? types->size * 2 : 4096;
        PyTypeObject **more = realloc(types->all, size * sizeof *more);
        if (more == NULL)
            return false;
        types->all = more;
        types->size = size;
    }
    Py_INCREF(type);
    types->all[types->used++] = type;
    return true;
}

/* All types that exist, each after the first of its bases and once. `__subclasses__` makes a list for each of thousands
 * of types, and this runs after each of a hundred modules. */
static bool
types_collect(Types *types)
{
    if (!types_add(types, &PyBaseObject_Type))
        return false;
    for (size_t i = 0; i < types->used; i++) {
        PyObject *below = compat_subclasses(types->all[i]), *key, *weak;
        Py_ssize_t position = 0;
        while (below && PyDict_Next(below, &position, &key, &weak)) {
            PyObject *type = ((PyWeakReference *)weak)->wr_object;
            if (type == Py_None || Py_REFCNT(type) <= 0)
                continue;
            PyObject *bases = ((PyTypeObject *)type)->tp_bases;
            /* It is in the dictionary of each of its bases. */
            if (bases && PyTuple_GET_SIZE(bases) && PyTuple_GET_ITEM(bases, 0) == (PyObject *)types->all[i] &&
                !types_add(types, (PyTypeObject *)type))
                return false;
        }
    }
    return true;
}

/* A module of C code has just been loaded: it may have made types that it does not show (numpy's scalars are in a
 * dictionary). */
int
identity_module_loaded(PyObject *module, const char *name)
{
    if (hash_in_python == NULL) /* not installed yet: all types will be looked at */
        return 0;
    own_work_begin();
    static Types spare; /* memory for the next module */
    Types types = spare;
    spare = (Types){0};
    bool all = types_collect(&types);
    for (size_t i = 0; all && i < types.used; i++) {
        identity_watch_hash(types.all[i]);
        patch_type(types.all[i]);
    }
    while (types.used)
        Py_DECREF(types.all[--types.used]);
    free(spare.all);
    spare = types;
    if (!all) /* out of memory: these types' addresses show */
        identity_not_covered("types", name);
    own_work_end();
    return 0;
}

/* ---- containers that hold what was hashed by address ---- */

typedef struct {
    PyObject **todo;
    size_t used, size;
    IdMap seen;
    int rebuilt;
} Search;

static int
push(PyObject *o, void *search)
{
    Search *s = search;
    if (o == NULL)
        return 0;
    uint32_t *slot = idmap_slot(&s->seen, (uintptr_t)o >> 4);
    if (*slot)
        return 0;
    *slot = 1;
    if (s->used == s->size) {
        s->size = s->size ? s->size * 2 : 4096;
        s->todo = realloc(s->todo, s->size * sizeof *s->todo);
        if (s->todo == NULL) /* a few thousand pointers, before the program has begun */
            Py_FatalError("replaydbg: out of memory at the start");
    }
    s->todo[s->used++] = o;
    return 0;
}

static bool
set_is_stale(PySetObject *set)
{
    for (Py_ssize_t i = 0; i <= set->mask; i++) {
        setentry *e = &set->table[i];
        if (e->key && e->hash != -1 && PyObject_Hash(e->key) != e->hash)
            return true;
    }
    return false;
}

static int
rebuild_set(PySetObject *set)
{
    PyObject *members = PySequence_List((PyObject *)set);
    if (members == NULL)
        return -1;
    PyObject *fresh = PySet_New(members);
    Py_DECREF(members);
    if (fresh == NULL)
        return -1;
    /* A frozenset cannot be emptied by its own methods: the tables change places. */
    PySetObject *other = (PySetObject *)fresh, old = *set;
    bool small = other->table == other->smalltable, was_small = set->table == set->smalltable;
    memcpy(set->smalltable, other->smalltable, sizeof set->smalltable);
    memcpy(other->smalltable, old.smalltable, sizeof old.smalltable);
    set->table = small ? set->smalltable : other->table;
    other->table = was_small ? other->smalltable : old.table;
    set->fill = other->fill;
    set->used = other->used;
    set->mask = other->mask;
    other->fill = old.fill;
    other->used = old.used;
    other->mask = old.mask;
    set->hash = -1;
    Py_DECREF(fresh);
    return 0;
}

/* A dictionary does not show the hashes that it keeps: any key that is neither text nor number may be stale. */
static bool
dict_may_be_stale(PyObject *dict)
{
    PyObject *key, *value;
    Py_ssize_t position = 0;
    while (PyDict_Next(dict, &position, &key, &value))
        if (!PyUnicode_CheckExact(key) && !PyLong_CheckExact(key) && !PyBytes_CheckExact(key))
            return true;
    return false;
}

static int
rebuild_dict(PyObject *dict)
{
    PyObject *copy = PyDict_New(), *key, *value;
    Py_ssize_t position = 0;
    while (copy && PyDict_Next(dict, &position, &key, &value))
        if (PyDict_SetItem(copy, key, value) < 0)
            return -1;
    if (copy == NULL)
        return -1;
    PyDict_Clear(dict);
    int rc = PyDict_Update(dict, copy);
    Py_DECREF(copy);
    return rc;
}

static int
renew(PyObject *o, Search *s)
{
    if (PyAnySet_Check(o) && set_is_stale((PySetObject *)o)) {
        s->rebuilt++;
        return rebuild_set((PySetObject *)o);
    }
    return PyDict_Check(o) && dict_may_be_stale(o) ? rebuild_dict(o) : 0;
}

static void
push_referents(PyObject *o, Search *s)
{
    if (PyCode_Check(o)) /* no container to the collector; frozensets are among its constants */
        push(((PyCodeObject *)o)->co_consts, s);
    else if (Py_TYPE(o)->tp_traverse && PyObject_IS_GC(o))
        Py_TYPE(o)->tp_traverse(o, push, s);
}

/* Everything that the collector knows, and what can be reached from there. Nothing of it is freed by what follows. */
static void
collect_all(Search *s)
{
    for (int generation = 0; generation < NUM_GENERATIONS; generation++) {
        PyGC_Head *head = &core.tstate->interp->gc.generations[generation].head;
        for (PyGC_Head *g = _PyGCHead_NEXT(head); g != head; g = _PyGCHead_NEXT(g))
            push((PyObject *)(g + 1), s);
    }
    for (size_t i = 0; i < s->used; i++)
        push_referents(s->todo[i], s);
}

static int
renew_all(void)
{
    Search s = {0};
    int rc = 0;
    collect_all(&s);
    for (size_t i = 0; i < s.used; i++)
        if (PyWeakref_Check(s.todo[i]))
            ((PyWeakReference *)s.todo[i])->hash = -1; /* computed when it is asked for */
    do {                                               /* what holds a frozenset has to wait for it */
        s.rebuilt = 0;
        for (size_t i = 0; rc == 0 && i < s.used; i++)
            rc = renew(s.todo[i], &s);
    } while (rc == 0 && s.rebuilt > 0);
    free(s.todo);
    free(s.seen.keys);
    free(s.seen.ids);
    return rc;
}

static int
learn_python_slots(void)
{
    PyObject *external = PyImport_ImportModule("_frozen_importlib_external"),
             *frozen = PyImport_ImportModule("_frozen_importlib");
    PyObject *loader = external ? PyObject_GetAttrString(external, "FileLoader") : NULL;
    PyObject *spec = frozen ? PyObject_GetAttrString(frozen, "ModuleSpec") : NULL;
    if (loader == NULL || spec == NULL || !PyType_Check(loader) || !PyType_Check(spec))
        return -1;
    hash_in_python = ((PyTypeObject *)loader)->tp_hash;
    repr_in_python = ((PyTypeObject *)spec)->tp_repr;
    Py_DECREF(loader);
    Py_DECREF(spec);
    Py_DECREF(external);
    Py_DECREF(frozen);
    return 0;
}

int
identity_types_install(void)
{
    if (learn_python_slots() < 0)
        return -1;
    PyObject *types = all_types();
    if (types == NULL)
        return -1;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(types); i++)
        patch_type((PyTypeObject *)PyList_GET_ITEM(types, i));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(types); i++)
        identity_leave_hash((PyTypeObject *)PyList_GET_ITEM(types, i));
    /* In the same order in every process; what else is a key now would be numbered in the order of addresses. */
    identity_address(Py_None);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(types); i++)
        if (((PyTypeObject *)Py_TYPE(PyList_GET_ITEM(types, i)))->tp_hash == identity_hash)
            identity_address(PyList_GET_ITEM(types, i));
    Py_DECREF(types);
    return renew_all();
}
