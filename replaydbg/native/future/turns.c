/* Whose turn it is: see turns.h. Each process waits at an eventfd of its own while it has not got the turn, and so does
 * everything in it. The launcher passes the turn on for one that has ended, which closes what it had open first. */
#include "future/turns.h"
#include "clock/clock.h"
#include "future/layer.h"
#include "lanes/lanes.h"
#include "resume/resume.h"
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

typedef enum { BEGINS, CAN_RUN, WAITS_FOR_NEWS, RUNS, HAS_ENDED } State;
typedef struct {
    uint32_t state;
    int32_t status;
    uint64_t deadline, looked; /* looked: `changes` when it found nothing */
    uint64_t ended_as;
    uint64_t signals, sent; /* by number, from bit 0: to be taken with the next turn; all that it was ever sent */
} Member;
typedef struct {
    uint64_t path;
    uint32_t member, unused; /* from 1; 0: none */
} Changed;
typedef struct {
    uint32_t count, arrived;
    uint32_t chance;  /* of 1024: to give way at an event */
    uint32_t is_hung; /* all wait, and for no time */
    uint32_t chooses; /* whoever gets the turn is to choose who has it: somebody has ended */
    uint32_t unused;
    uint64_t now; /* ns since the moment; the clocks of a process are ahead by what they were */
    uint64_t random, changes, ends;
    uint64_t wall, unused_too; /* the latest wall clock of any process at the moment */
    Member member[MOST_MEMBERS];
    Changed changed[MOST_CHANGED];
    sem_t semaphore[MOST_SEMAPHORES];
    uint8_t board[BOARD_SIZE];
    uint64_t readings[MOST_CLOCKS]; /* the latest ones of any process before the moment */
} Page;
_Static_assert(offsetof(Page, member) == 72 && sizeof(Member) == 48 && sizeof(sem_t) == 32, "see turn_page.py");

static Page *page;
static int turn[MOST_MEMBERS], me;
static uint64_t began; /* the simulated time of this process at the moment */
static uint64_t lag;   /* ns that it stands before the latest one of all */

/* splitmix64, as in lanes.c */
static uint64_t
draw(void)
{
    uint64_t z = page->random += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static bool
may_have_news(const Member *m)
{
    return m->state == CAN_RUN ||
           (m->state == WAITS_FOR_NEWS && (m->looked < page->changes || m->deadline <= page->now));
}

static int
choose(void)
{
    int may[MOST_MEMBERS], n = 0, first = -1, waiting = 0;
    for (int i = 0; i < (int)page->count; i++)
        if (may_have_news(&page->member[i]))
            may[n++] = i;
    if (n)
        return may[draw() % (uint64_t)n];
    for (int i = (int)page->count - 1; i >= 0; i--) {
        const Member *m = &page->member[i];
        if (m->state != WAITS_FOR_NEWS)
            continue;
        waiting = i;
        if (m->deadline != NEVER && (first < 0 || m->deadline <= page->member[first].deadline))
            first = i;
    }
    if (first >= 0) {
        page->now = page->member[first].deadline;
        return first;
    }
    page->is_hung = 1;
    return waiting;
}

static void
pass(int to)
{
    uint64_t one = 1;
    if (write(turn[to], &one, sizeof one) != sizeof one)
        leave_process(0); /* nobody wants this future any more */
}

static void
await_turn(void)
{
    for (;;) {
        uint64_t count;
        ssize_t n;
        while ((n = read(turn[me], &count, sizeof count)) < 0 && errno == EINTR)
            ;
        if (n != sizeof count)
            leave_process(0);
        if (!page->chooses)
            return;
        page->chooses = 0;
        int next = choose();
        if (next == me)
            return;
        pass(next);
    }
}

/* Once the handlers are there. The main thread takes them: another one may have blocked some. */
static void
take_signals(void)
{
    Member *m = &page->member[me];
    sigset_t before;
    bool is_main = (lanes.running ? lanes.running : lanes.chooser) == lanes.main;
    if (m->signals == 0 || live_handlers_wait())
        return;
    if (!is_main)
        sigprocmask(SIG_SETMASK, &lanes.main->mask, &before);
    for (int signum = 1; m->signals; signum++)
        if (m->signals >> (signum - 1) & 1) {
            m->signals &= ~((uint64_t)1 << (signum - 1));
            kill(getpid(), signum);
        }
    if (!is_main)
        sigprocmask(SIG_SETMASK, &before, NULL);
}

static void
begin_turn(void)
{
    page->member[me].state = RUNS;
    simulated_reaches(began + page->now);
    meetings_look();
    take_signals();
}

/* It is as `state` says until it has the turn again, which it may at once. */
static void
give_way(State state)
{
    Member *m = &page->member[me];
    uint64_t now = time_now() - began;
    m->state = state;
    page->now = now > page->now ? now : page->now;
    int next = choose();
    if (next != me) {
        pass(next);
        await_turn();
    }
    begin_turn();
}

void
turns_join(int file, const int turns[], int count, int own)
{
    void *at = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (at == MAP_FAILED)
        diverge("outside", NULL, NULL, "memory for the page that processes share");
    page = at;
    me = own;
    memcpy(turn, turns, (size_t)count * sizeof *turns);
}

void *
turns_board(void)
{
    return page->board;
}

sem_t *
turns_semaphore(int index)
{
    return &page->semaphore[index];
}

void
turns_raise(int index, unsigned value)
{
    if (me == 0) /* before any of them runs */
        sem_init(&page->semaphore[index], 1, value);
}

static void
raise_to(uint64_t *at, uint64_t value)
{
    uint64_t latest = __atomic_load_n(at, __ATOMIC_SEQ_CST);
    while (latest < value &&
           !__atomic_compare_exchange_n(at, &latest, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        ;
}

/* Processes of one machine have the same clocks. Where each of them stands in the cut, it has read another time; from
 * there on all have the latest one. */
void
turns_begin(uint64_t wall)
{
    if (page == NULL)
        return;
    Member *m = &page->member[me];
    began = time_now();
    raise_to(&page->wall, wall);
    for (int i = 0; i < MOST_CLOCKS; i++)
        raise_to(&page->readings[i], clocks_reading(i));
    m->deadline = NEVER;
    __atomic_store_n(&m->state, CAN_RUN, __ATOMIC_SEQ_CST);
    if (__atomic_add_fetch(&page->arrived, 1, __ATOMIC_SEQ_CST) == page->count)
        pass(choose());
    await_turn();
    simulated_steps((int64_t)(page->wall - wall));
    lag = page->wall - wall;
    begin_turn();
}

/* of resume_hooks */
uint64_t
turns_reading(int clock, uint64_t own)
{
    bool is_own = clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID;
    return page && !is_own && page->readings[clock] > own ? page->readings[clock] : own;
}

uint64_t
turns_passed(void)
{
    return page ? time_now() - began : 0;
}

void
turns_event(void)
{
    if (page == NULL)
        return;
    page->changes++;
    if (draw() % 1024 < page->chance)
        give_way(CAN_RUN);
    take_signals();
}

/* of lanes_hooks */
bool
turns_are_taken(void)
{
    return page != NULL;
}

void
turns_news(void)
{
    if (page)
        page->changes++;
}

/* Where it stands in the cut, its last call may have begun some time before the latest one of all: what it waits for ends
 * that much earlier. All clocks stay as they are. */
static void
catch_up(void)
{
    began += lag;
    simulated_jumps(lag);
    clocks_set_back(lag);
    lag = 0;
}

bool
turns_wait(uint64_t deadline, bool has_run)
{
    Member *m = &page->member[me];
    if (lag)
        catch_up();
    if (has_run) /* what it has done since, others have not looked at */
        page->changes++;
    if (m->signals && live_handlers_wait())
        diverge("outside", NULL, NULL, "a signal before its first call after the moment");
    m->deadline = deadline == NEVER ? NEVER : deadline < began ? 0 : deadline - began;
    m->looked = page->changes;
    give_way(WAITS_FOR_NEWS);
    bool is_over = page->is_hung && m->looked == page->changes; /* else its turn has brought something */
    page->is_hung = is_over;
    return !is_over;
}

void
turns_send(int member, int signum)
{
    uint64_t bit = signum ? (uint64_t)1 << (signum - 1) : 0;
    if (signum == SIGSTOP || signum == SIGTSTP || signum == SIGTTIN || signum == SIGTTOU || signum == SIGCONT)
        diverge("outside", NULL, NULL, "to stop another process");
    if (page->member[member].state == HAS_ENDED)
        return; /* nobody has waited for it yet */
    page->member[member].signals |= bit;
    page->member[member].sent |= bit;
    page->changes++;
}

bool
turn_has_ended(int member, int *status)
{
    if (page->member[member].state != HAS_ENDED)
        return false;
    *status = page->member[member].status;
    return true;
}

uint64_t
turn_ended_as(int member)
{
    return page->member[member].ended_as;
}

/* ---- files ---- */

uint64_t
turns_path(const char *path, int what)
{
    uint64_t found = page ? hash_bytes(path, strlen(path), (uint64_t)what) : 0;
    return page && found == 0 ? 1 : found;
}

/* Where a path is, or could be put. */
static Changed *
place_of(uint64_t path)
{
    for (uint64_t i = 0; i < MOST_CHANGED; i++) {
        Changed *c = &page->changed[(path + i) % MOST_CHANGED];
        if (c->member == 0 || c->path == path)
            return c;
    }
    diverge("outside", NULL, NULL, "more changed files than the future of a group can have");
}

#define SEVERAL UINT32_MAX /* processes have changed it */

void
turns_change(uint64_t path)
{
    if (path == 0)
        return;
    turns_look(path);
    *place_of(path) = (Changed){path, (uint32_t)me + 1, 0};
}

/* Two processes may make names in one directory: nobody knows what is in it then, and names in it are as they were. */
void
turns_change_listing(const char *path)
{
    char parent[LONGEST_NAME];
    name_parent(parent, path);
    uint64_t listing = turns_path(parent, PATH_LISTING);
    if (listing == 0)
        return;
    Changed *c = place_of(listing);
    *c = (Changed){listing, c->member == 0 || c->member == (uint32_t)me + 1 ? (uint32_t)me + 1 : SEVERAL, 0};
}

void
turns_look(uint64_t path)
{
    const Changed *c = path ? place_of(path) : NULL;
    if (c && c->member && c->member != (uint32_t)me + 1)
        diverge("outside", NULL, NULL, "a file that another process of the group has changed");
}
