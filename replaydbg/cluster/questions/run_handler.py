"""Run a command once and record it: the handler of the tasks of `run_tasks`.

As a module that is run (`python -m`), it is the process that does so.
"""

from __future__ import annotations

import json
import re
import select
import shutil
import sys
import threading
from pathlib import Path

from replaydbg.cluster.questions.tool_process import run_tool
from replaydbg.cluster.tasks import JsonObject
from replaydbg.cluster.workplace import Workplace
from replaydbg.commits.surroundings import Surroundings
from replaydbg.config import load_settings
from replaydbg.hunt.worker import Finished, RecordingWorker, WantedRecordings, why_failed
from replaydbg.launch.interruption import INTERRUPTIONS, interruptible, number_of


def handle(order: JsonObject, place: Workplace, cancel: threading.Event) -> JsonObject:
    """Return how the run ended, and the files of its recording as bytes."""
    # A copy for each run: the program may write into it.
    root = place.directory / Path(order["root"]).name
    shutil.copytree(place.path(order["tree"]), root, symlinks=True)
    checkout = Surroundings(
        Path(order["root"]),
        order["prefix"],
        _files_below(root),
        base=order["environment"],
        installed=[Path(each) for each in order["installed"]],
    )
    written = place.directory / "order.json"
    kept = {"output": str(place.directory / "run.rdbg"), "streams": str(place.directory)}
    command = checkout.program(order["command"], root)
    written.write_text(json.dumps(order | kept | {"command": command}), encoding="utf-8")
    directory = checkout.directory(root)
    environment = checkout.environment(root)
    facts = run_tool(
        __name__, [str(written)], scratch=place.directory, cancel=cancel, directory=directory, environment=environment
    )
    streams = {name: (place.directory / name).read_bytes() for name in ("output", "errors")}
    return facts | streams | {"made": _content(Path(facts["path"])) if facts["is_kept"] else {}}


def _files_below(root: Path) -> list[str]:
    return [str(each.relative_to(root)) for each in root.rglob("*") if not each.is_dir()]


def _content(path: Path) -> dict[str, bytes]:
    """Return the files of a recording, by their paths in the directory of a group, or by an empty one."""
    if not path.is_dir():
        return {"": path.read_bytes()} if path.exists() else {}
    return {str(each.relative_to(path)): each.read_bytes() for each in path.rglob("*") if each.is_file()}


def main(words: list[str]) -> int:
    """Run and record what the order in the file `words[0]` says; print how it ended as JSON."""
    order = json.loads(Path(words[0]).read_text(encoding="utf-8"))
    flags = order["settings"] | {"quiet": True}
    settings = load_settings({name: flag for name, flag in flags.items() if flag is not None})
    # SIGTERM comes when the run is not wanted any more, and when the worker has died.
    with interruptible():
        run = RecordingWorker(order["command"], Path(order["output"]), settings, timeout=order["timeout"])
        try:
            finished = _finished(run)
        except INTERRUPTIONS as interruption:
            run.kill()  # it has a session of its own
            return 128 + number_of(interruption)
    streams = Path(order["streams"])
    (streams / "output").write_bytes(finished.outside.output)
    (streams / "errors").write_bytes(finished.outside.errors)
    json.dump(_facts(finished, order), sys.stdout)
    return 0


def _finished(run: RecordingWorker) -> Finished:
    poll = select.poll()
    poll.register(run.fd, select.POLLIN)
    while not poll.poll(run.seconds_left * 1000 + 1 if run.seconds_left is not None else None):
        run.remind()
    return run.finish()


def _facts(finished: Finished, order: JsonObject) -> JsonObject:
    pattern = re.compile(order["pattern"].encode(errors="surrogateescape"), re.MULTILINE) if order["pattern"] else None
    keeping = WantedRecordings(*order["keeping"])
    is_failure = bool(why_failed(finished, pattern, order["timeout"]))
    return {
        "status": finished.outside.status,
        "path": str(finished.path),
        "ending": finished.path.name.removeprefix("run"),
        "events": finished.events,
        "error": finished.error,
        "is_overdue": finished.is_overdue,
        "is_kept": not finished.error and (keeping.failed if is_failure else keeping.passed),
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
