/* What the files of this folder have of each other. */
#ifndef REPLAYDBG_LOG_INSIDE_H
#define REPLAYDBG_LOG_INSIDE_H
#include "log/log.h"
#include "log/page.h"

#define HEADER_SIZE 64
#define FIRST_SIZE (1u << 20) /* of a log */
/* of addresses, not of memory: what lies behind the end of a file comes when it grows */
#define MOST_FOLLOWED ((size_t)1 << 36)

typedef struct {
    char magic[8];
    uint32_t format, reason;
    uint64_t committed, crossings, start;
    uint32_t signals;
    uint32_t longest; /* ms of CPU time, the most between two commits */
    uint64_t last;    /* ns of the monotonic clock, at the last commit; a few ms coarse */
    uint32_t cpu;     /* ms of CPU time of the process and the children that it waited for, not long before it */
    uint32_t memory;  /* MiB of address space, the most that the process had */
} LogHeader;
_Static_assert(sizeof(LogHeader) == HEADER_SIZE, "see format.md");

static inline LogHeader *
header_of(Log *log)
{
    return (LogHeader *)log->base;
}

/* log.c */
int log_map(Log *log, size_t old_size, size_t size, int flags); /* errno is set where it fails */
uint64_t log_used_time(void);        /* ns of CPU time, of the process and the children that it waited for */
void log_time_forked(uint64_t used); /* in a child that is recorded: what its parent had used before the fork */

uint8_t *log_raw_room(Log *log, size_t n); /* as log_room(), for a CHECKSUM record itself */

/* durable.c: only if the log is durable */
bool checksum_before(Log *log);                     /* a record is about to be written; false: logging has ended */
void checksum_extend(Log *log, const uint8_t *end); /* it was, and ends there */
void durable_content(int fd);                       /* a piece was copied: before an event refers to it */
int durable_entries(const char *directory);         /* files were made in it; an errno */
void durable_forked(bool is_recorded);              /* in any child, after its logs */

/* content.c */
uint64_t content_used(void); /* bytes so far, those before the fork included */
uint64_t content_own(void);  /* without those */
void content_forked(void);   /* in a child that is recorded: what it copies goes to a file of its own */

/* group.c */
bool group_may_grow(uint64_t n);        /* so many bytes more of any log of the group */
const char *group_directory(void);      /* only in a group, as all below */
unsigned group_rows(void);              /* so far */
ProcessRow *group_row(unsigned number); /* from 1 */
unsigned group_new_row(unsigned how);   /* of a child; 0: there is no room */
void group_sync(void);                  /* the disk shall have all rows; without a group it does nothing */
uint64_t group_ticket(void);            /* of the group's clock: each is greater than all before it */

/* started.c */
void started_forked(void); /* in a child that is recorded */

/* transfers.c */
enum { OWN, PEER, PATH, PEER_PATH, ENDPOINT_TEXTS };
typedef struct {
    unsigned kind; /* ENDPOINT_PIPE and so on, or TRANSFER_ADDRESS */
    uint64_t cookie;
    uint32_t peer_pid;
    const char *texts[ENDPOINT_TEXTS];
} EndpointFacts;
void transfer_define(const EndpointFacts *facts, uint32_t number);
void transfers_begin(void);                                     /* after the logs, which end there if it fails */
int transfers_continue(uint32_t endpoints, uint32_t addresses); /* -1: errno is set */
int transfers_continue_in(int file, uint32_t endpoints, uint32_t addresses);
void transfers_forked(void);      /* in any child: what comes is its own */
const char *transfers_path(void); /* NULL: there is none */
void transfers_moved(void);       /* see logs_moved() */
uint64_t transfers_end(void);     /* bytes so far */

/* endpoints.c */
void endpoints_forked(void);
void endpoints_continue(uint32_t count);                                 /* so many are defined */
uint32_t endpoint_new(unsigned kind, const char *own, const char *peer); /* its number */

/* members.c */
void members_forked(void);

/* locks.c */
void locks_forked(void); /* in any child */

#endif
