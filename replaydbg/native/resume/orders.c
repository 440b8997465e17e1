/* What the launcher of a resumed program does for it. It opens files, sockets and what else there was: how each kind is
 * brought back is its matter, in Python. Here they are put at the numbers at which the program knows them. */
#include "base/core.h"
#include "crossing/crossing.h"
#include "files/files.h"
#include "gates/gates.h"
#include "lanes/lanes.h"
#include "log/log.h"
#include "memory/memory.h"
#include "resume/inside.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#define LARGEST_ORDER (64u << 20)
#define MOST_AT_ONCE 253 /* descriptors that a message carries, see unix(7) */
#define ABOVE 512        /* they are kept at numbers above, until all are there */
#define NUMBERS 4        /* of an order, at most */

enum { TIMERS = ITIMER_PROF + 1 };

static int launcher = -1;
static struct itimerval timers[TIMERS]; /* they begin when the handlers are there */
static int *passed;                     /* descriptors, in the order in which they came */
static size_t passed_count;
typedef struct {
    int fd;
    struct flock lock;
    char *name; /* of the file */
} RecordLock;
typedef struct {
    uint64_t event; /* which made the map */
    int own;        /* the descriptor that the map has of its file */
} MapAgain;
static MapAgain *maps; /* last of all: what the program stored in one is written to the file then */
static size_t map_count;
static RecordLock *record_locks; /* taken when all descriptors are there: they belong to this process */
static size_t record_lock_count;

void
orders_begin(int fd)
{
    launcher = fd_keep(fd);
}

/* The launcher does not want it, or is gone. */
_Noreturn static void
give_up(void)
{
    leave_process(0);
}

/* It was made for another version, or for another process. */
_Noreturn static void
refuse_order(void)
{
    diverge("resume", NULL, NULL, "it cannot carry out a request of its launcher (internal error)");
}

static void
send_all(const uint8_t *p, size_t n)
{
    while (n > 0) {
        ssize_t k = write(launcher, p, n); /* the fence lets it through; Python ignores SIGPIPE */
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            give_up();
        p += k;
        n -= (size_t)k;
    }
}

static void
keep_passed(struct msghdr *message)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
        size_t n =
            c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS ? (c->cmsg_len - CMSG_LEN(0)) / sizeof(int) : 0;
        passed = grown(passed, passed_count + n + 1, sizeof *passed);
        for (size_t i = 0; i < n; i++) {
            int fd, high;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
            high = fcntl(fd, F_DUPFD_CLOEXEC, ABOVE);
            if (high >= 0)
                close(fd);
            passed[passed_count++] = high >= 0 ? high : fd;
        }
    }
}

static void
receive_all(void *to, size_t n)
{
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(MOST_AT_ONCE * sizeof(int))];
    } control;
    for (uint8_t *p = to; n > 0;) {
        struct iovec piece = {p, n};
        struct msghdr message = {
            .msg_iov = &piece, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof control.room};
        ssize_t k = recvmsg(launcher, &message, MSG_CMSG_CLOEXEC);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            give_up();
        keep_passed(&message);
        p += k;
        n -= (size_t)k;
    }
}

/* Those that the program has open; `only_real`: that need not be opened again, see fd_is_real(). */
static void
report_descriptors(Buf *b, const char *key, bool only_real)
{
    Buf numbers = {0};
    uint64_t count = 0;
    for (int fd = 0; fd < MOST_LOOKED_AT; fd++)
        if (fcntl(fd, F_GETFD) >= 0 && !fd_is_ours(fd) && (!only_real || fd_is_real(fd))) {
            report_number(&numbers, fd);
            count++;
        }
    report_key(b, key);
    report_list(b, count);
    buf_bytes(b, numbers.data, numbers.used);
    free(numbers.data);
}

/* Each by the event that made it: what ends a map is not recorded. */
static void
report_maps(Buf *b)
{
    Buf numbers = {0};
    uint64_t n = 0, event;
    for (size_t i = 0; shared_map_event(i, &event); i++)
        if (event) {
            report_number(&numbers, (int64_t)event);
            n++;
        }
    report_list(b, n);
    buf_bytes(b, numbers.data, numbers.used);
    free(numbers.data);
}

static void
send_report(const Buf *b)
{
    uint64_t length = b->used;
    if (launcher < 0 && (launcher = standby_page_connect()) < 0)
        give_up();
    send_all((const uint8_t *)&length, sizeof length);
    send_all(b->data, b->used);
}

static void
ask(uint64_t event, int lane)
{
    Buf b = {0};
    report_dict(&b, 8);
    report_key(&b, "event");
    report_number(&b, (int64_t)event);
    report_key(&b, "thread");
    report_number(&b, lane);
    report_descriptors(&b, "fds", false);
    report_descriptors(&b, "real", true);
    report_key(&b, "loads");
    contexts_report(&b);
    report_key(&b, "calls");
    calls_report(&b);
    report_key(&b, "maps");
    report_maps(&b);
    report_key(&b, "sent");
    sent_report(&b);
    send_report(&b);
    free(b.data);
}

_Noreturn void
orders_report(uint64_t event, int lane)
{
    ask(event, lane);
    leave_process(0);
}

static void
report_end(uint64_t event)
{
    Buf b = {0};
    report_dict(&b, 2);
    report_key(&b, "event");
    report_number(&b, (int64_t)event);
    report_key(&b, "ended");
    report_number(&b, 1);
    send_report(&b);
    free(b.data);
}

_Noreturn void
orders_report_end(uint64_t event)
{
    report_end(event);
    leave_process(0);
}

static void
put(int64_t fd, int64_t index, bool closes)
{
    if (index < 0 || (size_t)index >= passed_count || fd < 0 || fd > INT32_MAX || fd_is_ours((int)fd))
        refuse_order();
    if (dup3(passed[index], (int)fd, closes ? O_CLOEXEC : 0) < 0)
        diverge("resume", NULL, NULL, "its limit of open descriptors (ulimit -n) is lower than it was");
    if ((int)fd == 0)
        clearerr(stdin);
}

/* The passed descriptor is replaced by a pidfd of the process that stands for `pid`. */
static void
follow_process(int64_t index, pid_t pid, bool is_nonblocking)
{
    int fd = (int)syscall(SYS_pidfd_open, pid_today(pid), is_nonblocking ? O_NONBLOCK : 0);
    if (index < 0 || (size_t)index >= passed_count || fd < 0 || dup3(fd, passed[index], O_CLOEXEC) < 0)
        refuse_order();
    close(fd);
}

static void
enter(int64_t index)
{
    if (index < 0 || (size_t)index >= passed_count || fchdir(passed[index]) < 0)
        refuse_order();
}

/* The texts follow the numbers, each with its NUL; behind the data there are more of these. */
static void
stand_in(const int64_t *n, const char *data)
{
    const char *texts[4];
    data += 4 * sizeof *n;
    for (int i = 0; i < 4; i++, data += strlen(data) + 1)
        texts[i] = data;
    endpoint_stands_for((int)n[0], (unsigned)n[1], (uint64_t)n[2], (uint32_t)n[3], texts);
}

static void
want_lock(const int64_t *n, const char *name)
{
    record_locks = grown(record_locks, record_lock_count + 1, sizeof *record_locks);
    record_locks[record_lock_count++] =
        (RecordLock){.fd = (int)n[0],
                     .lock = {.l_type = n[3] ? F_WRLCK : F_RDLCK, .l_whence = SEEK_SET, .l_start = n[1], .l_len = n[2]},
                     .name = strdup(name)};
}

static void
close_passed(void)
{
    for (size_t i = 0; i < passed_count; i++)
        close(passed[i]);
    free(passed);
    passed = NULL;
    passed_count = 0;
}

/* Closing any descriptor of a file releases the process's locks in it, so the passed ones are closed before. */
static void
take_locks(void)
{
    close_passed();
    for (size_t i = 0; i < record_lock_count; i++) {
        const RecordLock *each = &record_locks[i];
        char text[512];
        if (fcntl(each->fd, F_SETLK, &each->lock) == 0)
            continue;
        if (errno == EAGAIN || errno == EACCES)
            snprintf(text, sizeof text, "another process holds its lock on %s", each->name);
        else
            snprintf(text, sizeof text, "its lock on %s cannot be taken again: %s", each->name, strerror(errno));
        diverge("resume", NULL, NULL, text);
    }
    for (size_t i = 0; i < record_lock_count; i++)
        free(record_locks[i].name);
    free(record_locks);
    record_locks = NULL;
    record_lock_count = 0;
}

static void
want_map(const int64_t *n)
{
    maps = grown(maps, map_count + 1, sizeof *maps);
    maps[map_count++] = (MapAgain){(uint64_t)n[0], (int)n[1]};
}

const char *
orders_map(void)
{
    static char text[160];
    for (size_t i = 0; i < map_count; i++)
        if (!shared_continue(maps[i].event, maps[i].own)) {
            snprintf(text, sizeof text, "the file of the map that event %llu made cannot be mapped again: %s",
                     (unsigned long long)maps[i].event, strerror(errno));
            return text;
        }
    free(maps);
    maps = NULL;
    map_count = 0;
    return NULL;
}

static void
follow(uint8_t kind, const int64_t *n)
{
    struct epoll_event event = {.events = (uint32_t)n[2], .data.fd = (int)n[1]};
    if (kind == 'P')
        put(n[0], n[1], n[2] != 0);
    else if (kind == 'C' && n[0] >= 0 && !fd_is_ours((int)n[0]))
        close((int)n[0]);
    else if (kind == 'E')
        epoll_ctl((int)n[0], EPOLL_CTL_ADD, (int)n[1], &event);
    else if (kind == 'T' && n[0] >= 0 && n[0] < TIMERS)
        timers[n[0]] = (struct itimerval){{n[2] / 1000000000, n[2] % 1000000000 / 1000},
                                          {n[1] / 1000000000, n[1] % 1000000000 / 1000}};
    else if (kind == 'K')
        child_lost((pid_t)n[0]);
    else if (kind == 'Q')
        follow_process(n[0], (pid_t)n[1], n[2] != 0);
    else if (kind == 'M')
        want_map(n);
    else if (kind == 'I') {
        pid_stands_for((pid_t)n[0], (pid_t)n[1]);
        lanes_relink_pids();
    }
    else if (kind == 'D')
        enter(n[0]);
    else if (kind == 'U')
        umask((mode_t)n[0]);
    else if (kind != 'F' && kind != 'C' && kind != 'T') /* 'F' carries descriptors only */
        refuse_order();
}

/* Descriptors of the replay's own, which a program that is recorded has none of. */
void
orders_end(void)
{
    int *all[] = {&core.report_fd, &core.out_fd[1], &core.out_fd[2], &core.null_fd, &core.socket_fd, &launcher};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (*all[i] >= 0)
            fd_forget(*all[i]);
        *all[i] = -1;
    }
    for (int which = 0; which < TIMERS; which++)
        if (timers[which].it_value.tv_sec || timers[which].it_value.tv_usec)
            setitimer(which, &timers[which], NULL);
}

typedef struct {
    uint8_t kind;
    uint64_t length;
} __attribute__((packed)) Head;

static void
await_order(uint8_t kind)
{
    Head head;
    receive_all(&head, sizeof head);
    if (head.kind != kind)
        refuse_order();
}

void
orders_await_go(void)
{
    send_all((const uint8_t *)"R", 1);
    await_order('G');
}

void
orders_await_end(uint64_t event)
{
    report_end(event);
    await_order('A');
    orders_await_go();
}

void
orders_follow(uint64_t event, int lane)
{
    int saved = errno;
    ask(event, lane);
    for (;;) {
        Head head;
        receive_all(&head, sizeof head);
        if (head.kind == 'A')
            break;
        uint8_t *data = head.length > LARGEST_ORDER ? NULL : calloc(1, head.length + NUMBERS * sizeof(int64_t));
        if (data == NULL)
            refuse_order();
        receive_all(data, head.length);
        int64_t numbers[NUMBERS];
        memcpy(numbers, data, sizeof numbers);
        if (head.kind == 'S' && head.length >= 16)
            call_settle((int)numbers[0], numbers[1] == 1, data + 16, head.length - 16);
        else if (head.kind == 'L' && head.length >= 16)
            context_settle((uint64_t)numbers[0], numbers[1] == 1, (const char *)data + 16, head.length - 16);
        else if (head.kind == 'R' && head.length >= sizeof numbers)
            want_lock(numbers, (const char *)data + sizeof numbers);
        else if (head.kind == 'N' && head.length >= sizeof numbers)
            stand_in(numbers, (const char *)data);
        else
            follow(head.kind, numbers);
        free(data);
    }
    take_locks();
    errno = saved;
}
