"""Runs some test cases plain, then recorded with all children, and replays each recorded process."""

import json
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.harness import tool
from tests.harness.children import PROGRAMS, completed
from tests.harness.process import Finished, run
from tests.harness.surroundings import key_beside, without_steering
from tests.stdlib.outcomes import Difference, Outcome, differences, read_outcomes
from tests.stdlib_groups.judged import Judged, judged
from tests.stdlib_groups.parts import Part, arguments, lay_out

_TIMEOUT = 300.0
_REPLAY_TIMEOUT = 900.0
_GROUP = "r.rdbgs"


@dataclass(frozen=True, slots=True)
class PartResult:
    """Result of a part."""

    part: Part
    cases: int = 0
    """Test cases with an outcome, plain."""
    different: tuple[Difference, ...] = ()
    judged: Judged = field(default_factory=Judged)
    size: int = 0
    troubles: tuple[str, ...] = ()
    """Other problems: a run that died, output that differs."""


def run_part(part: Part, keep: Path) -> PartResult:
    """Run a part; what is not equal goes to `keep`."""
    base = Path(tempfile.mkdtemp(prefix="replaydbg-stdlib-groups-")).resolve()
    try:
        result = _compared(part, base)
        if result.troubles or result.different or result.judged.wrong:
            kept = keep / part.name
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(base, kept, ignore=shutil.ignore_patterns("wake", "work"), ignore_dangling_symlinks=True)
        return result
    finally:
        shutil.rmtree(base, ignore_errors=True)


def _compared(part: Part, base: Path) -> PartResult:
    troubles: list[str] = []
    plain = _run(part, base, [], troubles)
    for name in ("r.rdbg", _GROUP):
        shutil.rmtree(base / name, ignore_errors=True)
    recorded = _run(part, base, tool.record("", base / "r", [], options=PROGRAMS)[1:], troubles)
    (base / "output").write_bytes(recorded[0].stdout + recorded[0].stderr)
    different = tuple(differences(plain[1], recorded[1]))
    group = base / _GROUP
    if not (group / "group.json").exists():
        return PartResult(part, len(plain[1]), different, troubles=(*troubles, "nothing was recorded"))
    try:
        completed(group)
    except AssertionError as error:
        troubles.append(f"its recordings were not sealed: {str(error)[:1000]}")
    size = sum(path.stat().st_size for path in group.rglob("*") if path.is_file())
    result = _replayed(base, recorded[0], troubles)
    return PartResult(part, len(plain[1]), different, result, size, tuple(troubles))


def _run(part: Part, base: Path, words: Sequence[str], troubles: list[str]) -> tuple[Finished, dict[str, Outcome]]:
    """Run the tests, with `words` between the interpreter and its arguments."""
    work = base / "work"
    shutil.rmtree(work, ignore_errors=True)
    (work / "tmp").mkdir(parents=True)
    lay_out(work / "tests", part.suite)
    (work / "cases").write_text("\n".join(part.cases) + "\n")
    test = ["-m", "test", "-v", "--junit-xml", str(work / "junit.xml"), "--tempdir", str(work / "tmp")]
    test += [*arguments(work / "tests", part.suite), "--matchfile", str(work / "cases"), part.module]
    env = without_steering(os.environ) | {"TMPDIR": str(work / "tmp"), "HOME": str(work)} | key_beside(base)
    finished = run([sys.executable, *words, *test], cwd=work, env=env, timeout=_TIMEOUT)
    output = finished.stdout.decode(errors="replace") + "\n" + finished.stderr.decode(errors="replace")
    outcomes = read_outcomes(work / "junit.xml", output)
    if not (work / "junit.xml").exists() or finished.is_timed_out or finished.status < 0:
        which = "recorded" if words else "plain"
        troubles.append(f"the {which} run: {finished.ending}: {output[-1500:]}")
    return finished, outcomes


def _replayed(base: Path, recorded: Finished, troubles: list[str]) -> Judged:
    shutil.rmtree(base / "work")
    elsewhere = base / "elsewhere"
    elsewhere.mkdir()
    env = without_steering(os.environ) | {"TZ": "Pacific/Kiritimati", "HOME": "/nonexistent"} | key_beside(base)
    rows = _tool(base, elsewhere, env, "ps")[0]["processes"]
    found, shown = _tool(base, elsewhere, env, "replay", "-q")
    if not found:
        troubles.append(f"the replay returned nothing: {shown[-1500:].decode(errors='replace')}")
        return judged(rows, {})
    result = judged(rows, {each["process"]: each for each in found["processes"]})
    # Two writes that overlapped may come in either order, so bytes are counted.
    printed, again = Counter(recorded.stdout + recorded.stderr), Counter(shown)
    missing, more = (printed - again).total(), (again - printed).total()
    is_all = not result.why_not and not result.cut and not result.wrong
    if more or (missing and is_all):
        troubles.append(f"the output differs: {missing} bytes are missing, {more} were not printed")
    (base / "replayed").write_bytes(shown)
    return result


def _tool(base: Path, elsewhere: Path, env: dict[str, str], *words: str) -> tuple[dict[str, Any], bytes]:
    command = [sys.executable, "-m", "replaydbg", *words, "--json", str(base / _GROUP)]
    done = run(command, cwd=elsewhere, env=env, timeout=_REPLAY_TIMEOUT)
    try:
        return json.loads(done.stdout), done.stderr
    except ValueError:
        return {}, done.stderr + f"\n{words[0]}: {done.ending}".encode()
