"""Find the fixtures, and read from each how it is to be started.

A fixture is a program in `fixtures/<area>/`: a file, or a package directory with a `__main__.py`. Its lines `# run:
{...}` hold JSON objects, each a case of its own: `args`, `stdin`, `flags`, `env` and `status` (0 if not given, null for
any) of `assert_replays`, the fields of `How`, and `fails`: the reason why it must fail as long as something is missing
(`fails_on`: only on these versions of Python).
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.harness.replay_places import Form
from tests.harness.replays import TIMEOUT, How, assert_replays

FIXTURES = Path(__file__).parents[2] / "fixtures"
_VERSION = "{}.{}".format(*sys.version_info)
_RUN = re.compile(r"^# run: (\{.*\})$", re.MULTILINE)
_HOW_KEYS = {
    "stdin_is": "stdin_is",
    "steady": "is_steady",
    "big": "has_big_file",
    "mask": "mask",
    "ignore": "ignored_signals",
    "child_lines": "child_lines",
    "replay_within": "replay_within",
    "replay_prefix": "is_cut_short",
    "perturb": "perturb",
    "strict": "is_strict",
}


@dataclass(frozen=True, slots=True)
class Case:
    """One way in which one fixture is started."""

    # A file, or the directory of a package.
    program: Path
    args: tuple[str, ...] = ()
    stdin: str | None = None
    flags: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    # None: any.
    status: int | None = 0
    how: How = field(default_factory=How)
    # Why it does not replay yet; an expected failure.
    fails: str | None = None

    def check(self, *, replays: int = 1, timeout: float = TIMEOUT) -> None:
        """Record it and replay it the given number of times."""
        assert_replays(
            self.program,
            args=self.args,
            stdin=self.stdin,
            flags=self.flags,
            env=self.env,
            status=self.status,
            how=self.how,
            keeps_failed=self.fails is None,
            replays=replays,
            timeout=timeout,
        )


def cases(area: str, *names: str) -> list[Any]:
    """Return the parameters for a test over the fixtures of `area`: all, or those named."""
    programs = [path for path in sorted((FIXTURES / area).iterdir()) if not path.name.startswith(("_", "."))]
    if names:
        programs = [path for path in programs if path.stem in names]
        assert {path.stem for path in programs} == set(names), f"no such fixtures in {area}: {names}"
    return [parameter for program in programs for parameter in _parameters(program)]


def cases_of(program: Path) -> Iterator[Case]:
    """Return the cases in the lines of `program`; one plain case if there are none."""
    source = program / "__main__.py" if program.is_dir() else program
    runs = [json.loads(text) for text in _RUN.findall(source.read_text())]
    for run in runs or [{}]:
        yield _case(program, run)


def _case(program: Path, run: dict[str, Any]) -> Case:
    unknown = run.keys() - {"as", "args", "stdin", "flags", "env", "status", "fails", "fails_on", *_HOW_KEYS}
    assert not unknown, f"{program} says {unknown} in a run line"
    how: dict[str, Any] = {name: run[key] for key, name in _HOW_KEYS.items() if key in run}
    how["ignored_signals"] = tuple(run.get("ignore", ()))
    return Case(
        program,
        args=tuple(run.get("args", ())),
        stdin=run.get("stdin"),
        flags=tuple(run.get("flags", ())),
        env=run.get("env", {}),
        status=run.get("status", 0),
        how=How(form=Form(run.get("as", "script")), **how),
        fails=run.get("fails") if _VERSION in run.get("fails_on", [_VERSION]) else None,
    )


def _parameters(program: Path) -> Iterator[Any]:
    seen: dict[str, int] = {}
    for case in cases_of(program):
        name = _name(case)
        seen[name] = seen.get(name, 0) + 1
        marks = () if case.fails is None else pytest.mark.xfail(reason=case.fails, raises=AssertionError, strict=True)
        yield pytest.param(case, id=name if seen[name] == 1 else f"{name}-{seen[name]}", marks=marks)


def _name(case: Case) -> str:
    """Return a readable identifier: the difference from the plainest start."""
    parts = [case.program.stem]
    if case.how.form is not Form.SCRIPT:
        parts.append(case.how.form.value)
    parts += [*case.flags, *(f"{name}={value}" for name, value in case.env.items()), *case.args]
    if case.how.stdin_is is not None:
        parts.append(case.how.stdin_is)
    return re.sub(r"[^\w.=-]+", "_", "-".join(parts), flags=re.ASCII)[:80]
