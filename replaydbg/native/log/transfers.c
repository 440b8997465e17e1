/* What this process sends and receives through channels to other processes, in a group of processes: a mapped file
 * `transfers` beside the log, which is none of its events and has no part in a replay. A transfer is written when it
 * begins and completed when it ends: whoever is killed in a call leaves what it waited for. The file is made with the
 * logs: later, the process may have no descriptor left. See docs/reference/format.md, and replaydbg/log/transfers.py,
 * which reads it. */
#include "base/core.h"
#include "log/inside.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#define SIZE_AT_FIRST (64u << 10) /* not counted in the size of the group: one that is nearly full can still print */
#define MOST_ADDRESSES ((1u << 24) - 1)

typedef struct {
    uint64_t event, begun, ticket, digest, length;
    uint32_t endpoint;
    uint32_t rest; /* the number of an address, and in the highest byte TRANSFER_RECEIVES and so on */
} Slot;
typedef struct {
    uint8_t kind, unused;
    uint16_t slots; /* this one, and those with the texts */
    uint32_t number;
    uint64_t cookie;
    uint16_t lengths[ENDPOINT_TEXTS];
    uint32_t peer_pid;
    uint8_t unused_too[19];
    uint8_t flags; /* TRANSFER_DEFINES; in a transfer this is its highest byte */
} Definition;
_Static_assert(sizeof(Slot) == TRANSFER_SLOT && sizeof(Definition) == TRANSFER_SLOT, "see format.md");

static Log transfer_log;
static uint64_t before; /* slots that this process wrote while it was its parent */
static IdMap addresses;
static uint32_t address_count;

void
transfers_begin(void)
{
    char path[4200];
    int saved = errno;
    snprintf(path, sizeof path, "%s/transfers", core.live_dir);
    transfer_log.path = strdup(path);
    if (log_map(&transfer_log, 0, SIZE_AT_FIRST, O_CREAT | O_TRUNC) < 0) {
        transfer_log = (Log){0};
        log_fail_by(errno);
    }
    else {
        LogHeader *h = header_of(&transfer_log);
        memcpy(h->magic, "RDBGXFR", 8);
        h->format = TRANSFERS_FORMAT;
        h->committed = HEADER_SIZE;
    }
    errno = saved;
}

void
transfers_moved(void)
{
    char path[4200];
    if (transfer_log.base == NULL)
        return;
    snprintf(path, sizeof path, "%s/transfers", core.live_dir);
    free(transfer_log.path);
    transfer_log.path = strdup(path);
}

/* The file has what was sent and received before, and is written on. */
int
transfers_continue(uint32_t endpoints, uint32_t known_addresses)
{
    char path[4200];
    struct stat st;
    snprintf(path, sizeof path, "%s/transfers", core.live_dir);
    if (stat(path, &st) < 0)
        return -1;
    transfer_log.path = strdup(path);
    if (log_map(&transfer_log, 0, (size_t)st.st_size + SIZE_AT_FIRST, 0) < 0) {
        transfer_log = (Log){0};
        return -1;
    }
    transfer_log.wp = transfer_log.base + header_of(&transfer_log)->committed;
    address_count = known_addresses;
    endpoints_continue(endpoints);
    return 0;
}

int
transfers_continue_in(int file, uint32_t endpoints, uint32_t known_addresses)
{
    struct stat st;
    transfer_log = (Log){.file = file};
    if (fstat(file, &st) < 0 || log_map(&transfer_log, 0, (size_t)st.st_size + SIZE_AT_FIRST, 0) < 0) {
        transfer_log = (Log){0};
        return -1;
    }
    transfer_log.wp = transfer_log.base + header_of(&transfer_log)->committed;
    address_count = known_addresses;
    endpoints_continue(endpoints);
    return 0;
}

const char *
transfers_path(void)
{
    return transfer_log.base ? transfer_log.path : NULL;
}

uint64_t
transfers_end(void)
{
    return transfer_log.base ? (uint64_t)(transfer_log.wp - transfer_log.base) : 0;
}

static void *
room(size_t slots)
{
    return transfer_log.base ? log_room(&transfer_log, slots * TRANSFER_SLOT) : NULL;
}

static void
commit(size_t slots)
{
    transfer_log.wp += slots * TRANSFER_SLOT;
    __atomic_store_n(&header_of(&transfer_log)->committed, (uint64_t)(transfer_log.wp - transfer_log.base),
                     __ATOMIC_RELEASE);
}

static Slot *
slot_of(uint64_t number)
{
    return (Slot *)(transfer_log.base + HEADER_SIZE) + (number - before - 1);
}

/* ---- definitions ---- */

void
transfer_define(const EndpointFacts *facts, uint32_t number)
{
    size_t total = 0;
    for (int i = 0; i < ENDPOINT_TEXTS; i++)
        total += strlen(facts->texts[i]);
    size_t slots = 1 + (total + TRANSFER_SLOT - 1) / TRANSFER_SLOT;
    uint8_t *p = room(slots);
    if (p == NULL)
        return;
    Definition d = {.kind = (uint8_t)facts->kind, .slots = (uint16_t)slots, .number = number, .cookie = facts->cookie};
    d.peer_pid = facts->peer_pid;
    d.flags = TRANSFER_DEFINES;
    memset(p, 0, slots * TRANSFER_SLOT);
    size_t at = sizeof d;
    for (int i = 0; i < ENDPOINT_TEXTS; at += d.lengths[i++]) {
        d.lengths[i] = (uint16_t)strlen(facts->texts[i]);
        memcpy(p + at, facts->texts[i], d.lengths[i]);
    }
    memcpy(p, &d, sizeof d);
    commit(slots);
}

/* 0: none, or there are too many. */
static uint32_t
address_number(const char *text)
{
    if (*text == 0)
        return 0;
    uint32_t *number = idmap_slot(&addresses, hash_bytes(text, strlen(text), 0));
    if (*number == 0 && address_count < MOST_ADDRESSES) {
        *number = ++address_count;
        transfer_define(&(EndpointFacts){.kind = TRANSFER_ADDRESS, .texts = {text, "", "", ""}}, *number);
    }
    return *number;
}

/* ---- transfers ---- */

bool
transfer_is_own(uint64_t number)
{
    return number > before;
}

uint64_t
transfer_begin(uint32_t endpoint, unsigned flags, int fd)
{
    Slot *s = room(1);
    if (s == NULL)
        return 0;
    *s = (Slot){.begun = core.crossings, .endpoint = endpoint, .rest = flags << 24};
    s->digest = (uint64_t)(fd + 1); /* until it ends */
    if (!(flags & TRANSFER_RECEIVES))
        s->ticket = group_ticket();
    uint64_t number = before + (uint64_t)((uint8_t *)s - transfer_log.base - HEADER_SIZE) / TRANSFER_SLOT + 1;
    commit(1);
    return number;
}

/* The event follows at once: it gets the next number. Should the process be killed between the two, a reader finds an
 * event that is not in the log. */
void
transfer_end(uint64_t number, const TransferEnd *end)
{
    uint32_t address = address_number(end->address);
    if (!transfer_is_own(number) || transfer_log.base == NULL)
        return;
    Slot *s = slot_of(number);
    if (end->length) /* else the descriptor stays: it may be killed before its event is written */
        s->digest = end->digest;
    s->length = end->length;
    s->rest = address | end->flags << 24;
    if (end->endpoint)
        s->endpoint = end->endpoint;
    if (end->flags & TRANSFER_RECEIVES)
        s->ticket = group_ticket();
    __atomic_store_n(&s->event, core.crossings + 1, __ATOMIC_RELEASE);
}

/* It has moved nothing. */
void
transfer_undo(uint64_t number)
{
    if (!transfer_is_own(number) || transfer_log.base == NULL)
        return;
    Slot *s = slot_of(number);
    if ((uint8_t *)(s + 1) == transfer_log.wp) { /* nothing came after it */
        transfer_log.wp = (uint8_t *)s;
        commit(0);
    }
    else
        s->endpoint = 0;
}

/* A reader takes it for one that moved nothing, too, and finds the endpoint where another one has the digest. */
void
transfer_interrupted(uint64_t number)
{
    if (!transfer_is_own(number) || transfer_log.base == NULL)
        return;
    Slot *s = slot_of(number);
    s->digest = s->endpoint;
    s->endpoint = 0;
    __atomic_store_n(&s->event, core.crossings + 1, __ATOMIC_RELEASE);
}

/* Its event is the next one, as that of the transfer is. */
void
transfer_passes(uint32_t endpoint)
{
    EndpointFacts facts = {.kind = TRANSFER_PASSED, .cookie = core.crossings + 1, .texts = {"", "", "", ""}};
    transfer_define(&facts, endpoint);
}

void
transfers_forked(void)
{
    if (transfer_log.base)
        before += (uint64_t)(transfer_log.wp - transfer_log.base - HEADER_SIZE) / TRANSFER_SLOT;
    transfer_log = (Log){0}; /* the map is its parent's, and is not here */
    addresses = (IdMap){0};
    address_count = 0;
    endpoints_forked();
    members_forked();
    locks_forked();
}
