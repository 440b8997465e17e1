/* What every part of the core stands on: its state, bytes, memory, descriptors, and the ways out of the process. One extension, one state,
 * one program: the core is never unloaded.
 *
 *   core.c          the state; modes; divergence
 *   bytes.c         buffers, numbers, hashes
 *   report.c        values that the launcher gets
 *   memory.c        memory that may not be readable, and memory apart from the program's
 *   without_proc.c  what /proc shows, by other means
 *   descriptors.c   the core's own descriptors
 *   leave.c         out of the process
 *   relink.c        functions that C libraries call, replaced
 *   clones.c        copies of a process
 */
#ifndef REPLAYDBG_CORE_H
#define REPLAYDBG_CORE_H
#include "base/compat.h"
#include "base/constants.h"
#include "base/frames.h"
#include "base/recursion.h"
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <ucontext.h>

#define EXIT_DIVERGED 4
#define EXIT_DEADLOCK 5      /* the program was to be ended there */
#define EXIT_NOT_STARTED 126 /* the log could not be made: the launcher finds out why, and says so */
typedef enum { OBSERVE, RECORD, REPLAY } Mode;

/* How a crossing goes: chosen whenever one of the modes changes. */
typedef enum { OBSERVED, RECORDED, REPLAYED, LENIENTLY, DIVERTED, DIVERTED_LENIENTLY, WAYS } Way;
typedef struct Gate Gate;
typedef struct Crossing Crossing;
typedef struct {
    Mode mode; /* set_mode() */
    Way way;
    int depth; /* > 0: inside a crossing, nothing is a crossing */
    /* 0; while a question of the user's is asked at a line: the depth at which it runs, whose crossings are refused */
    int ground;
    PyThreadState *tstate; /* of the lane that runs */
    int lane;              /* its number; 0: the main lane */
    unsigned forks;        /* how many forks this process is the child of */
    int lanes_made;
    bool interrupted;    /* KeyboardInterrupt ended the program */
    bool terminal_input; /* stdin and stdout were terminals at start */
    bool redigests;      /* replay: digests of what leaves the program are written into the log, not compared */
    bool tells;          /* replay: what is digested, and how it ends, is written to told_fd, too */
    bool current_source; /* replay: sites need not agree, the importer sees the real files */
    uint64_t crossings;  /* events so far */
    uint64_t stop_at;    /* replay: stand still before this event; 0: run to the end */
    uint64_t answers_to; /* lenient: no later event than this is an answer; 0: all are */
    uint64_t end_reason; /* replay: why the recording stopped early, from the log's header */
    int out_fd[3];       /* replay: real standard streams, high numbers */
    int report_fd;       /* replay: where a divergence is described */
    int told_fd;         /* replay: see ending/told.c */
    int null_fd;         /* replay: what placeholders are copies of */
    int socket_fd;       /* replay: the same for sockets, whose objects accept nothing else */
    char *live_dir;      /* record: absolute path of the live directory */
    Py_ssize_t code_extra;
    /* record: the collector's state is logged when the number of events so far has none of these bits */
    uint64_t compare_every;
    bool follows, followed; /* replay: the recording is still being written; it was when the replay began */
    bool lenient;           /* replay: of edited code, see lenient/lenient.h; set_lenient() */
    bool edited;            /* then: it is known to be */
    bool importing;         /* record: the importer's own work goes on, at which no handler of a signal runs */
    bool shares_memory;     /* record: other processes may write into maps of the program */
    bool outcome_is_known;  /* replay: how the program ended has been noted */
    uint64_t heap_due;      /* record: at this event a snapshot of the heap may be due */
    uint64_t killed_at;     /* record, for the tests: SIGKILL after so many events; 0: none */
    bool strict;            /* replay: that it differs is a divergence at once; the tests want it so */
    /* replay: it becomes a recording where its log is used up, or before event `live_at` if that is not 0; it stays
     * set until all that comes with it is done, see resume/live.c */
    bool goes_live;
    bool is_planned;                 /* it only reports what it would do, and ends; the fence is up */
    uint64_t live_at, live_switches; /* live_switches: and after so many switches of lanes behind the event before it */
    uint64_t switches_passed;        /* of these */
    bool is_resumed;                 /* record: it began as a replay */
    uint64_t live_since;             /* record, then: events before; the next call may have been made already */
    int settled;                     /* record, then: calls whose outcome is known without making them */
    /* replay: where it is to become a recording it stands still, and copies of it do so instead, see future/future.h */
    bool has_futures;
    bool is_future; /* this process is such a copy: nothing leaves it, and its time is simulated */
} Core;

/* core.c */
extern Core core;
typedef struct {
    bool is_on; /* this replay is one that the debugger travels through */
    /* this process answers a question by running Python of its own, and ends after it; set_diverting() */
    bool diverting;
    bool point_is_due; /* a question is asked at the end of this crossing */
    int fd;            /* of the socket to the debugger */
} Engine;
extern Engine engine;
void set_mode(Mode mode);
void set_lenient(bool is_lenient);
void set_diverting(bool is_diverting);

/* leave.c */
/* Ends a replay: writes the report that the launcher turns into the message, flushes nothing, exits with EXIT_DIVERGED.
 */
_Noreturn void leave_process(int status); /* _exit() of the core's own, which the fence lets through */
/* in unused arguments of the core's own system calls: the filter of a replay lets these through */
uint32_t own_token(void);
void own_token_set(uint32_t number);

/* descriptors.c */
extern PyTypeObject *fileio_type, *socket_type; /* NULL until their modules are loaded */

/* core.c */
_Noreturn void diverge(const char *kind, Gate *gate, Crossing *c, const char *detail);

/* What higher parts register in boot/parts.c. */
typedef struct {
    /* reports it; does not come back */
    void (*diverged)(const char *kind, Gate *gate, Crossing *c, const char *detail);
    void (*waits_for_log)(void);       /* a replay that runs behind its recording */
    void (*log_has_ended)(void);       /* nothing is logged any more */
    int (*world_may_have_grown)(void); /* a replay that runs behind its recording: of what the importer saw */
    void (*copied)(void);              /* this process is a copy */
    void (*exits_apart)(int status);   /* a process of the debugger's: engine_exit() */
    void (*reports_ending)(void);      /* to the launcher, once */
    /* its own work is done, with this result or an exception; steals it, and returns what it is now */
    PyObject *(*importer_has_worked)(PyObject *result);
} BaseHooks;
extern const BaseHooks base_hooks;

/* bytes.c */
uint64_t monotonic_ns(void);

/* A growing buffer of our own memory (never the program's allocator). */
typedef struct Buf {
    uint8_t *data;
    size_t used, size;
    bool is_fixed; /* it has all the memory that it will ever have, and keeps it */
} Buf;
void *grown(void *old, size_t count, size_t each); /* never NULL */
/* Of the start parameters: 0 or NULL if it is not there. The bytes are a copy. */
uint64_t boot_number(PyObject *boot, const char *key);
char *boot_bytes(PyObject *boot, const char *key);
void buf_reserve(Buf *b, size_t n);
void buf_byte(Buf *b, uint8_t byte);
void buf_bytes(Buf *b, const void *data, size_t n);
void buf_varint(Buf *b, uint64_t v);
void buf_str(Buf *b, const char *s, size_t n); /* str payload: length and bytes */
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

/* descriptors.c */
int file_fd(PyObject *fileio);   /* -2: not a FileIO; -1: closed */
int socket_fd(PyObject *socket); /* -2: not a socket; -1: closed */
/* of a buffered or text file of the interpreter's own types, which have another file inside, at this place */
void wrapper_known(PyTypeObject *type, Py_ssize_t inner);
int wrapper_fd(PyObject *o); /* -2: none of these, or on something else than a FileIO; -1: closed */

/* memory.c */
void *memory_apart_small(size_t n); /* the same in small; never given back */
/* memory that the kernel gives when it is used; apart from the program's */
void *memory_apart(size_t n);
struct dl_phdr_info;
typedef struct {
    const char *name;
    void *function;
} Relink;

typedef struct {
    const Relink *functions; /* the last one has no name */
    bool only_interpreter;   /* in the library (or program) that the interpreter itself is; else in all of them */
    bool (*is_wanted)(const struct dl_phdr_info *library); /* in libraries of which this is true; NULL: in any */
    const char *only_named;                                /* in libraries whose file's name begins so; NULL: in any */
    uintptr_t seen[1024]; /* where libraries lie that have been looked at; more than these are looked at each time */
    int seen_count;
} Relinking;

/* relink.c */
void relink(Relinking *wanted); /* those that are there now call these from now on */

/* texts.c */
#define LONGEST_NAME 4096
bool text_is(PyObject *text, const char *other);         /* false: it is no str, or another one */
size_t text_copy(char *to, size_t size, PyObject *text); /* and a zero; returns how many bytes; cut if too long */

/* report.c */
void report_dict(Buf *b, uint64_t items);
void report_list(Buf *b, uint64_t items);
void report_key(Buf *b, const char *key);
void report_number(Buf *b, int64_t number);
void report_text(Buf *b, const char *text, size_t n);
size_t put_character(uint8_t *to, Py_UCS4 c); /* as UTF-8, at most 4 bytes; returns how many */
void report_name(Buf *b, PyObject *text);     /* UTF-8 that keeps lone surrogates */
PyThreadState *report_thread(void);           /* the running lane's, NULL if it has none, or none any more */
void report_stack(Buf *b);                    /* list of (file, line, qualified name), innermost first */
void report_send(int fd, Buf *b);             /* writes it all, and frees it (a fixed one is empty then) */

/* descriptors.c */
bool fd_is_ours(int fd);
enum { MOST_OURS = 512 };
int fd_ours(const int **fds);    /* their numbers; returns how many there are */
int fd_keep(int fd);             /* moves a descriptor of ours to a high number, remembers it */
void fd_leave_room(int numbers); /* so many above those that are kept from now on stay free */
void fd_forget(int fd);          /* closes one of ours */
#define ENGINE_CLONE ((unsigned long)(CLONE_PARENT | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID))

/* clones.c */
void clones_prepare(void);
pid_t clone_bare(unsigned long flags); /* as fork(), of which the program sees nothing */
pid_t clone_here(void);                /* the same, of a process of the debugger's, or with futures */
void clone_begin(void);                /* in the clone */
pid_t clones_pid(void);                /* what a copy believes to be; 0: there are none */
void *clones_getpid(void);             /* what getpid() is in a copy; NULL: there are none */
void clones_library_loaded(void);      /* an extension module is new, or the first lane begins */

/* memory.c */
bool memory_is_there(const void *at);                         /* whether the page of `at` can be read */
void memory_copy(uint8_t *to, const uint8_t *from, size_t n); /* what cannot be read is left as it is in `to` */
bool memory_may_be_address(uint64_t word);                    /* of an object: then it is another one in a replay */

/* without_proc.c */
/* For the launcher: methods of the module. */
PyObject *without_proc_descriptors(PyObject *module, PyObject *unused);
PyObject *without_proc_environment(PyObject *module, PyObject *unused);

/* In bytes: the address space of this process, which must have no other thread. */
uint64_t without_proc_address_space(void);

/* In bytes: about the most address space that this process had, which may have threads; 0: unknown. */
uint64_t without_proc_peak(void);

/* Whether a descriptor leads to a file that is made to be shared as memory: of memfd_create() or shm_open(). */
bool without_proc_is_memory(int fd);

/* relink.c */
bool relink_leaves_alone(const struct dl_phdr_info *library); /* the core, the C library and their like */
bool relink_is_interpreter(const struct dl_phdr_info *library);

#endif
