"""Evaluate an expression at positions of a recorded process: the handler of the tasks of `values_tasks`.

As a module that is run (`python -m`), it is the process that does so: it opens a debugging session.
"""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

from replaydbg.cluster.questions.tool_process import run_tool
from replaydbg.cluster.tasks import JsonObject
from replaydbg.cluster.workplace import Workplace
from replaydbg.debugger import Session
from replaydbg.errors import ReplaydbgError
from replaydbg.groups.cut_values import values_at_positions


def handle(order: JsonObject, place: Workplace, cancel: threading.Event) -> JsonObject:
    """Return the `values`: for each position its text, and the reason where there is none."""
    written = place.directory / "order.json"
    written.write_text(json.dumps(order | {"path": str(place.path(order["recording"]))}), encoding="utf-8")
    return run_tool(__name__, [str(written)], scratch=place.directory, cancel=cancel)


def main(words: list[str]) -> int:
    """Print the values that the order in the file `words[0]` asks for, as JSON."""
    order = json.loads(Path(words[0]).read_text(encoding="utf-8"))
    try:
        with Session(Path(order["path"])) as session:
            found = values_at_positions(session, order["positions"], order["expression"], module=order["module"])
    except ReplaydbgError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    json.dump({"values": {position: list(value) for position, value in found.items()}}, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
