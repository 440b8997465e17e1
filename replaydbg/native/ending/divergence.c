/* What a replay reports that has gone another way, and one that has come to the end. */
#include "base/core.h"
#include "clock/clock.h"
#include "crossing/crossing.h"
#include "ending/ending.h"
#include "engine/engine.h"
#include "files/files.h"
#include "memory/memory.h"
#include "signals/signals.h"

static void
put_text(Buf *b, const char *key, const char *text)
{
    report_key(b, key);
    report_text(b, text, strlen(text));
}

static void
report(const char *kind, Gate *gate, Crossing *c, const char *detail)
{
    Buf b = {0};
    bool with_args = c && gate && (gate->flags & GATE_ARGS), with_bytes = c && c->leaving && strcmp(kind, "bytes") == 0;
    char name[160] = "";
    if (gate)
        snprintf(name, sizeof name, "%s.%s", gate->module, gate->name);
    report_dict(&b, 14u + with_args + with_bytes);
    put_text(&b, "kind", kind);
    put_text(&b, "detail", detail);
    put_text(&b, "gate", name);
    report_key(&b, "event");
    report_number(&b, (int64_t)core.crossings + 1);
    report_key(&b, "count");
    report_number(&b, (int64_t)stepclock.count);
    engine_report_written(&b);
    report_key(&b, "lane");
    report_number(&b, core.lane);
    report_key(&b, "drift");
    report_number(&b, (int64_t)drift.event);
    report_key(&b, "unsure");
    report_number(&b, (int64_t)signals_unsure());
    report_key(&b, "unsure_place");
    signals_report_unsure(&b);
    report_key(&b, "mixed");
    report_number(&b, streams_mix());
    report_key(&b, "memory");
    report_number(&b, (int64_t)shared_written);
    report_key(&b, "stack");
    report_stack(&b);
    /* handlers inside the crossing may have used the buffer since: then the digest differs and it is left out */
    if (with_args) {
        report_key(&b, "arguments");
        const Buf *arguments = cross_arguments(c);
        if (arguments)
            buf_bytes(&b, arguments->data, arguments->used);
        else
            buf_byte(&b, TAG_NONE);
    }
    if (with_bytes) {
        report_key(&b, "bytes");
        buf_byte(&b, TAG_BYTES);
        buf_str(&b, (const char *)c->leaving, c->leaving_length < 400 ? c->leaving_length : 400);
    }
    if (engine.is_on)
        engine_report(&b);
    else
        report_send(core.report_fd, &b);
}

_Noreturn void
report_divergence(const char *kind, Gate *gate, Crossing *c, const char *detail)
{
    clocks_report();
    told_end(kind, 0);
    report(kind, gate, c, detail);
    ending_report();
    leave_process(EXIT_DIVERGED);
}

/* All of the log was used; but the program may have gone another way unseen. */
void
report_whole(void)
{
    told_end("call", 0); /* if it cannot be told, there is another report */
    if (drift.event || signals_unsure() || streams_mix())
        report("drift", NULL, NULL, drift.detail);
    else if (!engine.is_on) {
        Buf b = {0};
        buf_bytes(&b, "whole", 5);
        report_send(core.report_fd, &b);
    }
}
