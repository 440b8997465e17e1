"""A scenario: a real program, its inputs, and the output that a run of it must show."""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from tests.real.peer import Peer

_SOURCES = (Path(__file__).parent / "programs", Path(__file__).parent / "inputs")


def _nothing(_directory: Path) -> None:
    """For scenarios whose files are all checked in."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A real program in a small situation."""

    name: str
    # The distribution whose version is shown; None: a part of the standard library.
    distribution: str | None
    # One line for the table: what it does and what it takes from outside.
    does: str
    # What follows the interpreter on the command line.
    argv: tuple[str, ...]
    # What stdout or stderr of every run contains: a scenario that fails early would replay equal too.
    expect: str
    # Checked-in file by its place in the working directory.
    files: Mapping[str, str] = field(default_factory=dict)
    exit_code: int = 0
    env: Mapping[str, str] = field(default_factory=dict)
    # Makes inputs that are not checked in.
    prepare: Callable[[Path], None] = _nothing
    # How the lines begin that its child processes print by themselves: children do not run in a replay.
    child_lines: str | None = None
    # What of replaydbg it waits for. It must fail until then: a row that is equal all the same has to lose this mark.
    waits_for: str | None = None
    # What it talks to; `{port}` in `argv` is then the port of whichever side listens.
    peer: Peer | None = None

    @property
    def version(self) -> str | None:
        """The version installed here; None if it is not."""
        if self.distribution is None:
            return "stdlib"
        try:
            return version(self.distribution)
        except PackageNotFoundError:
            return None

    @property
    def missing(self) -> str | None:
        """The packages that have to be installed first, as a sentence; None: nothing."""
        if self.version is None:
            return f"{self.distribution} is not installed; pip install -r tests/real/requirements.txt"
        if self.peer is not None and not self.peer.is_installed():
            return f"its server is not installed; apt-get install {self.peer.package}"
        return None

    def lay_out(self, directory: Path) -> None:
        """Puts every input into the empty `directory`."""
        for place, source in self.files.items():
            target = directory / place
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(next(base / source for base in _SOURCES if (base / source).exists()), target)
        self.prepare(directory)


def script(
    name: str,
    distribution: str | None,
    does: str,
    expect: str,
    *inputs: str,
    exit_code: int = 0,
    arguments: tuple[str, ...] = (),
    env: Mapping[str, str] | None = None,
    prepare: Callable[[Path], None] = _nothing,
    waits_for: str | None = None,
    peer: Peer | None = None,
    program: str | None = None,
) -> Scenario:
    """A scenario whose program is one of ours, the file `program` (`name` if it has no other) without `.py`.

    `inputs` keep their names.
    """
    file = f"{program or name}.py"
    return Scenario(
        name=name,
        distribution=distribution,
        does=does,
        argv=(file, *arguments),
        expect=expect,
        files={each: each for each in (file, *inputs)},
        exit_code=exit_code,
        env=env or {},
        prepare=prepare,
        waits_for=waits_for,
        peer=peer,
    )
