"""`python -m tests.culprits`: real regressions are bisected by a command, and by replaying one recording."""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.culprits.cases import CASES, Case
from tests.culprits.history import make_repository
from tests.harness.table import as_markdown, as_text

_DOCUMENT = Path(__file__).parents[2] / "docs" / "real-bugs.md"
_PROGRAMS = Path(__file__).parent / "programs"
_BEGIN, _END = "<!-- regressions: begin -->", "<!-- regressions: end -->"
_HEADING = ["package", "commits", "bug", "introduced in", "recording each commit", "replaying one recording"]


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of one bisection."""

    culprit: str
    """The release that it named, or what it said instead."""
    looks: int
    """How many commits it looked at."""
    seconds: float
    """How long these took together."""
    liberties: int
    """How many deviations the replays had."""

    def __str__(self) -> str:
        taken = f", {self.liberties} deviations" if self.liberties else ""
        return f"{self.culprit}: {self.looks} commits tested, {self.seconds:.1f} s{taken}"


def main(argv: Sequence[str] | None = None) -> int:
    """0: every bisection names the release that brought the bug; 1: one does not."""
    options = _parser().parse_args(argv)
    rows, is_wrong = [], False
    for case in CASES:
        if options.only and case.package not in options.only:
            continue
        with tempfile.TemporaryDirectory(prefix=f"culprit-{case.package}-") as scratch:
            answers = _ask(case, Path(scratch), options.cache, options.how)
        is_wrong = is_wrong or any(answer.culprit != case.culprit for answer in answers)
        print(f"{case.package}: {'; '.join(map(str, answers))}", file=sys.stderr, flush=True)
        told = [str(answer) for answer in answers] + [f"not possible: {case.unanswered}"] * (2 - len(answers))
        commits = str(len(case.releases) - 1)
        rows.append([case.package, commits, f"[{case.bug}]({case.source})", case.culprit, *told])
    print(as_text(_HEADING, rows))
    if not options.only and not options.how and not is_wrong:
        _write(options.docs, as_markdown(_HEADING, rows))
    return int(is_wrong)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.culprits", description=__doc__)
    parser.add_argument("--only", metavar="PACKAGE", action="append", choices=[case.package for case in CASES])
    parser.add_argument("--how", choices=("command", "replay"), help="in one of the two ways only")
    parser.add_argument(
        "--cache",
        metavar="DIR",
        type=Path,
        default=Path(tempfile.gettempdir(), "replaydbg-releases"),
        help="where downloaded releases are kept",
    )
    parser.add_argument(
        "--docs", metavar="FILE", type=Path, default=_DOCUMENT, help="where a full run writes its table"
    )
    return parser


def _ask(case: Case, scratch: Path, cache: Path, how: str | None) -> list[Answer]:
    repository = make_repository(scratch / case.package, case.package, case.releases, cache)
    shutil.copy(_PROGRAMS / f"{case.program}.in", repository / case.program)
    environment = os.environ | {"XDG_DATA_HOME": str(scratch / "data"), "XDG_CACHE_HOME": str(scratch / "cache")}
    ends = ["--good", case.releases[0], "--bad", case.releases[-1]]
    answers = []
    if how != "replay":
        answers.append(_bisect(repository, environment, [*ends, "--same-failure", "--", case.program]))
    if how != "command" and not case.unanswered:
        recording = str(scratch / "bad.rdbg")
        # The checkout is the bad end.
        command = [sys.executable, "-m", "replaydbg", "record", "--quiet", "-o", recording, case.program]
        subprocess.run(command, cwd=repository, env=environment, check=False, capture_output=True)
        answers.append(_bisect(repository, environment, [*ends, "--replay", recording, *case.options]))
    return answers


def _bisect(repository: Path, environment: dict[str, str], words: list[str]) -> Answer:
    command = [sys.executable, "-m", "replaydbg", "bisect", "commits", "--json", *words]
    done = subprocess.run(command, cwd=repository, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in (1, 3) or not done.stdout:
        return Answer(done.stderr.strip() or f"exit code {done.returncode}", 0, 0, 0)
    facts: dict[str, Any] = json.loads(done.stdout)
    if "error" in facts:
        return Answer(facts["error"]["message"], 0, 0, 0)
    looks = facts["trials"]
    names = [commit["subject"].removeprefix("Change ") for commit in facts["suspects"]]
    seconds = sum(look["seconds"] for look in looks)
    return Answer(" or ".join(names), len(looks), seconds, sum(len(look["deviations"]) for look in looks))


def _write(document: Path, table: str) -> None:
    before, _, rest = document.read_text(encoding="utf-8").partition(_BEGIN)
    after = rest.partition(_END)[2]
    document.write_text(f"{before}{_BEGIN}\n{table}\n{_END}{after}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
