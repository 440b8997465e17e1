/* The log, read once from its beginning to its end: what each lane of the recording did, and where the outcomes are.
 * See lenient.h. */
#include "base/core.h"
#include "code/code.h"
#include "crossing/crossing.h"
#include "lanes/lanes.h"
#include "lenient/inside.h"
#include "log/log.h"
#include "values/values.h"
#include <stdlib.h>
#include <time.h>

#define MOST_LANES 1000000u
#define MOST_DESCRIPTORS 1048576

LenientIndex lenient_index;

static struct {
    uint32_t *gates; /* of each site */
    uint64_t *functions;
    size_t count, size;
    uint64_t *codes;
    size_t code_count, code_size;
    /* of each tuple of arguments: an open file or socket: number + 1; a first argument that is an int: -2 - it; 0:
     * neither */
    int32_t *descriptors;
    size_t args_size;
} seen;
static bool has_ended, is_within;
static uint64_t event_number;

static void *
more(void *at, size_t count, size_t *size, size_t each)
{
    if (count + 2 < *size)
        return at;
    *size = *size ? *size * 2 : 256;
    at = realloc(at, *size * each);
    if (at == NULL)
        Py_FatalError("replaydbg: out of memory for the events of the recording");
    return at;
}

/* ---- streams ---- */

Stream *
index_stream(size_t lane)
{
    LenientIndex *x = &lenient_index;
    if (lane > MOST_LANES)
        diverge("corrupt", NULL, NULL, "the number of a thread");
    if (lane >= x->stream_count) {
        x->streams = realloc(x->streams, (lane + 64) * sizeof *x->streams);
        if (x->streams == NULL)
            Py_FatalError("replaydbg: out of memory for the events of the recording");
        memset(x->streams + x->stream_count, 0, (lane + 64 - x->stream_count) * sizeof *x->streams);
        x->stream_count = lane + 64;
    }
    if (x->streams[lane] == NULL)
        x->streams[lane] = calloc(1, sizeof(Stream));
    if (x->streams[lane] == NULL)
        Py_FatalError("replaydbg: out of memory for the events of the recording");
    return x->streams[lane];
}

Chain *
stream_chain(Stream *s, uint64_t key)
{
    uint32_t *slot = s->chain_count ? idmap_slot(&s->chain_of, key) : NULL;
    if (slot == NULL || *slot == 0) {
        if (slot)
            *slot = (uint32_t)s->chain_count + 1; /* an empty one, or the map would count it again and again */
        else
            return NULL;
        s->chains = more(s->chains, s->chain_count, &s->chain_size, sizeof *s->chains);
        s->chains[s->chain_count++] = (Chain){.key = key};
    }
    return &s->chains[*slot - 1];
}

static void
enter_in_chain(Stream *s, Item *item)
{
    uint32_t number = (uint32_t)(item - s->items) + 1;
    if (s->chain_count == 0) {
        s->chains = more(s->chains, 0, &s->chain_size, sizeof *s->chains);
        s->chains[s->chain_count++] = (Chain){.key = 0}; /* so that there is one */
    }
    Chain *chain = stream_chain(s, item->key);
    if (chain->last)
        s->items[chain->last - 1].next = number;
    else
        chain->first = chain->after = number;
    chain->last = number;
}

static Item *
add_item(Stream *s, ItemKind kind, const uint8_t *record)
{
    s->items = more(s->items, s->count, &s->size, sizeof *s->items);
    Item *item = &s->items[s->count++];
    *item = (Item){.kind = (uint8_t)kind,
                   .fd = -1,
                   .order = (uint64_t)(record - event_log.base),
                   .at = (uint64_t)(event_log.rp - event_log.base)};
    return item;
}

/* ---- reading ---- */

static uint64_t
number(void)
{
    bool ok = true;
    uint64_t v = read_varint(&event_log.rp, event_log.rend, &ok);
    if (!ok)
        diverge("corrupt", NULL, NULL, "a number cannot be read");
    return v;
}

static void
skip_bytes(uint64_t n)
{
    if (n > (uint64_t)(event_log.rend - event_log.rp))
        diverge("corrupt", NULL, NULL, "a record is cut off");
    event_log.rp += n;
}

static void
skip_value(void)
{
    if (!value_skip(&event_log.rp, event_log.rend))
        diverge("corrupt", NULL, NULL, "a value cannot be read");
}

static int64_t
small_int(const uint8_t **p, const uint8_t *end, bool *ok)
{
    if (*p >= end || (**p != 0x03 && **p < 0x40)) {
        *ok = false;
        return 0;
    }
    if (**p >= 0x40)
        return *(*p)++ - 0x40;
    ++*p;
    uint64_t v = read_varint(p, end, ok);
    return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

/* What the first of these arguments says of a descriptor. */
static int32_t
descriptor_of(const uint8_t *p, const uint8_t *end)
{
    bool ok = true;
    if (p >= end || *p++ != 0x08 || read_varint(&p, end, &ok) == 0 || !ok || p >= end)
        return 0;
    if (*p == 0x17) {
        p++;
        uint64_t fd = read_varint(&p, end, &ok);
        return ok && fd < MOST_DESCRIPTORS ? (int32_t)fd : 0;
    }
    int64_t fd = small_int(&p, end, &ok);
    return ok && fd >= 0 && fd < MOST_DESCRIPTORS ? (int32_t)(-2 - fd) : 0;
}

static void
note_code(const uint8_t *p)
{
    bool ok = true;
    uint64_t n = read_varint(&p, event_log.rend, &ok), hash = hash_bytes(p, n, 0);
    p += n;
    n = read_varint(&p, event_log.rend, &ok);
    seen.codes = more(seen.codes, seen.code_count, &seen.code_size, sizeof *seen.codes);
    seen.codes[++seen.code_count] = hash_bytes(p, n, hash);
}

static void
note_site(const uint8_t *p)
{
    bool ok = true;
    uint64_t gate = read_varint(&p, event_log.rend, &ok), code = read_varint(&p, event_log.rend, &ok);
    if (seen.count + 2 >= seen.size) {
        size_t size = seen.size;
        seen.gates = more(seen.gates, seen.count, &size, sizeof *seen.gates);
        seen.functions = more(seen.functions, seen.count, &seen.size, sizeof *seen.functions);
    }
    seen.gates[++seen.count] = (uint32_t)gate;
    seen.functions[seen.count] = code && code <= seen.code_count ? seen.codes[code] : 0;
}

static void
read_definition(uint64_t rest)
{
    const uint8_t *start = event_log.rp;
    cross_read_definition(rest); /* ends the replay if it cannot be read */
    if (rest == 0)
        note_code(start);
    else if (rest == 1)
        note_site(start);
    else if (rest == 2) {
        uint32_t id = cross_arguments_defined();
        seen.descriptors = more(seen.descriptors, id, &seen.args_size, sizeof *seen.descriptors);
        seen.descriptors[id] = descriptor_of(start, event_log.rp);
    }
}

uint64_t
index_function_of_site(uint32_t site)
{
    return site && site <= seen.count ? seen.functions[site] : 0;
}

uint64_t
index_loose(const Gate *g, uint64_t arguments)
{
    uint64_t key[2] = {(uint64_t)g->id, g->flags & GATE_ARGS ? arguments : 0};
    return hash_bytes(key, sizeof key, 5);
}

uint64_t
index_exact(const Gate *g, uint64_t arguments, uint32_t digest)
{
    uint64_t loose = index_loose(g, arguments);
    return g->flags & GATE_DIGEST ? hash_bytes(&digest, sizeof digest, loose) : loose;
}

/* ---- descriptors: one number is that of several files, one after the other ---- */

uint32_t *
index_epoch(int fd)
{
    static uint32_t none;
    LenientIndex *x = &lenient_index;
    if (fd < 0 || fd >= MOST_DESCRIPTORS)
        return &none;
    if ((size_t)fd >= x->epoch_count) {
        size_t count = (size_t)fd + 64;
        x->epochs = realloc(x->epochs, count * sizeof *x->epochs);
        if (x->epochs == NULL)
            Py_FatalError("replaydbg: out of memory for descriptors");
        memset(x->epochs + x->epoch_count, 0, (count - x->epoch_count) * sizeof *x->epochs);
        x->epoch_count = count;
    }
    return &x->epochs[fd];
}

/* As they are now, and room for those to come: of as many as there are at the end. */
static uint32_t *
copy_epochs(void)
{
    index_epoch(MOST_DESCRIPTORS - 1);
    uint32_t *copy = malloc(lenient_index.epoch_count * sizeof *copy);
    if (copy == NULL)
        Py_FatalError("replaydbg: out of memory for descriptors");
    memcpy(copy, lenient_index.epochs, lenient_index.epoch_count * sizeof *copy);
    return copy;
}

static const uint8_t *
ints_of(const uint8_t *p, const uint8_t *end, bool only_first, int *fds, int most, int *found)
{
    bool ok = true;
    if (p < end && (*p == 0x08 || *p == 0x09)) {
        p++;
        uint64_t n = read_varint(&p, end, &ok);
        for (uint64_t i = 0; ok && i < n; i++) {
            bool nested = p < end && *p == 0x08;
            if (i == 0 || !only_first || nested)
                ints_of(p, end, only_first, fds, most, found);
            if (!value_skip(&p, end))
                return p;
        }
        return p;
    }
    int64_t fd = small_int(&p, end, &ok);
    if (ok && fd >= 0 && fd < MOST_DESCRIPTORS && *found < most)
        fds[(*found)++] = (int)fd;
    return p;
}

/* open(5) opens nothing: the descriptor is there. */
bool
index_adopts(const Gate *g)
{
    return g->flags & GATE_OPENS_FIRST && strcmp(g->module, "_io") == 0;
}

int
index_opened(const uint8_t *at, unsigned flags, int *fds, int most)
{
    int found = 0;
    const uint8_t *stop = at;
    if (!value_skip(&stop, event_log.rend)) /* what follows relies on it: no value is nested too deeply */
        return 0;
    if (flags & (GATE_OPENS | GATE_OPENS_FIRST))
        ints_of(at, event_log.rend, flags & GATE_OPENS_FIRST, fds, most, &found);
    return found;
}

/* ---- events ---- */

/* Of the interpreter: edited code may read it more or less often, so it is no item that must be asked for. */
static void
read_clock_of_locks(Stream *s, unsigned shape)
{
    struct timespec time;
    skip_value();
    if (!(shape & GATE_FILLS))
        return;
    const uint8_t *filled = event_log.rp;
    skip_value();
    if ((size_t)(event_log.rp - filled) < sizeof time)
        return; /* it failed */
    memcpy(&time, event_log.rp - sizeof time, sizeof time);
    s->readings = more(s->readings, s->reading_count, &s->reading_size, sizeof *s->readings);
    s->readings[s->reading_count++] = (Reading){s->count, (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec};
}

static void
read_event(Stream *s, uint64_t head, const uint8_t *record)
{
    uint32_t site = (uint32_t)(head >> 2);
    Gate *g = gate_numbered(site_recorded_gate(site));
    unsigned shape = site_recorded_shape(site);
    if (g == NULL)
        diverge("corrupt", NULL, NULL, "an event of an unknown function");
    uint64_t args = shape & GATE_ARGS ? number() : 0;
    uint32_t digest = 0;
    if (shape & GATE_DIGEST) {
        const uint8_t *at = event_log.rp;
        skip_bytes(4);
        memcpy(&digest, at, 4);
    }
    if (strcmp(g->name, "clock_of_locks") == 0) {
        event_number++;
        read_clock_of_locks(s, shape);
        return;
    }
    Item *item = add_item(s, ITEM_EVENT, record);
    int32_t of = args && args <= cross_arguments_defined() ? seen.descriptors[args] : 0;
    item->number = (uint32_t)++event_number;
    item->site = site;
    item->raised = head & 1;
    item->loose = index_loose(g, cross_recorded_arguments(args));
    item->key = index_exact(g, cross_recorded_arguments(args), digest);
    item->fd = of > 0 ? of - 1
               : of < 0 && (g->flags & (GATE_DESCRIPTOR | GATE_READS | GATE_WRITES_FD | GATE_CLOSES | GATE_COPIES))
                   ? -2 - of
                   : -1;
    item->epoch = *index_epoch(item->fd);
    int fds[8], n = item->raised || (of < 0 && index_adopts(g)) ? 0 : index_opened(event_log.rp, g->flags, fds, 8);
    for (int i = 0; i < n; i++)
        *index_epoch(fds[i]) = item->number;
    enter_in_chain(s, item);
    lenient_index.events += !has_ended;
    skip_value();
    if (shape & GATE_FILLS)
        skip_value();
}

/* ---- control records ---- */

static Stream *
read_switch(Stream *s, const uint8_t *record)
{
    uint64_t numbers[3];
    Item *item = add_item(s, ITEM_SWITCH, record);
    for (int i = 0; i < 3; i++)
        numbers[i] = number();
    item->why = numbers[1] & 3;
    item->loose = numbers[2];
    Stream *next = index_stream(numbers[0]);
    /* where it gave way the last time: this is its reason now */
    if (next->count && next->items[next->count - 1].kind == ITEM_SWITCH)
        next->items[next->count - 1].wake = numbers[1] >> 2 & 3;
    return next;
}

static void
read_lane_started(Stream *s, const uint8_t *record)
{
    Item *item = add_item(s, ITEM_START, record);
    item->site = (uint32_t)number();
    const uint8_t *name = event_log.rp;
    skip_value();
    item->key = hash_bytes(record, (size_t)(event_log.rp - record), 0);
    item->loose = hash_bytes(name, (size_t)(event_log.rp - name), 0);
    index_stream(item->site);
}

/* Of a place in pure computation. */
static void
skip_state(void)
{
    uint64_t levels = number();
    if (levels != PLACE_WITH_CONTENTS) {
        skip_bytes(8 * levels);
        return;
    }
    skip_bytes(8 * PLACE_LEVELS);
    number();
    for (int i = 0; i < 2; i++) {
        number();
        skip_bytes(8 * number());
    }
}

static Stream *
read_control(Stream *s, uint64_t rest, const uint8_t *record)
{
    switch (rest) {
    case CONTROL_SIGNAL_INSIDE:
        add_item(s, ITEM_SIGNAL, record);
        number();
        break;
    case CONTROL_SIGNAL_BETWEEN:
        add_item(s, ITEM_BETWEEN, record);
        number();
        skip_bytes(8);
        number();
        number();
        skip_state();
        break;
    case CONTROL_CALLBACK:
        add_item(s, ITEM_CALLBACK, record);
        skip_value();
        break;
    case CONTROL_MEMORY: {
        Item *item = add_item(s, ITEM_MEMORY, record);
        item->within = is_within || (number() & 1);
        event_log.rp = event_log.base + item->at;
        number();
        number();
        skip_bytes(number());
        break;
    }
    case CONTROL_LANE:
        return read_switch(s, record);
    case CONTROL_LANE_STARTED:
        read_lane_started(s, record);
        break;
    case CONTROL_END:
        has_ended = true;
        number();
        break;
    case CONTROL_COLLECTOR:
        for (int i = 0; i < 4; i++)
            number();
        break;
    case CONTROL_NOTE:
    case CONTROL_MARK:
        skip_value();
        break;
    case CONTROL_NO_MEMORY: /* edited code takes memory as it can get it */
        number();
        number();
        break;
    case CONTROL_CHECKSUM:
        replay_checksum(NULL);
        break;
    case CONTROL_STREAM: /* edited code writes in its own order */
        for (int i = 0; i < 6; i++)
            number();
        skip_bytes(number());
        break;
    case CONTROL_CHAOS:
        lenient_index.lines_from = (uint64_t)(record - event_log.base);
        number();
        break;
    case CONTROL_SERIALS:
    case CONTROL_TIME:
    case CONTROL_CHILD:
        number();
        break;
    default:
        diverge("corrupt", NULL, NULL, "an unknown record");
    }
    return s;
}

/* `here`: where the descriptors as they are at this record are kept, NULL: nowhere. */
static void
read_all(const uint8_t *here, uint32_t **epochs_here)
{
    Stream *s = index_stream(0);
    while (event_log.rp < event_log.rend) {
        const uint8_t *record = event_log.rp;
        if (here && record >= here) {
            *epochs_here = copy_epochs();
            here = NULL;
        }
        uint64_t head = number();
        Stream *to = has_ended ? &lenient_index.spare : s;
        if ((head & 3) == 3) {
            read_definition(head >> 2);
            is_within = true;
        }
        else if ((head & 3) == 2) {
            Stream *next = read_control(to, head >> 2, record);
            s = has_ended ? s : next;
            is_within = is_within && head >> 2 != CONTROL_LANE;
        }
        else {
            if (core.answers_to && lenient_index.events >= core.answers_to)
                break; /* what comes later is of another matter */
            read_event(to, head, record);
            is_within = false;
        }
    }
    lenient_index.has_ended = has_ended;
}

void
index_read(void)
{
    read_all(NULL, NULL);
    if (lenient_index.epochs)
        memset(lenient_index.epochs, 0, lenient_index.epoch_count * sizeof *lenient_index.epochs);
}

/* What was recorded before `here` has been replayed. */
static void
use_up_to(Stream *s, uint64_t here)
{
    for (size_t at = 0; s && at < s->count && s->items[at].order < here; at++) {
        s->items[at].used = s->items[at].reported = true;
        s->cursor = at + 1;
    }
}

/* The program is changed in the middle of an exact replay. False: the log is read in another way here, or several lanes
 * are in the middle of something; then the replay goes on being exact, and ends where the run differs. */
bool
lenient_from_here(void)
{
    const uint8_t *here = event_log.rp;
    uint32_t *epochs = NULL;
    if (core.mode != REPLAY || core.lenient || core.followed || lanes.alive > 1 || lanes.running != lanes.main ||
        cross_open())
        return core.lenient;
    cross_forget_definitions(); /* they are read again, and get the same numbers */
    sites_forget_definitions();
    event_log.rp = log_first_record(&event_log);
    read_all(here, &epochs);
    for (size_t lane = 0; lane < lenient_index.stream_count; lane++)
        use_up_to(lenient_index.streams[lane], (uint64_t)(here - event_log.base));
    if (epochs)
        memcpy(lenient_index.epochs, epochs, lenient_index.epoch_count * sizeof *epochs);
    free(epochs);
    core.edited = true;
    set_lenient(true);
    return true;
}
