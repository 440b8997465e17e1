/* The time of a future. It passes with what the program computes, and where all of its threads wait it jumps to the first
 * deadline: nobody waits for real, and the same future takes the same time on any machine. */
#include "base/core.h"
#include "clock/inside.h"
#include <time.h>

enum { TICK = 50, EVENT = 1000 }; /* ns; more or less what they take */

static uint64_t now, counted;
static int64_t wall_shift, computed_shift; /* from there to the wall clock, and to the CPU time */

uint64_t
time_now(void)
{
    return core.is_future ? now : monotonic_ns();
}

void
simulated_begins(uint64_t at, uint64_t wall, uint64_t computed)
{
    now = at;
    counted = ticks_count();
    wall_shift = (int64_t)(wall - at);
    computed_shift = (int64_t)(computed - at);
}

uint64_t
simulated_clock(clockid_t clock)
{
    bool is_wall = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI;
    bool is_computed = clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID || clock < 0;
    return now + (uint64_t)(is_wall ? wall_shift : is_computed ? computed_shift : 0);
}

void
simulated_reaches(uint64_t at)
{
    if (at > now)
        now = at;
}

void
simulated_passes(uint64_t ns)
{
    now += ns;
}

void
simulated_jumps(uint64_t ns)
{
    now += ns;
    wall_shift -= (int64_t)ns;
    computed_shift -= (int64_t)ns;
}

void
simulated_steps(int64_t by)
{
    wall_shift += by;
}

void
simulated_computes(bool is_event)
{
    uint64_t ticks = ticks_count();
    now += (ticks - counted) * TICK + (is_event ? EVENT : 0);
    counted = ticks;
}
