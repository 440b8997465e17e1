/* Processes of a group: a program and the children that it forks, each with a recording of its own. A child is its
 * parent up to the fork, so its recording is its parent's up to the fork, then its own. What its parent has written by
 * then never changes; so nothing is copied: `branch.json` in the child's directory says how much of the parent's logs
 * comes before its own. Definitions, numbers of events and whatever else the core counts go on in the child, whose
 * memory has them.
 *
 * The directory of the group has a file `page`, which all of its processes have mapped: the launcher makes it, and
 * replaydbg/log/group.py reads it. Each child gets a number and a row there when it is about to be made. A fifo,
 * `wake`, tells the process that seals recordings of a new row. No descriptor is kept open. */
#include "base/core.h"
#include "log/inside.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CHILD_SIZE (64u << 10) /* of each of a child's logs at first: many children log little */
#define MOST_DEEP 50           /* a reader opens the recordings of as many parents at once */

static struct {
    GroupHead *page; /* NULL: no group, or this child is not recorded */
    char *directory;
    unsigned process, depth, child; /* child: the number of the one that is being made; 0: none */
    bool is_prepared, is_child;
    unsigned synced;  /* rows that the disk has */
    size_t before[2]; /* bytes of the two logs that come before this process's own */
    uint64_t used;    /* CPU time */
} group;

ProcessRow *
group_row(unsigned number)
{
    return (ProcessRow *)(group.page + 1) + (number - 1);
}

unsigned
group_number(void)
{
    return group.page ? group.process : 0;
}

const char *
group_directory(void)
{
    return group.directory;
}

unsigned
group_rows(void)
{
    unsigned count = __atomic_load_n(&group.page->count, __ATOMIC_SEQ_CST);
    return count < group.page->limit ? count : group.page->limit;
}

bool
group_is_on(void)
{
    return group.page != NULL;
}

bool
group_is_alone(void)
{
    return __atomic_load_n(&group.page->count, __ATOMIC_RELAXED) == 1;
}

bool
group_may_grow(uint64_t n)
{
    if (group.page == NULL || group.page->max_size == 0)
        return true;
    /* of one process, the log has the same limit, by bytes that it has used */
    return __atomic_add_fetch(&group.page->size, n, __ATOMIC_SEQ_CST) <= group.page->max_size || group_is_alone();
}

uint64_t
group_ticket(void)
{
    return __atomic_add_fetch(&group.page->tickets, 1, __ATOMIC_SEQ_CST);
}

/* A cut is a value of the clock: what has a ticket up to it is in it. The file has a line for each, see
 * replaydbg/log/live_cuts.py; one write() appends it as a whole. */
void
group_take_cut(const char *name)
{
    static const char digits[] = "0123456789abcdef";
    char path[4200], line[2 * LONGEST_NAME_OF_CUT + 100];
    struct timespec now;
    int saved = errno;
    if (group.page == NULL || group.directory == NULL || core.mode != RECORD)
        return;
    clock_gettime(CLOCK_REALTIME, &now);
    int n = snprintf(line, sizeof line, "%llu %lld%09ld %u %llu ",
                     (unsigned long long)__atomic_load_n(&group.page->tickets, __ATOMIC_SEQ_CST), (long long)now.tv_sec,
                     now.tv_nsec, group.process, (unsigned long long)core.crossings);
    for (size_t i = 0; name[i] && i < LONGEST_NAME_OF_CUT; i++) {
        line[n++] = digits[(uint8_t)name[i] >> 4];
        line[n++] = digits[(uint8_t)name[i] & 15];
    }
    line[n++] = '.';
    line[n++] = '\n';
    snprintf(path, sizeof path, "%s/cuts", group.directory);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0) {
        ssize_t done = write(fd, line, (size_t)n);
        if (done <= n)
            close(fd);
    }
    errno = saved;
}

/* The process that seals may be busy, or gone: nobody waits for it. */
static void
wake_sealer(void)
{
    char path[4200];
    int saved = errno;
    snprintf(path, sizeof path, "%s/wake", group.directory);
    int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0) {
        ssize_t done = write(fd, "", 1);
        if (done <= 1)
            close(fd);
    }
    errno = saved;
}

static void *
map_page(const char *page)
{
    struct stat st;
    int fd = open(page, O_RDWR | O_CLOEXEC);
    void *at = MAP_FAILED;
    if (fd >= 0 && fstat(fd, &st) == 0)
        at = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    return at == MAP_FAILED ? NULL : at;
}

void
group_has_no_room(const char *page, unsigned process)
{
    if ((group.page = map_page(page)) == NULL)
        return;
    __atomic_store_n(&group_row(process)->why_not, NO_ROOM, __ATOMIC_SEQ_CST);
    group.page = NULL; /* the map ends with this program */
}

int
group_open(const char *page, unsigned process)
{
    if ((group.page = map_page(page)) == NULL)
        return -1;
    group.directory = strdup(page);
    *strrchr(group.directory, '/') = 0;
    group.process = process;
    group.before[0] = group.before[1] = HEADER_SIZE;
    group_row(process)->pid = getpid();
    if (process > 1) { /* it has joined */
        group_may_grow(2 * FIRST_SIZE);
        __atomic_store_n(&group_row(process)->why_not, IS_RECORDED, __ATOMIC_SEQ_CST);
        wake_sealer();
    }
    transfers_begin();
    return 0;
}

int
group_continue(const char *page, unsigned process, uint32_t endpoints, uint32_t addresses)
{
    if ((group.page = map_page(page)) == NULL)
        return -1;
    group.directory = strdup(page);
    *strrchr(group.directory, '/') = 0;
    group.process = process;
    group.before[0] = group.before[1] = HEADER_SIZE; /* its files have what its parent had written, too */
    return transfers_continue(endpoints, addresses);
}

/* Of a future: both are files in memory, and nothing of the group has a path. */
int
group_continue_in(int page, int transfers, unsigned process, uint32_t endpoints, uint32_t addresses)
{
    struct stat st;
    if (fstat(page, &st) < 0)
        return -1;
    void *at = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, page, 0);
    if (at == MAP_FAILED)
        return -1;
    group.page = at;
    group.process = process;
    group.before[0] = group.before[1] = HEADER_SIZE;
    return transfers_continue_in(transfers, endpoints, addresses);
}

unsigned
group_new_row(unsigned how)
{
    unsigned number = __atomic_add_fetch(&group.page->count, 1, __ATOMIC_SEQ_CST);
    if (number > group.page->limit)
        return 0;
    group_row(number)->parent = group.process;
    group_row(number)->how = how;
    return number;
}

void
group_sync(void)
{
    char path[4200];
    if (group.page == NULL || group.directory == NULL || group_rows() == group.synced)
        return;
    group.synced = group_rows();
    snprintf(path, sizeof path, "%s/page", group.directory);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd >= 0) {
        fdatasync(fd); /* it has no events: if it is lost, the recordings are not */
        close(fd);
    }
}

/* ---- the files of a child, made by its parent: the fork then takes no longer for the child than for others ---- */

static void
path_in_child(char *path, size_t size, const char *name)
{
    snprintf(path, size, "%s/%u.rdbg-live%s%s", group.directory, group.child, *name ? "/" : "", name);
}

static bool
make_file(const char *name, const void *data, size_t n, size_t size)
{
    char path[4200];
    path_in_child(path, sizeof path, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool done = fd >= 0 && write(fd, data, n) == (ssize_t)n;
    done = done && (size == 0 || posix_fallocate(fd, 0, (off_t)size) == 0);
    done = done && (!log_is_durable || fsync(fd) == 0);
    if (fd >= 0)
        close(fd);
    return done;
}

/* An empty Buf: it cannot be read. */
static Buf
content_of(const char *name)
{
    char path[4200];
    Buf b = {0};
    snprintf(path, sizeof path, "%s/%s", core.live_dir, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    for (ssize_t n = 1; fd >= 0 && n > 0; b.used += n > 0 ? (size_t)n : 0) {
        buf_reserve(&b, 65536);
        n = read(fd, b.data + b.used, 65536);
    }
    if (fd >= 0)
        close(fd);
    return b;
}

/* What was noted before the fork holds for the child, too, except what was said of other children. */
static bool
make_notes(void)
{
    Buf notes = content_of("notes"), kept = {0};
    for (size_t at = 0; at < notes.used;) {
        const char *line = (const char *)notes.data + at, *end = memchr(line, '\n', notes.used - at);
        size_t n = end ? (size_t)(end - line) + 1 : notes.used - at;
        if (!(n > 6 && memcmp(line, "child\t", 6) == 0) && !(n > 7 && memcmp(line, "silent\t", 7) == 0))
            buf_bytes(&kept, line, n);
        at += n;
    }
    bool done = kept.used == 0 || make_file("notes", kept.data, kept.used, 0);
    free(notes.data);
    free(kept.data);
    return done;
}

static bool
make_log(Log *log, const char *name)
{
    LogHeader h = *header_of(log);
    h.committed = HEADER_SIZE;
    h.crossings = core.crossings;
    h.cpu = (uint32_t)(group.used / 1000000);
    return make_file(name, &h, sizeof h, CHILD_SIZE);
}

static size_t
used_of(const Log *log, int i)
{
    return group.before[i] + (size_t)(log->wp - log->base) - HEADER_SIZE;
}

static bool
make_branch(void)
{
    char text[300];
    int n = snprintf(
        text, sizeof text,
        "{\"process\": %u, \"parent\": %u, \"event\": %llu, \"log\": %zu, \"world\": %zu, \"content\": %llu}\n",
        group.child, group.process, (unsigned long long)core.crossings + 1, used_of(&event_log, 0),
        used_of(&world_log, 1), (unsigned long long)content_used());
    return make_file("branch.json", text, (size_t)n, 0);
}

static bool
make_header(void)
{
    Buf header = content_of("header.json");
    bool done = header.used > 0 && make_file("header.json", header.data, header.used, 0);
    free(header.data);
    return done;
}

static void
remove_files(void)
{
    static const char *const names[] = {"log", "world", "notes", "branch.json", "header.json", ""};
    char path[4200];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        path_in_child(path, sizeof path, names[i]);
        if (*names[i])
            unlink(path);
        else
            rmdir(path);
    }
}

static unsigned
prepare(void)
{
    char path[4200];
    FileLimit held;
    if (group.depth >= MOST_DEEP)
        return TOO_DEEP;
    if (!group_may_grow(2 * CHILD_SIZE))
        return TOO_LARGE;
    path_in_child(path, sizeof path, "");
    if (mkdir(path, 0700) < 0)
        return NO_ROOM;
    file_limit_hold(&held);
    group.used = log_used_time();
    bool done =
        make_header() && make_notes() && make_log(&event_log, "log") && make_log(&world_log, "world") && make_branch();
    file_limit_release(&held);
    path_in_child(path, sizeof path, "");
    done = done && durable_entries(path) == 0 && durable_entries(group.directory) == 0;
    log_sync(); /* its recording begins with what this one has */
    if (!done)
        remove_files();
    return done ? IS_RECORDED : NO_ROOM;
}

/* ---- a fork ---- */

void
group_fork_begins(void)
{
    int saved = errno;
    group.is_prepared = group.is_child = false;
    group.child = group.page && core.mode == RECORD ? group_new_row(HOW_FORKED) : 0;
    if (group.child) {
        ProcessRow *child = group_row(group.child);
        child->event = core.crossings + 1;
        child->why_not = prepare();
        group.is_prepared = child->why_not == IS_RECORDED;
    }
    errno = saved;
}

bool
group_will_record(void)
{
    return group.is_prepared;
}

void
group_fork_ended(int pid)
{
    int saved = errno;
    lock_passed_on(-1);
    if (group.child && pid < 0) {
        group_row(group.child)->failed = 1;
        if (group.is_prepared)
            remove_files();
    }
    else if (group.child)
        __atomic_store_n(&group_row(group.child)->pid, pid, __ATOMIC_SEQ_CST);
    if (group.child)
        wake_sealer();
    group.child = 0;
    group.is_prepared = false;
    errno = saved;
}

static bool
take_log(Log *log, const char *name)
{
    char path[4200];
    path_in_child(path, sizeof path, name);
    log->path = strdup(path); /* the old one is its parent's, like its map, which this process has not got */
    log->base = NULL;
    log->released = 0;
    return log_map(log, 0, CHILD_SIZE, 0) == 0;
}

bool
group_child_begins(void)
{
    char path[4200];
    int32_t nobody = 0;
    bool goes_on = group.is_prepared && core.mode == RECORD;
    if (goes_on) {
        size_t before[2] = {used_of(&event_log, 0), used_of(&world_log, 1)};
        goes_on = take_log(&event_log, "log") && take_log(&world_log, "world");
        if (!goes_on)
            group_row(group.child)->why_not = NO_ROOM;
        memcpy(group.before, before, sizeof before);
    }
    if (!goes_on) {
        group.page = NULL;
        return false;
    }
    /* its parent may be killed before it can tell */
    __atomic_compare_exchange_n(&group_row(group.child)->pid, &nobody, getpid(), false, __ATOMIC_SEQ_CST,
                                __ATOMIC_SEQ_CST);
    path_in_child(path, sizeof path, "");
    core.live_dir = strdup(path);
    group.process = group.child;
    group.depth++;
    group.child = 0;
    group.is_prepared = false;
    group.is_child = true;
    log_time_forked(group.used);
    content_forked();
    started_forked();
    transfers_forked();
    transfers_begin();
    durable_forked(true);
    return true;
}

bool
group_is_child(void)
{
    return group.is_child;
}
