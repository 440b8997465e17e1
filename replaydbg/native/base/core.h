/* What the parts of the native core share. One extension, one state, one program: the core is never unloaded.
 *
 *   module.c    the extension module: boot() and what the tests call
 *   boot.c      from the bootstrap command to the program's own __main__, and to the end of the process
 *   gate.c      gates: the table in C, trampolines, installing, the regular crossing
 *   cross.c     a crossing: its begin and its end, recorded or replayed; divergence
 *   garbage.c   the program's collections come at the same allocations in both modes
 *   site.c      where in the source a crossing happens
 *   log.c       the memory-mapped log, written and read
 *   value.c     values to bytes and back
 *   world.c     the importer's private world
 *   fileio.c    files and descriptors
 *   scatter.c   calls that take several buffers
 *   streams.c   standard output and error; with it stream_transfers.c, stream_capture.c and stream_children.c
 *   opening.c   the constructor of FileIO
 *   directories.c  what scandir() yields
 *   process.c   selection, semaphores, processes, and the end of a process
 *   maps.c      memory maps
 *   shared.c    memory that other processes write
 *   memory.c    memory that may not be readable
 *   without_proc.c  what /proc shows, by other means
 *   shortage.c  memory that the program did not get
 *   clock.c     datetime, entropy, profilers
 *   signals.c   signal handlers, inside crossings and between them
 *   raised.c    signals that the program's C code sends to the process itself
 *   readline.c  lines that are typed at a terminal
 *   warned.c    warnings that gated functions issue
 *   places.c    what a place in pure computation is known by; stacks.c: where a frame keeps objects
 *   network.c   sockets
 *   tls.c       TLS
 *   standins.c  what takes the place of C code that cannot be recorded
 *   identity.c  id() and hashes of objects
 *   reprs.c     addresses in reprs
 *   addresses.c ids that ctypes is given as addresses
 *   identity_types.c  the types that both patch, and what was hashed before
 *   sqlite.c    SQLite's virtual file system
 *   guard.c     the two nets: audit hook and seccomp filter
 *   perturb.c   for tests: random allocations wherever the core does work of its own
 *   codes.c     what is known of each code object while lines or ticks are counted
 *   listen.c    how the core hears of lines, calls and jumps
 *   relink.c    functions that C libraries call, replaced
 *   libc.c      what C libraries take from the C library by themselves: see libc.h; with it libc_rows.c, libc_forms.c, libc_lead.c
 *   stepclock.c the count of lines in a replay: positions, hits, breakpoints
 *   activations.c  which lines ran in the same activation of a frame, in the same lane
 *   heap.c      pictures of the heap: see heap.h
 *   engine.c    a replay that the debugger travels through: see engine.h; with it rule.c, watch.c, signature.c, raises.c, course.c, clones.c, arenas.c, ending.c
 *   ticks.c     the count behind the slices of lanes
 *   trace.c     every tick and event of a run written down, for the comparison of two runs
 *   limit.c     how long a replay may compute without asking for anything
 *   report.c    values that the launcher is told
 *   marks.c     places that the program names
 *   lenient.c   a replay of edited code: see lenient.h; with it lenient_index.c, lenient_lanes.c and liberties.c
 *   outcome.c   how the program ended: its exception, and what is asked of it then
 *   lanes.c     the program's threads: see lanes.h; with it hub.c, threads.c, libcalls.c, transfers.c
 */
#ifndef REPLAYDBG_CORE_H
#define REPLAYDBG_CORE_H
#include "base/compat.h"

#define FORMAT_NUMBER 2
enum { CONTROL_SIGNAL_INSIDE, CONTROL_SIGNAL_BETWEEN, CONTROL_TIME, CONTROL_END, CONTROL_NOTE, CONTROL_LANE, CONTROL_CHILD, CONTROL_COLLECTOR,
       CONTROL_MEMORY, CONTROL_LANE_STARTED, CONTROL_CALLBACK, CONTROL_MARK, CONTROL_SERIALS, CONTROL_STREAM, CONTROL_WORLD = 16,
       CONTROL_NO_MEMORY = 20 };
#define EXIT_DIVERGED 4
#define EXIT_DEADLOCK 5   /* the program was to be ended there */
#define EXIT_NOT_STARTED 126 /* the log could not be made: the launcher finds out why, and says so */

typedef enum { OBSERVE, RECORD, REPLAY } Mode;

typedef struct Gate Gate;
typedef PyObject *(*Handler)(Gate *gate, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);

/* What a row of the gate table says besides its name; the same bits as in replaydbg/gates/table.py. */
enum {
    GATE_ARGS = 1,        /* shape: arguments are logged and checked */
    GATE_DIGEST = 2,      /* shape: a digest of the bytes that leave is logged and checked */
    GATE_FILLS = 4,       /* shape: the call fills a buffer of the caller */
    GATE_SHAPE = 7,
    GATE_BOTH = 8,        /* also executed in replay: its effect is local to the process */
    GATE_PATH = 16,       /* arguments may be path-like objects: converted before the crossing */
    GATE_OPENS = 32,      /* the result is a descriptor, or a tuple of them: replay puts placeholders there */
    GATE_CLOSES = 64,     /* the first argument is a descriptor that is closed */
    GATE_COPIES = 128,    /* with GATE_OPENS: the new descriptor is a copy of the first argument's */
    GATE_WRITES_FD = 256, /* bytes go to the descriptor in the first argument: shown in replay if it is a standard stream */
    GATE_SELF = 512,      /* of a method: self belongs to the arguments */
    GATE_READS = 2048,    /* bytes come from the current position of a file (self, or the first argument) */
    GATE_ALWAYS = 4096,   /* the handler is also asked where nothing is a crossing: it computes, in every thread and after the recording's end */
    GATE_MAKES_NOTHING = 8192, /* neither its C function nor what comes of it is, or for a moment uses, a tracked object */
    GATE_HEARS = 16384, /* it waits for other processes, or tells of them: after it, what they did can be known */
    GATE_REPEATS = 32768, /* lenient: a clock, or what stays the same for a process: what it gave last can be given again */
    GATE_ACCEPTED = 65536, /* lenient: it gives nothing, and nobody asks later whether it was done */
    GATE_WRITTEN = 131072, /* lenient: bytes leave; other ones count as written, all of them. With GATE_ACCEPTED: it gives no number */
    GATE_DESCRIPTOR = 262144, /* lenient: the first argument is a descriptor */
    GATE_OPENS_FIRST = 524288, /* lenient: the outcome is a tuple that begins with a new descriptor, or several of these */
    GATE_FILLS_ALL = 1024, /* with GATE_FILLS: all of the buffer is filled, whatever number is returned */
};

/* What a gate may do to a stream besides writing bytes that the program has computed. */
typedef enum { ACT_NONE, ACT_OPEN, ACT_MOVE, ACT_CUT, ACT_CUT_PATH, ACT_PLACE, ACT_SEND, ACT_MESSAGE, ACT_RECEIVE } StreamAct;

struct Gate {
    PyMethodDef ml;     /* what the patched object points to instead of `original_def` */
    int id;             /* from 1, as in the header of the recording; 0: not in the table */
    unsigned flags;
    int buffer;         /* GATE_DIGEST, GATE_FILLS: index of the argument that is the buffer (self not counted) */
    Handler handler;
    PyMethodDef *original_def;
    PyGetSetDef attribute, *original_attribute; /* of an attribute: no argument to get it, one to set it */
    PyObject *original; /* a genuine callable that does the real thing; of a method: takes self first */
    PyObject *self;     /* of a function: its m_self */
    bool is_method;
    StreamAct stream_act;
    const char *module, *name; /* "posix", "stat"; "_io", "FileIO.write" */
};

/* ---- state ---- */
typedef struct {
    Mode mode;
    int depth;                /* > 0: inside a crossing, nothing is a crossing */
    int ground;               /* 0; while a question of the user's is asked at a line: the depth at which it runs, whose crossings are refused */
    PyThreadState *tstate;    /* of the lane that runs */
    bool interrupted;         /* KeyboardInterrupt ended the program */
    bool terminal_input;      /* stdin and stdout were terminals at start */
    bool current_source;      /* replay: sites need not agree, the importer sees the real files */
    uint64_t crossings;       /* events so far */
    uint64_t stop_at;         /* replay: stand still before this event; 0: run to the end */
    uint64_t answers_to;      /* lenient: no later event than this is an answer; 0: all are */
    uint64_t end_reason;      /* replay: why the recording stopped early, from the log's header */
    int out_fd[3];            /* replay: real standard streams, high numbers */
    int report_fd;            /* replay: where a divergence is described */
    int null_fd;              /* replay: what placeholders are copies of */
    int socket_fd;            /* replay: the same for sockets, whose objects accept nothing else */
    char *live_dir;           /* record: absolute path of the live directory */
    Py_ssize_t code_extra;
    uint64_t compare_every;   /* record: the collector's state is logged when the number of events so far has none of these bits */
    bool follows, followed;   /* replay: the recording is still being written; it was when the replay began */
    bool lenient;             /* replay: of edited code, see lenient.h */
    bool edited;              /* then: it is known to be */
    bool strict;              /* replay: that it differs is a divergence at once; the tests want it so */
} Core;
extern Core core;

/* ---- gate.c ---- */
Gate *gate_named(const char *module, const char *name);       /* NULL if the table has no such row */
PyObject *gate_call_original(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
Gate *gate_numbered(int id);                                  /* the same by its id */
int gates_load(PyObject *rows);                               /* rows of the table, from the boot file */
int gates_install_module(PyObject *module, const char *name); /* binds the rows of one module that is just loaded */
PyObject *gate_regular(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
PyObject *gate_slot(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
Handler handler_named(const char *name);
bool is_path_object(PyObject *o);                             /* not str, bytes or int, but with __fspath__ */
void patch_wrapper(PyTypeObject *type, const char *name, void *function);
Py_ssize_t member_offset(PyTypeObject *type, const char *name);
void patch_wrapper_of(PyTypeObject *type, const char *name, void *original, void *function); /* only if it led to `original` */
/* An irregular handler is announced by each part in its own table, collected in gate.c. */
typedef struct { const char *name; Handler handler; } HandlerEntry;
extern const HandlerEntry fileio_handlers[], directory_handlers[], process_handlers[], clock_handlers[], signal_handlers[], stream_handlers[],
    network_handlers[], scatter_handlers[], tls_handlers[], thread_handlers[], raised_handlers[], readline_handlers[];
bool lane_adopt(void);                                       /* lanes.c: a thread state that is not core.tstate; false: of no lane */
static inline bool
gate_passes(void)
{
    return core.mode == OBSERVE || core.depth > core.ground || (PyThreadState_Get() != core.tstate && !lane_adopt());
}
/* Things to do when a module has just been loaded that are no rows (slots of types, the VFS of SQLite). */
void fileio_module_loaded(PyObject *module, const char *name);
void clock_module_loaded(PyObject *module, const char *name);
void sqlite_module_loaded(PyObject *module, const char *name);

/* ---- stacks.c, places.c: where pure computation stands ---- */
typedef struct {
    int unit;  /* of the instruction itself, where the frame stands at what belongs to it */
    int depth; /* so many entries of the value stack hold objects */
} StackPlace;
void stacks_forget(void);                        /* a code object has died */
StackPlace stack_place(_PyInterpreterFrame *frame);
enum { PLACE_LEVELS = 6 };
typedef struct {
    const void *code;             /* of the topmost frame: not recorded */
    int lasti;                    /* there */
    uint64_t fingerprint;         /* of frames and simple locals */
    uint64_t ticks;               /* since the last event or switch, plus 1; 0: not counted, and then */
    int levels;                   /* how many of these there are: */
    uint64_t state[PLACE_LEVELS]; /* fingerprints of what the frames can reach, each of more of it */
} Place;
void place_here(Place *place);
bool place_is_here(const Place *place);          /* quick where the topmost frame is at another instruction */
bool place_is_same_instruction(const Place *place); /* of a place that was seen in this process */

/* ---- cross.c: one crossing ----
 * A gate describes the crossing, does the real thing if `perform` is true, and hands over what came of it; what happens then
 * (logged, or taken from the log and checked) is the mode's matter:
 *
 *     Crossing c;
 *     cross_begin(&c, gate, self, args, nargs, kwnames);
 *     PyObject *result = c.perform ? gate_call_original(...) : NULL;
 *     return cross_end(&c, result);
 */
typedef struct {
    Gate *gate;
    uint32_t site;        /* record: site id */
    uint64_t site_hash;   /* replay: what the recorded site must hash to */
    uint32_t args_id;     /* record */
    uint64_t args_hash;   /* both */
    PyObject *const *args;
    Py_ssize_t nargs;
    PyObject *self;
    bool perform;
    bool raised_by_program; /* the exception is of program code that ran inside */
    Gate *outer;          /* which gate was open around it */
    bool digested;
    uint32_t digest;
    const uint8_t *leaving; /* what is digested, shown if it is not what was recorded */
    size_t leaving_length;
    size_t left;            /* bytes digested in all pieces together */
    const uint8_t *fill;  /* record: content that was filled in; replay: content to fill in */
    size_t fill_length;
} Crossing;
void cross_begin(Crossing *c, Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
/* Steals `result`; NULL with an exception set means that it raised. Returns a new reference, or NULL with an exception set. */
PyObject *cross_end(Crossing *c, PyObject *result);
void cross_digest(Crossing *c, const void *data, size_t n); /* between begin and end; may be called for each piece */
void cross_ended(int exit_code);                            /* record: the END record */
bool cross_at_end(void);                                    /* replay: nothing is left in the log */
bool cross_ends_unannounced(void);                          /* nor has it said that the program ended: something ended it */
void cross_expect_exit(void);                               /* replay: the process ends; so must the log */
void cross_control(unsigned rest, const uint64_t *numbers, int n); /* record: a control record of numbers */
void cross_signal_between(int signum, const Place *place);  /* record: a handler runs there */

/* A crossing made by C code where no Python callable is gated (SQLite's files): arguments are one text and two numbers, bytes may
 * leave (`data`), the outcome is a number and bytes that arrive. The GIL must be held. Usage:
 *
 *     NativeCrossing c;
 *     int64_t rc = 0;
 *     if (native_begin(&c, gate, "main.db", offset, amount, NULL, 0)) { rc = real call filling out }
 *     rc = native_end(&c, rc, out, nout);   // replay: returns the recorded number and fills `out` (exactly nout bytes)
 */
typedef struct { Crossing cross; } NativeCrossing;
bool native_begin(NativeCrossing *c, Gate *g, const char *text, int64_t a, int64_t b, const void *data, size_t ndata);
int64_t native_end(NativeCrossing *c, int64_t rc, void *out, size_t nout);
/* The same with arguments that are coded already (a tuple), and with as many bytes as there are: a replay gives where they lie. */
struct Buf;
bool native_begin_encoded(NativeCrossing *c, Gate *g, const struct Buf *arguments, const void *data, size_t ndata);
int64_t native_end_filled(NativeCrossing *c, int64_t rc, const void **out, size_t *nout);

/* What of a crossing belongs to the lane that is in it. */
typedef struct {
    PyObject *upcall_error;
    PyObject *raised_type, *raised_value, *raised_traceback;
    Gate *open;
} CrossState;
void cross_state_swap(CrossState *leaves, const CrossState *comes);
void cross_lane_started(int id, PyObject *name);            /* name: NULL or a str */
bool cross_read_switch(unsigned why, uint64_t numbers[3]);  /* replay: reads a LANE record; false: a crossing comes first */
void cross_read_ahead(void);                                /* replay */
Gate *cross_open(void);                                     /* of the running lane; NULL: none */

/* Between these two nothing is a crossing, and what is allocated or freed does not move the program's next collection. */
void own_work_begin(void);
void own_work_end(void);
void own_work_gives(PyObject *made); /* NULL, or what the program gets of the tool's work besides the outcome of a crossing */

/* Program code that runs inside a crossing (a handler, an opener): crossings count again between these two. */
int upcall_enter(void);           /* returns the depth to give back */
void upcall_leave(int depth);

/* Ends a replay: writes the report that the launcher turns into the message, flushes nothing, exits with EXIT_DIVERGED. */
_Noreturn void leave_process(int status); /* _exit() of the core's own, which the fence lets through */
uint32_t own_token(void); /* in unused arguments of the core's own system calls: the filter of a replay lets these through */
void own_token_set(uint32_t number);
extern PyTypeObject *fileio_type, *socket_type; /* NULL until their modules are loaded */
_Noreturn void diverge(const char *kind, Gate *gate, Crossing *c, const char *detail);
/* A replay that uses the parts of an outcome looks first whether it has them: the recording may say anything. */
void cross_expect_outcome(const Crossing *c, bool has_its_type);
/* Something met while recording that a replay cannot repeat; said once for each (kind, text). */
void note(const char *kind, const char *text);

/* ---- log.c ---- */
typedef struct {
    uint8_t *base;        /* start of the mapping */
    uint8_t *wp, *limit;  /* record: where the next byte goes; end of what is allocated */
    const uint8_t *rp, *rend; /* replay: next byte to read; end of the log */
    char *path;
    uint64_t max_size;    /* bytes; 0: no limit */
    bool failed;
} Log;
extern Log event_log, world_log;
int log_create(Log *log, const char *path, uint64_t max_size);
int log_open(Log *log, int fd);                  /* for replay; maps it, closes fd */
const uint8_t *log_first_record(const Log *log);
void log_follow(void);                           /* replay: waits until the next event is there, or there will be none */
uint8_t *log_room(Log *log, size_t n);           /* where n bytes may be written, or NULL: logging has ended (mode is OBSERVE now) */
void log_commit(Log *log, uint8_t *end);         /* what lies before `end` is complete */
void log_fail(int reason);                       /* logging ends, the program goes on */
void log_reason(int reason);                     /* noted in the header, while logging goes on; 0 takes it back */
void log_memory(void);                           /* record: notes how much address space the program had at most */
bool log_is_read(void);                          /* replay: all events have been used up */
bool log_has_stopped(void);                      /* replay: nothing is added any more to a log that was followed */
uint64_t log_cpu_time(void);                     /* ns; of the recorded program at its last event */
void log_signal_handled(void);                   /* counted in the header, for the launcher */
void log_stop_in_child(void);                    /* after fork: the child has no log */
uint64_t monotonic_ns(void);

/* A growing buffer of our own memory (never the program's allocator). */
typedef struct Buf {
    uint8_t *data;
    size_t used, size;
    bool is_fixed; /* it has all the memory that it will ever have, and keeps it */
} Buf;
void log_append(Log *log, Buf *record);          /* writes and commits a whole record, and frees it */
void *grown(void *old, size_t count, size_t each); /* never NULL */
void buf_reserve(Buf *b, size_t n);
void buf_byte(Buf *b, uint8_t byte);
void buf_bytes(Buf *b, const void *data, size_t n);
void buf_varint(Buf *b, uint64_t v);
void buf_str(Buf *b, const char *s, size_t n);   /* str payload: length and bytes */
uint64_t read_varint(const uint8_t **p, const uint8_t *end, bool *ok);
uint64_t hash_bytes(const void *data, size_t n, uint64_t seed);

/* Hashes to ids (0: not there yet; the caller stores one). */
typedef struct {
    uint64_t *keys;
    uint32_t *ids;
    size_t used, size;
    bool is_apart; /* its memory is none of the program's allocator: see memory_apart_small() */
} IdMap;
uint32_t *idmap_slot(IdMap *map, uint64_t key);

/* ---- value.c ---- */
typedef struct {                                 /* where type ids are defined: each log counts its own */
    Log *log;
    PyObject *types;                             /* record: list, id - 1 -> type object */
    uint64_t *hashes; size_t count, size;
    struct TypeName *names; size_t defined;      /* replay: what the log has defined so far */
    bool is_apart;                               /* see memory_apart_small() */
} TypeTable;
extern TypeTable event_types, world_types;
/* Appends `value` to b. Arguments may hold anything (what is not data is named by its type); results must be data.
   Returns 0, or -1 when a result is not data (b is left as it was; no exception set). `args` serves references to arguments. */
enum { ENCODE_RESULT = 0, ENCODE_ARGUMENT = 1 };
int value_encode(Buf *b, PyObject *value, int how, TypeTable *types, PyObject *const *args, Py_ssize_t nargs);
int value_encode_exception(Buf *b, TypeTable *types, PyObject *const *args, Py_ssize_t nargs); /* takes the exception set */
PyObject *value_decode(const uint8_t **p, const uint8_t *end, TypeTable *types, PyObject *const *args, Py_ssize_t nargs);
int value_prepare(void);
bool value_skip(const uint8_t **p, const uint8_t *end);
int types_define(TypeTable *types, const uint8_t **p, const uint8_t *end); /* reads one TYPE record */
/* ---- draws.c: random numbers and readings of the clock, in the order in which a replayed program asks for them ---- */
void draws_prepare(bool is_reported, uint64_t number); /* `number`: other random numbers than recorded; 0: as recorded */
void draws_install(PyTypeObject *generator);     /* of _random */
void draws_seeded(PyObject *generator, bool is_from_outside);
extern bool draws_are_kept;                      /* only in a replay */
void draws_crossed(const Gate *g);               /* if they are kept */
PyObject *draws_changed(const Gate *g, PyObject *result);
/* ---- lenient_data.c: data files that are read where they lie today ---- */
bool data_call(Gate *g, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject **result);
int data_open(PyObject *file, PyObject *mode);
/* ---- directories.c: a directory entry is made from name and path ---- */
void directories_install(PyObject *posix);
extern PyTypeObject *direntry_type;
PyObject *direntry_make(PyObject *name, PyObject *path);
PyObject *direntry_name(PyObject *entry);        /* borrowed */
PyObject *direntry_path(PyObject *entry);        /* borrowed */
int file_fd(PyObject *fileio);                   /* -2: not a FileIO; -1: closed */
int socket_fd(PyObject *socket);                 /* -2: not a socket; -1: closed */

/* ---- site.c ---- */
uint32_t site_here(Gate *g, uint64_t *hash);     /* record: id (defines it when new); replay: 0, with the hash */
int site_define(const uint8_t **p, const uint8_t *end);  /* replay: reads one SITE record */
int code_define(const uint8_t **p, const uint8_t *end);  /* replay: reads one CODE record */
void sites_forget_definitions(void);                     /* they are read once more, from the first one */
uint64_t site_recorded_hash(uint32_t id);
int site_recorded_gate(uint32_t id);
unsigned site_recorded_shape(uint32_t id);
void site_forget_code(void *extra);                /* the free function of core.code_extra */
int frame_place(_PyInterpreterFrame *frame);     /* as f_lasti, but the same whether it is traced or not */
bool site_hear_of_end(PyCodeObject *code);         /* stacks_forget() will be called when it dies */
uint64_t hash_text(PyObject *text, uint64_t seed);

bool code_is_library(PyCodeObject *code);          /* it came with the interpreter, or was installed; codes.c */
uint64_t code_identity(PyCodeObject *code);        /* hash of file, qualified name and first line */

/* ---- codes.c ---- */
typedef struct CodeFacts {
    struct CodeFacts *next;
    PyCodeObject *code;
    uint64_t hash;       /* code_identity() */
    uint64_t *cells;     /* one for each code unit, or NULL: the step clock's */
    bool breaks_at_start;    /* a breakpoint is at the first line of each activation */
    bool is_library;     /* of the standard library, or installed */
    bool is_importers;   /* Python of the importer itself: neither its lines nor its ticks count */
    bool has_run;        /* it began, or ran a line, while the step clock ran */
    uint32_t raise_id;   /* raises.c: from 1; 0: not met yet */
    uint32_t course_hash; /* course.c; 0: not met yet */
    uint32_t trace_id, inside_id; /* trace.c: from 1; 0: not met yet */
} CodeFacts;
typedef struct {
    void (*born)(CodeFacts *), (*dies)(CodeFacts *); /* may be NULL */
} CodeWatcher;
void codes_watch(CodeWatcher watcher);           /* before the first code_facts() */
void codes_each(void (*visit)(CodeFacts *));
extern bool codes_command; /* the program is a command (-c): "<string>" is its own code */
extern CodeFacts *code_last;
CodeFacts *code_facts_find(PyCodeObject *code);
static inline CodeFacts *
code_facts(PyCodeObject *code)
{
    return code_last && code_last->code == code ? code_last : code_facts_find(code);
}
/* Calls `visit` for each run of code units with one line (-1: none). */
void code_lines(PyCodeObject *code, void (*visit)(void *to, int unit, int units, int line), void *to);

/* ---- listen.c ---- */
/* LISTEN_LINE_TICKS: lines tick too (on 3.11 they do anyway). */
enum { LISTEN_LINES = 1, LISTEN_TICKS = 2, LISTEN_LINE_TICKS = 4, LISTEN_RAISES = 8, LISTEN_RETURNS = 16 };
int listen_prepare(void);                        /* before the program begins, if it may be needed */
int listen_to(unsigned what);                    /* 0: to nothing */
void listen_switch(void **leaves, void **comes); /* another lane runs: what is kept for each thread of the interpreter */
void listen_started(PyThreadState *ts);          /* a thread of the interpreter is new; may be NULL */
unsigned listening_to(void);
int listen_to_instructions(_PyInterpreterFrame *frame); /* of its code, from here on; the process is a throw-away one */
void listen_library_loaded(void);                /* an extension module is new in the process */

/* ---- engine.c; the rest of it is in engine.h ---- */
typedef struct {
    bool is_on;      /* this replay is one that the debugger travels through */
    bool diverting;  /* this process answers a question by running Python of its own, and ends after it */
    int fd;          /* of the socket to the debugger */
} Engine;
extern Engine engine;
int engine_prepare(PyObject *asked);             /* before the step clock */
void engine_take_clock(void);                    /* after it */
void clones_library_loaded(void);                /* an extension module is new, or the first lane begins */
void *memory_apart_small(size_t n);                    /* the same in small; never given back */
void engine_idle(void);                          /* ends the process if nobody listens any more */
void *memory_apart(size_t n);                     /* memory that the kernel gives when it is used; apart from the program's */
bool engine_line(_PyInterpreterFrame *frame);    /* true: stand here */
typedef struct {
    PyObject *type, *value;
    _PyInterpreterFrame *frame; /* that raises it */
    int lasti;
    bool is_again;  /* it had been raised before: `raise error` in a handler, or of an exception that was kept */
} Raise;
extern bool course_is_on;                        /* course.c */
void course_line(_PyInterpreterFrame *frame, CodeFacts *facts, int unit);
void engine_raised(const Raise *raise);          /* from listen.c */
void engine_uncaught(PyObject *type, PyObject *value);        /* it ends the program */
void engine_report_uncaught(Buf *b);
void engine_output(int stream, const void *data, size_t n);
void engine_report_written(Buf *b);
void engine_report(Buf *report);                 /* in place of report_send(); the replay ends */
void engine_exit(int status);
_Noreturn void engine_would_wait(const char *what); /* in a diversion */
_Noreturn void engine_asks_outside(const char *what); /* the same: C code asks, which knows no exceptions */
PyObject *engine_outcome(Gate *gate);            /* the same: of a crossing; raises */
void points_crossed(void);                       /* an event has been consumed, inside its crossing */
extern bool points_are_due;                      /* at the end of the crossing: */
void points_stand(void);
void path_instruction(_PyInterpreterFrame *frame); /* from listen.c */
void path_return(_PyInterpreterFrame *frame, PyObject *value); /* NULL: it yields, or raises */
void watch_start(_PyInterpreterFrame *frame);    /* a function begins */
void judge_start(_PyInterpreterFrame *frame);    /* the same */
void watch_look(_PyInterpreterFrame *frame);     /* frame: a function returns; NULL: another lane goes on */
void watch_resume(_PyInterpreterFrame *frame);   /* a generator or coroutine goes on; as returns, if these are listened to */
bool watch_is_set(void);
bool watch_looks_at_returns(void);
void watch_report(Buf *b);

/* ---- activations.c ---- */
typedef struct {
    _PyInterpreterFrame *frame;
    PyCodeObject *code;
    uint64_t started; /* count of lines when it was started; 0: before the clock */
    uint64_t last, before; /* its last line, and the one before that, as counts; 0: none */
    int last_unit, before_unit, first_line;
    bool is_generator; /* it lies in an object, which may die */
    bool is_passed; /* since its last line an exception came out of what it called, or was thrown into it */
} Activation;
typedef struct {
    uint64_t last, before; /* the lane's last line, and the one before that */
} LaneLines;
extern bool activations_are_kept;
extern LaneLines *lane_lines;                    /* of the lane that ran the last line */
const LaneLines *lane_lines_of(int lane);        /* NULL: it has run none */
void activation_start(_PyInterpreterFrame *frame);
bool activation_line(_PyInterpreterFrame *frame, PyCodeObject *code, int unit); /* whether it is its first one */
const Activation *activation_find(_PyInterpreterFrame *frame); /* NULL: nothing is known of it */
const Activation *activation_at(const _PyInterpreterFrame *frame); /* the same of one that may have ended */
const Activation *activation_started(uint64_t started, int first_line); /* the frame may have ended, unless it is a generator's */
const Activation *activation_next(const Activation *a); /* NULL: the first one, or there are no more */
void activation_forget(_PyInterpreterFrame *frame);
void activation_pass(_PyInterpreterFrame *frame);             /* an exception comes to it from elsewhere; NULL: nothing is done */
bool activation_passes(_PyInterpreterFrame *frame);           /* whether one came since its last line; asked once for each */

/* ---- lanes.c; the rest of it is in lanes.h ---- */
int lanes_begin(void);
int lane_number(void);                           /* of the one that runs; 0: the main lane */
void lanes_obey(uint64_t seed, bool chaos, uint64_t mean, bool stop); /* mean: of a slice, in ticks; 0: the usual one */
void lanes_count_from_start(void);               /* ticks, though there is one lane */
void lanes_expect_nothing(void);                 /* replay: no preemption and no handler is due */
void lanes_crossed(void);                        /* an event has been recorded, or consumed */
void lanes_expect_preemption(uint64_t ticks);
uint64_t lanes_place(void);                      /* how far the running lane has computed */
bool lanes_expect_place(uint64_t ticks);         /* replay: a handler is due there; false: now */
void lane_switch_inside(const uint64_t numbers[3]); /* replay: in the middle of a crossing; numbers of the LANE record */
void libcalls_module_loaded(const char *name);

/* ---- relink.c ---- */
struct dl_phdr_info;
typedef struct {
    const char *name;
    void *function;
} Relink;
typedef struct {
    const Relink *functions; /* the last one has no name */
    bool only_interpreter;   /* in the library (or program) that the interpreter itself is; else in all of them */
    bool (*is_wanted)(const struct dl_phdr_info *library); /* in libraries of which this is true; NULL: in any */
    const char *only_named;  /* in libraries whose file's name begins so; NULL: in any */
    uintptr_t seen[1024];    /* where libraries lie that have been looked at; more than these are looked at each time */
    int seen_count;
} Relinking;
void relink(Relinking *wanted);                  /* those that are there now call these from now on */

/* ---- stepclock.c ---- */
typedef struct {
    uint64_t count;      /* lines since it was started; the one that is about to run is counted */
    uint64_t point;      /* points passed in this line; see points.c */
    uint64_t last_own;   /* count at the last line that is not of a library */
    uint64_t digest;     /* of the path: code objects and instructions */
    uint64_t stop_at;    /* the count at which `stop` is called */
    void (*stop)(void);  /* before the line runs; may return: then the program goes on */
    bool is_on;
    bool looks;          /* each line is shown to engine_line() */
    int broken;          /* the breakpoint that was met at this line, from 1; 0: none */
    int fd, steps_fd;    /* of the report, of the steps for each event; -1: the replay has no clock */
} StepClock;
extern StepClock stepclock;
int stepclock_prepare(PyObject *asked);
void stepclock_begin(void);                      /* the program begins */
void stepclock_crossed(void);                    /* an event has been consumed */
void stepclock_line(_PyInterpreterFrame *frame); /* from listen.c */
void stepclock_start(_PyInterpreterFrame *frame);
bool stepclock_wants_starts(void);
void stepclock_report(bool stopped);             /* once, at the end */
void stepclock_drop_breaks(void);
/* function: "", or its first line is meant. The texts must stay as long as the breakpoint. */
bool stepclock_add_break(const char *file, const char *function, int line, uint64_t stop_at); /* false: there are too many */
void stepclock_report_breaks(Buf *b);            /* a key and its value */

/* ---- ticks.c ---- */
typedef void (*TickHandler)(void);
int ticks_on(uint64_t slice, bool by_line, TickHandler used_up); /* counting goes on from where it stood */
int ticks_off(void);
void ticks_slice(uint64_t slice);                /* the handler's last act: ticks until it is called again */
uint64_t ticks_count(void);
void ticks_tick(_PyInterpreterFrame *frame);     /* from listen.c */
void ticks_crossing(void);                       /* from cross.c */
extern bool ticks_are_counted;
void ticks_load(uint64_t slice, int fd);         /* only in tests: what is reported, and where */
void ticks_begin(void);
void ticks_crossed(void);
void ticks_report(void);
extern bool ticks_are_reported;                  /* only in tests */

/* ---- trace.c ---- */
extern bool trace_is_asked, trace_is_on;         /* on: it has not ended */
int trace_load(const char *directory, uint64_t limit); /* limit: of each file, in bytes */
void trace_begin(void);
void trace_tick(_PyInterpreterFrame *frame, CodeFacts *facts);
void trace_crossed(void);
void trace_inside(_PyInterpreterFrame *frame);   /* from listen.c: a function begins */
void trace_report(void);

/* Each if it is asked for. */
static inline void
clocks_crossed(void)
{
    if (stepclock.fd >= 0)
        stepclock_crossed();
    if (engine.is_on && stepclock.is_on)
        points_crossed();
    if (ticks_are_reported)
        ticks_crossed();
    if (trace_is_on)
        trace_crossed();
}
static inline void
clocks_report(void)
{
    stepclock_report(false);
    ticks_report();
    trace_report();
}

/* ---- report.c: values as format.md has them, without Python's memory ---- */
void report_dict(Buf *b, uint64_t items);
void report_list(Buf *b, uint64_t items);
void report_key(Buf *b, const char *key);
void report_number(Buf *b, int64_t number);
void report_text(Buf *b, const char *text, size_t n);
size_t put_character(uint8_t *to, Py_UCS4 c);   /* as UTF-8, at most 4 bytes; returns how many */
void report_name(Buf *b, PyObject *text);        /* UTF-8 that keeps lone surrogates */
PyThreadState *report_thread(void);                /* the running lane's, NULL if it has none, or none any more */
void report_stack(Buf *b);                       /* list of (file, line, qualified name), innermost first */
void report_send(int fd, Buf *b);                /* writes it all, and frees it (a fixed one is empty then) */

/* ---- outcome.c ---- */
int outcome_prepare(PyObject *boot);
void outcome_uncaught(PyObject *type, PyObject *value, PyObject *traceback); /* it ends the program; borrowed */
void outcome_script_ends(void);                  /* the script's code has come to its end; an exception may be set, and stays */
bool outcome_is_known(void);
void outcome_told(PyObject *text);               /* what the program was replayed for is over */
void ending_report(void);                        /* to the launcher, once */

/* ---- world.c ---- */
int world_moved(PyObject *sources);              /* replay: directories that lie elsewhere now, (recorded, today's) */
int world_install(void);
int world_load(void);                            /* replay: reads the world log */
PyObject *world_fixed(const char *op, const char *key, PyObject *value); /* record: notes value; replay: gives the noted one */
PyObject *world_fixed_if_known(const char *op, const char *key, PyObject *value);
PyObject *world_content(const char *path);       /* new bytes object: content of a source file as the importer sees it */

/* ---- content.c ---- */
void content_forget(int fd);                     /* the number is free, or is another file's */
/* ---- fileio.c ---- */
void fd_place(int fd, int copy_of);              /* replay: puts a placeholder at this number */
void fd_place_socket(int fd);                    /* replay: one that is a socket, connected to nothing */
bool fd_is_ours(int fd);
enum { MOST_OURS = 16 };
int fd_ours(const int **fds);                    /* their numbers; returns how many there are */
int fd_keep(int fd);                             /* moves a descriptor of ours to a high number, remembers it */
void fd_opened(int fd, int copy_of);             /* bookkeeping: fd is new; copy_of >= 0: a copy of that one */
void fd_closed(int fd);
int fd_stream(int fd);                           /* 1 or 2 if fd is the program's original stdout or stderr, else 0 */
void stream_show(int fd, const void *data, size_t n); /* replay: shows what was written to a standard stream */
bool content_encode(Buf *b, int fd, const void *data, size_t n); /* record: bytes of a large file as a reference; false: inline */
int content_open(int fd);                        /* replay */
const uint8_t *content_at(uint64_t offset, uint64_t n); /* replay: NULL if out of range */

/* ---- signals.c ---- */
void signal_delivered(void);                      /* cross.c: the expected handler has run */
int signals_prepare(void);
void signals_inside(int signum);                 /* replay: a recorded handler runs inside the crossing */
void signals_expect(int signum, const Place *place); /* replay: a handler runs there */
void signals_look(void);                         /* replay: that place is near */
int signals_expected_no_more(void);              /* lenient: which handler was due */
extern bool signals_wait;                        /* replay, 3.11: until the trace function is called */
void signals_go_on(void);
void raised_prepare(void);                       /* raised.c */
void *raising_call(const char *name);            /* what stands for this function of the C library's; NULL: itself */
void raising_calls_relink(void);
uint64_t signals_unsure(void);                   /* replay: the event before which a handler's place was ambiguous; 0: none was */

/* ---- warned.c: warnings of gated functions ---- */
enum { CALLBACK_WARNING = 3, CALLBACK_READLINE }; /* kinds of a CALLBACK record; those before are of TLS, four are of readline */
extern bool warned_inside;                       /* record: the crossing that is open has issued one */
int warned_prepare(void);
void warned_crossed(void);                       /* that crossing ends */
void warned_again(Crossing *c, PyObject *recorded); /* replay; an exception may be set after it */

/* ---- readline.c ---- */
void readline_prepare(void);
void readline_called_back(int kind, PyObject *recorded); /* replay */
void readline_typed(PyObject *line);             /* replay: input() has got this line */

/* ---- perturb.c: for tests, off otherwise ---- */
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

/* ---- identity.c, reprs.c, identity_types.c ----
 * What is asked for inside a crossing takes no serial of the program's; what the tool itself does asks for nothing. */
int identity_install(bool real_ids);             /* at depth 0, before the program begins */
uintptr_t identity_address(PyObject *o);         /* what id() says */
Py_hash_t identity_hash(PyObject *o);
void *identity_memory(uintptr_t address);        /* the real address, of a living object; else NULL */
uintptr_t identity_known_address(const void *memory); /* what id() said of the object that begins there; 0: it was not asked for */
bool identity_is_made_up(uintptr_t address);     /* what id() gave for some object, living or dead, or little more */
void identity_share(void);                       /* from now on several interpreters may ask at once */
uint64_t identity_serials(void);                 /* the next one */
void identity_reach(uint64_t serial);            /* the next one is that, if it was less */
bool identity_is_off(void);                      /* id() is left alone */
void identity_watch_end(const void *o);          /* from now on it is seen when what lies there dies */
bool identity_has_ended(void);                   /* whether it has since it was asked last */
void identity_module_loaded(const char *name);
void identity_not_covered(const char *what, const char *of); /* a note */
void addresses_module_loaded(PyObject *module, const char *name);
void *addresses_function(const char *name);      /* what stands for this function of the interpreter's, found by name; NULL: itself */
extern hashfunc hash_in_python;
extern reprfunc repr_in_python;
int identity_types_install(void);
void identity_patch_hash(PyTypeObject *type);
void identity_leave_hash(PyTypeObject *type);
void identity_watch_hash(PyTypeObject *type);    /* of an extension module: its own hash function may fall back to the address */
void identity_patch_repr(PyTypeObject *type);

/* ---- marks.c ---- */
void mark_asked(PyObject *args);                 /* the program names the place where it stands */

/* ---- heap_record.c ---- */
uint64_t heap_taken(void);                       /* the number of the latest snapshot; 0: there is none */
extern uint64_t heap_due;
void heap_crossed(void);                         /* an event has been recorded, and core.crossings has come to heap_due */
void heap_asked(PyObject *args);                 /* the program asks for a snapshot */
void heap_uncaught(PyObject *value);             /* an exception ends the program */
void heap_unraisable(PyObject *told);            /* what sys.unraisablehook is told */
pid_t clone_bare(unsigned long flags);          /* as fork(), of which the program sees nothing; clones.c */
void heap_record_begin(PyObject *asked);         /* before the program begins; asked: see replaydbg/record/snapshots.py */

/* ---- heap_since.c; the rest of it is in heap.h ---- */
extern bool since_is_kept;
void since_freed(uintptr_t block);
int heap_prepare(void);                          /* heap_types.c; before the program begins */

/* ---- limit.c ---- */
void limit_begin(uint64_t after, uint64_t between);
void limit_check(void);

/* ---- memory.c ---- */
bool memory_is_there(const void *at);            /* whether the page of `at` can be read */
void memory_copy(uint8_t *to, const uint8_t *from, size_t n); /* what cannot be read is left as it is in `to` */

/* ---- shortage.c ---- */
void shortage_begin(void);
bool shortage_ask(uint64_t size);                /* before memory is taken: false, in a replay, where the program did not get it */
void shortage_met(uint64_t size);                /* record: right after asking, it did not get it */
void shortage_expect(uint64_t size, uint64_t count);

/* ---- maps.c, shared.c ---- */
extern const HandlerEntry map_handlers[];
typedef enum { MAP_IS_PRIVATE, MAP_IS_READ, MAP_IS_WRITTEN } MapKind;
void maps_module_loaded(PyObject *module, const char *name);
/* Each map that the program makes, in the same order in both modes. Returns the copy with which it will be compared, or NULL. */
void shared_part(void);                          /* this process is a clone: what it writes is its own */
const uint8_t *shared_map_made(PyObject *map, int fd, uint64_t file, MapKind kind, size_t known);
uint64_t shared_file(int fd);
uint8_t *shared_map_data(PyObject *map, size_t *size);
void shared_map_extend(PyObject *map, size_t at, const uint8_t *data, size_t n);
int shared_descriptor(uint64_t file);
void shared_map_gone(PyObject *map);
void shared_process_starts(void);                /* before there can be a child that shares our memory */
void shared_end(void);                           /* nothing is logged any more */
extern bool shared_watching;
extern uint64_t shared_written;
void shared_look(bool before, unsigned flags);   /* record: logs what has changed; flags of the crossing's gate */
bool shared_change(const uint8_t **p, const uint8_t *end); /* replay: one MEMORY record without its head */
static inline void
shared_crossing(bool before, unsigned flags)
{
    if (__builtin_expect(shared_watching, 0))
        shared_look(before, flags);
}

/* ---- process.c, boot.c, guard.c ---- */
void process_module_loaded(PyObject *module, const char *name);
int boot(const char *boot_file, int boot_fd);    /* by its path or, if that is NULL, its descriptor; never returns but with an exception set */
void network_module_loaded(PyObject *module, const char *name);
int standins_module_loaded(PyObject *module, const char *name);
void tls_module_loaded(PyObject *module, const char *name);
void tls_called_back(Crossing *c, PyObject *recorded); /* replay: a callback of the program runs inside this crossing */
int guard_record(void);                          /* audit hook that notes uncovered acts */
void guard_interactive_begins(void);             /* the recording ends here */
int guard_replay(void);                          /* audit hook that refuses, and the second filter */

#endif
