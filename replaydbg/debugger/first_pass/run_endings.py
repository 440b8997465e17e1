"""Human-readable descriptions of how a run ended."""

from __future__ import annotations

import signal

from replaydbg.debugger.first_pass.run_index import RunEnding
from replaydbg.engine.reports import COMPUTING, END, EXIT, SIGNAL, STUCK, UNANSWERED, EndReport
from replaydbg.events import linux
from replaydbg.replay.result import COMPUTING as STILL_COMPUTING

_SENT = (linux.SIGHUP, linux.SIGINT, linux.SIGQUIT, linux.SIGKILL, linux.SIGPIPE, linux.SIGALRM, linux.SIGTERM)
"""Signals that end a program but are no crash: they are sent to it."""

MOST_WRITTEN = 300
"""Bytes of what a changed run wrote that are shown: the last."""


def ending_of(ended: EndReport, why: str, *, is_script: bool) -> RunEnding:
    """Return the end of a first pass, for its index; `why` as for `how_it_ended`."""
    status = ended.status if ended.kind == EXIT else 0
    return RunEnding(how_it_ended(ended, why), status, is_script, is_bounded=ended.kind == COMPUTING)


def is_divergence(ended: EndReport) -> bool:
    """Whether a first pass ended because it differed from the recording."""
    return not (ended.kind in (EXIT, SIGNAL, COMPUTING) or (ended.kind == END and not ended.detail))


def how_it_ended(ended: EndReport, why: str) -> str:
    """Return a sentence about an end; `why`: why the recording ends before the program's own end, if it does."""
    kind = ended.kind
    if kind == EXIT:
        status = ended.status
        return "the program ended" if status == 0 else f"the program ended with status {status}"
    if kind == SIGNAL:
        name = _name(ended.status)
        return f"the program was killed by {name}" if ended.status in _SENT else f"the program crashed: {name}"
    if kind == COMPUTING or (kind == END and not ended.detail):
        text = f"the recording ends here: {why}" if why else "the recording ends here, before the program did"
        return text + STILL_COMPUTING if kind == COMPUTING else text
    return f"the replay diverged from the recording here: {_divergence(ended)}"


def how_a_changed_run_ended(ended: EndReport, why: str) -> str:
    """Return the same of a run that was changed, with what it wrote since then."""
    kind = ended.kind
    if kind in (EXIT, SIGNAL):
        text = f"the changed run ended: {how_it_ended(ended, why)}"
    elif kind in ANSWERED_LENIENTLY:
        text = f"the changed run cannot continue: {_divergence(ended)}"
    elif kind in (END, COMPUTING):
        text = f"the changed run cannot continue: {how_it_ended(ended, why)}"
    else:
        # A run that may not differ, since several threads were in the middle of something.
        text = f"the changed run cannot continue, because it differs from the recording here: {_divergence(ended)}"
    return text + _written(ended)


ANSWERED_LENIENTLY = (UNANSWERED, STUCK)
"""Kinds of ends of a run that may differ from the recording: it needs what the recording cannot answer."""


def _written(ended: EndReport) -> str:
    last = ended.written
    if not last:
        return ""
    shown = last[-MOST_WRITTEN:].decode("utf-8", "replace")
    cut = "..." if len(last) < ended.written_all or len(last) > MOST_WRITTEN else ""
    return f"; output since the change: {cut}{shown!r}"


def _divergence(ended: EndReport) -> str:
    # Imported here: it is seldom needed.
    from replaydbg.replay.report import CAUSES

    cause = CAUSES.get(ended.kind, "").rstrip(".")
    asked = ended.gate
    parts = (
        f"event {ended.event}" if ended.event else "",
        f"{asked}()" if asked else "",
        ended.detail,
        cause,
    )
    return ", ".join(each for each in parts if each)


def _name(number: int) -> str:
    return f"{linux.SIGNALS[number]} ({signal.strsignal(number)})" if number in linux.SIGNALS else f"signal {number}"
