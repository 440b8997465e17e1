/* Ids that are used as addresses. `ctypes.cast(id(x), ctypes.py_object)` and its like read memory at the number that
 * id() gave, and that is made up here. Where ctypes takes an address, a made-up one becomes the object's real one.
 *
 * And addresses that are used as ids: some extension modules make an int of an object's address, which Python code
 * compares with ids. The function that they call for it gives the made-up one. */
#include "base/core.h"
#include "crossing/crossing.h"
#include "identity/inside.h"

/* what is found at the id of an object that lives no longer: zeros, as is likely after a free */
static char dead_object[4096];
static bool missing; /* the last translation met such an id */

static PyTypeObject *simple_metatype; /* the type of c_void_p, c_size_t ... */

/* c_void_p(id(x)) keeps the number that it was given, as its `value` is compared with ids: a copy of it with the real
 * address is handed over instead. New reference: `o` itself, unless it holds the id of an object. */
static PyObject *
translated_holder(PyObject *o)
{
    Py_buffer held, fresh;
    PyObject *copy = NULL, *nothing;
    void *memory = NULL;
    if (PyObject_GetBuffer(o, &held, PyBUF_SIMPLE) < 0)
        return NULL;
    if (held.len == sizeof memory)
        memcpy(&memory, held.buf, sizeof memory);
    PyBuffer_Release(&held);
    if (!identity_is_made_up((uintptr_t)memory))
        return Py_NewRef(o);
    memory = identity_memory((uintptr_t)memory);
    missing = memory == NULL;
    note("uncovered", "ctypes reads the memory of a Python object");
    if ((nothing = PyTuple_New(0)) == NULL)
        return NULL;
    copy = Py_TYPE(o)->tp_new(Py_TYPE(o), nothing, NULL);
    Py_DECREF(nothing);
    if (copy == NULL || PyObject_GetBuffer(copy, &fresh, PyBUF_WRITABLE) < 0) {
        Py_XDECREF(copy);
        return NULL;
    }
    memcpy(fresh.buf, &memory, sizeof memory);
    PyBuffer_Release(&fresh);
    return copy;
}

/* New reference: `o` itself, unless it is the id of an object, or was. */
static PyObject *
translated(PyObject *o)
{
    int overflow;
    if (Py_IS_TYPE((PyObject *)Py_TYPE(o), simple_metatype))
        return translated_holder(o);
    long long value = PyLong_CheckExact(o) ? PyLong_AsLongLongAndOverflow(o, &overflow) : 0;
    if (value <= 0 || !identity_is_made_up((uintptr_t)value))
        return Py_NewRef(o);
    void *memory = identity_memory((uintptr_t)value);
    missing = memory == NULL;
    note("uncovered", "ctypes reads the memory of a Python object");
    return PyLong_FromVoidPtr(memory ? memory : dead_object);
}

static PyObject *
translated_tuple(PyObject *args)
{
    Py_ssize_t n = PyTuple_GET_SIZE(args);
    PyObject *copy = PyTuple_New(n);
    bool differs = false;
    for (Py_ssize_t i = 0; copy && i < n; i++) {
        PyObject *o = translated(PyTuple_GET_ITEM(args, i));
        differs |= o != PyTuple_GET_ITEM(args, i);
        if (o && missing) {
            Py_CLEAR(o);
            PyErr_SetString(PyExc_ValueError, "the id of an object that no longer exists is used as an address");
        }
        missing = false;
        if (o == NULL)
            Py_CLEAR(copy);
        else
            PyTuple_SET_ITEM(copy, i, o);
    }
    if (copy && !differs)
        Py_SETREF(copy, Py_NewRef(args));
    return copy;
}

/* ---- calls of foreign functions ---- */

static ternaryfunc call_original;

static PyObject *
call_function(PyObject *function, PyObject *args, PyObject *kwargs)
{
    PyObject *real = translated_tuple(args);
    PyObject *result = real ? call_original(function, real, kwargs) : NULL;
    Py_XDECREF(real);
    return result;
}

/* ---- functions and methods of one argument: c_long.from_address(id(x)), _ctypes.PyObj_FromPtr(id(x)) ---- */
enum { FROM_ADDRESS, OBJECT_FROM_POINTER, MORE_REFERENCES, FEWER_REFERENCES, ONE_ARGUMENT };
static PyCFunction one_argument[ONE_ARGUMENT];
static int one_argument_flags[ONE_ARGUMENT];

static PyObject *
with_one_argument(int which, PyObject *self, PyObject *arg)
{
    bool from_address = which == FROM_ADDRESS;
    PyObject *real = from_address || one_argument_flags[which] == METH_O ? translated(arg) : translated_tuple(arg);
    missing = false;
    PyObject *result = real ? one_argument[which](self, real) : NULL;
    Py_XDECREF(real);
    return result;
}

static PyObject *
from_address(PyObject *self, PyObject *arg)
{
    return with_one_argument(FROM_ADDRESS, self, arg);
}
static PyObject *
object_from_pointer(PyObject *self, PyObject *arg)
{
    return with_one_argument(OBJECT_FROM_POINTER, self, arg);
}
static PyObject *
more_references(PyObject *self, PyObject *arg)
{
    return with_one_argument(MORE_REFERENCES, self, arg);
}
static PyObject *
fewer_references(PyObject *self, PyObject *arg)
{
    return with_one_argument(FEWER_REFERENCES, self, arg);
}

/* Since 3.13 the method receives its class. */
static PyCMethod from_address_with_class;

static PyObject *
from_address_of_class(PyObject *self, PyTypeObject *class, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    PyObject *real = nargs == 1 && kwnames == NULL ? translated(args[0]) : NULL;
    if (PyErr_Occurred())
        return NULL;
    missing = false;
    PyObject *result = from_address_with_class(self, class, real ? &real : args, nargs, kwnames);
    Py_XDECREF(real);
    return result;
}

static void
patch_definition(PyMethodDef *def, int which, PyCFunction ours)
{
    int how = def->ml_flags & (METH_O | METH_VARARGS | METH_NOARGS | METH_FASTCALL | METH_KEYWORDS | METH_METHOD);
    if (def->ml_meth == ours || (how != METH_O && how != METH_VARARGS))
        return;
    one_argument[which] = def->ml_meth;
    one_argument_flags[which] = how;
    def->ml_meth = ours; /* in place: the metatypes of ctypes share one definition, and 3.13 has it in a common base */
}

static void
patch_from_address(PyObject *type)
{
    PyObject *name = PyUnicode_InternFromString("from_address");
    PyObject *method = name ? _PyType_Lookup(Py_TYPE(type), name) : NULL;
    PyMethodDef *def =
        method && Py_IS_TYPE(method, &PyMethodDescr_Type) ? ((PyMethodDescrObject *)method)->d_method : NULL;
    PyCFunction ours = (PyCFunction)(void (*)(void))from_address_of_class;
    if (def && def->ml_flags == (METH_METHOD | METH_FASTCALL | METH_KEYWORDS) && def->ml_meth != ours) {
        from_address_with_class = (PyCMethod)(void (*)(void))def->ml_meth;
        def->ml_meth = ours;
    }
    else if (def)
        patch_definition(def, FROM_ADDRESS, from_address);
    Py_XDECREF(name);
}

/* ---- addresses that come out of C as numbers ---- */

/* Whether a number is the address of an object cannot be seen from the number. If the object's id was asked for it is
 * known; where the caller makes keys of objects only, each is one. */
static bool of_objects; /* in ctypes, which does both */

static PyObject *
number_of_pointer(void *memory)
{
    if (memory == NULL)
        return PyLong_FromVoidPtr(memory);
    uintptr_t known = of_objects ? identity_address(memory) : identity_known_address(memory);
    return PyLong_FromVoidPtr(known ? (void *)known : memory);
}

/* An id that a call handed over as an address comes back, in a callback or as a result, under whatever integer type was
 * declared. */
static inline uint64_t
made_up_of(uint64_t value)
{
    uintptr_t known = value >> 16 && (value & 7) == 0 ? identity_known_address((void *)(uintptr_t)value) : 0;
    return known ? known : value;
}

static PyObject *
number_of_long(long v)
{
    return PyLong_FromLong((long)made_up_of((uint64_t)v));
}
static PyObject *
number_of_long_long(long long v)
{
    return PyLong_FromLongLong((long long)made_up_of((uint64_t)v));
}
static PyObject *
number_of_ulong(unsigned long v)
{
    return PyLong_FromUnsignedLong((unsigned long)made_up_of(v));
}
static PyObject *
number_of_ulong_long(unsigned long long v)
{
    return PyLong_FromUnsignedLongLong(made_up_of(v));
}

static void *
pointer_of_number(PyObject *number)
{
    void *pointer = PyLong_AsVoidPtr(number);
    void *memory = pointer && identity_is_made_up((uintptr_t)pointer) ? identity_memory((uintptr_t)pointer) : NULL;
    return memory ? memory : pointer;
}

/* POINTER("name") keeps the new type by its id. */
static PyCFunction make_pointer_type;

static PyObject *
pointer_type(PyObject *module, PyObject *of)
{
    of_objects = PyUnicode_CheckExact(of);
    PyObject *type = make_pointer_type(module, of);
    of_objects = false;
    return type;
}

/* What a cast pointer came from is kept by its id. `ctypes` calls this function by its address, which is an attribute.
 */
typedef PyObject *(*Cast)(void *memory, PyObject *source, PyObject *type);
static Cast cast;

static PyObject *
our_cast(void *memory, PyObject *source, PyObject *type)
{
    of_objects = true;
    PyObject *result = cast(memory, source, type);
    of_objects = false;
    return result;
}

static int
patch_keys(PyObject *dict)
{
    PyObject *function = PyDict_GetItemString(dict, "POINTER"), *address = PyDict_GetItemString(dict, "_cast_addr");
    PyMethodDef *def = function && PyCFunction_Check(function) ? ((PyCFunctionObject *)function)->m_ml : NULL;
    if (def && def->ml_flags == METH_O && def->ml_meth != pointer_type) {
        make_pointer_type = def->ml_meth;
        def->ml_meth = pointer_type;
    }
    Cast original = address ? (Cast)PyLong_AsVoidPtr(address) : NULL;
    if (original == NULL || original == our_cast)
        return 0;
    cast = original;
    PyObject *ours = PyLong_FromVoidPtr((void *)our_cast);
    int rc = ours ? PyDict_SetItemString(dict, "_cast_addr", ours) : -1;
    Py_XDECREF(ours);
    return rc;
}

static void
relink_numbers(void)
{
    static const Relink functions[] = {{"PyLong_FromVoidPtr", (void *)number_of_pointer},
                                       {"PyLong_FromLong", (void *)number_of_long},
                                       {"PyLong_FromInt64", (void *)number_of_long}, /* since 3.14 */
                                       {"PyLong_FromUInt64", (void *)number_of_ulong},
                                       {"PyLong_FromLongLong", (void *)number_of_long_long},
                                       {"PyLong_FromUnsignedLong", (void *)number_of_ulong},
                                       {"PyLong_FromUnsignedLongLong", (void *)number_of_ulong_long},
                                       {NULL, NULL}};
    static Relinking ctypes = {.functions = functions, .only_named = "_ctypes."};
    relink(&ctypes);
}

/* What ctypes finds by name among the interpreter's functions; NULL: as it is. */
void *
addresses_function(const char *name)
{
    if (identity_is_off())
        return NULL;
    if (strcmp(name, "PyLong_FromVoidPtr") == 0)
        return (void *)number_of_pointer;
    return strcmp(name, "PyLong_AsVoidPtr") == 0 ? (void *)pointer_of_number : NULL;
}

int
addresses_module_loaded(PyObject *module, const char *name)
{
    static const char *const types[] = {"_SimpleCData", "Structure", "Union", "Array", "_Pointer", "CFuncPtr"};
    static const struct {
        const char *name;
        int which;
        PyCFunction ours;
    } functions[] = {{"PyObj_FromPtr", OBJECT_FROM_POINTER, object_from_pointer},
                     {"Py_INCREF", MORE_REFERENCES, more_references},
                     {"Py_DECREF", FEWER_REFERENCES, fewer_references}};
    if (strcmp(name, "_ctypes") != 0 || identity_is_off())
        return 0;
    PyObject *dict = PyModule_GetDict(module);
    relink_numbers();
    if (patch_keys(dict) < 0)
        PyErr_Clear();
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        PyObject *type = PyDict_GetItemString(dict, types[i]);
        if (type && PyType_Check(type))
            patch_from_address(type);
    }
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        PyObject *function = PyDict_GetItemString(dict, functions[i].name);
        if (function && PyCFunction_Check(function))
            patch_definition(((PyCFunctionObject *)function)->m_ml, functions[i].which, functions[i].ours);
    }
    PyTypeObject *simple = (PyTypeObject *)PyDict_GetItemString(dict, "_SimpleCData");
    PyTypeObject *foreign = (PyTypeObject *)PyDict_GetItemString(dict, "CFuncPtr");
    if (simple == NULL || foreign == NULL)
        return 0;
    simple_metatype = Py_TYPE(simple);
    call_original = foreign->tp_call;
    foreign->tp_call = call_function;
    patch_wrapper_of(foreign, "__call__", (void *)call_original, (void *)call_function);
    return 0;
}
