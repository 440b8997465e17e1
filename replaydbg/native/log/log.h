/* The memory-mapped log, and the copies of large files beside it.
 *
 *   log.c        written and read
 *   durable.c    synchronised for power cuts
 *   content.c    large files
 *   group.c      children that the program forks, each with a log of its own
 *   started.c    programs that it starts, and how processes end
 *   pids.c       process ids of a group that goes on in other processes
 *   transfers.c  what a process of a group sends and receives; endpoints.c: through which ends; digest.c: of the bytes
 *   members.c    what processes of a group do to each other without bytes: waits and signals
 *   locks.c      locks of files by which they wait for each other
 */
#ifndef REPLAYDBG_LOG_H
#define REPLAYDBG_LOG_H
#include "base/core.h"
#include <signal.h>

typedef struct {
    uint8_t *base;            /* start of the mapping */
    uint8_t *wp, *limit;      /* record: where the next byte goes; end of what is allocated */
    const uint8_t *rp, *rend; /* replay: next byte to read; end of the log */
    size_t released;          /* bytes at the start whose pages have been unmapped */
    char *path;
    uint64_t max_size; /* bytes; 0: no limit */
    int file;          /* record: it is a file that has no path; 0: it has */
    bool failed;
} Log;

/* log.c */
typedef struct {
    sigset_t before;
    bool is_pending;
} FileLimit;
void file_limit_hold(FileLimit *held);    /* before a file of ours grows: the program gets no SIGXFSZ for it */
void file_limit_release(FileLimit *held); /* after it; errno stays */
extern Log event_log, world_log;
int log_create(Log *log, const char *path, uint64_t max_size);
int log_open(Log *log, int fd); /* for replay; maps it, closes fd */
typedef struct {                /* where a map is moved to: so others come to lie where they would have */
    uint8_t *at;
    size_t size;
} Room;
/* replay: goes on with another log, that of a child; closes fd. -1: their bytes from `first` to `last` are not the same */
int log_replace(Log *log, int fd, uint64_t first, uint64_t last, Room to);
const uint8_t *log_first_record(const Log *log);
#define MOST_READ ((ptrdiff_t)16 << 20) /* bytes already read that a replay keeps in memory */
void log_release_read(void);            /* replay: unmaps what was read */
/* replay: waits until the next event is there, or there will be none */
void log_follow(void);
/* A standby of which images are made shares it with its launcher: replaydbg/resume/images/page.py has the same. */
typedef struct {
    uint64_t events;     /* which this process has replayed */
    uint32_t has_ended;  /* of the launcher: nothing is added to the log any more */
    char socket[108];    /* at which the launcher waits for this process, once it is due to go live */
    char live_dir[3976]; /* in which the new recording is made */
} StandbyPage;
_Static_assert(sizeof(StandbyPage) == 4096, "it is a page");
void log_follow_page(StandbyPage *page); /* the log ends when the launcher says so */
void log_follow_program(int fd); /* the pidfd of the program: its log ends when it does; -1: when the log is sealed */
int write_whole_file(const char *path, const uint8_t *data, size_t n); /* -1: it cannot be written */
/* where n bytes may be written, or NULL: logging has ended (mode is OBSERVE now) */
uint8_t *log_room(Log *log, size_t n);
void log_commit(Log *log, uint8_t *end); /* what lies before `end` is complete */
void log_fail(int reason);               /* logging ends, the program goes on */
void log_fail_by(int error);             /* the same, by an errno */
void log_reason(int reason);             /* noted in the header, while logging goes on; 0 takes it back */
/* the live directory has another name from now on: core.live_dir */
void logs_moved(void);
void log_memory(void);      /* record: notes how much address space the program had at most */
bool log_is_read(void);     /* replay: all events have been used up */
bool log_has_stopped(void); /* replay: nothing is added any more to a log that was followed */
extern bool log_is_timed;
uint64_t log_computed(void);            /* record: us of CPU time since the last record, at least */
void log_not_repeated(uint64_t ns);     /* record: so much of the time passed in what a replay does not do */
uint64_t log_begin(void);               /* ns since the epoch: when the program began */
uint64_t log_cpu_time(void);            /* ns; of the recorded program at its last event */
void log_signal_handled(void);          /* counted in the header, for the launcher */
void log_stop_in_child(void);           /* after fork: the child has no log */
void log_append(Log *log, Buf *record); /* writes and commits a whole record, and frees it */
/* a replay becomes a recording: its logs, of which there are copies in the live directory, are written on behind what
 * was read; -1: they cannot be */
int logs_continue(void);
/* the same of a future, whose events, and modules, go to files without a path; keeps both */
int logs_continue_in(int events, int world);
bool log_world_continues(void); /* a future: something is about to be written of the modules */

/* durable.c */
bool checksum_skip(const uint8_t **p, const uint8_t *end); /* a CHECKSUM record behind its head; false: it is cut off */
extern bool log_is_durable;       /* record: what others see waits until the disk has the log; below: only then */
int durable_begin(void);          /* when the logs are made; -1: errno is set */
int durable_continue(void);       /* a replay becomes a recording: the same, if the log that it has read is durable */
uint64_t log_end(void);           /* bytes of the log so far */
bool log_is_synced(uint64_t end); /* the disk has so much of it, or logging has ended */
void log_sync(void);              /* waits until the disk has all of it; errno stays */
typedef struct {
    int fds[3]; /* -1: nothing is new */
    uint64_t ends[3];
} LogSync;
/* The same in three steps, of which the second may be done by any thread while others go on. */
void log_sync_begin(LogSync *sync);
long log_sync_perform(void *sync); /* an errno */
void log_sync_end(const LogSync *sync, int error);

/* group.c: without a group (the usual case) these do nothing */
int group_open(const char *page, unsigned process); /* record: this process is one of a group */
/* a replay becomes a recording, of a process of a group; its file of transfers has so many definitions; -1: errno is set */
int group_continue(const char *page, unsigned process, uint32_t endpoints, uint32_t addresses);
/* the same of a future: the page and the file of the transfers */
int group_continue_in(int page, int transfers, unsigned process, uint32_t endpoints, uint32_t addresses);
void group_has_no_room(const char *page, unsigned process); /* its logs cannot be made: it runs unrecorded */
bool group_is_on(void);
unsigned group_number(void);    /* this process's row; 0: it is not recorded in a group */
bool group_is_alone(void);      /* no other process was ever about to begin; only where it is on */
void group_fork_begins(void);   /* in the parent, right before: its logs are made */
void group_fork_ended(int pid); /* in the parent, right after; -1: it failed */
bool group_will_record(void);   /* between the two */
bool group_child_begins(void);  /* in any child: its logs, if it has some, take the place of its parent's */
bool group_is_child(void);      /* this process was just forked, and is recorded */

/* pids.c: the program knows a process by the id that it had when it was recorded; itself where there is none such */
void pid_stands_for(pid_t recorded, pid_t today);
pid_t pid_today(pid_t recorded);
pid_t pid_recorded(pid_t today);
void pid_reaped(pid_t today); /* the kernel may give its id to another process from now on */
bool pid_is_past(pid_t id);   /* a recorded one of a process that has another one today: it names no process group */

/* started.c: the same */
void group_lets_join(const char *library); /* record: from now on programs that are Python join, by that library */
bool group_programs_join(void);            /* they do */
char *group_variable(unsigned row);        /* what they find in their environment, NAME=VALUE; to be freed */
char *group_preload(const char *given);    /* the value of LD_PRELOAD, with the one given or NULL; to be freed */
void group_tell(unsigned row);             /* the same in the C environment, for the next program that is started */
/* a program is about to be started, or to replace this one: its row, or 0 */
unsigned group_start_begins(bool replaces);
void group_start_ended(unsigned row, int pid, int status); /* it was; pid 0: it has ended so; -1: it was not */
void group_waited(int pid, int status);                    /* status: exit code, or minus the number of a signal */
void group_ends(int status);                               /* this process, by itself */

/* transfers.c: only in a group */
typedef struct {
    uint64_t length, digest;
    unsigned flags;
    const char *address; /* the other end of a datagram; empty: none */
    uint32_t endpoint;   /* known only now; 0: as it began */
} TransferEnd;
/* A number for the other two; 0: it could not be written. A send takes its ticket here. */
uint64_t transfer_begin(uint32_t endpoint, unsigned flags, int fd);
void transfer_end(uint64_t number, const TransferEnd *end); /* right before its event is committed */
void transfer_undo(uint64_t number);
void transfer_interrupted(uint64_t number); /* the same; what it waited for stays known */
bool transfer_is_own(uint64_t number);      /* this process began it; not: while it was its parent */
void transfer_passes(uint32_t endpoint);    /* a descriptor of it comes or goes with what ends now */

/* digest.c: of bytes that follow those with the digest `before`; of none it is 0 */
uint64_t stream_digest(uint64_t before, const void *data, size_t n);

/* group.c */
#define LONGEST_NAME_OF_CUT 200        /* bytes */
void group_take_cut(const char *name); /* writes down the present value of the clock; without a group it does nothing */

/* endpoints.c */
#define ADDRESS_TEXT 120
void address_text(char text[ADDRESS_TEXT], const void *address, size_t size); /* of a struct sockaddr */
/* Its number; 0: no channel. `stream`: 1 or 2 if it is a standard stream, which has a number anyway. */
uint32_t endpoint_of(int fd, int stream);
bool endpoint_has_messages(int fd); /* each call moves one, which may have an address */
void endpoint_settle(int fd);       /* after a transfer: more may be known */
void endpoint_meet(int fd);         /* a new one, whose peer is there now */
void endpoint_forget(int fd);       /* the number is free, or leads elsewhere */
bool endpoint_is_none(int fd);      /* it is known to be no channel */
/* is new; `value`: with which it was made, -1 if that is not known */
void endpoint_semaphore(const void *handle, const char *name, long value);
uint32_t endpoint_of_semaphore(const void *handle);
void endpoint_sends(void);
void endpoint_sent_to(const void *address, size_t size); /* since the running lane called the one before */
const char *endpoint_was_sent_to(void);                  /* empty: unknown */

/* A replay becomes a recording: what is at that descriptor stands for another end, which keeps its name. `texts` are its
 * own address, its peer's, its path and its peer's. */
void endpoint_stands_for(int fd, unsigned kind, uint64_t cookie, uint32_t peer_pid, const char *const texts[4]);
/* The same by device and inode, in a program that such a process has started. */
void endpoint_keeps_name(uint64_t device, uint64_t inode, unsigned kind, uint64_t cookie, uint32_t peer_pid,
                         const char *const texts[4]);

/* members.c: without a group these do nothing */
unsigned member_with(int pid);                    /* the number of a process; 0: it is none of the group */
uint32_t endpoint_of_process(unsigned number);    /* that is waited for; 0: any child */
uint32_t endpoint_of_signal(int pid, int signum); /* for a process, or a group of processes; 0: for no other of ours */
/* that waits for anything else; `at`: its place among these, is_timed: not for ever */
uint32_t endpoint_of_call(unsigned at, const char *module, const char *name, bool is_timed);
uint32_t endpoint_of_file(uint64_t device, uint64_t inode); /* two zeros: of one that is about to be opened */
uint32_t endpoint_of_streams(void);                         /* of all that end, and connections that begin */
/* record: a handler runs, because that process has sent its signal, or has ended */
void member_signalled(int signum, int pid, bool has_ended);

/* locks.c */
typedef enum { LOCK_NONE, LOCK_SHARED, LOCK_EXCLUSIVE } LockMode;
typedef struct {
    int fd;
    bool is_flock;      /* its locks and those of fcntl() do not know each other */
    bool is_of_process; /* and not of the open file */
    bool is_part;       /* some bytes of the file */
    bool waits;
    LockMode mode; /* LOCK_NONE: it is released */
} LockCall;
/* The endpoint of what the call does, before it does it. `released`: that of what it gives up in order to acquire it. */
uint32_t lock_asks(const LockCall *call, uint32_t *released);
void lock_got(const LockCall *call);  /* it has done it */
uint32_t lock_closed(int fd);         /* it is about to be closed: the endpoint of what that releases; 0: nothing */
void locks_closed(int low, int high); /* the same of many, whose transfers are made here */
void lock_copied(int fd, int copy);   /* both have the same open file */
void lock_passed_on(int fd);          /* another process has the same open file; -1: of all */

/* content.c */
void content_forget(int fd); /* the number is free, or is another file's */
/* record: bytes of a large file as a reference; false: inline */
bool content_encode(Buf *b, int fd, const void *data, size_t n);
int content_continue(void); /* a replay becomes a recording: more is copied behind what there is; -1: it cannot be */
int content_open(int fd);   /* replay; closes fd */
typedef struct {
    uint64_t first, stride, length; /* where the first piece begins, from one to the next, bytes of content */
    uint64_t file_size, mtime;      /* of the recording, in bytes and ns */
} ContentPlace;
/* replay: the same, for content that lies in the sealed recording; keeps fd */
int content_open_sealed(int fd, const ContentPlace *place);
int content_follow(int fd); /* replay, after content_open(): of a program that still writes it; -1: of another one */
int content_move(Room to);  /* replay: after another one was opened */
/* replay: valid until the next call; NULL if out of range, or if the recording has been changed */
const uint8_t *content_at(uint64_t offset, uint64_t n);
extern bool content_is_missing; /* replay: what was asked for last */

#endif
