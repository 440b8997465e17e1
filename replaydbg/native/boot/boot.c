/* From the bootstrap command to the program's own `__main__`, and to the end of the process. The interpreter was
 * started with -S: gates go in while little more than the interpreter's own modules is loaded, and `site` with its .pth
 * files is imported inside the gated world, as part of the run. */
#include "base/core.h"
#include "boot/inside.h"
#include "clock/clock.h"
#include "code/code.h"
#include "collector/collector.h"
#include "crossing/crossing.h"
#include "ending/ending.h"
#include "engine/engine.h"
#include "files/files.h"
#include "future/future.h"
#include "gates/gates.h"
#include "guard/guard.h"
#include "heap/heap.h"
#include "identity/identity.h"
#include "lanes/lanes.h"
#include "lenient/lenient.h"
#include "log/log.h"
#include "resume/resume.h"
#include "signals/signals.h"
#include "values/values.h"
#include "world/world.h"
#include <fcntl.h>
#include <marshal.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* places in sys.flags */
enum {
    FLAG_NO_SITE = 6,
    FLAG_IGNORE_ENVIRONMENT = 7,
    FLAG_HASH_RANDOMIZATION = 11,
    FLAG_ISOLATED = 12,
    FLAG_SAFE_PATH = 16
};

/* ---- the boot file ---- */

/* `fd`, where there is no path, is the launcher's: its position is left alone, and fence_close_descriptors() closes it.
 */
static PyObject *
read_boot(const char *path, int fd)
{
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : fd;
    if (file < 0)
        return PyErr_SetFromErrnoWithFilename(PyExc_OSError, path ? path : "boot");
    Buf b = {0};
    uint8_t piece[4096];
    ssize_t n;
    while ((n = pread(file, piece, sizeof piece, (off_t)b.used)) > 0)
        buf_bytes(&b, piece, (size_t)n);
    if (path)
        close(file);
    const uint8_t *p = b.data;
    TypeTable none = {0};
    PyObject *boot = value_decode(&p, b.data + b.used, &none, NULL, 0);
    free(b.data);
    if (boot == NULL || !PyDict_CheckExact(boot)) {
        PyErr_SetString(PyExc_RuntimeError, "replaydbg: the boot file cannot be read");
        return NULL;
    }
    return boot;
}

static PyObject *
item(PyObject *boot, const char *key)
{
    PyObject *v = PyDict_GetItemString(boot, key);
    return v ? v : Py_None;
}

static const char *
text(PyObject *boot, const char *key)
{
    PyObject *v = item(boot, key);
    return PyUnicode_Check(v) ? PyUnicode_AsUTF8(v) : "";
}

static int
number(PyObject *boot, const char *key, int otherwise)
{
    PyObject *v = item(boot, key);
    return PyLong_Check(v) ? (int)PyLong_AsLong(v) : otherwise;
}

/* ---- logs ---- */

static int
open_for_record(PyObject *boot)
{
    char path[4200];
    PyObject *next = item(boot, "next_dir"); /* it gets its name when it can take the place of another recording */
    const char *dir = PyBytes_AS_STRING(PyBytes_Check(next) ? next : item(boot, "live_dir"));
    PyObject *most = item(boot, "max_size");
    core.live_dir = strdup(dir);
    snprintf(path, sizeof path, "%s/log", dir);
    if (log_create(&event_log, path, PyLong_Check(most) ? PyLong_AsUnsignedLongLong(most) : 0) < 0)
        return -1;
    snprintf(path, sizeof path, "%s/world", dir);
    if (log_create(&world_log, path, 0) < 0)
        return -1;
    PyObject *page = item(boot, "group");
    if (PyBytes_Check(page) && group_open(PyBytes_AS_STRING(page), (unsigned)number(boot, "process", 1)) < 0)
        return -1;
    return item(boot, "durable") == Py_True ? durable_begin() : 0;
}

static int
open_content(PyObject *boot)
{
    int fd = number(boot, "content_fd", -1);
    unsigned long long first, stride, length, size, mtime;
    PyObject *place = item(boot, "content_place");
    if (!PyTuple_Check(place))
        return content_open(fd);
    if (!PyArg_ParseTuple(place, "KKKKK", &first, &stride, &length, &size, &mtime))
        return -1;
    return content_open_sealed(fd, &(ContentPlace){first, stride, length, size, mtime});
}

static int
open_for_replay(PyObject *boot)
{
    core.report_fd = fd_keep(number(boot, "report_fd", -1));
    core.out_fd[1] = fd_keep(number(boot, "out_fd", -1));
    core.out_fd[2] = fd_keep(number(boot, "err_fd", -1));
    core.null_fd = fd_keep(open("/dev/null", O_RDWR | O_CLOEXEC));
    int pair[2]; /* a socket that reaches nothing: its other end is closed at once */
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0) {
        close(pair[1]);
        core.socket_fd = fd_keep(pair[0]);
    }
    streams_hold(PyLong_Check(item(boot, "fork_event")) ? PyLong_AsUnsignedLongLong(item(boot, "fork_event")) : 0);
    core.redigests = item(boot, "redigests") == Py_True;
    core.told_fd = fd_keep(number(boot, "told_fd", -1));
    core.tells = core.told_fd >= 0;
    core.follows = core.followed = item(boot, "follows") == Py_True;
    log_follow_program(number(boot, "program_fd", -1));
    if (log_open(&event_log, number(boot, "log_fd", -1)) < 0 ||
        log_open(&world_log, number(boot, "world_fd", -1)) < 0 || open_content(boot) < 0 ||
        content_follow(number(boot, "followed_content_fd", -1)) < 0 ||
        redigest_open(number(boot, "redigest_fd", -1)) < 0) {
        PyErr_SetString(PyExc_RuntimeError, "replaydbg: the recording's log cannot be mapped");
        return -1;
    }
    return 0;
}

/* Behind the fence: from here on the recording is read. */
static int
read_recording(PyObject *boot)
{
    core.current_source = item(boot, "current_source") == Py_True;
    core.stop_at = (uint64_t)number(boot, "stop_at", 0);
    core.answers_to = (uint64_t)number(boot, "answers_to", 0);
    PyObject *fds = item(boot, "fds"); /* descriptors that the program inherited */
    for (Py_ssize_t i = 0; PyList_CheckExact(fds) && i < PyList_GET_SIZE(fds); i++)
        fd_place((int)PyLong_AsLong(PyList_GET_ITEM(fds, i)), -1);
    if (core.follows)
        log_follow();
    set_lenient(item(boot, "lenient") == Py_True);
    core.edited = item(boot, "edited") == Py_True;
    int seconds = number(boot, "cpu_seconds", 0);
    if (seconds > 0) /* edited code may compute for ever; the kernel ends it then */
        setrlimit(RLIMIT_CPU, &(struct rlimit){(rlim_t)seconds, (rlim_t)seconds + 1});
    if (core.lenient) {
        index_read();
        facts_prepare(item(boot, "facts"));
        data_prepare(item(boot, "data"));
    }
    return world_moved(item(boot, "sources")) < 0 ? -1 : world_load();
}

/* ---- the interpreter as the program would have found it ---- */

static void
set_flag(int place, PyObject *v)
{
    PyObject *flags = PySys_GetObject("flags");
    if (flags && v) {
        PyObject *old = PyStructSequence_GET_ITEM(flags, place);
        PyStructSequence_SET_ITEM(flags, place, v);
        Py_XDECREF(old);
    }
}

static int
set_wide_list(PyWideStringList *list, PyObject *items)
{
    PyWideStringList fresh = {0};
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items); i++) {
        wchar_t *w = PyUnicode_AsWideCharString(PyList_GET_ITEM(items, i), NULL);
        if (w == NULL || PyStatus_Exception(PyWideStringList_Append(&fresh, w)))
            return -1;
        PyMem_Free(w);
    }
    *list = fresh; /* the old one is not freed: a few bytes, once */
    return 0;
}

static wchar_t *
wide(PyObject *v)
{
    wchar_t *w = PyUnicode_Check(v) ? PyUnicode_AsWideCharString(v, NULL) : NULL;
    wchar_t *copy = w ? PyMem_RawMalloc((wcslen(w) + 1) * sizeof(wchar_t)) : NULL;
    if (copy)
        wcscpy(copy, w);
    PyMem_Free(w);
    return copy;
}

/* What the interpreter found on disk when it started: in replay, what it found then. */
static int
fix_paths(void)
{
    static const char *const names[] = {"path",        "executable",       "prefix",          "exec_prefix",
                                        "base_prefix", "base_exec_prefix", "_base_executable"};
    PyObject *cache = PySys_GetObject("path_importer_cache");
    if (cache)
        PyDict_Clear(cache);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        PyObject *value = PySys_GetObject(names[i]);
        PyObject *fixed = value ? world_fixed("sys", names[i], value) : NULL;
        if (value && (fixed == NULL || PySys_SetObject(names[i], fixed) < 0))
            return -1;
        Py_XDECREF(fixed);
    }
    static const char *const zone[] = {"tzname", "timezone", "altzone", "daylight"};
    PyObject *time = PyImport_ImportModule("time");
    for (int i = 0; time && i < 4; i++) {
        PyObject *value = PyObject_GetAttrString(time, zone[i]);
        PyObject *fixed = value ? world_fixed("time", zone[i], value) : NULL;
        if (fixed == NULL || PyObject_SetAttrString(time, zone[i], fixed) < 0)
            return -1;
        Py_DECREF(fixed);
        Py_DECREF(value);
    }
    Py_XDECREF(time);
    return 0;
}

static int
dress_interpreter(PyObject *boot)
{
    PyConfig *config = compat_config(core.tstate);
    PyObject *argv = item(boot, "argv"), *orig_argv = item(boot, "orig_argv");
    if (surroundings_restore(boot) < 0 || set_wide_list(&config->argv, argv) < 0 ||
        set_wide_list(&config->orig_argv, orig_argv) < 0)
        return -1;
    if (PySys_SetObject("argv", argv) < 0 || PySys_SetObject("orig_argv", orig_argv) < 0)
        return -1;
    if (item(boot, "site") == Py_True) {
        set_flag(FLAG_NO_SITE, PyLong_FromLong(0));
        config->site_import = 1;
    }
    if (item(boot, "isolated") == Py_True) {
        set_flag(FLAG_ISOLATED, PyLong_FromLong(1));
        config->isolated = 1;
    }
    if (item(boot, "ignore_environment") == Py_True) {
        set_flag(FLAG_IGNORE_ENVIRONMENT, PyLong_FromLong(1));
        config->use_environment = 0;
    }
    if (item(boot, "safe_path") != Py_True) { /* -P is the bootstrap's */
        set_flag(FLAG_SAFE_PATH, Py_NewRef(Py_False));
        config->safe_path = 0;
    }
    PyMem_RawFree(config->run_command);
    config->run_command = NULL;
    compat_forget_path0(config);                  /* the bootstrap's; `site` is imported before the program has one */
    PyObject *modules = PyImport_GetModuleDict(); /* 3.13 loads it for the bootstrap command */
    if (PyDict_GetItemString(modules, "linecache"))
        PyDict_DelItemString(modules, "linecache");
    return fix_paths();
}

/* A fresh `__main__` with what the interpreter puts there. The old one's dictionary belongs to the bootstrap command's
 * frame, which never ends: what the program left in it would never be finalized. */
static int
fresh_main(void)
{
    static const char *const keep[] = {"__name__", "__doc__",         "__package__", "__loader__",
                                       "__spec__", "__annotations__", "__builtins__"};
    PyObject *old = PyModule_GetDict(PyImport_AddModule("__main__")), *name = PyUnicode_InternFromString("__main__");
    PyObject_GC_UnTrack(old); /* from now on ours */
    PyObject *main = name ? PyModule_NewObject(name) : NULL;
    for (size_t k = 0; main && k < sizeof keep / sizeof *keep; k++) {
        PyObject *value = PyDict_GetItemString(old, keep[k]);
        if (value && PyDict_SetItemString(PyModule_GetDict(main), keep[k], value) < 0)
            Py_CLEAR(main);
    }
    int rc = main ? PyDict_SetItem(PyImport_GetModuleDict(), name, main) : -1;
    Py_XDECREF(main);
    Py_XDECREF(name);
    return rc;
}

static int
install_all(void)
{
    PyObject *modules = PyImport_GetModuleDict(), *name, *module;
    PyObject *items = PyDict_Items(modules);
    for (Py_ssize_t i = 0; items && i < PyList_GET_SIZE(items); i++) {
        name = PyTuple_GET_ITEM(PyList_GET_ITEM(items, i), 0);
        module = PyTuple_GET_ITEM(PyList_GET_ITEM(items, i), 1);
        if (PyModule_Check(module) && PyUnicode_Check(name) && gates_install_module(module, PyUnicode_AsUTF8(name)) < 0)
            return -1;
    }
    Py_XDECREF(items);
    return world_install();
}

/* ---- the program ---- */

static void
flush_streams(void)
{
    static const char *const names[] = {"stderr", "stdout"};
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    for (int i = 0; i < 2; i++) {
        PyObject *stream = PySys_GetObject(names[i]);
        PyObject *done = stream ? PyObject_CallMethod(stream, "flush", NULL) : NULL;
        Py_XDECREF(done);
        PyErr_Clear();
    }
    PyErr_Restore(type, value, traceback);
}

static PyObject *
compile_script(const char *filename, PyObject *content)
{
    size_t n = strlen(filename);
    if (n > 4 && strcmp(filename + n - 4, ".pyc") == 0 && PyBytes_GET_SIZE(content) > 16)
        return PyMarshal_ReadObjectFromString(PyBytes_AS_STRING(content) + 16, PyBytes_GET_SIZE(content) - 16);
    if (memchr(PyBytes_AS_STRING(content), 0, (size_t)PyBytes_GET_SIZE(content))) {
        PyErr_SetString(PyExc_SyntaxError, "source code cannot contain null bytes");
        return NULL;
    }
    const char *source = PyBytes_AS_STRING(content);
    if (compat_config(core.tstate)->skip_source_first_line) /* -x; the line keeps its number */
        source += strcspn(source, "\n");
    PyCompilerFlags flags = _PyCompilerFlags_INIT;
    return Py_CompileStringExFlags(source, filename, Py_file_input, &flags, -1);
}

static int
set_main_loader(PyObject *dict, const char *filename, PyObject *name)
{
    PyObject *external = PyImport_ImportModule("_frozen_importlib_external");
    size_t n = strlen(filename);
    bool compiled = n > 4 && strcmp(filename + n - 4, ".pyc") == 0;
    PyObject *type =
        external ? PyObject_GetAttrString(external, compiled ? "SourcelessFileLoader" : "SourceFileLoader") : NULL;
    PyObject *loader = type ? PyObject_CallFunction(type, "sO", "__main__", name) : NULL;
    int rc = loader ? PyDict_SetItemString(dict, "__loader__", loader) : -1;
    Py_XDECREF(loader);
    Py_XDECREF(type);
    Py_XDECREF(external);
    return rc;
}

static void
tell_uncaught(void)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    engine_uncaught(type, value);
    PyErr_Restore(type, value, traceback);
}

/* What PyRun_SimpleFile does, with the content from the import world: returns 0, or -1 after the error was printed. */
static int
run_script(const char *filename)
{
    PyObject *main = Py_NewRef(PyImport_AddModule("__main__")), *dict = PyModule_GetDict(main);
    PyObject *name = PyUnicode_DecodeFSDefault(filename);
    PySys_Audit("cpython.run_file", "O", name);
    PyObject *content = world_content(filename);
    int rc = -1;
    if (content && PyDict_SetItemString(dict, "__file__", name) == 0 &&
        PyDict_SetItemString(dict, "__cached__", Py_None) == 0 && set_main_loader(dict, filename, name) == 0) {
        PyObject *code = compile_script(filename, content);
        Py_CLEAR(content);
        PyObject *result = code ? PyEval_EvalCode(code, dict, dict) : NULL;
        Py_XDECREF(code);
        if (result == NULL && PyErr_Occurred() == PyExc_KeyboardInterrupt)
            core.interrupted = true;
        if (result == NULL && engine.is_on)
            tell_uncaught();
        outcome_script_ends();
        flush_streams();
        rc = result ? 0 : -1;
        Py_XDECREF(result);
    }
    Py_XDECREF(content);
    Py_XDECREF(name);
    if (rc < 0) {
        Py_DECREF(main); /* as the interpreter does: the error may end the process right here */
        main = NULL;
        PyErr_Print();
    }
    else if (PyDict_DelItemString(dict, "__file__") < 0 || PyDict_DelItemString(dict, "__cached__") < 0)
        PyErr_Clear();
    Py_XDECREF(main);
    return rc;
}

static void
put_first(const wchar_t *path0)
{
    PyObject *path = PyUnicode_FromWideChar(path0, -1), *list = PySys_GetObject("path");
    if (path == NULL || list == NULL || PyList_Insert(list, 0, path) < 0)
        PyErr_Clear();
    Py_XDECREF(path);
}

/* What is to be run, without an object: when the program begins, nothing of the boot file is left. */
typedef struct {
    bool site;
    /* of a script; NULL: see run_module, run_command or run_filename of the interpreter's configuration */
    char *filename;
    wchar_t *path0;   /* or NULL */
    wchar_t **target; /* where in the configuration */
    wchar_t *what;
    CollectorStart collector;
} Start;

/* Three counts and the number of long-lived objects; older recordings have only the counts, or nothing. */
static CollectorStart
read_collector(PyObject *given)
{
    CollectorStart start = {.long_lived = -1};
    Py_ssize_t n = PyTuple_Check(given) ? PyTuple_GET_SIZE(given) : 0;
    for (int i = 0; n >= NUM_GENERATIONS && i < NUM_GENERATIONS; i++)
        start.counts[i] = (int)PyLong_AsLong(PyTuple_GET_ITEM(given, i));
    if (n > NUM_GENERATIONS)
        start.long_lived = PyLong_AsSsize_t(PyTuple_GET_ITEM(given, NUM_GENERATIONS));
    return start;
}

static Start
read_start(PyObject *boot)
{
    PyConfig *config = compat_config(core.tstate);
    const char *kind = text(boot, "kind");
    PyObject *target = item(boot, "target");
    codes_command = strcmp(kind, "command") == 0;
    Start start = {.site = item(boot, "site") == Py_True, .path0 = wide(item(boot, "path0"))};
    start.collector = read_collector(item(boot, "collector"));
    if (strcmp(kind, "script") == 0) {
        start.filename = strdup(PyBytes_AS_STRING(target));
        return start;
    }
    start.target = strcmp(kind, "module") == 0    ? &config->run_module
                   : strcmp(kind, "command") == 0 ? &config->run_command
                                                  : &config->run_filename;
    start.what = wide(target);
    return start;
}

/* The program may ask for interactive mode itself, as late as now. Nothing that is typed there crosses a gate. */
static int
go_on_interactively(int code)
{
    const PyConfig *config = compat_config(core.tstate);
    const char *asked = config->use_environment ? getenv("PYTHONINSPECT") : NULL;
    if (asked == NULL || *asked == 0 || (core.mode == REPLAY ? !core.terminal_input : !isatty(0)))
        return code;
    guard_interactive_begins();
    PyCompilerFlags flags = _PyCompilerFlags_INIT;
    return PyRun_AnyFileFlags(stdin, "<stdin>", &flags) != 0;
}

_Noreturn static void
run_program(Start start)
{
    PyConfig *config = compat_config(core.tstate);
    int safe = config->safe_path, code = 0;
    if (!safe && start.path0) {
        put_first(start.path0);
        compat_set_path0(config, start.path0);
    }
    config->safe_path = start.target == &config->run_filename ? safe : 1; /* sys.path[0] is set: it is as recorded */
    if (start.target)
        *start.target = start.what;
    on_exit(process_has_ended, NULL);
    Py_AtExit(signals_interpreter_has_ended);
    if (start.filename) {
        code = go_on_interactively(run_script(start.filename) < 0);
        compat_main_not_running(core.tstate);
        if (Py_FinalizeEx() < 0)
            code = 120;
        if (core.interrupted)
            process_ends_by_interrupt();
    }
    else {
        compat_main_not_running(core.tstate);
        code = Py_RunMain();
    }
    exit(code);
}

/* What the interpreter does when `site` cannot be imported, or Ctrl-C comes while it is. */
_Noreturn static void
end_without_site(void)
{
    fputs("Fatal Python error: init_import_site: Failed to import the site module\n", stderr);
    fputs("Python runtime state: initialized\n", stderr);
    on_exit(process_has_ended, NULL);
    PyErr_Print();
    exit(1);
}

/* Lines that the interpreter prints before the core is there are in no recording, and it times imports by clocks of its
 * own. */
static void
note_options(PyObject *boot)
{
    PyObject *notes = item(boot, "notes"); /* what depends on variables, which the launcher knows */
    for (Py_ssize_t i = 0; PyList_CheckExact(notes) && i < PyList_GET_SIZE(notes); i++)
        note("uncovered", PyUnicode_AsUTF8(PyList_GET_ITEM(notes, i)));
    const PyConfig *config = compat_config(core.tstate);
    if (config->import_time)
        note(
            "uncovered",
            "-X importtime: a replay prints other times, and no lines for modules imported while the interpreter starts");
    if (config->verbose)
        note("uncovered", "-v: a replay prints no lines for modules imported while the interpreter starts");
}

/* trace: the directory and the limit of each file, or None. */
static int
load_trace(PyObject *trace)
{
    if (!PyDict_CheckExact(trace))
        return 0;
    return trace_load(PyBytes_AS_STRING(item(trace, "directory")), PyLong_AsUnsignedLongLong(item(trace, "limit")));
}

static void
obey_tests(PyObject *boot)
{
    if (PyLong_Check(item(boot, "perturb")))
        perturb_load(PyLong_AsUnsignedLongLongMask(item(boot, "perturb")));
    if (PyLong_Check(item(boot, "ticks")))
        ticks_load((uint64_t)number(boot, "ticks", 0), number(boot, "ticks_fd", -1));
    if (PyLong_Check(item(boot, "drift")))
        perturb_collector((uint64_t)number(boot, "drift", 0));
    ticks_by_checks = item(boot, "ticks_by_checks") == Py_True;
    PyObject *chaos = item(boot, "chaos");
    bool is_chaos = PyLong_Check(chaos);
    lanes_obey(is_chaos ? PyLong_AsUnsignedLongLongMask(chaos) : monotonic_ns(), is_chaos,
               (uint64_t)number(boot, "slice", 0), item(boot, "stop_on_deadlock") == Py_True);
    core.strict = number(boot, "strict", 0);
    core.compare_every = core.strict ? 0 : 255;
}

/* No fence, no replay. The report has the reason, in the words of the system. */
_Noreturn static void
end_without_fence(void)
{
    diverge("fence", NULL, NULL, strerror(errno));
}

/* A replay ends with whoever started it, even if that process is killed: nobody else waits for it. `parent` is 0 for one
 * that another replay has started: its launcher does not know who that will be. A recorded program does so where its
 * launcher is the process that was started as the program: who kills it means the program. */
static void
end_with_parent(pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (parent && getppid() != parent)
        leave_process(0); /* it has ended already */
}

int
boot_program(const char *boot_file, int boot_fd)
{
    core.tstate = PyThreadState_Get();
    collector_hold();
    core.code_extra = CODE_EXTRA_INDEX(site_forget_code);
    PyObject *boot = read_boot(boot_file, boot_fd);
    if (boot == NULL)
        return -1;
    bool recording = strcmp(text(boot, "mode"), "record") == 0;
    if (!recording || item(boot, "parent") != Py_None)
        end_with_parent(number(boot, "parent", 0));
    if (!recording)
        fence_close_descriptors(boot);
    core.terminal_input = item(boot, "terminal_input") == Py_True;
    obey_tests(boot);
    if (load_trace(item(boot, "trace")) < 0)
        return -1;
    perturb();
    core.depth = 1; /* nothing is a crossing until the program begins */
    if (recording && open_for_record(boot) < 0) {
        if (PyBytes_Check(item(boot, "next_dir")))
            checkpoint_fails("its new log cannot be made");
        member_starts_plainly(boot);
        leave_process(EXIT_NOT_STARTED);
    }
    set_mode(recording ? RECORD : REPLAY);
    if (recording)
        streams_begin();
    /* The fence comes first: before it only our own orders are looked at, and what they name is opened. */
    if (!recording && (resume_prepare(boot) < 0 || futures_prepare(boot) < 0))
        return -1;
    if (engine_prepare(item(boot, "engine")) < 0 || stepclock_prepare(item(boot, "clock")) < 0 ||
        outcome_prepare(boot) < 0 || (!recording && open_for_replay(boot) < 0))
        return -1;
    if (!recording) {
        told_prepare();
        crashes_prepare();
        streams_open();
        limit_begin((uint64_t)number(boot, "cpu_after", 0), (uint64_t)number(boot, "cpu_between", 0));
        if (fence_raise(boot) < 0)
            end_without_fence();
    }
    if (value_prepare() < 0 || gates_load(item(boot, "gates")) < 0 || (!recording && read_recording(boot) < 0) ||
        install_all() < 0 || dress_interpreter(boot) < 0 || heap_prepare() < 0 || signals_prepare() < 0 ||
        readline_prepare() < 0 || fresh_main() < 0)
        return -1;
    if (!recording) {
        streams_begin();
        told_listen();
    }
    if (lanes_begin() < 0)
        return -1;
    children_prepare();
    if (!recording) { /* C code that prints by itself reaches the real streams */
        dup2(core.out_fd[1], 1);
        dup2(core.out_fd[2], 2);
        standby_hide_input();
    }
    if ((recording ? guard_record() : guard_replay()) < 0)
        return -1;
    if (recording)
        note_options(boot);
    if (recording)
        heap_record_begin(PyDict_GetItemString(boot, "snapshots"));
    if (recording && PyLong_Check(item(boot, "killed_at"))) {
        core.killed_at = PyLong_AsUnsignedLongLong(item(boot, "killed_at"));
        core.heap_due = core.killed_at < core.heap_due ? core.killed_at : core.heap_due;
    }
    if (recording)
        member_begins(boot);
    Start start = read_start(boot);
    asked_prepare(boot);
    surroundings_hold_warnings(item(boot, "warnings"));
    bool real_ids = item(boot, "real_ids") == Py_True;
    Py_DECREF(boot);
    compat_unlink_frames(core.tstate);
    compat_run_plainly(core.tstate);
    compat_recursion_credit(core.tstate, PY_VERSION_HEX >= 0x030C0000 ? 1 : 2);
    for (int i = 0; i < 100; i++)
        perturb();
    core.depth = 0;
    if (identity_install(real_ids) < 0)
        return -1;
    collector_settle(&start.collector);
    shortage_begin();
    ticks_begin();
    trace_begin();
    if (trace_is_on)
        lanes_count_from_start();
    stepclock_begin();
    checkpoint_receive();
    compat_limit_stack(core.tstate);
    surroundings_warnings();
    if (start.site) {
        PyObject *module = PyImport_ImportModule("site");
        if (module == NULL)
            end_without_site();
        Py_DECREF(module);
    }
    run_program(start);
}
