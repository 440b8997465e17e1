/* Places inside a line. Between two lines a replay passes points: an event has been consumed, or a standard stream is
 * about to be given text. They are counted from 1 in each line, so that a count of lines and a point name a place at
 * which a process can stand: on a line with several statements, the statement that asked or printed. */
#include "base/core.h"
#include "clock/clock.h"
#include "engine/inside.h"

static struct {
    uint64_t event;        /* stand where it has been consumed; 0: at none */
    uint64_t count, point; /* stand at this point of this line; point 0: at none */
} wanted;

void
points_begin(uint64_t event, uint64_t count, uint64_t point)
{
    wanted.event = event;
    wanted.count = count;
    wanted.point = point;
    engine.point_is_due = false;
}

static bool
is_wanted(void)
{
    return (wanted.point && wanted.point == stepclock.point && wanted.count == stepclock.count) ||
           (wanted.event && wanted.event == core.crossings);
}

/* At the end of the crossing: inside it a question could not be distinguished from the crossing's own requests. */
void
points_stand(void)
{
    engine.point_is_due = false;
    wanted.event = wanted.point = 0;
    watch_point();
    engine_stand("point");
}

void
points_crossed(void)
{
    stepclock.point++;
    path_event();
    engine.point_is_due = is_wanted();
}

void
points_write(void)
{
    if (!stepclock.is_on || engine.diverting || core.depth > 0)
        return;
    stepclock.point++;
    if (wanted.point == stepclock.point && wanted.count == stepclock.count)
        points_stand();
}
