/* The page of a group of processes: a file that all of them have mapped, see format.md; and the variable that leads a
 * program that is started to it. The library that is loaded into every such program (join/) reads it, too, and has
 * nothing else of the core: this is plain C. */
#ifndef REPLAYDBG_LOG_PAGE_H
#define REPLAYDBG_LOG_PAGE_H
#include <stdint.h>

typedef struct {
    char magic[8];
    uint32_t limit, count; /* rows that there are; processes so far, which may be more */
    uint64_t size, max_size;
    uint64_t tickets; /* taken so far */
    uint64_t unused[3];
} GroupHead;

/* HOW in replaydbg/log/group.py has the words. */
enum { HOW_UNKNOWN, HOW_PROGRAM, HOW_FORKED, HOW_STARTED, HOW_PYTHON, HOW_REPLACED, HOW_JOINED };
/* Why a process is not recorded: WHY_NOT in replaydbg/log/group.py has the words. Others are the joiner's
 * (record/joiner.py). */
enum { IS_RECORDED, TOO_LARGE, NO_ROOM, TOO_DEEP, IS_A_PROGRAM, HAS_NOT_BEGUN };
enum { STATUS_UNKNOWN, STATUS_FROM_PARENT, STATUS_FROM_ITSELF };

typedef struct {
    uint64_t event; /* of the parent */
    uint32_t parent, how, why_not;
    int32_t pid, status;
    uint32_t status_from; /* who knows the status */
    uint32_t failed;      /* it was never made */
    uint32_t padding;
    uint64_t ended; /* by which event of the parent it had ended; 0: not known */
    uint32_t unused[4];
} ProcessRow;
_Static_assert(sizeof(GroupHead) == 64 && sizeof(ProcessRow) == 64, "see format.md");

/* REPLAYDBG_GROUP=00012:00034:0:/directory of the group
 *
 * the row of the program's parent, or of its own if it has it, 0: it joins by itself (record --join); the row that was
 * prepared for it, 0: none; 1: a Python that is to run unrecorded. Numbers have always as many digits: they are changed
 * in place. */
#define GROUP_VARIABLE "REPLAYDBG_GROUP"
#define GROUP_FORM GROUP_VARIABLE "=%05u:%05u:%c:%s"
enum {
    AT_PARENT = sizeof GROUP_VARIABLE,
    DIGITS = 5,
    AT_ROW = AT_PARENT + 6,
    AT_PLAIN = AT_ROW + 6,
    AT_DIRECTORY = AT_PLAIN + 2
};

static inline void
group_put_number(char *at, unsigned number)
{
    for (int i = DIGITS - 1; i >= 0; i--, number /= 10)
        at[i] = (char)('0' + number % 10);
}

#endif
