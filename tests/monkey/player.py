"""`python -m tests.monkey.player REPORT WORD...`: `replaydbg tui WORD...`, which reports its accidents in a file.

The app shows an error of its own in its console and goes on; a lost session it replaces. Nobody would see either on the
screen of a monkey.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from replaydbg.cli.main import main
from replaydbg.tui.apps.recording_side import RecordingSide
from replaydbg.tui.apps.replay_app import ReplayApp
from replaydbg.tui.ui_messages import Restarted, Trouble


def report_accidents(report: Path) -> None:
    """Let the terminal UI append its own errors, and the loss of a session, to `report`."""

    def reporting(shown: Callable[..., None]) -> Callable[..., None]:
        def handle(owner: object, message: Trouble | Restarted) -> None:
            with report.open("a", encoding="utf-8") as file:
                file.write(f"{message.text}\n")
            shown(owner, message)

        return handle

    for owner in (ReplayApp, RecordingSide):
        for name in ("on_trouble", "on_restarted"):
            setattr(owner, name, reporting(vars(owner)[name]))


def report_tasks(report: Path) -> None:
    """Let SIGUSR1 append what each task of the app waits for: of a dead screen one wants to know that."""

    def write(*_: object) -> None:
        with report.open("a", encoding="utf-8") as file:
            for task in asyncio.all_tasks():
                task.print_stack(file=file)

    signal.signal(signal.SIGUSR1, write)


if __name__ == "__main__":
    report_accidents(Path(sys.argv[1]))
    report_tasks(Path(sys.argv[1]))
    sys.exit(main(["tui", *sys.argv[2:]]))
