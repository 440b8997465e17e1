/* A replay that the debugger travels through: it stands still at a line, answers, clones itself, and continues when it is
 * ordered to.
 *
 * Every process of a session is a copy of one replay under the step clock. One that stands before a line is a
 * checkpoint; to use it, it is cloned, and the clone, a cursor, runs to another line. All are children of the keeper,
 * and each has one socket, always of the same number. A standing process makes no Python object, so even addresses are
 * equal in all that come from it. Only a diversion, a clone that ends after it, runs Python of ours: the questions that
 * need it (see replaydbg/engine/probe/).
 *
 * Messages both ways: length of the rest (4 bytes), a letter, and what it needs. replaydbg/engine/protocol.py has the
 * letters; here received ones are dispatched in obey() and hear_spacing(), and send_all() is called with those that
 * go. */
#include "base/core.h"
#include "clock/clock.h"
#include "engine/inside.h"
#include "files/files.h"
#include "heap/heap.h"
#include "identity/identity.h"
#include "lanes/lanes.h"
#include "lenient/lenient.h"
#include "log/log.h"
#include "memory/memory.h"
#include "world/world.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define MOST_FRAMES 1000 /* in one message */
#define MOST_COMMAND (64u << 20)
#define FEWEST_LINES 16u
#define MOST_LINES 8192u

/* The files of the process that runs the whole program, which its copies have open, too: see become_child(). */
enum { OUTPUT, RAISES, STEPS, TOTALS, FIRST_FILES };
static struct {
    int files[FIRST_FILES];
    uint64_t written[FIRST_FILES]; /* bytes, when it left this process behind; what it had not written yet is here */
    bool is_as_left;               /* this process has not run since */
} first_pass;

/* Code of the probe (replaydbg/engine/probe/): its loader's, and a dictionary of its modules', by their full names. */
static PyObject *probe_loader, *probe_modules, *sys_module;
/* Of the process that runs the whole program first, in which the index is made; -1 in its clones. */
static int output_fd = -1;
static Buf message, written;
static uint8_t *command;

/* The count of lines at which all processes of a session end, in memory that they share; 0: they end where the log
 * does. Nobody knows in which line a program was killed that computed: the first process decides it. */
static uint64_t *last_line;

static struct {
    uint64_t stop;               /* the count of lines at which to stand; UINT64_MAX: none */
    uint64_t spacing;            /* ns of CPU time between the checkpoints that are left behind; 0: none are */
    uint64_t left_at, looked_at; /* CPU time */
    uint64_t lines;              /* between two looks at the time */
    bool at_raises;
    bool goes_on; /* `stop` is the last line, and the order leads further */
} run;

/* ---- messages ---- */

static void
send_all(int kind, Buf *b, int passed)
{
    uint8_t head[5];
    uint32_t length = (uint32_t)b->used + 1;
    memcpy(head, &length, 4);
    head[4] = (uint8_t)kind;
    struct iovec parts[2] = {{head, sizeof head}, {b->data, b->used}};
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    if (passed >= 0) {
        message.msg_control = control.room;
        message.msg_controllen = sizeof control.room;
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(header), &passed, sizeof passed);
    }
    while (message.msg_iovlen) {
        ssize_t n = sendmsg(engine.fd, &message, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            leave_process(0); /* nobody listens any more */
        message.msg_control = NULL;
        message.msg_controllen = 0;
        while (message.msg_iovlen && (size_t)n >= message.msg_iov->iov_len) {
            n -= (ssize_t)message.msg_iov->iov_len;
            message.msg_iov++;
            message.msg_iovlen--;
        }
        if (message.msg_iovlen) {
            message.msg_iov->iov_base = (char *)message.msg_iov->iov_base + n;
            message.msg_iov->iov_len -= (size_t)n;
        }
    }
    b->used = 0;
}

static void
receive(void *to, size_t n)
{
    for (size_t done = 0; done < n;) {
        ssize_t k = read(engine.fd, (char *)to + done, n - done);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            leave_process(0);
        done += (size_t)k;
    }
}

typedef struct {
    const uint8_t *p, *end;
    bool ok;
} Command;

static uint64_t
number(Command *c)
{
    return read_varint(&c->p, c->end, &c->ok);
}

/* It ends with a zero, and stays where it is until the next command comes. NULL: it is not there. */
static const char *
words(Command *c)
{
    uint64_t n = number(c);
    if (!c->ok || n == 0 || n > (uint64_t)(c->end - c->p) || c->p[n - 1] != 0) {
        c->ok = false;
        return NULL;
    }
    c->p += n;
    return (const char *)c->p - n;
}

/* ---- what is said of where it stands ---- */

PyThreadState *
lane_tstate(int lane)
{
    if (lane == core.lane)
        return report_thread();
    return lane >= 0 && lane < lanes.made && lanes.at[lane] && !lanes.at[lane]->ended ? lanes.at[lane]->tstate : NULL;
}

static void
report_frame(Buf *b, _PyInterpreterFrame *frame)
{
    PyCodeObject *code = compat_frame_code(frame);
    const Activation *a = activation_find(frame);
    int line = PyCode_Addr2Line(code, compat_frame_lasti(frame));
    report_list(b, 9);
    report_name(b, code->co_filename);
    report_number(b, line > 0 ? line : 0);
    report_name(b, code->co_qualname);
    report_number(b, code->co_firstlineno);
    report_number(b, a ? (int64_t)a->started : 0);
    report_number(b, a ? (int64_t)a->last : 0);
    report_number(b, a ? (int64_t)a->before : 0);
    report_number(b, frame->owner == FRAME_OWNED_BY_GENERATOR);
    report_number(b, compat_frame_lasti(frame) / (int)sizeof(_Py_CODEUNIT));
}

static uint64_t
depth_of(PyThreadState *ts)
{
    uint64_t n = 0;
    for (_PyInterpreterFrame *frame = ts ? compat_top_frame(ts) : NULL; frame; frame = compat_previous_frame(frame))
        n++;
    return n;
}

/* From the frame `first` on, the innermost of which is 0. */
static void
report_frames(Buf *b, PyThreadState *ts, uint64_t first, uint64_t most)
{
    uint64_t depth = depth_of(ts), left = first < depth ? depth - first : 0, n = left < most ? left : most;
    _PyInterpreterFrame *frame = n ? compat_top_frame(ts) : NULL;
    report_list(b, n);
    for (; n > 0; frame = compat_previous_frame(frame))
        if (first > 0)
            first--;
        else {
            report_frame(b, frame);
            n--;
        }
}

static void
report_lane_frames(Buf *b, Command *c)
{
    PyThreadState *ts = lane_tstate((int)number(c));
    report_list(b, 2);
    report_number(b, (int64_t)depth_of(ts));
    report_frames(b, ts, number(c), MOST_FRAMES);
}

static void
report_lane(Buf *b, Lane *lane)
{
    const char *name = lane->name ? lane->name : "",
               *waits = lane != lanes.running && lane->waits_for ? lane->waits_for : "";
    const LaneLines *lines = lane_lines_of(lane->id);
    report_list(b, 7);
    report_number(b, lane->id);
    report_text(b, name, strlen(name));
    report_number(b, lane->parent);
    report_text(b, waits, strlen(waits));
    report_number(b, lines ? (int64_t)lines->last : 0);
    report_number(b, lines ? (int64_t)lines->before : 0);
    report_frames(b, lane->tstate, 0, 1);
}

static void
report_lanes(Buf *b)
{
    uint64_t n = 0;
    for (int i = 0; i < lanes.made; i++)
        n += lanes.at[i] && !lanes.at[i]->ended;
    report_list(b, n);
    for (int i = 0; i < lanes.made; i++)
        if (lanes.at[i] && !lanes.at[i]->ended)
            report_lane(b, lanes.at[i]);
}

static void
report_where(Buf *b, const char *why)
{
    report_dict(b, 15);
    report_key(b, "why");
    report_text(b, why, strlen(why));
    report_key(b, "count");
    report_number(b, (int64_t)stepclock.count);
    report_key(b, "point");
    report_number(b, (int64_t)stepclock.point);
    report_key(b, "event");
    report_number(b, (int64_t)core.crossings);
    report_key(b, "digest");
    report_number(b, (int64_t)stepclock.digest);
    report_key(b, "lane");
    report_number(b, core.lane);
    report_key(b, "lanes");
    report_lanes(b);
    report_key(b, "stack");
    report_frames(b, report_thread(), 0, MOST_FRAMES);
    report_key(b, "depth");
    report_number(b, (int64_t)depth_of(report_thread()));
    stepclock_report_breaks(b);
    passages_report(b);
    watch_report(b);
    path_report(b);
    rule_report(b);
    called_report(b);
}

static void
report_here(Buf *b, pid_t pid)
{
    report_list(b, 3);
    report_number(b, pid);
    report_number(b, (int64_t)stepclock.count);
    report_number(b, (int64_t)core.crossings);
}

/* ---- clones ---- */

/* In the process that runs the whole program. */
static void
note_first_pass(int raises_fd)
{
    int files[FIRST_FILES] = {output_fd, raises_fd, stepclock.steps_fd, stepclock.fd};
    for (int i = 0; i < FIRST_FILES; i++) {
        off_t written = lseek(files[i], 0, SEEK_CUR);
        first_pass.files[i] = files[i];
        first_pass.written[i] = written < 0 ? 0 : (uint64_t)written;
    }
}

/* The clone is copying the memory that maps share: nothing may be written there before it has done so. */
static void
await_copy(int clone)
{
    char byte;
    while (read(clone, &byte, 1) < 0 && errno == EINTR)
        ;
}

/* Returns whether this is the clone. The other one has reported it. */
static bool
leave_clone(int kind)
{
    bool copies = shared_is_mapped();
    int pair[2];
    Buf b = message;
    pid_t pid = -1;
    bool is_first = output_fd >= 0, is_collected = is_first && streams_are_collected();
    if (is_first)
        note_first_pass(raises_leads_to());
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0) {
        pid = clone_here();
        if (pid == 0) {
            syscall(SYS_dup3, pair[1], engine.fd, O_CLOEXEC, own_token());
            close(pair[0]);
            close(pair[1]);
            clone_begin();
            first_pass.is_as_left |= is_first && is_collected;
            output_fd = stepclock.steps_fd = stepclock.fd = -1;
            raises_leave();
            course_leave();
            printed_ignore();
            streams_leave();
            shared_part();
            if (copies && write(engine.fd, "", 1) != 1)
                _exit(0);
            return true;
        }
        close(pair[1]);
        if (copies && pid > 0)
            await_copy(pair[0]);
    }
    report_here(&b, pid < 0 ? -errno : pid);
    send_all(kind, &b, pid < 0 ? -1 : pair[0]);
    if (pid >= 0)
        close(pair[0]);
    return false;
}

/* ---- standing, and what is asked meanwhile ---- */

static uint64_t
cpu_time(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void
next_look(void)
{
    uint64_t next = run.spacing ? stepclock.count + run.lines : UINT64_MAX, line = passages_next_line();
    next = next < run.stop ? next : run.stop;
    stepclock.stop_at = next < line ? next : line;
}

static bool
obey_run(Command *c)
{
    first_pass.is_as_left = false;
    run.stop = number(c);
    run.stop = run.stop ? run.stop : UINT64_MAX;
    run.goes_on = *last_line && run.stop > *last_line;
    run.stop = run.goes_on ? *last_line : run.stop;
    run.spacing = number(c);
    int rule = (int)number(c), lane = (int)number(c);
    OwnCode own = {.is_set = number(c)};
    for (uint64_t n = number(c); c->ok && n; n--) {
        c->ok = own.count < MOST_PATTERNS && (own.patterns[own.count++] = words(c));
    }
    if (!c->ok)
        return false;
    rule_begin(rule, lane, &own);
    run.at_raises = number(c);
    uint64_t event = number(c), point = number(c);
    bool is_followed = number(c);
    uint64_t most_calls = number(c);
    uint64_t n = number(c);
    stepclock_drop_breaks();
    for (uint64_t i = 0; c->ok && i < n; i++) {
        const char *file = words(c), *function = words(c);
        int line = (int)number(c);
        uint64_t stop_at = number(c);
        c->ok = c->ok && stepclock_add_break(file, function, line, stop_at);
    }
    uint64_t most = number(c), size = number(c);
    if (!c->ok || size > (uint64_t)(c->end - c->p) || !passages_begin(c->p, c->p + size, most))
        return false;
    c->p += size;
    stepclock.asks = passages_are_asked();
    size = number(c);
    if (!c->ok || size > (uint64_t)(c->end - c->p) || !passages_begin_lines(c->p, c->p + size))
        return false;
    c->p += size;
    if (!watch_begin(c->p, c->end) || !path_begin(is_followed) || !called_begin(most_calls, own.is_set))
        c->ok = false;
    points_begin(event, run.stop, point);
    if (point && run.stop != UINT64_MAX)
        run.stop++; /* it stands inside that line */
    stepclock.looks = rule_is_set() || watch_is_set();
    if (watch_looks_at_returns())
        listen_to(listening_to() | LISTEN_RETURNS);
    run.left_at = run.looked_at = cpu_time();
    run.lines = FEWEST_LINES;
    next_look();
    return c->ok;
}

/* object_at(address, type): raises if there is no such object now. */
static PyObject *
object_at(PyObject *self, PyObject *args)
{
    unsigned long long address, type;
    if (!PyArg_ParseTuple(args, "KK", &address, &type))
        return NULL;
    PyObject *o = (PyObject *)(uintptr_t)address;
    if (o && (uintptr_t)Py_TYPE(o) == type && Py_REFCNT(o) > 0)
        return Py_NewRef(o);
    PyErr_SetString(PyExc_LookupError, "it is not there");
    return NULL;
}

/* address_of(value): id() is what the program sees. */
static PyObject *
address_of(PyObject *self, PyObject *value)
{
    return PyLong_FromVoidPtr(value);
}

/* field_of(object, type, value): where an object of the type has `value` in its structure; 0: nowhere. */
static PyObject *
field_of(PyObject *self, PyObject *args)
{
    PyObject *o, *value;
    PyTypeObject *type;
    if (!PyArg_ParseTuple(args, "OO!O", &o, &PyType_Type, &type, &value))
        return NULL;
    return PyLong_FromSsize_t(PyObject_TypeCheck(o, type) ? field_holding(o, type, value) : 0);
}

/* digest_of(value): see course_digest(). */
static PyObject *
digest_of(PyObject *self, PyObject *value)
{
    return PyLong_FromUnsignedLongLong(course_digest(value) >> 4); /* a number that is read as a count */
}

/* run(code, names): exec() and eval() would be heard by audit hooks. */
static PyObject *
run_code(PyObject *self, PyObject *args)
{
    PyObject *code, *names;
    return PyArg_ParseTuple(args, "O!O!", &PyCode_Type, &code, &PyDict_Type, &names)
               ? PyEval_EvalCode(code, names, names)
               : NULL;
}

static PyMethodDef lent[] = {{"object_at", object_at, METH_VARARGS, NULL},
                             {"address_of", address_of, METH_O, NULL},
                             {"field_of", field_of, METH_VARARGS, NULL},
                             {"call_of", judge_call_of, METH_VARARGS, NULL},
                             {"stands_at", judge_stands_at, METH_VARARGS, NULL},
                             {"digest_of", digest_of, METH_O, NULL},
                             {"judge_lines_by", judge_lines_by, METH_O, NULL},
                             {"answer_passages_by", passages_answer_by, METH_O, NULL},
                             {"answering_passages", passages_answering, METH_NOARGS, NULL},
                             {"names_here", passages_names, METH_O, NULL},
                             {"skip_passages", passages_skip, METH_O, NULL},
                             {"run", run_code, METH_VARARGS, NULL}};

/* Steals `value`, which may be NULL. */
static bool
name(PyObject *names, const char *key, PyObject *value)
{
    bool is_named = value && PyDict_SetItemString(names, key, value) == 0;
    Py_XDECREF(value);
    return is_named;
}

/* NULL: with an exception. */
PyObject *
engine_probe(PyObject *globals, const uint8_t *p, const uint8_t *end)
{
    PyObject *builtins = core.tstate->interp->builtins, *of_core = PyDict_New();
    if (!globals || !of_core || !name(of_core, "builtins", Py_NewRef(builtins)))
        return NULL;
    for (size_t i = 0; i < sizeof lent / sizeof *lent; i++)
        if (!name(of_core, lent[i].ml_name, PyCFunction_New(&lent[i], NULL)))
            return NULL;
    if (!name(globals, "__builtins__", Py_NewRef(builtins)) || !name(globals, "lent", of_core) ||
        !name(globals, "sys", Py_NewRef(sys_module)) || !name(globals, "modules", Py_NewRef(probe_modules)) ||
        !name(globals, "argument", PyBytes_FromStringAndSize((const char *)p, end - p)))
        return NULL;
    PyObject *result = PyEval_EvalCode(probe_loader, globals, globals),
             *answer = result ? PyDict_GetItemString(globals, "answer") : NULL;
    Py_XDECREF(result);
    return answer && PyBytes_Check(answer) ? answer : NULL;
}

/* In bytes. */
static rlim_t
address_space(void)
{
    char text[32] = "";
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0)
        close(fd);
    return n > 0 ? (rlim_t)strtoull(text, NULL, 10) * (rlim_t)sysconf(_SC_PAGESIZE) : without_proc_address_space();
}

/* What engine_probe() returned, or why it did not. */
static void
send_answer(PyObject *answer)
{
    Buf b = message;
    if (answer)
        b = (Buf){
            .data = (uint8_t *)PyBytes_AS_STRING(answer), .used = (size_t)PyBytes_GET_SIZE(answer), .is_fixed = true};
    else {
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        PyErr_NormalizeException(&type, &value, &traceback);
        PyObject *text = value ? PyObject_Str(value) : NULL;
        const char *said = text ? PyUnicode_AsUTF8(text) : NULL;
        said = said ? said : type ? ((PyTypeObject *)type)->tp_name : "no answer";
        buf_bytes(&b, said, strlen(said));
        Py_XDECREF(text);
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(traceback);
        PyErr_Clear();
    }
    send_all(answer ? 'A' : 'X', &b, -1);
}

_Noreturn static void
divert(Command *c)
{
    uint64_t memory = number(c);
    /* files: then what the program asks the outside is answered by it; the filter lets nothing be changed */
    bool may_read = number(c);
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    if (memory) {
        struct rlimit fence;
        rlim_t most = address_space() + memory;
        if (getrlimit(RLIMIT_AS, &fence) == 0 && fence.rlim_max < most)
            most = fence.rlim_max;
        setrlimit(RLIMIT_AS, &(struct rlimit){most, most});
    }
    set_diverting(true);
    if (may_read)
        set_mode(OBSERVE);
    PyErr_Clear();
    compat_room_make(core.tstate);
    send_answer(engine_probe(PyDict_New(), c->p, c->end));
    leave_process(0); /* no handler, no buffer of the program's is flushed a second time */
}

static bool is_changed;

/* Changes the program itself: from here on it is another run than the recorded one. */
static void
change(Command *c)
{
    PyObject *type, *value, *traceback, *globals;
    PyErr_Fetch(&type, &value, &traceback);
    set_diverting(true);
    CompatRoom room = compat_room_make(core.tstate);
    globals = PyDict_New();
    send_answer(engine_probe(globals, c->p, c->end));
    Py_XDECREF(globals);
    compat_room_end(core.tstate, room);
    set_diverting(false);
    lenient_from_here();
    is_changed = true;
    PyErr_Restore(type, value, traceback);
}

/* A snapshot of the heap, in a file of its own. The process is as it was, but for the program's memory that was looked
 * at. */
static void
take_snapshot(Command *c)
{
    Buf b = message;
    HeapLimits limits = {.nodes = number(c)};
    limits.edges = number(c);
    limits.items = number(c);
    limits.text = (uint32_t)number(c);
    limits.all = number(c);
    HeapOccasion occasion = {
        .number = number(c), .event = core.crossings, .step = stepclock.count, .name = "", .reason = "asked"};
    occasion.time_ns = number(c);
    int fd = c->ok ? memfd_create("replaydbg-heap", MFD_CLOEXEC | MFD_ALLOW_SEALING) : -1, failed = 0;
    if (fd < 0 || heap_capture(fd, &limits, &occasion, NULL) < 0)
        failed = errno;
    report_number(&b, failed);
    send_all(failed ? 'X' : 'P', &b, failed ? -1 : fd);
    if (fd >= 0)
        close(fd);
}

/* ---- a child that the program forks later ---- */

enum { LOG, WORLD, CONTENT, LOGS };
#define MOST_LOG ((size_t)512 << 20) /* of each: a child with more is replayed from its beginning */
/* For the logs of a child, and behind them one page for its last line. Reserved in all sessions: whatever is mapped
 * later lies where it would lie in any of them. */
static uint8_t *child_room;

static bool
receive_files(int *fds, int n)
{
    char byte;
    struct iovec part = {&byte, 1};
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE((LOGS + FIRST_FILES) * sizeof(int))];
    } control;
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof control.room};
    ssize_t k;
    do
        k = recvmsg(engine.fd, &message, MSG_CMSG_CLOEXEC);
    while (k < 0 && errno == EINTR);
    struct cmsghdr *header = k == 1 ? CMSG_FIRSTHDR(&message) : NULL;
    if (!header || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS ||
        header->cmsg_len != CMSG_LEN((size_t)n * sizeof(int)))
        return false;
    memcpy(fds, CMSG_DATA(header), (size_t)n * sizeof(int));
    return true;
}

/* It is the first process of another session, and goes on writing what the one before had begun. */
static void
join_first_pass(const int *fds)
{
    for (int i = 0; i < FIRST_FILES; i++) {
        syscall(SYS_dup3, fds[i], first_pass.files[i], O_CLOEXEC, own_token());
        close(fds[i]);
    }
    output_fd = first_pass.files[OUTPUT];
    stepclock.steps_fd = first_pass.files[STEPS];
    stepclock.fd = first_pass.files[TOTALS];
    raises_join(first_pass.files[RAISES]);
    printed_take(output_fd);
    streams_join();
}

/* The program will fork a child that was recorded, too: up to there both recordings are the same. From here on this is
 * the replay of that child. Two answers: whether it may run the whole program, with what was written for that so far;
 * and 0 if it is done. */
static void
become_child(Command *c)
{
    uint64_t log = number(c), world = number(c), last = number(c), is_sealed = number(c);
    ContentPlace place = {.first = number(c)};
    place.stride = number(c);
    place.length = number(c);
    place.file_size = number(c);
    place.mtime = number(c);
    bool is_first = number(c) && first_pass.is_as_left;
    int fds[LOGS + FIRST_FILES];
    Buf b = message;
    report_list(&b, 1 + FIRST_FILES);
    report_number(&b, is_first);
    for (int i = 0; i < FIRST_FILES; i++)
        report_number(&b, (int64_t)first_pass.written[i]);
    send_all('F', &b, -1);
    if (!c->ok || !receive_files(fds, is_first ? LOGS + FIRST_FILES : LOGS))
        leave_process(0);
    Room rooms[LOGS];
    for (int i = 0; i < LOGS; i++)
        rooms[i] = (Room){child_room + (size_t)i * MOST_LOG, MOST_LOG};
    /* What was read of the parent's logs must be in the child's: those of the first process, which has read most of
     * these, are compared as a whole. Definitions for the next crossing may be read already, behind `log`. */
    uint64_t at = (uint64_t)(event_log.rp - event_log.base),
             begin = (uint64_t)(log_first_record(&event_log) - event_log.base);
    int failed = log_replace(&event_log, fds[LOG], is_first ? begin : log, at, rooms[LOG]) < 0 ||
                 world_replace(fds[WORLD], is_first ? world : 0, rooms[WORLD]) < 0 ||
                 (is_sealed ? content_open_sealed(fds[CONTENT], &place) : content_open(fds[CONTENT])) < 0 ||
                 content_move(rooms[CONTENT]) < 0;
    last_line = mmap(child_room + LOGS * MOST_LOG, sizeof *last_line, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (last_line == MAP_FAILED)
        leave_process(0);
    *last_line = last;
    if (is_first)
        join_first_pass(fds + LOGS);
    report_list(&b, 1);
    report_number(&b, failed);
    send_all('F', &b, -1);
    if (failed)
        leave_process(0);
}

/* While it runs nothing is heard but another spacing of the checkpoints. */
static void
hear_spacing(void)
{
    uint8_t head[5], data[16];
    uint32_t length;
    while (recv(engine.fd, head, 1, MSG_DONTWAIT | MSG_PEEK) == 1) {
        receive(head, sizeof head);
        memcpy(&length, head, 4);
        if (head[4] != 'I' || length == 0 || length > sizeof data)
            leave_process(0);
        receive(data, length - 1);
        Command c = {data, data + length - 1, true};
        run.spacing = number(&c);
    }
}

/* Reports where the process is, and that it waits for an order. */
static void
stand_still(Buf *b, const char *why)
{
    stepclock.stop_at = UINT64_MAX;
    report_where(b, why);
    send_all('S', b, -1);
}

/* Returns at the order to continue. */
static void
obey(void)
{
    for (;;) {
        uint8_t head[5];
        uint32_t length;
        receive(head, sizeof head);
        memcpy(&length, head, 4);
        if (length == 0 || length > MOST_COMMAND)
            leave_process(0);
        receive(command, length - 1);
        Command c = {command, command + length - 1, true};
        Buf b = message;
        switch (head[4]) {
        case 'C':
            leave_clone('C');
            break;
        case 'R':
            if (!obey_run(&c))
                leave_process(0);
            if (!passages_met_line())
                return;
            stand_still(&b, "line");
            break;
        case 'L':
            report_lane_frames(&b, &c);
            send_all('L', &b, -1);
            break;
        case 'W':
            report_where(&b, "asked");
            send_all('S', &b, -1);
            break;
        case 'D':
            divert(&c);
        case 'M':
            change(&c);
            break;
        case 'O':
            if (!watch_begin(c.p, c.end))
                leave_process(0);
            watch_report_object(&b);
            send_all('O', &b, -1);
            break;
        case 'G':
            take_snapshot(&c);
            break;
        case 'F':
            become_child(&c);
            break;
        case 'N':
            since_begin(number(&c));
            break;
        case 'I': /* it came when the run had ended */
            break;
        default:
            leave_process(0);
        }
    }
}

void
engine_stand(const char *why)
{
    Buf b = message;
    stand_still(&b, why);
    obey();
}

/* ---- while it runs ---- */

/* Looks at the time some eight times between two checkpoints, however long the lines take. */
static void
look_at_time(void)
{
    uint64_t now = cpu_time(), passed = now - run.looked_at;
    run.looked_at = now;
    if (passed > run.spacing / 4 && run.lines > FEWEST_LINES)
        run.lines /= 2;
    else if (passed < run.spacing / 16 && run.lines < MOST_LINES)
        run.lines *= 2;
    if (now - run.left_at >= run.spacing) {
        if (leave_clone('K')) {
            obey();
            return;
        }
        run.left_at = run.looked_at = cpu_time();
        hear_spacing();
    }
    next_look();
}

static void
stop(void)
{
    if (passages_met_line())
        engine_stand("line");
    else if (stepclock.broken) /* before the count: the line at which a run is to end anyway may be one */
        engine_stand("break");
    else if (stepclock.count >= run.stop && run.goes_on)
        diverge("computing", NULL, NULL, "");
    else if (stepclock.count >= run.stop)
        engine_stand("count");
    else if (rule_has_stopped())
        engine_stand("rule");
    else if (watch_has_stopped())
        engine_stand("watch");
    else if (run.spacing)
        look_at_time();
    else
        next_look(); /* it was a line at which something was evaluated */
}

/* A line of a program that is looked at closely: is it one to stand at? */
bool
engine_line(_PyInterpreterFrame *frame)
{
    bool stands = rule_line(frame);
    return watch_line(frame) || stands;
}

/* An exception, at the frame in which it was raised. */
void
engine_raised(const Raise *raise)
{
    raises_write(raise);
    if (run.at_raises)
        engine_stand("raise");
}

/* What the program has written since it was changed: the last of it, for whoever asks how that run ended. */
static struct {
    char last[1000];
    size_t kept;
    uint64_t all;
} since_change;

static void
keep_written(const char *data, size_t n)
{
    since_change.all += n;
    size_t room = sizeof since_change.last, taken = n < room ? n : room, stays = room - taken;
    stays = stays < since_change.kept ? stays : since_change.kept;
    memmove(since_change.last, since_change.last + since_change.kept - stays, stays);
    memcpy(since_change.last + stays, data + n - taken, taken);
    since_change.kept = stays + taken;
}

/* Two keys with their values. */
void
engine_report_written(Buf *b)
{
    report_key(b, "written");
    buf_byte(b, TAG_BYTES);
    buf_str(b, since_change.last, since_change.kept);
    report_key(b, "written_all");
    report_number(b, (int64_t)since_change.all);
}

void
engine_output(int stream, const void *data, size_t n)
{
    Buf b = written; /* of its own: a message may be half made */
    if (is_changed)
        keep_written(data, n);
    if (output_fd < 0)
        return;
    n = n < MOST_COMMAND / 2 ? n : MOST_COMMAND / 2;
    report_list(&b, 4);
    report_number(&b, (int64_t)stepclock.count);
    report_number(&b, (int64_t)core.crossings + 1);
    report_number(&b, stream);
    buf_byte(&b, TAG_BYTES);
    buf_str(&b, data, n);
    report_send(output_fd, &b);
}

void
engine_idle(void)
{
    char byte;
    if (recv(engine.fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 0)
        leave_process(0);
}

/* ---- its end ---- */

void
engine_ends_here(void)
{
    *last_line = stepclock.count;
}

/* The step clock has been prepared for a replay that only counts. */
void
engine_take_clock(void)
{
    activations_are_kept = true;
    stepclock.stop = stop;
    stepclock.stop_at = run.stop = 1; /* it stands before the first line of all */
}

/* What a replay that ends says otherwise in a file. */
void
engine_report(Buf *report)
{
    engine_send(engine.diverting ? 'X' : 'E', report);
}

Buf
engine_message(void)
{
    return message;
}

void
engine_send(int kind, Buf *b)
{
    raises_send();
    course_send();
    streams_collect();
    printed_send();
    send_all(kind, b, -1);
}

/* ---- its beginning ---- */

static int
asked_fd(PyObject *asked, const char *key)
{
    PyObject *v = PyDict_GetItemString(asked, key);
    return v && PyLong_Check(v) ? fd_keep((int)PyLong_AsLong(v)) : -1;
}

static PyObject *
compile_probe(PyObject *source)
{
    const char *text = source ? PyUnicode_AsUTF8(source) : NULL;
    PyCompilerFlags flags = {.cf_flags = CO_FUTURE_ANNOTATIONS, .cf_feature_version = PY_MINOR_VERSION};
    return text ? Py_CompileStringFlags(text, "<probe>", Py_file_input, &flags) : NULL;
}

/* -1: it cannot be compiled. */
static int
prepare_probe(PyObject *asked)
{
    PyObject *sources = PyDict_GetItemString(asked, "probe_modules"), *key, *source;
    probe_loader = compile_probe(PyDict_GetItemString(asked, "probe_loader"));
    probe_modules = PyDict_New();
    sys_module = PyImport_ImportModule("sys"); /* at the program's end it cannot be imported any more */
    if (!probe_loader || !probe_modules || !sys_module || !sources || !PyDict_CheckExact(sources))
        return -1;
    for (Py_ssize_t at = 0; PyDict_Next(sources, &at, &key, &source);) {
        PyObject *code = compile_probe(source);
        if (code == NULL || PyDict_SetItem(probe_modules, key, code) < 0)
            return -1;
        Py_DECREF(code);
    }
    return 0;
}

int
engine_prepare(PyObject *asked)
{
    if (!PyDict_CheckExact(asked))
        return 0;
    if (prepare_probe(asked) < 0)
        return -1;
    engine.fd = asked_fd(asked, "fd");
    output_fd = asked_fd(asked, "output_fd");
    raises_prepare(asked_fd(asked, "raises_fd"));
    course_prepare(asked_fd(asked, "course_fd"));
    clones_prepare();
    arenas_prepare();
    passages_prepare();
    engine.is_on = true;
    last_line = mmap(NULL, sizeof *last_line, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (last_line == MAP_FAILED)
        return -1;
    PyObject *last = PyDict_GetItemString(asked, "last_line");
    *last_line = last && PyLong_Check(last) ? PyLong_AsUnsignedLongLong(last) : 0;
    child_room = memory_apart(LOGS * MOST_LOG + sizeof *last_line);
    memory_apart_small(1); /* its room, too */
    command = memory_apart(MOST_COMMAND);
    message = (Buf){.data = memory_apart(MOST_COMMAND), .size = MOST_COMMAND, .is_fixed = true};
    written = (Buf){.data = memory_apart(MOST_COMMAND), .size = MOST_COMMAND, .is_fixed = true};
    return printed_prepare(output_fd) < 0 ? -1 : rule_prepare();
}

/* ---- what the clock tells of functions ---- */

void
engine_function_starts(_PyInterpreterFrame *frame)
{
    watch_start(frame);
    path_start(frame);
    judge_start(frame);
    called_start(frame);
}

void
engine_function_resumes(_PyInterpreterFrame *frame)
{
    watch_resume(frame);
    called_resume(frame);
}

void
engine_function_ends(_PyInterpreterFrame *frame, PyObject *value)
{
    watch_look(frame);
    path_return(frame, value);
    called_end(frame);
}
