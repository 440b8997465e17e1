/* The memory-mapped log. It is written so that a process killed at any instant leaves every complete record: bytes go
 * to a shared file mapping (the kernel keeps them), and `committed` in the header is stored last. Pages are allocated
 * ahead with posix_fallocate: a fresh page of a sparse file costs five times as much, and a full disk would be a
 * SIGBUS. */
#include "base/core.h"
#include "log/inside.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LONG_DISTANCE 50000000u /* ns: what is computed without an event for as long is noted */
#define COARSE 4000000u         /* ns between two advances of the coarse clock, at 250 Hz */
#define MOST_GROWTH (16u << 20) /* allocated in a ms; also how much of the log a program keeps in memory */

Log event_log, world_log;
static int followed_fd = -1;
static int program_fd = -1;       /* of the program that writes what is followed, if its end must be noticed at once */
static StandbyPage *standby_page; /* in its place, for a process of which images are made */

/* Unmap the pages before `p`: they are not used again, but would count as memory of this process, which would grow with
 * its events. The bytes stay in the file, and are mapped again if they are read after all. */
static void
release_before(Log *log, const uint8_t *p)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), end = (size_t)(p - log->base) / page * page;
    if (end > log->released) {
        madvise(log->base + log->released, end - log->released, MADV_DONTNEED);
        log->released = end;
    }
}

/* ---- writing ---- */

/* Past the limit of file sizes the kernel also sends SIGXFSZ, which would end a program that does not ignore it, as
 * Python does, or run a handler of its own. */
void
file_limit_hold(FileLimit *held)
{
    sigset_t set, pending;
    sigemptyset(&set);
    sigaddset(&set, SIGXFSZ);
    sigpending(&pending);
    held->is_pending = sigismember(&pending, SIGXFSZ); /* then it is the program's */
    pthread_sigmask(SIG_BLOCK, &set, &held->before);
}

void
file_limit_release(FileLimit *held)
{
    int saved = errno;
    sigset_t set;
    struct timespec none = {0};
    sigemptyset(&set);
    sigaddset(&set, SIGXFSZ);
    while (!held->is_pending && sigtimedwait(&set, NULL, &none) < 0 && errno == EINTR)
        ;
    pthread_sigmask(SIG_SETMASK, &held->before, NULL);
    errno = saved;
}

/* No descriptor is kept open: the program could close it, and would see it. */
int
log_map(Log *log, size_t old_size, size_t size, int flags)
{
    FileLimit held;
    file_limit_hold(&held);
    int fd = log->file ? log->file : open(log->path, O_RDWR | O_CLOEXEC | flags, 0600);
    int error = fd < 0 ? errno : posix_fallocate(fd, 0, (off_t)size);
    file_limit_release(&held);
    void *base = MAP_FAILED;
    if (!error && log->base == NULL)
        base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    else if (!error)
        base = mremap(log->base, old_size, size, MREMAP_MAYMOVE);
    if (base == MAP_FAILED && !error)
        error = errno;
    if (fd >= 0 && !log->file)
        close(fd);
    if (error) {
        errno = error;
        return -1;
    }
    size_t used = log->base ? (size_t)(log->wp - log->base) : HEADER_SIZE;
    log->base = base;
    log->wp = log->base + used;
    log->limit = log->base + size;
    madvise(base, size, MADV_DONTFORK); /* a child of the program must never write here */
    release_before(log, log->wp);
    return 0;
}

int
log_create(Log *log, const char *path, uint64_t max_size)
{
    struct timespec now;
    log->path = strdup(path);
    log->max_size = max_size;
    if (log_map(log, 0, FIRST_SIZE, O_CREAT | O_TRUNC) < 0)
        return -1;
    clock_gettime(CLOCK_REALTIME, &now);
    LogHeader *h = header_of(log);
    memcpy(h->magic, "RDBGLOG", 8);
    h->format = FORMAT_NUMBER;
    h->start = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    h->committed = HEADER_SIZE;
    return 0;
}

static void
rename_log(Log *log, const char *name)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/%s", core.live_dir, name);
    free(log->path);
    log->path = strdup(path);
}

void
logs_moved(void)
{
    rename_log(&event_log, "log");
    rename_log(&world_log, "world");
    transfers_moved();
}

int
write_whole_file(const char *path, const uint8_t *data, size_t n)
{
    FileLimit held;
    file_limit_hold(&held);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    while (fd >= 0 && n > 0) {
        ssize_t k = write(fd, data, n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            break;
        data += k;
        n -= (size_t)k;
    }
    file_limit_release(&held);
    return fd < 0 || close(fd) < 0 || n > 0 ? -1 : 0;
}

static void
begin_behind(Log *log, size_t used)
{
    LogHeader *h = header_of(log);
    h->committed = used;
    h->crossings = core.crossings;
    h->reason = 0;
    h->last = 0;
}

/* The log that was read is written on behind what was read. The launcher has put a copy of it there, except of one that
 * was followed: nobody else knows how far it was read. The old mapping stays, since what was read points into it. */
static int
log_continue(Log *log, const char *name)
{
    char path[4200];
    struct stat st;
    snprintf(path, sizeof path, "%s/%s", core.live_dir, name);
    size_t used = (size_t)(log->rp - log->base);
    if (core.followed && write_whole_file(path, log->base, used) < 0)
        return -1;
    Log more = {.path = strdup(path), .max_size = log->max_size};
    if (stat(path, &st) < 0 || (size_t)st.st_size < used ||
        log_map(&more, 0, (size_t)st.st_size < FIRST_SIZE ? FIRST_SIZE : (size_t)st.st_size, 0) < 0)
        return -1;
    more.wp = more.base + used;
    *log = more;
    begin_behind(log, used);
    return 0;
}

void
log_fail(int reason)
{
    if (core.is_future) /* unrecorded it would be of no use */
        diverge("outside", NULL, NULL,
                reason == 2   ? "more room for its log than it may take"
                : reason == 4 ? "what cannot be recorded"
                              : "memory for its log");
    Log *logs[] = {&event_log, &world_log};
    for (int i = 0; i < 2; i++)
        if (logs[i]->base && !header_of(logs[i])->reason)
            header_of(logs[i])->reason = (uint32_t)reason;
    event_log.failed = true;
    if (core.mode == RECORD)
        set_mode(OBSERVE);
}

void
log_fail_by(int error)
{
    bool is_full = error == ENOSPC || error == EDQUOT;
    log_fail(is_full ? 1 : error == EFBIG ? 6 : 3);
}

static uint8_t *
log_grow(Log *log, size_t n)
{
    size_t size = (size_t)(log->limit - log->base);
    size_t step = size < MOST_GROWTH ? size : MOST_GROWTH;
    while (step < n)
        step *= 2;
    if (log->max_size && (uint64_t)(log->wp - log->base) + n > log->max_size) {
        log_fail(2);
        return NULL;
    }
    if (!group_may_grow(step)) {
        log_fail(2);
        return NULL;
    }
    int saved = errno;
    if (log_map(log, size, size + step, 0) < 0) {
        log_fail_by(errno);
        errno = saved;
        return NULL;
    }
    errno = saved;
    return log->wp;
}

uint8_t *
log_raw_room(Log *log, size_t n)
{
    if (log->base == NULL || log->failed)
        return NULL;
    if ((size_t)(log->limit - log->wp) >= n) {
        if (log->max_size && (uint64_t)(log->wp - log->base) + n > log->max_size) {
            log_fail(2);
            return NULL;
        }
        return log->wp;
    }
    return log_grow(log, n);
}

uint8_t *
log_room(Log *log, size_t n)
{
    if (__builtin_expect(log_is_durable, 0) && log->base && !log->failed && !checksum_before(log))
        return NULL;
    return log_raw_room(log, n);
}

static uint64_t used_before; /* by this process while it was its parent: a child that is forked begins with none */

static uint64_t
used_by(int who)
{
    struct rusage usage;
    getrusage(who, &usage);
    return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000u +
           (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000u + (who == RUSAGE_SELF ? used_before : 0);
}

static uint64_t read_at, own;         /* when CPU time was read last, and what it was */
bool log_is_timed;                    /* a handler may come: each event's time is needed */
static uint64_t timed_at, read_timed; /* ns, of the last record, and of the last reading; 0: not timed */
static uint64_t not_repeated;         /* ns since the last record of work that a replay does not do */

static uint64_t
coarse_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* For whoever replays it, to know how long it may compute without an event. The coarse clock takes some 5 ns; CPU time,
 * a hundred times as much, is read so rarely that it costs nothing. */
static void
stamp(LogHeader *h)
{
    uint64_t now = coarse_now();
    if (now - read_at >= COARSE) {
        uint64_t before = own, passed;
        own = used_by(RUSAGE_SELF);
        passed = (own - before + 999999) / 1000000;
        if (h->last && now - h->last > LONG_DISTANCE && passed > h->longest)
            h->longest = passed < UINT32_MAX ? (uint32_t)passed : UINT32_MAX;
        h->cpu = (uint32_t)((own + used_by(RUSAGE_CHILDREN)) / 1000000);
        read_at = now;
        read_timed = log_is_timed ? monotonic_ns() : 0;
    }
    h->last = now;
    timed_at = log_is_timed ? monotonic_ns() : 0; /* 20 ns */
    not_repeated = 0;
}

uint64_t
log_used_time(void)
{
    return used_by(RUSAGE_SELF) + used_by(RUSAGE_CHILDREN);
}

void
log_time_forked(uint64_t used)
{
    used_before = used;
    own = used_by(RUSAGE_SELF);
    read_at = coarse_now();
    timed_at = read_timed = 0;
}

/* us of CPU time since the last record, at least: of the time before it that passed since CPU time was read, all may
 * have been computation. */
uint64_t
log_computed(void)
{
    if (event_log.base == NULL || header_of(&event_log)->last == 0)
        return 0;
    bool exact = timed_at && read_timed;
    uint64_t last = exact ? timed_at : header_of(&event_log)->last, now = exact ? monotonic_ns() : coarse_now();
    uint64_t passed = used_by(RUSAGE_SELF) - own, before = exact ? last - read_timed : last - read_at + COARSE;
    uint64_t since = now > last ? now - last : 0;
    passed = passed > before ? passed - before : 0;
    uint64_t computed = passed < since ? passed : since; /* threads of C code may compute, too */
    return (computed > not_repeated ? computed - not_repeated : 0) / 1000;
}

void
log_not_repeated(uint64_t ns)
{
    not_repeated += ns;
}

static void
forget(int *fd)
{
    if (*fd >= 0)
        fd_forget(*fd);
    *fd = -1;
}

int
logs_continue(void)
{
    read_at = 0;
    if (log_continue(&event_log, "log") < 0 || log_continue(&world_log, "world") < 0)
        return -1;
    forget(&followed_fd);
    forget(&program_fd);
    standby_page = NULL;
    return 0;
}

/* Written on in a file that the launcher has given, behind so many bytes. The old mapping stays. */
static int
continue_in(Log *log, int fd, size_t used)
{
    Log more = {.file = fd, .max_size = log->max_size, .rp = log->rp, .rend = log->rend};
    for (size_t done = 0; done < used;) {
        ssize_t n = pwrite(fd, log->base + done, used - done, (off_t)done);
        if (n <= 0)
            return -1;
        done += (size_t)n;
    }
    if (log_map(&more, 0, used + FIRST_SIZE, 0) < 0)
        return -1;
    more.wp = more.base + used;
    *log = more;
    begin_behind(log, used);
    return 0;
}

static int world_file;

int
logs_continue_in(int events, int world)
{
    world_file = world;
    read_at = 0;
    return continue_in(&event_log, events, (size_t)(event_log.rp - event_log.base));
}

/* Few futures import a module that the recorded run did not, and what it imported may be much. */
bool
log_world_continues(void)
{
    return world_log.wp || continue_in(&world_log, world_file, (size_t)(world_log.rend - world_log.base)) == 0;
}

void
log_commit(Log *log, uint8_t *end)
{
    if (__builtin_expect(log_is_durable, 0))
        checksum_extend(log, end);
    log->wp = end;
    LogHeader *h = header_of(log);
    if (log == &event_log)
        stamp(h);
    __atomic_store_n(&h->committed, (uint64_t)(end - log->base), __ATOMIC_RELEASE);
    __atomic_store_n(&h->crossings, core.crossings, __ATOMIC_RELEASE); /* whoever sees it sees the event, too */
}

void
log_reason(int reason)
{
    if (event_log.base)
        header_of(&event_log)->reason = (uint32_t)reason;
}

/* The most address space that the process had, when it ends: a replay may take about as much. */
void
log_memory(void)
{
    char text[2048] = "";
    int saved = errno, fd = event_log.base ? open("/proc/self/status", O_RDONLY | O_CLOEXEC) : -1;
    const char *found = fd >= 0 && read(fd, text, sizeof text - 1) > 0 ? strstr(text, "\nVmPeak:") : NULL;
    if (fd >= 0)
        close(fd);
    if (found)
        header_of(&event_log)->memory = (uint32_t)(strtoull(found + 8, NULL, 10) / 1024 + 1);
    else if (event_log.base)
        header_of(&event_log)->memory = (uint32_t)(without_proc_peak() >> 20);
    errno = saved;
}

void
log_signal_handled(void)
{
    if (event_log.base)
        header_of(&event_log)->signals++;
}

void
log_stop_in_child(void)
{
    event_log.base = world_log.base = NULL;
    transfers_forked();
    durable_forked(false);
    event_log.failed = world_log.failed = true;
    set_mode(OBSERVE);
    base_hooks.log_has_ended();
}

/* ---- reading ---- */

int
log_open(Log *log, int fd)
{
    struct stat st;
    if (fstat(fd, &st) < 0 || st.st_size < HEADER_SIZE)
        return -1;
    size_t size = core.follows ? MOST_FOLLOWED : (size_t)st.st_size;
    int protection = core.redigests ? PROT_READ | PROT_WRITE : PROT_READ;
    int kind = core.follows || core.redigests ? MAP_SHARED : MAP_PRIVATE;
    void *base = mmap(NULL, size, protection, kind | MAP_NORESERVE, fd, 0);
    if (core.follows && log == &event_log)
        followed_fd = fd_keep(fd);
    else
        close(fd);
    if (base == MAP_FAILED)
        return -1;
    log->base = base;
    uint64_t committed = header_of(log)->committed;
    if (committed < HEADER_SIZE || committed > (uint64_t)st.st_size)
        return -1;
    log->rp = log->base + HEADER_SIZE;
    log->rend = log->base + committed;
    return 0;
}

/* What was read of the old one stays mapped, since names of types lie there; or the same bytes come to lie there, where
 * that is the log of a child, too. */
int
log_replace(Log *log, int fd, uint64_t first, uint64_t last, Room to)
{
    Log other = {0};
    struct stat st;
    size_t at = (size_t)(log->rp - log->base), known = (size_t)(log->rend - log->base);
    if (fstat(fd, &st) < 0 || (size_t)st.st_size > to.size || log_open(&other, fd) < 0)
        return -1;
    size_t there = (size_t)(other.rend - other.base);
    if (at > there || last > there || last > known ||
        (first < last && memcmp(log->base + first, other.base + first, last - first) != 0))
        return -1;
    size_t size = (size_t)st.st_size;
    if (mremap(other.base, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, to.at) == MAP_FAILED)
        return -1;
    *log = (Log){.base = to.at, .rp = to.at + at, .rend = to.at + (other.rend - other.base)};
    return 0;
}

void
log_release_read(void)
{
    release_before(&event_log, event_log.rp);
}

const uint8_t *
log_first_record(const Log *log)
{
    return log->base + HEADER_SIZE;
}

/* ---- reading what is being written ---- */

void
log_follow_program(int fd)
{
    program_fd = fd < 0 ? -1 : fd_keep(fd);
}

void
log_follow_page(StandbyPage *page)
{
    standby_page = page;
}

static bool
is_still_written(void)
{
    struct stat st;
    struct pollfd end = {.fd = program_fd, .events = POLLIN};
    if (standby_page)
        return !__atomic_load_n(&standby_page->has_ended, __ATOMIC_ACQUIRE);
    if (program_fd >= 0)
        return poll(&end, 1, 0) <= 0; /* interrupted by a signal, nothing is known: it is asked again */
    return fstat(followed_fd, &st) == 0 && st.st_nlink > 0; /* sealing a recording unlinks it */
}

static void
pause_until_end(const struct timespec *pause)
{
    struct pollfd end = {.fd = program_fd, .events = POLLIN};
    if (program_fd >= 0)
        ppoll(&end, 1, pause, NULL);
    else /* which the fence lets through */
        nanosleep(pause, NULL);
}

/* A replay that runs behind its recording goes on when the next event is there: then everything before it is, too, and
 * what the importer saw until then. */
void
log_follow(void)
{
    struct timespec pause = {0, 50000};
    LogHeader *h = header_of(&event_log);
    if (standby_page)
        standby_page->events = core.crossings;
    while (__atomic_load_n(&h->crossings, __ATOMIC_ACQUIRE) <= core.crossings && (core.follows = is_still_written())) {
        base_hooks.waits_for_log();
        pause_until_end(&pause);
        pause.tv_nsec = pause.tv_nsec < 10000000 ? pause.tv_nsec * 2 : 10000000;
    }
    uint64_t committed = __atomic_load_n(&h->committed, __ATOMIC_ACQUIRE);
    struct stat st;
    if (committed < (uint64_t)(event_log.rp - event_log.base) || committed > MOST_FOLLOWED ||
        fstat(followed_fd, &st) < 0 || committed > (uint64_t)st.st_size)
        diverge("corrupt", NULL, NULL, "the recording became shorter while it was followed");
    event_log.rend = event_log.base + committed;
    world_log.rend = world_log.base + __atomic_load_n(&header_of(&world_log)->committed, __ATOMIC_ACQUIRE);
    base_hooks.world_may_have_grown();
}

void
log_append(Log *log, Buf *record)
{
    uint8_t *p = log_room(log, record->used);
    if (p) {
        memcpy(p, record->data, record->used);
        log_commit(log, p + record->used);
    }
    free(record->data);
    *record = (Buf){0};
}

/* Whether nothing is left for the program: what follows its last event are notes. */
bool
log_is_read(void)
{
    return event_log.base == NULL || event_log.rp >= event_log.rend ||
           core.crossings >= header_of(&event_log)->crossings;
}

/* Of a recording that was still written when the replay began. */
bool
log_has_stopped(void)
{
    return followed_fd < 0 || !is_still_written();
}

uint64_t
log_cpu_time(void)
{
    return header_of(&event_log)->cpu * (uint64_t)1000000;
}

uint64_t
log_begin(void)
{
    return header_of(&event_log)->start;
}
