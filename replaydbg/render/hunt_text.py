"""The result of a hunt as text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from replaydbg.errors import quoted
from replaydbg.events.show import printable
from replaydbg.hunt.hunter import Caught, HuntRun

QUOTED = 3
"""Number of output lines of the failing run that are quoted."""


@dataclass(frozen=True, slots=True)
class KeptRun:
    """A run whose recording was kept."""

    run: HuntRun
    name: str
    """The name of the recording in commands."""
    hash_seed: int
    """The seed of string hashes in the run."""


@dataclass(frozen=True, slots=True)
class HuntReport:
    """The result of a hunt, with the names of its recordings."""

    caught: Caught
    failed: KeptRun | None
    """The failing run, if there was one."""
    passed: KeptRun | None
    """The passing run, if one was kept."""
    more: tuple[KeptRun, ...]
    """Further failing runs."""
    following: tuple[str, ...]
    """The command line for the next step, without `replaydbg`; empty: there is none."""


def hunt_lines(found: HuntReport) -> Iterator[str]:
    """Yield the failure rate, the recordings, and the command for the next step."""
    low, high = found.caught.rate
    failures, runs = found.caught.failures, found.caught.runs
    yield f"{failures} of {runs} runs failed (95 % confidence interval: {low:.1%} to {high:.1%})."
    for kind, kept in (("failed", found.failed), ("passed", found.passed)):
        if kept is not None:
            yield f"{kind}: {kept.name} ({_details(kept)})"
            if kept.run.is_failure:
                yield from _quoted_output(kept.run)
    if found.more:
        yield f"also failed: {', '.join(each.name for each in found.more)}"
    if found.following:
        yield f"Find the cause: replaydbg {' '.join(map(quoted, found.following))}"


def _details(kept: KeptRun) -> str:
    run = kept.run
    details = [run.why, f"{run.events:,} events", f"hash seed {kept.hash_seed}"]
    details.append(f"chaos seed {run.chaos}" if run.chaos is not None else "")
    return ", ".join(filter(None, details))


def _quoted_output(run: HuntRun) -> Iterator[str]:
    text = run.outside.errors or run.outside.output
    for line in text.decode(errors="replace").rstrip().splitlines()[-QUOTED:]:
        yield f"  | {printable(line)}"
