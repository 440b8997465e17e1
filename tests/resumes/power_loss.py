"""Rounds with power loss: a program is recorded durably, and resumed from what its disk may have had at some moments.

Power is not cut: `tests/harness/power_cuts.py` composes the disk of copies that were made while the program ran.
"""

import random
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from replaydbg.events.records import Control, ControlKind
from replaydbg.log.reader import open_recording
from replaydbg.log.sealed.origin import mark_live
from tests.harness.power_cuts import Copy, build_library, random_file, random_image, read_copies
from tests.resumes.rounds import (
    FOLDER,
    TIMEOUT,
    Round,
    WrongRound,
    check_replay,
    environment,
    finished,
    recorded_events,
)

PROGRAM = "synced"
ENTRIES = 40
IMAGES = 5
"""Moments of each recording at which power is lost."""
_COMMAND = [sys.executable, "-m", "replaydbg"]


@dataclass(frozen=True, slots=True)
class _Line:
    """A line that somebody else has seen."""

    time: int
    """When, at the latest: nanoseconds of the monotonic clock."""
    text: str


@dataclass(frozen=True, slots=True)
class Loss:
    """A power cut, and the resume after it."""

    events: int
    """How many events the log on the disk had."""
    live_from: int
    """The last event that was replayed."""
    was_cut_off: bool
    """Whether the ledger had something behind its end."""


def power_loss_round(seed: int, base: Path, *, images: int = IMAGES) -> tuple[Round, list[Loss]]:
    """Play a round in the empty directory `base`; power is lost at several moments of one run. Raises WrongRound.

    What was printed before the power cut must be in the ledger, which has each entry once, and the continued recording
    must replay.
    """
    chance = random.Random(seed)
    work, copied = base / "work", base / "copies"
    for each in (work, copied):
        each.mkdir()
    (base / "program.py").write_bytes((FOLDER / f"{PROGRAM}.py").read_bytes())
    seen = _recorded(base, chance.choice(("wb", "ab")))
    copies = read_copies(copied)
    shutil.rmtree(copied)
    first = next(number for number, each in enumerate(copies) if each.is_written)
    losses = []
    for _ in range(images):
        lost = _write_disk(base, copies, first, chance)
        events = recorded_events(base / "0.rdbg-live")
        printed = _resumed(base, [each.text for each in seen if each.time <= lost.time])
        with open_recording(base / "1.rdbg") as recording:
            live_from: int = recording.header.raw["resumed"][0]["event"]
        losses.append(Loss(events, live_from, "cut off" in printed))
    return Round(PROGRAM, sum(each.events for each in losses) // images, images), losses


def _recorded(base: Path, mode: str) -> list[_Line]:
    """Record the program, with copies of its disk; return what it printed."""
    options = ["--children=none", "--durable", "-q", "-o", str(base / "0.rdbg")]
    variables = {
        "LD_PRELOAD": str(build_library(base)),
        "POWER_CUTS": str(base / "copies"),
        "POWER_CUTS_FILE": str(base / "work" / "ledger"),
    }
    with (base / "output").open("ab") as errors:
        recorder = subprocess.Popen(
            [*_COMMAND, "record", *options, str(base / "program.py"), str(ENTRIES), mode],
            cwd=base / "work",
            env={**environment(), **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
        )
    assert recorder.stdout is not None
    seen: list[_Line] = []
    reader = threading.Thread(target=_read, args=(recorder.stdout, seen))
    reader.start()
    try:
        status = recorder.wait(TIMEOUT)
    finally:
        recorder.kill()
        reader.join()
        recorder.stdout.close()
    if status != 0:
        raise WrongRound(f"the program ended with {status}\n{(base / 'output').read_text(errors='replace')[-3000:]}")
    (base / "0.rdbg").rename(base / "whole.rdbg")
    return seen


def _read(output: IO[bytes], seen: list[_Line]) -> None:
    for line in output:
        seen.append(_Line(time.monotonic_ns(), line.decode()))


def _write_disk(base: Path, copies: Sequence[Copy], first: int, chance: random.Random) -> Copy:
    """Write what the disk may have after a power cut while the program ran; return the copy that was made then.

    `first` is the number of the first copy that is possible.
    """
    live = base / "0.rdbg-live"
    while True:
        lost = chance.choice(copies[first:])
        image = random_image(copies, chance, lost.time)
        assert image is not None  # output was waited for
        image.write(live)
        if not _has_ended(live):
            break  # else there is nothing to resume
    mark_live(live)  # as the recorder did; a copy is not one's own recording
    (base / "work" / "ledger").write_bytes(random_file(copies, chance, lost.time))
    return lost


def _has_ended(live: Path) -> bool:
    with open_recording(live) as recording:
        return any(isinstance(each, Control) and each.kind is ControlKind.END for each in recording.events())


def _resumed(base: Path, seen: list[str]) -> str:
    """Resume from the disk and check what comes of it; return what the command printed on standard error."""
    (base / "1.rdbg").unlink(missing_ok=True)
    options = ["--after-power-loss", "--in-flight=repeat", "-o", str(base / "1.rdbg")]
    done = finished([*_COMMAND, "resume", *options, str(base / "0.rdbg-live")], base / "work")
    ledger = (base / "work" / "ledger").read_text().splitlines(keepends=True)
    numbers = [int(line.split()[0]) for line in ledger]
    if numbers != list(range(ENTRIES)):
        raise WrongRound(f"the ledger has {numbers}")
    if lost := [line for line in seen if line not in ledger and not line.startswith("entered")]:
        raise WrongRound(f"{len(lost)} entries were printed before the power cut, and are lost, such as {lost[0]!r}")
    again = set(seen) & set(done.stdout.decode().splitlines(keepends=True))
    # The last one may have been in flight: it was made, but is not in the log.
    if again - set(seen[-1:]):
        raise WrongRound(f"{len(again)} entries are printed twice")
    check_replay(base / "1.rdbg", base / "work")
    return done.stderr.decode()
