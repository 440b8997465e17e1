/* The end of the process, however it comes about: what is left to be written, or to be compared. */
#include "base/core.h"
#include "clock/clock.h"
#include "crossing/crossing.h"
#include "ending/ending.h"
#include "engine/engine.h"
#include "files/files.h"
#include "resume/resume.h"

bool process_end_is_reported;

void
process_has_ended(int status, void *unused)
{
    process_end_is_reported = true;
    core.tstate = NULL;
    if (engine.diverting)
        engine_exit(status);
    clocks_report();
    live_at_end();
    if (core.mode == RECORD) {
        stream_children_end();
        cross_ended(status);
        if (core.is_future)
            ending_report();
    }
    else if (core.mode == REPLAY) {
        streams_expect_fork();
        told_end("exit", status);
        cross_expect_exit();
        ending_report();
    }
    if (engine.is_on)
        engine_exit(status);
}

_Noreturn void
process_ends(int status)
{
    if (!process_end_is_reported)
        process_has_ended(status, NULL);
    leave_process(status);
}
