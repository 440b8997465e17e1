"""A repository of a small package whose bugs are fixed and broken again, with recordings of their failures."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.harness.history import ENVIRONMENT, Change, git, make_history

RUN = """import sys
sys.path.insert(0, '.')
from shop.{name} import value
print('the value is', value(4))
assert value(4) == 8, 'wrong {name}'
"""


def module(*, is_right: bool, note: str = "") -> str:
    """Return the text of a module of the package."""
    return f"def value(n):\n    return 2 * n{'' if is_right else ' - 1'}\n{note}"


def changes(count: int, right: Mapping[str, Sequence[int]], more: Mapping[int, Mapping[str, str]] = {}) -> list[Change]:
    """Return the commits v1 to v<count>, and beside each change of a module one of the README only.

    `right` has the commits at which each module is right; `more` further files of single commits.
    """
    found, last = [], dict[str, bool]()
    for number in range(1, count + 1):
        files = {"README": f"{number}\n", "shop/__init__.py": ""} if number == 1 else {"README": f"{number}\n"}
        for name, commits in right.items():
            if last.get(name) != (number in commits):
                last[name] = number in commits
                files[f"shop/{name}.py"] = module(is_right=last[name])
            if number == 1:
                files[f"runs/{name}.py"] = RUN.format(name=name)
        found.append(Change(f"v{number}", files | dict(more.get(number, {}))))
    return found


@dataclass(frozen=True)
class Ground:
    """A repository, a store, and a home of their own."""

    repository: Path
    home: dict[str, str]

    @classmethod
    def of(cls, top: Path, history: Sequence[Change]) -> "Ground":
        """Create the repository in a directory."""
        (top / "tmp").mkdir(parents=True)
        home = {name: value for name, value in ENVIRONMENT.items() if name != "PYTHONDONTWRITEBYTECODE"}
        home |= {"XDG_DATA_HOME": str(top / "data"), "XDG_CACHE_HOME": str(top / "cache"), "TMPDIR": str(top / "tmp")}
        return cls(make_history(top / "shop", history), home)

    @property
    def temporary(self) -> Path:
        """The directory of temporary files."""
        return Path(self.home["TMPDIR"])

    def tool(self, *words: str, directory: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run replaydbg in the repository."""
        command = [sys.executable, "-m", "replaydbg", *words]
        where = directory or self.repository
        return subprocess.run(command, cwd=where, env=self.home, capture_output=True, text=True, check=False)

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start replaydbg there."""
        command = [sys.executable, "-m", "replaydbg", *words]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, cwd=self.repository, env=self.home, stdout=pipe, stderr=pipe, text=True)

    def record(self, *words: str, commit: str = "v1") -> None:
        """Record a program at a commit."""
        git(self.repository, "checkout", "--quiet", commit)
        self.tool("record", "--quiet", *words)
        # One file that needs no other: tests copy and damage it.
        recorded, packed = max(self.store.glob("run-*.rdbg"), key=_number), self.store / "packed"
        self.tool("pack", recorded.stem, "-o", str(packed))
        packed.replace(recorded)
        git(self.repository, "checkout", "--quiet", "main")

    def ci(self, *words: str, code: int | None = None) -> dict[str, Any]:
        """Run `replaydbg ci --json` and return its result."""
        done = self.tool("ci", "--json", *words)
        assert code in (None, done.returncode), done.stdout + done.stderr
        facts: dict[str, Any] = json.loads(done.stdout)
        return facts

    def name(self, tag: str) -> str:
        """Return the full name of a commit."""
        return git(self.repository, "rev-parse", f"{tag}^{{commit}}").strip()

    @property
    def store(self) -> Path:
        """The directory of the recordings."""
        return Path(self.home["XDG_DATA_HOME"]) / "replaydbg" / "recordings"


def turns(facts: dict[str, Any]) -> dict[str, list[tuple[str, str]]]:
    """Return the changes of each recording: the kind, and the tag of the commit."""
    tags = {commit["name"]: commit["subject"].removeprefix("Change ") for commit in facts["commits"]}
    return {
        each["name"]: [(change["change"], tags[change["commit"]]) for change in each["changes"]]
        for each in facts["recordings"]
    }


def states(facts: dict[str, Any]) -> dict[str, str]:
    """Return the verdicts about each recording, oldest commit first, by their first letters; `d` is another failure."""
    letters = {"fails": "F", "passes": "P", "fails differently": "d", "inconclusive": "?"}
    return {each["name"]: "".join(letters[one["verdict"]] for one in each["verdicts"]) for each in facts["recordings"]}


def _number(path: Path) -> int:
    return int(path.stem.removeprefix("run-"))
