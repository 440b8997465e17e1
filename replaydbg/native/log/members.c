/* What processes of a group do to each other without bytes: who waits for the end of whom, and which signals go where.
 * These are transfers, too, with endpoints of their own: so they have tickets, whoever reads them finds the process by
 * its number (process ids are used again), and one that was killed while it waited leaves for whom. Births are none: the
 * page has the event of each. Files that are written and read are here as well. */
#include "base/core.h"
#include "log/inside.h"
#include <unistd.h>

typedef struct {
    unsigned kind;
    uint32_t number;
    char own[40], peer[16];
} Relation;
static Relation *relations;
static uint32_t relation_count;
static IdMap files; /* their endpoints */
static uint32_t streams;
#define MOST_WAITS 32
static uint32_t waits[MOST_WAITS][2]; /* those of calls that wait, without and with a timeout */

static uint32_t
endpoint_named(unsigned kind, const char *own, const char *peer)
{
    for (uint32_t i = 0; i < relation_count; i++) {
        const Relation *r = &relations[i];
        if (r->kind == kind && strcmp(r->own, own) == 0 && strcmp(r->peer, peer) == 0)
            return r->number;
    }
    relations = grown(relations, relation_count + 1, sizeof *relations);
    Relation *r = &relations[relation_count++];
    r->kind = kind;
    snprintf(r->own, sizeof r->own, "%s", own);
    snprintf(r->peer, sizeof r->peer, "%s", peer);
    return r->number = endpoint_new(kind, own, peer);
}

void
members_forked(void)
{
    relation_count = 0;
    files = (IdMap){0};
    streams = 0;
    memset(waits, 0, sizeof waits);
}

/* The last one that had the process id: a program that replaced another one is a process of its own. */
unsigned
member_with(int pid)
{
    if (group_number() == 0 || pid <= 0)
        return 0;
    pid = pid_today(pid);
    for (unsigned i = group_rows(); i > 0; i--) {
        const ProcessRow *row = group_row(i);
        if (__atomic_load_n(&row->pid, __ATOMIC_SEQ_CST) == pid && !row->failed)
            return i;
    }
    return 0;
}

uint32_t
endpoint_of_process(unsigned number)
{
    char own[16] = "";
    if (number)
        snprintf(own, sizeof own, "%u", number);
    return endpoint_named(ENDPOINT_PROCESS, own, "");
}

uint32_t
endpoint_of_signal(int target, int signum)
{
    char own[40];
    if (target == 0)
        target = -getpgrp();
    unsigned number = target > 0 ? member_with(target) : 0;
    if (group_number() == 0 || (target > 0 && (number == 0 || number == group_number())))
        return 0;
    snprintf(own, sizeof own, "%d:%d", number ? (int)number : target, signum);
    return endpoint_named(ENDPOINT_SIGNAL, own, "");
}

uint32_t
endpoint_of_call(unsigned at, const char *module, const char *name, bool is_timed)
{
    uint32_t *number = &waits[at % MOST_WAITS][is_timed];
    if (*number == 0) {
        char own[40];
        snprintf(own, sizeof own, "%s.%s", module, name);
        *number = endpoint_new(ENDPOINT_CALL, own, is_timed ? "timed" : "");
    }
    return *number;
}

uint32_t
endpoint_of_file(uint64_t device, uint64_t inode)
{
    uint64_t identity[] = {device, inode};
    char own[44] = "";
    uint32_t *number = idmap_slot(&files, hash_bytes(identity, sizeof identity, 0));
    if (*number == 0) {
        if (inode)
            snprintf(own, sizeof own, "%llu:%llu", (unsigned long long)device, (unsigned long long)inode);
        *number = endpoint_new(ENDPOINT_FILE, own, "");
    }
    return *number;
}

uint32_t
endpoint_of_streams(void)
{
    if (streams == 0)
        streams = endpoint_new(ENDPOINT_STREAM, "", "");
    return streams;
}

void
member_signalled(int signum, int pid, bool has_ended)
{
    char own[40], peer[16];
    unsigned number = member_with(pid);
    if (number == 0 || number == group_number() || core.mode != RECORD)
        return;
    snprintf(own, sizeof own, "%u:%d", group_number(), signum);
    snprintf(peer, sizeof peer, "%u", number);
    uint32_t endpoint = has_ended ? endpoint_of_process(number) : endpoint_named(ENDPOINT_SIGNAL, own, peer);
    uint64_t transfer = transfer_begin(endpoint, TRANSFER_RECEIVES, -1);
    if (transfer)
        transfer_end(transfer, &(TransferEnd){.flags = TRANSFER_RECEIVES, .address = ""});
}
