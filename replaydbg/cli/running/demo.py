"""`replaydbg demo`: record a bundled flaky program until it fails, replay the failure, and explain each step."""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from replaydbg.cli.common.standard_streams import is_interactive
from replaydbg.cli.exploring.tui import show
from replaydbg.config import load_settings
from replaydbg.errors import Divergence
from replaydbg.events.records import Event
from replaydbg.events.show import show_call, show_outcome
from replaydbg.hunt.capture import Outside, captured, discard
from replaydbg.log.reader import open_recording
from replaydbg.record import record
from replaydbg.render.measures import show_size
from replaydbg.replay import replay

ATTEMPTS = 100
"""Maximum number of runs. The program fails one time in five: all of these pass once in five thousand million."""

EVENTS_SHOWN = 8
SOURCES_SHOWN = 6
CALL_WIDTH, OUTCOME_WIDTH = 29, 22
"""Column widths with which the table of events fits into 80 columns."""
FOUND, INCONCLUSIVE, DIVERGED = 0, 3, 4

PROGRAM = "checkout.py"
ORDERS = "orders.csv"


@dataclass(frozen=True, slots=True)
class FailedRun:
    """The recorded run that failed."""

    path: Path
    """The recording."""
    run: Outside
    """The run's exit code and output."""
    events: int
    """Number of crossings in the recording."""
    size: int
    """Its size in bytes."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options: there are none."""
    parser.epilog = "The recording of the failure stays in the store; the program and its input are deleted."


def run(args: argparse.Namespace) -> int:
    """Run the demonstration and return the exit code."""
    return demo()


def demo(*, console: Console | None = None, attempts: int = ATTEMPTS) -> int:
    """Run the demonstration and return the exit code: 0, 3 if the program never failed, 4 if the replay diverged."""
    console = console or Console(highlight=False)
    with _workplace() as place:
        _introduce(console, place)
        failure = _record_until_failure(console, place, attempts)
        if failure is None:
            console.print(f"It passed {attempts} times in a row. That can happen; run `replaydbg demo` again.")
            return INCONCLUSIVE
        _show_recording(console, failure)
        _delete_inputs(console, place)
        if not _replay_failure(console, failure):
            return DIVERGED
    _show_events(console, failure.path)
    _show_next(console, failure.path)
    return _offer(console, failure.path)


@contextmanager
def _workplace() -> Iterator[Path]:
    """Yield a temporary directory with the program and its input."""
    place = Path(tempfile.mkdtemp(prefix="replaydbg-demo-"))
    try:
        bundled = files("replaydbg.demo")
        for name in (PROGRAM, ORDERS):
            (place / name).write_bytes((bundled / name).read_bytes())
        yield place
    finally:
        # It is already deleted if the demonstration reached step 4.
        shutil.rmtree(place, ignore_errors=True)


def _introduce(console: Console, place: Path) -> None:
    _step(console, 1, "A program that fails about one time in five")
    _explain(
        console,
        f"{place / PROGRAM} settles an order: it reads {ORDERS} and the clock, draws random numbers and keeps "
        "its books in a SQLite database. Run it again after a failure, and it will probably pass.",
    )


def _record_until_failure(console: Console, place: Path, attempts: int) -> FailedRun | None:
    _step(console, 2, "Record it until it fails")
    _command(console, f"replaydbg record {PROGRAM} {ORDERS} books.db")
    argv = [str(place / name) for name in (PROGRAM, ORDERS, "books.db")]
    for attempt in range(1, attempts + 1):
        with captured() as capture:
            result = record(argv, stdout=capture.stdout.fileno(), stderr=capture.stderr.fileno())
            run = capture.run(result.status)
        if result.status != 0:
            console.print(f"  run {attempt}: [bold red]failed[/], exit code {result.status}")
            _quote(console, run)
            return FailedRun(result.path, run, result.events, result.size)
        console.print(f"  run {attempt}: passed")
        discard(result.path)
    return None


def _show_recording(console: Console, failure: FailedRun) -> None:
    _step(console, 3, "What the recording holds")
    with open_recording(failure.path) as recording:
        gates = Counter(event.gate for event in recording.events(controls=False) if isinstance(event, Event))
    common = ", ".join(f"{gate} {count}" for gate, count in gates.most_common(SOURCES_SHOWN))
    _explain(
        console,
        f"{failure.path} takes {show_size(failure.size)}: {failure.events:,} events, each a call of the "
        f"program to the outside (most often: {common}), and the sources that it ran.",
    )


def _delete_inputs(console: Console, place: Path) -> None:
    _step(console, 4, "Delete everything that the run depended on")
    shutil.rmtree(place)
    _explain(console, f"{place} is deleted: the order, the database and the program itself.")


def _replay_failure(console: Console, failure: FailedRun) -> bool:
    """Replay and compare; print the result."""
    _step(console, 5, "Replay the failure")
    _command(console, f"replaydbg replay {failure.path.stem}")
    with captured() as capture:
        result = replay(failure.path, stdout=capture.stdout.fileno(), stderr=capture.stderr.fileno())
        run = capture.run(result.status)
    _quote(console, run)
    if result.divergence is not None:
        _fail(console, result.divergence)
        return False
    if run != failure.run:
        console.print("[bold red]The replay differed from the recorded run.[/]", soft_wrap=True)
        console.print(f"recorded: {failure.run}\nreplayed: {run}", markup=False, soft_wrap=True)
        return False
    _explain(
        console,
        f"The same {len(run.output) + len(run.errors)} bytes of output and the same exit code: the same receipt number "
        "at the same second, the same random numbers, the same failure. It will be the same tomorrow.",
    )
    return True


def _show_events(console: Console, path: Path) -> None:
    _step(console, 6, "Inputs of the program")
    _command(console, f"replaydbg events {path.stem}")
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("event", justify="right", no_wrap=True)
    table.add_column("where", no_wrap=True)
    table.add_column("call", no_wrap=True, max_width=CALL_WIDTH)
    table.add_column("outcome", no_wrap=True, max_width=OUTCOME_WIDTH)
    with open_recording(path) as recording:
        for event in _own_events(recording.events(controls=False)):
            where = f"{PROGRAM}:{event.site.line}"
            table.add_row(str(event.number), where, escape(show_call(event)), escape(show_outcome(event)))
    console.print(table)
    _explain(
        console,
        "These are the first events from the program's own lines; the others come from the modules that it uses.",
    )


def _show_next(console: Console, path: Path) -> None:
    _step(console, 7, "Next steps")
    name = path.stem
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 2))
    for command, meaning in (
        (f"replaydbg tui {name}", "open it where it failed, and step backwards"),
        (f"replaydbg replay {name}", "replay the failure, as often as you like"),
        (f"replaydbg info {name}", "show when, where and with which Python it was recorded"),
        (f"replaydbg events {name}", "list all its inputs, in order"),
        ("replaydbg record yours.py", "record your own program; -m and -c work as in python"),
    ):
        table.add_row(f"[bold]{escape(command)}[/]", meaning)
    console.print(table)


def _offer(console: Console, path: Path) -> int:
    """At a terminal, offer to open the failure at once."""
    if not (console.is_terminal and is_interactive()):
        return FOUND
    console.print("\nOpen it in the terminal UI now? [Y/n] ", end="")
    try:
        answer = input()
    except (EOFError, KeyboardInterrupt):
        answer = "no"
    return show(path, load_settings()) if answer.strip().lower() in ("", "y", "yes") else FOUND


def _own_events(entries: Iterator[object]) -> Iterator[Event]:
    """Yield the first events whose site is in the program itself."""
    shown = 0
    for entry in entries:
        if isinstance(entry, Event) and Path(entry.site.file or "").name == PROGRAM:
            yield entry
            shown += 1
            if shown == EVENTS_SHOWN:
                return


def _step(console: Console, number: int, title: str) -> None:
    console.print(f"\n[bold cyan]{number}. {escape(title)}[/]")


def _explain(console: Console, text: str) -> None:
    console.print(text, markup=False)


def _command(console: Console, text: str) -> None:
    console.print(f"  $ {escape(text)}", style="bold")


def _quote(console: Console, run: Outside) -> None:
    """Show the program's output, indented; never wrapped, so that it can be compared by eye."""
    for line in (run.output + run.errors).decode(errors="replace").splitlines():
        console.print(f"  | {line}", markup=False, style="dim", soft_wrap=True)


def _fail(console: Console, divergence: Divergence) -> None:
    console.print("[bold red]The replay stopped:[/]")
    console.print(str(divergence), markup=False, soft_wrap=True)
