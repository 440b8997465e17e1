/* What the parts of the core have of each other against the direction of their layers: lower parts ask for it by these
 * tables, which name the higher parts that are registered. A module hook, an irregular handler, a control record, a
 * type of value: one row here. */
#include "base/core.h"
#include "clock/clock.h"
#include "crossing/crossing.h"
#include "ending/ending.h"
#include "engine/engine.h"
#include "files/files.h"
#include "future/future.h"
#include "gates/gates.h"
#include "heap/heap.h"
#include "identity/identity.h"
#include "lanes/lanes.h"
#include "lenient/lenient.h"
#include "libc/libc.h"
#include "memory/memory.h"
#include "resume/resume.h"
#include "signals/signals.h"
#include "sqlite/sqlite.h"
#include "values/values.h"
#include "world/world.h"
#include <signal.h>
#include <unistd.h>

/* ---- how a crossing goes ---- */

const CrossingWay crossing_ways[WAYS] = {
    [OBSERVED] = {observed_end, replay_end, replay_read_ahead, observed_lane_started, replayed_is_used_up,
                  replayed_ended},
    [RECORDED] = {recorded_end, replay_end, replay_read_ahead, recorded_lane_started, replayed_is_used_up,
                  replayed_ended},
    [REPLAYED] = {replayed_end, replay_end, replay_read_ahead, replayed_lane_started, replayed_is_used_up,
                  replayed_ended},
    [LENIENTLY] = {lenient_cross_end, lenient_answer, lenient_read_ahead, lenient_lane_started, lenient_is_used_up,
                   lenient_ended},
    [DIVERTED] = {engine_cross_end, engine_answer, replay_read_ahead, replayed_lane_started, replayed_is_used_up,
                  replayed_ended},
    [DIVERTED_LENIENTLY] = {engine_cross_end, engine_answer, lenient_read_ahead, lenient_lane_started,
                            lenient_is_used_up, lenient_ended},
};

/* ---- the log ---- */

const ControlRecord control_records[CONTROL_KINDS] = {
    [CONTROL_SIGNAL_INSIDE] = {signal_inside, OF_NEXT_CROSSING | NOT_AT_THE_END},
    [CONTROL_SIGNAL_BETWEEN] = {signal_between, WITHIN_A_CROSSING | NOT_AT_THE_END},
    [CONTROL_TIME] = {replay_passed},
    [CONTROL_END] = {replay_exit},
    [CONTROL_NOTE] = {replay_text},
    [CONTROL_LANE] = {lane_switches_inside, ENDS_A_STRETCH | WITHIN_A_CROSSING | NOT_AT_THE_END, lane_switch_is_ahead},
    [CONTROL_CHILD] = {replay_number},
    [CONTROL_COLLECTOR] = {replay_collector, OF_NEXT_CROSSING},
    [CONTROL_MEMORY] = {memory_changes, .look_ahead = memory_changes_later},
    [CONTROL_LANE_STARTED] = {NULL, OF_NEXT_CROSSING | NOT_AT_THE_END},
    [CONTROL_CALLBACK] = {replay_callback, OF_NEXT_CROSSING | NOT_AT_THE_END},
    [CONTROL_MARK] = {replay_text},
    [CONTROL_SERIALS] = {replay_serials},
    [CONTROL_STREAM] = {stream_change, OF_NEXT_CROSSING},
    [CONTROL_NO_MEMORY] = {shortage_expect},
    [CONTROL_CHECKSUM] = {replay_checksum, WITHIN_A_CROSSING},
    [CONTROL_CHAOS] = {lanes_count_lines},
};

const CallbackReader callback_readers[] = {{CALLBACK_STATEMENT, statement_again},
                                           {CALLBACK_READLINE, readline_called_back},
                                           {CALLBACK_WARNING, warned_again},
                                           {0, tls_called_back}};

const ValueCodec value_codecs[] = {{&direntry_type, TAG_DIR_ENTRY, direntry_name, direntry_path, direntry_make},
                                   {NULL, 0, NULL, NULL, NULL}};

/* ---- gates ---- */

const HandlerEntry *const handler_tables[] = {gate_handlers,   fileio_handlers,   directory_handlers, process_handlers,
                                              clock_handlers,  signal_handlers,   network_handlers,   scatter_handlers,
                                              tls_handlers,    thread_handlers,   wait_handlers,      map_handlers,
                                              raised_handlers, readline_handlers, stream_handlers,    NULL};

const ModuleHook module_hooks[] = {fileio_module_loaded,   process_module_loaded,
                                   maps_module_loaded,     datetime_module_loaded,
                                   network_module_loaded,  tls_module_loaded,
                                   contexts_module_loaded, sqlite_module_loaded,
                                   listen_module_loaded,   libcalls_module_loaded,
                                   identity_module_loaded, addresses_module_loaded,
                                   standins_module_loaded, NULL};

/* ---- what happens ---- */

static void
copied(void)
{
    libc_trap_copied();
    mutexes_copied();
}

const BaseHooks base_hooks = {
    .diverged = report_divergence,
    .waits_for_log = engine_idle,
    .log_has_ended = shared_end,
    .world_may_have_grown = world_load,
    .copied = copied,
    .exits_apart = engine_exit,
    .reports_ending = ending_report,
    .importer_has_worked = signals_after_importing,
};

static void
gate_loaded(Gate *g)
{
    stream_gate_loaded(g);
    channel_gate_loaded(g);
}

/* Looked for where a snapshot may be due, so that it costs nothing where neither is. */
static void
event_is_due(void)
{
    if (core.killed_at && core.crossings >= core.killed_at)
        kill(getpid(), SIGKILL);
    heap_crossed();
    if (core.killed_at && core.killed_at < core.heap_due)
        core.heap_due = core.killed_at;
}

static int
open_gate(void)
{
    Gate *open = cross_open();
    return open ? open->id : 0;
}

const ClockHooks clock_hooks = {
    .adopt_thread = lane_adopt,
    .open_gate = open_gate,
    .function_starts = engine_function_starts,
    .function_ends = engine_function_ends,
    .function_resumes = engine_function_resumes,
    .instruction = path_instruction,
    .raised = engine_raised,
    .own_line = course_line,
    .stands_at = engine_line,
    .passage = passages_met,
    .take_clock = engine_take_clock,
    .report_uncaught = engine_report_uncaught,
    .signals_go_on = signals_go_on,
};

const CrossingHooks crossing_hooks = {
    .adopt_thread = lane_adopt,
    .answers_data = data_call,
    .gate_loaded = gate_loaded,
    .regular_done = files_regular_done,
    .stream_acted = streams_recorded,
    .transfer_begins = channels_begin,
    .transfer_ends = channels_end,
    .tell = told_output,
    .await_log = lanes_await_log,
    .heap_is_due = event_is_due,
    .memory_look = shared_look,
    .collect_output = streams_collect,
    .reach_serial = identity_reach,
    .point_crossed = points_crossed,
    .stand_at_point = points_stand,
    .replay_is_whole = report_whole,
    .live_at_call = live_at_call,
    .live_inside = live_inside,
    .live_follow = live_follow,
    .live_is_settled = live_is_settled,
    .live_end = live_end,
    .live_passed = live_passed,
    .live_piece = fd_mirror_piece,
    .future_asks = future_asks,
    .past_follow = past_sockets_follow,
    .future_recorded = lanes_varied,
};

static FunctionLookup lookups[] = {raising_call, addresses_function, NULL};

static uint64_t
interpreter_clock(void)
{
    return core.lenient ? lenient_interpreter_clock() : libc_interpreter_clock();
}

static void
library_loaded(void)
{
    libc_library_loaded();
    future_library_loaded();
}

const LanesHooks lanes_hooks = {
    .would_wait = engine_would_wait,
    .lenient_wait = lenient_wait,
    .lenient_next_at_end = lenient_next_at_end,
    .lenient_slice_used_up = lenient_slice_used_up,
    .look_for_signals = signals_look,
    .is_watched = watch_is_set,
    .look_at_watched = watch_look,
    .lookups = lookups,
    .look_up = libc_lookup,
    .relink_raising = raising_calls_relink,
    .library_loaded = library_loaded,
    .connects = loopback_connects,
    .accepts = loopback_accepts,
    .hung_up = loopback_hung_up,
    .takes_turns = turns_are_taken,
    .has_news = turns_news,
    .await_turn = turns_wait,
    .knows_children = children_are_known,
    .child_ended = child_ended,
    .install_libc = libc_install,
    .interpreter_clock = interpreter_clock,
};

const ResumeHooks resume_hooks = {
    .become_future = future_begins,
    .answer = future_answers,
    .performed = future_performed,
    .latest_reading = turns_reading,
    .passed = turns_passed,
    .nothing_follows = future_has_nothing,
};

const FilesHooks files_hooks = {
    .open_data = data_open,
    .open_known = layer_open_waiting,
    .socket_made = past_socket_made,
    .socket_accepted = past_socket_accepted,
    .scan_made = layer_scan_made,
    .written = engine_output,
};

const SqliteHooks sqlite_hooks = {
    .opens = database_opens,
    .exists = database_exists,
    .reads = database_reads,
    .writes = database_writes,
    .resizes = database_resizes,
    .size = database_size,
    .removes = database_removes,
    .directory = database_directory,
    .draw = future_draws,
    .fault = fault_of_sqlite,
};

const SignalsHooks signals_hooks = {
    .handler_is_late = lenient_handler_is_late,
    .ends_here = engine_ends_here,
    .is_interrupted = process_ends_by_interrupt,
    .is_killed = process_is_killed,
};

const LibcHooks libc_hooks = {
    .asks_outside = engine_asks_outside,
};
