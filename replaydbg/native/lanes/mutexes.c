/* Mutexes of SQLite, which holds a connection's while it runs a statement: also while it waits for a locked database,
 * and while a function of the program runs in the middle of it. For the C library all lanes are one thread, so it would
 * let a second lane into a connection that the first one is still at work in. Who holds a mutex is noted here, and
 * other lanes wait. */
#include "base/core.h"
#include "lanes/inside.h"
#include <errno.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOST_HELD = 256 };
static struct {
    pthread_mutex_t *mutex;
    int lane, depth;
} held[MOST_HELD];
static int held_count;

static int
index_of(const pthread_mutex_t *mutex)
{
    for (int i = held_count - 1; i >= 0; i--)
        if (held[i].mutex == mutex)
            return i;
    return -1;
}

static bool
is_held_by_another(const pthread_mutex_t *mutex)
{
    int i = index_of(mutex);
    return i >= 0 && held[i].lane != lanes.running->id;
}

static void
note_taken(pthread_mutex_t *mutex)
{
    int i = index_of(mutex);
    if (i < 0 && held_count < MOST_HELD) {
        i = held_count++;
        held[i].mutex = mutex;
        held[i].lane = lanes.running->id;
        held[i].depth = 0;
    }
    if (i >= 0)
        held[i].depth++;
}

static bool
is_lane(void)
{
    return on_lanes && lanes.is_on && lanes.running;
}

static int
our_mutex_lock(pthread_mutex_t *mutex)
{
    if (!is_lane())
        return pthread_mutex_lock(mutex);
    while (is_held_by_another(mutex))
        lane_wait(mutex, "a lock of a library", NEVER, false);
    int rc = pthread_mutex_lock(mutex);
    if (rc == 0)
        note_taken(mutex);
    return rc;
}

static int
our_mutex_trylock(pthread_mutex_t *mutex)
{
    if (!is_lane())
        return pthread_mutex_trylock(mutex);
    if (is_held_by_another(mutex))
        return EBUSY;
    int rc = pthread_mutex_trylock(mutex);
    if (rc == 0)
        note_taken(mutex);
    return rc;
}

static int
our_mutex_unlock(pthread_mutex_t *mutex)
{
    int rc = pthread_mutex_unlock(mutex), i = is_lane() ? index_of(mutex) : -1;
    if (i >= 0 && --held[i].depth == 0) {
        held[i] = held[--held_count];
        lane_wake_first(mutex);
    }
    return rc;
}

/* In a copy of the process the thread has another number, by which the C library knows whose a mutex is. */
void
mutexes_copied(void)
{
    for (int i = 0; i < held_count; i++)
        held[i].mutex->__data.__owner = (int)syscall(SYS_gettid);
}

static const Relink functions[] = {{"pthread_mutex_lock", (void *)our_mutex_lock},
                                   {"pthread_mutex_trylock", (void *)our_mutex_trylock},
                                   {"pthread_mutex_unlock", (void *)our_mutex_unlock},
                                   {NULL, NULL}};

void
mutexes_library_loaded(void)
{
    /* a build of Python may have SQLite inside its module */
    static Relinking library = {.functions = functions, .only_named = "libsqlite3"},
                     module = {.functions = functions, .only_named = "_sqlite3"};
    relink(&library);
    relink(&module);
}
