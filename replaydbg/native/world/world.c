/* The importer's private world. importlib shares `posix` and `_io` with the program; here it gets copies of both
 * modules whose functions note, for each path, what the importer saw. In replay they answer from these notes, outside
 * the order of events, so that the recorded sources run even when the originals were edited or are gone. (A finder on
 * sys.meta_path over archived sources was tried before: it shows, and pkgutil still looks at the real disk.) */
#include "base/core.h"
#include "collector/collector.h"
#include "crossing/crossing.h"
#include "log/log.h"
#include "values/values.h"
#include "world/world.h"
#include <stdlib.h>

typedef struct {
    uint64_t asked, last; /* how often; hash of the last answer (record) */
    struct {
        uint64_t from;
        const uint8_t *at;
    } *answers; /* replay */
    size_t count;
} Note;
static Note *notes;
static size_t note_count, note_size;
static IdMap note_ids;
/* Notes come from memory_apart_small(): of a run that is followed, where more comes to be known at another moment each
 * time, and in all sessions of the debugger, where some processes become those of a child, see world_replace(). */
static bool is_apart;

static void *
grown_apart(const void *old, size_t used, size_t size)
{
    void *more = memory_apart_small(size);
    if (used)
        memcpy(more, old, used);
    return more;
}

static Note *
note_of(const char *op, const char *path)
{
    uint32_t *slot = idmap_slot(&note_ids, hash_bytes(path, strlen(path), hash_bytes(op, strlen(op), 7)));
    if (!*slot) {
        if (note_count == note_size) {
            note_size = note_size ? note_size * 2 : 1024;
            notes = is_apart ? grown_apart(notes, note_count * sizeof *notes, note_size * sizeof *notes)
                             : grown(notes, note_size, sizeof *notes);
        }
        notes[note_count] = (Note){0};
        *slot = (uint32_t)++note_count;
    }
    return &notes[*slot - 1];
}

/* ---- record ---- */

static void
world_note(const char *op, const char *path, PyObject *value)
{
    static Buf b, head;
    Note *n = note_of(op, path);
    n->asked++;
    b.used = 0;
    int rc = value ? value_encode(&b, value, ENCODE_RESULT, &world_types, NULL, 0)
                   : value_encode_exception(&b, &world_types, NULL, 0);
    if (rc < 0)
        return;
    uint64_t hash = hash_bytes(b.data, b.used, 3);
    if (hash == n->last)
        return;
    n->last = hash;
    head.used = 0;
    buf_varint(&head, CONTROL_WORLD << 2 | 2u);
    buf_str(&head, op, strlen(op));
    buf_str(&head, path, strlen(path));
    buf_varint(&head, n->asked);
    uint8_t *p = log_room(&world_log, head.used + b.used);
    if (p == NULL)
        return;
    memcpy(p, head.data, head.used);
    memcpy(p + head.used, b.data, b.used);
    log_commit(&world_log, p + head.used + b.used);
}

/* ---- replay ---- */

static bool
read_text(const uint8_t **p, const uint8_t *end, char *text, size_t size)
{
    bool ok = true;
    uint64_t n = read_varint(p, end, &ok);
    if (!ok || n >= size || n > (uint64_t)(end - *p))
        return false;
    memcpy(text, *p, n);
    text[n] = 0;
    *p += n;
    return true;
}

static void *
more_answers(Note *n)
{
    size_t used = n->count * sizeof *n->answers;
    if (!is_apart)
        return grown(n->answers, 1, used + sizeof *n->answers);
    if (n->count & (n->count - 1)) /* full at each power of two */
        return n->answers;
    return grown_apart(n->answers, used, (used ? used * 2 : sizeof *n->answers));
}

/* What there is by now; again if there is more. */
int
world_load(void)
{
    static char op[64], path[8192];
    const uint8_t *p = world_log.rp, *end = world_log.rend;
    is_apart = core.followed || engine.is_on;
    note_ids.is_apart = is_apart;
    while (p < end) {
        world_log.rp = p;
        bool ok = true;
        uint64_t head = read_varint(&p, end, &ok);
        if (ok && head == (DEFINES_TYPE << 2 | 3u)) {
            if (types_define(&world_types, &p, end) < 0)
                break;
            continue;
        }
        if (ok && head == (CONTROL_CHECKSUM << 2 | 2u)) {
            if (!checksum_skip(&p, end))
                break;
            continue;
        }
        if (!ok || head != (CONTROL_WORLD << 2 | 2u) || !read_text(&p, end, op, sizeof op) ||
            !read_text(&p, end, path, sizeof path))
            break;
        uint64_t from = read_varint(&p, end, &ok);
        const uint8_t *at = p;
        if (!ok || !value_skip(&p, end))
            break;
        Note *n = note_of(op, path);
        n->answers = more_answers(n);
        n->answers[n->count].from = from;
        n->answers[n->count++].at = at;
    }
    world_log.rp = p;
    return 0;
}

/* How often each was asked stays. Nothing is taken from the program's allocator, and nothing is given back: what the
 * program allocates later must come to lie where it would have. */
int
world_replace(int fd, uint64_t same, Room to)
{
    const TypeTable before = world_types;
    world_log.rp = log_first_record(&world_log); /* all of it was read: also what came after the fork */
    if (log_replace(&world_log, fd, (uint64_t)(world_log.rp - world_log.base), same, to) < 0)
        return -1;
    for (size_t i = 0; i < note_count; i++)
        notes[i] = (Note){.asked = notes[i].asked};
    world_types = (TypeTable){.is_apart = true};
    world_log.rp = log_first_record(&world_log);
    int rc = world_load();
    types_keep_found(&world_types, &before); /* looking for them again would take memory */
    return rc;
}

static bool
world_has_answer(const char *op, const char *path)
{
    return note_of(op, path)->count > 0;
}

/* The number of the answer to the next question, from 1; 0: there is none. */
static size_t
answer_now(const Note *n)
{
    size_t i = n->count;
    while (i > 0 && n->answers[i - 1].from > n->asked)
        i--;
    return i;
}

static PyObject *
world_answer(const char *op, const char *path)
{
    Note *n = note_of(op, path);
    n->asked++;
    size_t i = answer_now(n);
    if (i == 0) {
        PyErr_Format(PyExc_FileNotFoundError, "[Errno 2] No such file or directory: '%s'", path);
        return NULL;
    }
    const uint8_t *p = n->answers[i - 1].at;
    PyObject *value = value_decode(&p, world_log.rend, &world_types, NULL, 0);
    if (value == NULL && !PyErr_Occurred())
        PyErr_Format(PyExc_ImportError, "the recording's import world cannot be read for '%s'", path);
    return value;
}

/* ---- directories that lie elsewhere now ---- */

typedef struct {
    char *from;
    char *to;      /* empty: it stays as recorded, although it is in a directory that lies elsewhere */
    size_t length; /* of `from` */
} Moved;
static Moved *moved;
static Py_ssize_t moved_count;

int
world_moved(PyObject *sources)
{
    Py_ssize_t n = PyList_CheckExact(sources) ? PyList_GET_SIZE(sources) : 0;
    moved = n ? calloc((size_t)n, sizeof *moved) : NULL;
    for (Py_ssize_t i = 0; moved && i < n; i++) {
        PyObject *pair = PyList_GET_ITEM(sources, i);
        moved[i].from = strdup(PyBytes_AS_STRING(PyTuple_GET_ITEM(pair, 0)));
        moved[i].to = strdup(PyBytes_AS_STRING(PyTuple_GET_ITEM(pair, 1)));
        moved[i].length = strlen(moved[i].from);
        moved_count++;
    }
    return 0;
}

/* A new reference: where `path` lies today, or NULL if it is none of those (no exception set). */
static PyObject *
moved_path(PyObject *path)
{
    PyObject *bytes = moved_count && PyUnicode_Check(path) ? PyUnicode_EncodeFSDefault(path) : NULL, *found = NULL;
    PyErr_Clear();
    for (Py_ssize_t i = 0; bytes && i < moved_count && !found; i++) {
        const char *text = PyBytes_AS_STRING(bytes);
        if (strncmp(text, moved[i].from, moved[i].length) == 0 &&
            (text[moved[i].length] == '/' || text[moved[i].length] == 0)) {
            if (!*moved[i].to)
                break;
            PyObject *to = PyUnicode_DecodeFSDefault(moved[i].to),
                     *rest = PyUnicode_DecodeFSDefault(text + moved[i].length);
            found = to && rest ? PyUnicode_Concat(to, rest) : NULL;
            Py_XDECREF(to);
            Py_XDECREF(rest);
        }
    }
    PyErr_Clear();
    Py_XDECREF(bytes);
    return found;
}

/* A new reference: a relative path from where the program ran, which is not where a replay with today's sources runs.
 * NULL if it is absolute, or if the importer never asked for the directory (no exception set). */
static PyObject *
path_from_recorded_cwd(PyObject *path, const char *text)
{
    if (!core.lenient || !core.current_source || text[0] == 0 || text[0] == '/')
        return NULL;
    Note *n = note_of("getcwd", "");
    size_t i = n->count ? answer_now(n) : 0;
    const uint8_t *p = n->count ? n->answers[i ? i - 1 : 0].at : NULL;
    PyObject *directory = p ? value_decode(&p, world_log.rend, &world_types, NULL, 0) : NULL;
    PyObject *whole = directory && PyUnicode_Check(directory) ? PyUnicode_FromFormat("%U/%U", directory, path) : NULL;
    PyErr_Clear();
    Py_XDECREF(directory);
    return whole;
}

PyObject *
world_moved_path(PyObject *path)
{
    return moved_path(path);
}

/* Byte code beside sources that were edited may be that of others: it is distinguished by seconds and length. */
static bool
is_cached(PyObject *path)
{
    const char *text = PyUnicode_Check(path) ? PyUnicode_AsUTF8(path) : NULL;
    PyErr_Clear();
    return text && strstr(text, "/__pycache__/") && !strstr(text, "/lib/python3.");
}

/* ---- what the importer calls ---- */

static bool
world_is_real(void)
{
    return (core.mode != REPLAY && !core.is_future) || core.current_source || engine.diverting;
}

/* The interpreter is the recorded one, so its own modules are, too. */
static bool
is_of_interpreter(const char *path)
{
    PyObject *home = PySys_GetObject("_stdlib_dir");
    const char *text = home && PyUnicode_Check(home) ? PyUnicode_AsUTF8(home) : NULL;
    size_t n = text ? strlen(text) : 0;
    PyErr_Clear();
    return n > 1 && strncmp(path, text, n) == 0 && (path[n] == '/' || path[n] == 0) && !strstr(path, "-packages");
}

/* A future has the modules that the recorded run looked for, those of the interpreter, and no others. */
_Noreturn static void
needs_outside(const char *op, const char *path)
{
    char text[600];
    snprintf(text, sizeof text, "an import, for which the recording has no %s of %s", op,
             *path ? path : "the directory");
    diverge("outside", NULL, NULL, text);
}

static uint64_t work_since; /* ns; 0: nobody wants to know how long it takes */

/* In both modes: what importing allocates must bring the next collection equally near. Returns whether this is the
 * outermost work of ours. */
static bool
work_begin(void)
{
    bool is_outermost = core.depth == 0;
    if (is_outermost)
        work_since = log_is_timed ? monotonic_ns() : 0;
    own_work_begin();
    core.importing |= is_outermost && core.mode == RECORD;
    return is_outermost;
}

/* Steals the result, or NULL with an exception. A handler of a signal that came meanwhile runs now: while the importer
 * works there is no event to which it could be noted, and a replay does not do this work. */
static PyObject *
work_done(bool is_outermost, PyObject *result)
{
    own_work_end();
    if (!is_outermost)
        return result;
    core.importing = false;
    if (work_since)
        log_not_repeated(monotonic_ns() - work_since);
    return base_hooks.importer_has_worked(result);
}

/* Whether a question of the importer's is asked of the recording. One that was killed while it imported has no answer to
 * what it asks next: a replay that is to become a recording does so here. */
static bool
is_answered_by_notes(const char *op, const char *path)
{
    if (world_is_real())
        return false;
    bool has = world_has_answer(op, path);
    if (!has && core.goes_live && crossing_hooks.live_inside())
        return false;
    if (!has && core.is_future) {
        if (!is_of_interpreter(path))
            needs_outside(op, path);
        return false;
    }
    return has || moved_count == 0;
}

static void
looked_at(const char *op, const char *key, PyObject *escaped)
{
    if (escaped)
        world_looked_unnamed();
    else
        world_looked(op, key);
}

/* Does the real thing unless replaying, and notes it while recording. Steals nothing. `path` names it. */
static PyObject *
world_ask(const char *op, PyObject *path, PyObject *(*real)(PyObject *))
{
    PyObject *text = path == Py_None ? PyUnicode_FromString("") : PyObject_Str(path);
    const char *key = text ? PyUnicode_AsUTF8(text) : NULL;
    PyObject *fallback = NULL;
    if (text && key == NULL) { /* a path with surrogates: named by its escaped form */
        PyErr_Clear();
        fallback = PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace");
        key = fallback ? PyBytes_AS_STRING(fallback) : NULL;
    }
    PyObject *value = NULL;
    bool is_outermost = work_begin();
    PyObject *whole = text && key ? path_from_recorded_cwd(text, key) : NULL;
    const char *whole_key = whole ? PyUnicode_AsUTF8(whole) : NULL;
    PyErr_Clear();
    if (whole_key) {
        key = whole_key;
        path = whole;
    }
    PyObject *elsewhere = moved_path(path);
    if (key && core.lenient && (elsewhere || core.current_source) && is_cached(path))
        PyErr_Format(PyExc_FileNotFoundError, "[Errno 2] No such file or directory: '%s'", key);
    else if (key && elsewhere) {
        looked_at(op, key, fallback);
        value = real(elsewhere);
    }
    else if (key && is_answered_by_notes(op, key))
        value = world_answer(op, key);
    else if (key) {
        looked_at(op, key, fallback);
        value = real(path);
        if (core.mode == RECORD && (!core.is_future || log_world_continues()))
            world_note(op, key, value);
    }
    if (core.depth == 1) {
        if (value)
            collector_give(value);
        else
            collector_give_exception();
    }
    Py_XDECREF(elsewhere);
    Py_XDECREF(whole);
    Py_XDECREF(fallback);
    Py_XDECREF(text);
    return work_done(is_outermost, value);
}

static PyObject *real_posix, *real_io; /* the modules that the program has */

static PyObject *
call_posix(const char *name, PyObject *path)
{
    PyObject *f = PyDict_GetItemString(PyModule_GetDict(real_posix), name);
    return path == Py_None ? PyObject_CallNoArgs(f) : PyObject_CallOneArg(f, path);
}

static PyObject *
real_stat(PyObject *path)
{
    return call_posix("stat", path);
}
static PyObject *
real_listdir(PyObject *path)
{
    return call_posix("listdir", path);
}
static PyObject *
real_getcwd(PyObject *none)
{
    return call_posix("getcwd", none);
}

/* Sources of today have no byte code beside them yet; a replay that is asked to make room for it does nothing, as it
 * writes none. */
static PyObject *
real_mkdir(PyObject *path)
{
    return core.mode == REPLAY || core.is_future ? Py_NewRef(Py_None) : call_posix("mkdir", path);
}

static PyObject *
real_read(PyObject *path)
{
    PyObject *file = PyObject_CallOneArg(PyDict_GetItemString(PyModule_GetDict(real_io), "open_code"), path);
    PyObject *content = file ? PyObject_CallMethod(file, "read", NULL) : NULL;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *closed = file ? PyObject_CallMethod(file, "close", NULL) : NULL;
    Py_XDECREF(closed);
    PyErr_Clear();
    PyErr_Restore(type, value, traceback);
    Py_XDECREF(file);
    return content;
}

static PyObject *
world_stat(PyObject *self, PyObject *path)
{
    return world_ask("stat", path, real_stat);
}

static PyObject *
world_listdir(PyObject *self, PyObject *path)
{
    return world_ask("listdir", path, real_listdir);
}

static PyObject *
world_getcwd(PyObject *self, PyObject *unused)
{
    /* where the run took place stays as recorded, also with today's sources: a relative entry of sys.path is meant there */
    bool current = core.current_source;
    core.current_source = current && !(core.mode == REPLAY && world_has_answer("getcwd", ""));
    PyObject *result = world_ask("getcwd", Py_None, real_getcwd);
    core.current_source = current;
    return result;
}

static PyObject *
world_mkdir(PyObject *self, PyObject *path)
{
    return world_ask("mkdir", path, real_mkdir);
}

/* An open file for the importer: its whole content, in both modes. */
static PyObject *
world_open(PyObject *self, PyObject *args)
{
    PyObject *path, *mode = NULL;
    if (!PyArg_ParseTuple(args, "O|O", &path, &mode))
        return NULL;
    if (PyLong_Check(path)) /* a .pyc file that is being written, see world_write_atomic */
        return PyObject_CallObject(PyDict_GetItemString(PyModule_GetDict(real_io), "FileIO"), args);
    PyObject *content = world_ask("read", path, real_read);
    if (content == NULL)
        return NULL;
    PyObject *file = PyObject_CallOneArg(PyDict_GetItemString(PyModule_GetDict(real_io), "BytesIO"), content);
    Py_DECREF(content);
    return file;
}

static PyObject *original_write_atomic;

/* Writing a .pyc file: a real effect while recording, none in replay. */
static PyObject *
world_write_atomic(PyObject *self, PyObject *args)
{
    bool is_outermost = work_begin();
    bool writes = core.mode != REPLAY && !core.is_future;
    PyObject *result = writes ? PyObject_CallObject(original_write_atomic, args) : Py_NewRef(Py_None);
    if (result == NULL && PyErr_ExceptionMatches(PyExc_OSError)) {
        PyErr_Clear(); /* the importer ignores it too, but by way of Python code, which a replay would not run */
        result = Py_NewRef(Py_None);
    }
    return work_done(is_outermost, result);
}

/* ---- modules that are loaded later get their gates when they have been executed ---- */

static PyObject *original_exec_dynamic, *original_exec_builtin;

static PyObject *
exec_and_install(PyObject *original, PyObject *module)
{
    PyObject *result = PyObject_CallOneArg(original, module);
    if (result == NULL || !PyModule_Check(module))
        return result;
    const char *name = PyModule_GetName(module);
    if (name == NULL)
        PyErr_Clear();
    else if (gates_install_module(module, name) < 0)
        Py_CLEAR(result);
    return result;
}

static PyObject *
world_exec_dynamic(PyObject *self, PyObject *module)
{
    return exec_and_install(original_exec_dynamic, module);
}

static PyObject *
world_exec_builtin(PyObject *self, PyObject *module)
{
    return exec_and_install(original_exec_builtin, module);
}

static PyMethodDef world_functions[] = {
    {"stat", world_stat, METH_O, NULL},
    {"listdir", world_listdir, METH_O, NULL},
    {"getcwd", world_getcwd, METH_NOARGS, NULL},
    {"mkdir", world_mkdir, METH_O, NULL},
    {"open_code", world_open, METH_VARARGS, NULL},
    {"FileIO", world_open, METH_VARARGS, NULL},
    {"_write_atomic", world_write_atomic, METH_VARARGS, NULL},
    {"exec_dynamic", world_exec_dynamic, METH_O, NULL},
    {"exec_builtin", world_exec_builtin, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static PyObject *
world_function(const char *name)
{
    for (PyMethodDef *def = world_functions; def->ml_name; def++)
        if (strcmp(def->ml_name, name) == 0) {
            PyObject *function = PyCFunction_NewEx(def, NULL, NULL);
            if (function)
                /* ours, as the modules that it goes to: not part of the program's collections */
                PyObject_GC_UnTrack(function);
            return function;
        }
    return NULL;
}

/* A module with everything that `module` has, but for the functions named. */
static PyObject *
clone_module(PyObject *module, const char *const *names)
{
    PyObject *clone = PyModule_New(PyModule_GetName(module));
    if (clone == NULL || PyDict_Update(PyModule_GetDict(clone), PyModule_GetDict(module)) < 0)
        return NULL;
    for (; *names; names++) {
        PyObject *f = world_function(*names);
        if (f == NULL || PyObject_SetAttrString(clone, *names, f) < 0)
            return NULL;
        Py_DECREF(f);
    }
    PyObject_GC_UnTrack(clone);
    PyObject_GC_UnTrack(PyModule_GetDict(clone));
    return clone;
}

static PyObject *
loaded(const char *name)
{
    PyObject *modules = PyImport_GetModuleDict();
    return PyDict_GetItemString(modules, name);
}

int
world_install(void)
{
    static const char *const posix_names[] = {"stat", "listdir", "getcwd", "mkdir", NULL};
    static const char *const io_names[] = {"open_code", "FileIO", NULL};
    static const char *const imp_names[] = {"exec_dynamic", "exec_builtin", NULL};
    PyObject *external = loaded("_frozen_importlib_external"), *bootstrap = loaded("_frozen_importlib");
    PyObject *imp = loaded("_imp"), *zipimport = loaded("zipimport");
    real_posix = Py_XNewRef(loaded("posix"));
    real_io = Py_XNewRef(loaded("_io"));
    if (!external || !bootstrap || !imp || !real_posix || !real_io) {
        PyErr_SetString(PyExc_RuntimeError, "replaydbg: this interpreter's importer is not the one that is expected");
        return -1;
    }
    original_exec_dynamic = PyObject_GetAttrString(imp, "exec_dynamic");
    original_exec_builtin = PyObject_GetAttrString(imp, "exec_builtin");
    original_write_atomic = PyObject_GetAttrString(external, "_write_atomic");
    PyObject *os = clone_module(real_posix, posix_names), *io = clone_module(real_io, io_names),
             *own_imp = clone_module(imp, imp_names);
    PyObject *write = world_function("_write_atomic");
    if (!os || !io || !own_imp || !write || PyObject_SetAttrString(external, "_os", os) < 0 ||
        PyObject_SetAttrString(external, "_io", io) < 0 || PyObject_SetAttrString(external, "_imp", own_imp) < 0 ||
        PyObject_SetAttrString(bootstrap, "_imp", own_imp) < 0 ||
        PyObject_SetAttrString(external, "_write_atomic", write) < 0)
        return -1;
    if (zipimport && PyObject_SetAttrString(zipimport, "_io", io) < 0)
        return -1;
    Py_DECREF(os);
    Py_DECREF(io);
    Py_DECREF(own_imp);
    Py_DECREF(write);
    return 0;
}

/* ---- for the start of the program ---- */

static PyObject *fixed_value;
static PyObject *
real_fixed(PyObject *unused)
{
    return Py_NewRef(fixed_value);
}

PyObject *
world_fixed(const char *op, const char *key, PyObject *value)
{
    PyObject *name = PyUnicode_FromString(key);
    fixed_value = value;
    bool current = core.current_source;
    core.current_source = false; /* where the run took place stays as recorded, also with today's sources */
    PyObject *result = name ? world_ask(op, name, real_fixed) : NULL;
    core.current_source = current;
    Py_XDECREF(name);
    return result;
}

/* The same; a recording that does not have it leaves `value` as it is. */
PyObject *
world_fixed_if_known(const char *op, const char *key, PyObject *value)
{
    return core.mode == REPLAY && !world_has_answer(op, key) ? Py_NewRef(value) : world_fixed(op, key, value);
}

PyObject *
world_content(const char *path)
{
    PyObject *name = PyUnicode_DecodeFSDefault(path);
    PyObject *content = name ? world_ask("read", name, real_read) : NULL;
    Py_XDECREF(name);
    return content;
}
