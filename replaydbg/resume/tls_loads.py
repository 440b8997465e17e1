"""Rules for what TLS contexts have loaded: the core makes the calls again, with the files as they are now.

Which contexts still exist is not in the log. The replay knows it, so these rows of the plan come when it is due to go
live, and not before it begins.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from replaydbg.resources.kinds import Resources, TlsLoad, Unknown
from replaydbg.resume.conversation import CoreAnswer, LoadDue
from replaydbg.resume.past import Past
from replaydbg.resume.plan_rows import Fate, PlanRow


def plan_loads(loads: Iterable[LoadDue], resources: Resources, past: Past) -> list[PlanRow]:
    """Return a row for each call that loads something from files. Nothing is changed."""
    by_event = {each.origin.event: each for each in resources.tls_loads}
    rows = []
    for due in loads:
        load = by_event.get(due.event)
        if load is not None:
            rows.append(_plan(load, due, past.loaded_ns.get(due.event)))
        elif not due.is_known:
            rows.append(PlanRow("TLS", Fate.REFUSED, "a setting of a TLS context", _not_recorded(due)))
    return rows


def send_loads(answer: CoreAnswer, loads: Iterable[LoadDue], resources: Resources, *, force: bool) -> None:
    """Tell the core where the files are; `force`: what cannot be loaded is left out."""
    by_event = {each.origin.event: each for each in resources.tls_loads}
    for due in loads:
        load = by_event.get(due.event)
        files = [each if isinstance(each, str) else "" for each in load.files] if load is not None else []
        answer.load(due.event, files, may_fail=force)


def _plan(load: TlsLoad, due: LoadDue, loaded_ns: int | None) -> PlanRow:
    files = [each for each in load.files if isinstance(each, str)]
    text = f"{load.call} of {', '.join(files) if load.files else 'the default certificates'}"
    unknown = next((each.reason for each in load.files if isinstance(each, Unknown)), None)
    if unknown is not None or not due.is_known:
        reason = unknown or _not_recorded(due)
        return PlanRow("TLS", Fate.REFUSED, f"{load.call} at event {due.event:,}", reason)
    if load.call == _WRITTEN:
        return PlanRow("TLS", Fate.REOPENED, f"keys are logged to {', '.join(files)}")
    differences = [difference for each in files if (difference := _difference(each, loaded_ns)) is not None]
    return PlanRow("TLS", Fate.REOPENED, text, "loaded again", differences=tuple(differences))


def _not_recorded(due: LoadDue) -> str:
    return f"an argument of this call (event {due.event:,}) is not recorded"


def _difference(path: str, loaded_ns: int | None) -> str | None:
    """Return how a file differs from what was loaded; its content is not in the log, so its time stamp decides."""
    try:
        changed_ns = os.stat(path).st_mtime_ns  # noqa: PTH116
    except OSError:
        return f"{path} is gone"
    if loaded_ns is not None and changed_ns > loaded_ns:
        return f"{path} was changed after the program had loaded it"
    return None


_WRITTEN = "keylog_filename"
