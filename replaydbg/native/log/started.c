/* Programs that a process of a group starts, and how processes end. A program gets its row before it runs, so that it
 * finds it if it is a Python: then it joins the group (join/join.c). The number of the row stands in a variable of the C
 * environment, which the program's own `os.environ` does not show. */
#include "base/core.h"
#include "log/inside.h"
#include <stdlib.h>
#include <unistd.h>

#define PRELOAD "LD_PRELOAD"

static char *library;   /* NULL: no program is asked to join */
static char *variable;  /* NAME=VALUE, in the environment */
static unsigned unused; /* a row of a program that could not be started, for the next one; 0: none */

/* ---- the environment ---- */

void
group_lets_join(const char *preloaded)
{
    size_t size = strlen(group_directory()) + AT_DIRECTORY + 1;
    library = strdup(preloaded);
    variable = malloc(size);
    snprintf(variable, size, GROUP_FORM, group_number(), 0u, '0', group_directory());
    group_tell(0);
}

void
started_forked(void)
{
    unused = 0;
    if (library)
        group_put_number(variable + AT_PARENT, group_number());
}

bool
group_programs_join(void)
{
    return library != NULL && core.mode == RECORD;
}

/* `given` is what the program has there, or NULL. It comes first: some libraries have to. */
char *
group_preload(const char *given)
{
    size_t size = strlen(library) + (given ? strlen(given) + 1 : 0) + 1;
    char *value = malloc(size);
    if (value)
        snprintf(value, size, "%s%s%s", given ? given : "", given ? ":" : "", library);
    return value;
}

char *
group_variable(unsigned row)
{
    char *text = strdup(variable);
    if (text)
        group_put_number(text + AT_ROW, row);
    return text;
}

/* The program may have changed LD_PRELOAD since, or removed it. */
void
group_tell(unsigned row)
{
    if (library == NULL)
        return;
    group_put_number(variable + AT_ROW, row);
    if (getenv(GROUP_VARIABLE) != variable + AT_PARENT)
        putenv(variable);
    const char *given = getenv(PRELOAD);
    if (given && strstr(given, library))
        return;
    char *value = group_preload(given);
    if (value)
        setenv(PRELOAD, value, 1);
    free(value);
}

/* ---- rows ---- */

unsigned
group_start_begins(bool replaces)
{
    if (group_number() == 0 || core.mode != RECORD)
        return 0;
    unsigned how = replaces ? HOW_REPLACED : HOW_STARTED, number = unused ? unused : group_new_row(how);
    unused = 0;
    if (number == 0)
        return 0;
    ProcessRow *row = group_row(number);
    row->how = how;
    row->why_not = IS_A_PROGRAM;
    row->event = core.crossings + !replaces; /* what replaces the program leaves no event */
    row->failed = 0;
    if (replaces)
        __atomic_store_n(&row->pid, getpid(), __ATOMIC_SEQ_CST);
    return number;
}

/* pid: 0 if it is not known, and the program has ended with `status`; -1 if it did not start. */
void
group_start_ended(unsigned number, int pid, int status)
{
    int32_t nobody = 0;
    if (number == 0 || group_number() == 0)
        return;
    lock_passed_on(-1);
    ProcessRow *row = group_row(number);
    if (pid < 0) {
        row->failed = 1;
        row->pid = 0;
        unused = number;
        return;
    }
    row->event = core.crossings;
    if (pid > 0)
        __atomic_compare_exchange_n(&row->pid, &nobody, pid, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    else {
        row->status = status;
        row->ended = core.crossings;
        __atomic_store_n(&row->status_from, STATUS_FROM_PARENT, __ATOMIC_SEQ_CST);
    }
}

static void
ended_with(ProcessRow *row, int status)
{
    if (row->status_from == STATUS_FROM_PARENT)
        return;
    row->status = status;
    row->ended = core.crossings;
    __atomic_store_n(&row->status_from, STATUS_FROM_PARENT, __ATOMIC_SEQ_CST);
}

/* A process that was replaced has ended with the one that came after it. */
void
group_waited(int pid, int status)
{
    if (group_number() == 0)
        return;
    pid = pid_today(pid);
    for (unsigned i = group_rows(); i > 1; i--) {
        ProcessRow *row = group_row(i);
        bool is_child = row->parent == group_number();
        if (row->pid != pid || row->failed || !(is_child || row->how == HOW_REPLACED))
            continue;
        ended_with(row, status);
        if (is_child)
            return;
    }
}

void
group_ends(int status)
{
    if (group_number() == 0)
        return;
    ProcessRow *own = group_row(group_number());
    own->status = status;
    __atomic_store_n(&own->status_from, STATUS_FROM_ITSELF, __ATOMIC_SEQ_CST);
}
