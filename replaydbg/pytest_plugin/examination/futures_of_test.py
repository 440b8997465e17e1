"""The process that runs futures of a recorded test."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from replaydbg.errors import ReplaydbgError
from replaydbg.futures.future import Future, FutureVerdict
from replaydbg.futures.launcher import Futures, FutureWishes, run_futures
from replaydbg.futures.of_tests import body_of_test
from replaydbg.log.reader import open_recording

_MOST_GROUPS = 5


def main(path: str, count: str) -> None:
    """Print what came of `count` futures of the test in the recording at `path`, from its body on, as JSON."""
    try:
        found = facts_of(Path(path), int(count))
    except ReplaydbgError as error:
        found = {"problem": " ".join(str(error).split())}
    sys.stdout.write(json.dumps(found))


def facts_of(path: Path, count: int) -> dict[str, Any]:
    """Return what came of the futures. Raises ReplaydbgError."""
    with open_recording(path) as recording:
        event = body_of_test(recording)
    if event is None:
        return {"problem": "its body did not begin"}
    with tempfile.TemporaryDirectory(prefix="replaydbg-futures-") as store:
        found = run_futures(path, FutureWishes(event, count), name=str(path), store=Path(store))
    return _facts(found)


def _ending(future: Future) -> str:
    """Return how one ended; of the file the name suffices."""
    exception = future.exception
    place = exception.place if exception is not None else None
    if exception is None or place is None:
        return future.ending
    return f"{os.path.basename(place.file)}:{place.line} {exception.type}: {exception.text}"  # noqa: PTH119


def _facts(found: Futures) -> dict[str, Any]:
    groups = [each for each in found.groups if each.verdict is not FutureVerdict.PASSED]
    return {
        "event": found.event,
        "failed": found.share.failed,
        "passed": found.share.decided - found.share.failed,
        "inconclusive": found.count - found.share.decided,
        "share": found.share.bounds,
        "is_fixed": found.is_fixed,
        "groups": [(len(each.futures), _ending(each.example), each.example.seed) for each in groups[:_MOST_GROUPS]],
    }
