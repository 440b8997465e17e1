"""`python -m tests.flaky`: flaky programs are caught by `hunt`, and `bisect recordings` must name what makes them fail.

At least 80 % of the root causes must be named, and none may be named wrongly as if that were certain.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from tests.flaky.bugs import BUGS, Bug
from tests.harness.table import as_markdown, as_text

_DOCUMENT = Path(__file__).parents[2] / "docs" / "real-bugs.md"
_BEGIN, _END = "<!-- flaky: begin -->", "<!-- flaky: end -->"
NAMED = 0.8
"""Share of the root causes that must be named."""

_HEADING = ["package", "bug", "failed", "trials", "cause", "line", "hunt s", "bisect s"]


@dataclass(frozen=True, slots=True)
class Result:
    """The result for one bug."""

    bug: Bug
    # The problem with it; empty: none.
    wrong: str
    hunted: dict[str, Any]
    found: dict[str, Any]
    seconds: tuple[float, float]

    @property
    def is_confident(self) -> bool:
        """Whether it names another cause as if that were certain."""
        return bool(self.wrong) and "flip" in self.found and self.bug.is_wrong_with_confidence(self.found)

    @property
    def row(self) -> list[str]:
        if self.wrong:
            how = "WRONG" if self.is_confident else "not named"
            return [self.bug.package, self.bug.what, "", "", f"{how}: {self.wrong}", "", "", ""]
        flip = self.found["flip"]
        told = ", ".join(dict.fromkeys(each.get("call") or each["kind"] for each in flip["inputs"]))
        if flip["preemptions"] or flip["switches"]:
            number = len(flip["preemptions"]) + len(flip["switches"])
            told += f", {number} suffice{'s' if number == 1 else ''}"
        told += ", confirmed" if flip["is_confirmed"] else ", not confirmed"
        file, source = self.bug.place(self.found) or ("", "")
        return [
            self.bug.package,
            f"[{self.bug.what}]({self.bug.link})" if self.bug.link else f"{self.bug.name}: {self.bug.what}",
            f"{self.hunted['failures']} of {self.hunted['runs']}",
            str(flip["trials"]),
            told,
            "/".join(PurePath(file).parts[-2:]) + (f": `{source}`" if source else ""),
            *(f"{seconds:.1f}" for seconds in self.seconds),
        ]


def main(argv: Sequence[str] | None = None) -> int:
    """Return 0 if enough causes were named, and none wrongly with confidence; else 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.flaky", description=__doc__)
    parser.add_argument("--only", metavar="NAME", action="append", help="one bug; can be repeated")
    parser.add_argument(
        "--docs", metavar="FILE", type=Path, default=_DOCUMENT, help="where a full run writes its table"
    )
    options = parser.parse_args(argv)
    results = []
    for bug in BUGS:
        if not options.only or bug.name in options.only:
            results.append(_look_for(bug))
            print(f"{bug.name}: {results[-1].wrong or 'found'}", file=sys.stderr, flush=True)
    rows = [each.row for each in results]
    print(as_text(_HEADING, rows))
    named = sum(not each.wrong for each in results)
    print(f"{named} of {len(results)} named, {sum(each.is_confident for each in results)} wrong with confidence")
    is_wrong = named < NAMED * len(results) or any(each.is_confident for each in results)
    if not options.only and not is_wrong and options.docs.exists():
        _write(options.docs, as_markdown(_HEADING, rows))
    return int(is_wrong)


def _look_for(bug: Bug) -> Result:
    with tempfile.TemporaryDirectory(prefix="replaydbg-flaky-") as place:
        began = time.monotonic()
        hunted = _run(place, "hunt", "-q", "--json", *bug.options, "--", str(bug.program))
        caught = time.monotonic()
        if hunted.get("next") is None:
            return Result(bug, f"it was not caught: {hunted}", hunted, {}, (caught - began, 0.0))
        found = _run(place, *hunted["next"][1:], "-q", "--json")
        seconds = caught - began, time.monotonic() - caught
    wrong = f"{found['error']['message']}" if "error" in found else bug.wrong(found)
    return Result(bug, wrong, hunted, found, seconds)


def _run(store: str, *words: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "replaydbg", *words]
    environment = {**os.environ, "REPLAYDBG_STORE": store}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=False, timeout=600)
    facts: dict[str, Any] = json.loads(done.stdout)
    return facts


def _write(document: Path, table: str) -> None:
    text = document.read_text(encoding="utf-8")
    before, _, rest = text.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    document.write_text(f"{before}{_BEGIN}\n{table.strip()}\n{_END}{after}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
