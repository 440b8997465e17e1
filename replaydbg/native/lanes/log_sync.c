/* Lanes wait until the disk has the log as it is now: what they are about to do is seen by others (`record --durable`).
 * One synchronisation is for all that wait when it begins, and other lanes go on meanwhile: a helper thread makes it.
 * So a switch can come of it, as of any call that blocks; a replay, which synchronises nothing, finds that switch in
 * the log where the call ends. */
#include "base/core.h"
#include "lanes/inside.h"
#include "log/log.h"

static bool is_under_way;
static const char what[] = "the log to reach the disk";

static void
sync_by_helper(void)
{
    LogSync sync;
    is_under_way = true;
    log_sync_begin(&sync);
    int error = (int)hub_help_to_end(log_sync_perform, &sync, what);
    log_sync_end(&sync, error);
    is_under_way = false;
    lane_wake_all(&is_under_way);
}

void
lanes_await_log(void)
{
    uint64_t end = log_end();
    if (!on_lanes)
        return; /* a thread that C code has started: its calls are no crossings */
    if (!lanes.is_on || lanes.alive == 1) {
        log_sync();
        return;
    }
    PyThreadState *self = PyEval_SaveThread();
    while (!log_is_synced(end))
        if (is_under_way)
            lane_wait(&is_under_way, what, NEVER, false);
        else
            sync_by_helper();
    PyEval_RestoreThread(self);
}

void
log_sync_forked(void)
{
    is_under_way = false;
}
