"""Seals a recording when its program has ended. It is loaded while the program runs: it needs more than the start."""

from __future__ import annotations

import json
from pathlib import Path

from replaydbg.launch.process import Ended
from replaydbg.log.container import seal
from replaydbg.record.ending import archive_sources, describe_end
from replaydbg.record.result import RecordResult
from replaydbg.store.directory import sealed_path


def seal_recording(live: Path, ended: Ended, seconds: float) -> RecordResult:
    """Write how the program ended, and turn the live directory into one file; where that fails it stays as it is."""
    target = sealed_path(live)
    problem = None
    end = describe_end(live, ended, seconds)
    try:
        end["sources"] = archive_sources(live)
        (live / "end.json").write_text(json.dumps(end), encoding="utf-8")
        seal(live, target, end)
    except OSError as error:
        problem = f"it could not be sealed ({error.strerror}) and stays a directory"
        target = live
    size = target.stat().st_size if target.is_file() else sum(path.stat().st_size for path in target.rglob("*"))
    return RecordResult(target, ended.status, end["events"], size, end["notes"], end["reason"], problem)
