"""A recorder is killed after it has sealed a recording: the live directory, with secrets in the clear, goes."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.children import completed
from tests.harness.replays import Outcome, passed_on, run
from tests.harness.waiting import wait_until

pytestmark = pytest.mark.slow

_TOKEN = "hunter2hunter2"
_FORKS = """import os, time
if os.fork() == 0:
    os._exit(0)
os.wait()
while not os.path.exists("store/run-1.rdbgs/2.rdbg"):
    time.sleep(0.01)
"""
"""The process that seals has sealed the child, and may have been killed since, before the launcher seals."""
_WAITS = """import os, time
open("begun", "w").close()
while not os.path.exists("go"):
    time.sleep(0.01)
"""
_KILLED = {
    "before the first file": "if str(self).endswith('-live/boot'): end()\nreturn before(self, **kw)",
    "before the header": "if str(self).endswith('-live/header.json'): end()\nreturn before(self, **kw)",
    "before the log, in the launcher": (
        "if str(self).endswith('-live/log') and os.getpid() == launcher: end()\nreturn before(self, **kw)"
    ),
}
"""Where the recorder kills itself, in the place of Path.unlink()."""


class Place:
    """A directory with a program, and with a store in it."""

    def __init__(self, path: Path) -> None:
        self.path, self.store = path, path / "store"
        self.program("print('done')\n")

    def program(self, source: str) -> None:
        (self.path / "program.py").write_text(source)

    def do(self, *words: str) -> Outcome:
        return run([sys.executable, "-m", "replaydbg", *words], cwd=self.path, env=self.env())

    def env(self) -> dict[str, str]:
        return passed_on() | {"REPLAYDBG_STORE": str(self.store), "MY_TOKEN": _TOKEN}

    def record_and_kill(self, when: str, *options: str) -> None:
        """Record by a launcher, or a process that seals, that kills itself while it removes a live directory."""
        lines = "".join(f"    {line}\n" for line in _KILLED[when].split("\n"))
        (self.path / "launch.py").write_text(
            "import os, signal, sys\nfrom pathlib import Path\nbefore, launcher = Path.unlink, os.getpid()\n"
            f"def end():\n    os.kill(os.getpid(), signal.SIGKILL)\ndef changed(self, **kw):\n{lines}"
            "Path.unlink = changed\nfrom replaydbg.cli.main import main\n"
            "sys.orig_argv = [sys.executable, '-m', 'replaydbg', *sys.argv[1:]]\nsys.exit(main())\n"
        )
        command = [sys.executable, "launch.py", "record", "-q", *options, "program.py"]
        killed = run(command, cwd=self.path, env=self.env())
        assert killed.status == 137, killed

    def names(self) -> list[str]:
        """Return the paths of recordings in the store."""
        found = (each for each in self.store.rglob("*") if each.suffix in (".rdbg", ".rdbg-live"))
        return sorted(str(each.relative_to(self.store)) for each in found)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def has_token(path: Path) -> bool:
    return any(_TOKEN.encode() in each.read_bytes() for each in path.rglob("*") if each.is_file())


@pytest.mark.parametrize("when", _KILLED)
@pytest.mark.parametrize("words", ["record -q program.py", "gc", "rm run-1"])
def test_what_is_sealed_does_not_stay_as_a_directory(when: str, words: str, place: Place) -> None:
    place.record_and_kill(when)
    assert place.names() == ["run-1.rdbg", "run-1.rdbg-live"]
    assert has_token(place.store)

    done = place.do(*words.split())

    assert done.status == 0, done
    left = {"record": ["run-1.rdbg", "run-2.rdbg"], "gc": ["run-1.rdbg"], "rm": []}
    assert place.names() == left[words.split()[0]]
    assert not has_token(place.store)


def test_collecting_by_rules_removes_it(place: Place) -> None:
    place.record_and_kill("before the header")

    done = place.do("gc", "--recordings", "--keep", "last")

    assert done.status == 0, done
    assert place.names() == ["run-1.rdbg"]


@pytest.mark.parametrize("children", ["none", "python"])
def test_its_name_can_be_used_again(children: str, place: Place) -> None:
    place.store.mkdir()
    place.record_and_kill("before the header", "--children=none", "-o", "store/r")

    done = place.do("record", "-q", f"--children={children}", "-o", "store/r", "program.py")

    assert done.status == 0, done
    assert place.names() == ["r.rdbg"]


def _cut(sealed: Path, live: Path) -> None:
    sealed.write_bytes(sealed.read_bytes()[:-100])


def _damage(sealed: Path, live: Path) -> None:
    data = bytearray(sealed.read_bytes())
    data[len(data) // 2] ^= 0xFF
    sealed.write_bytes(data)


def _remove(sealed: Path, live: Path) -> None:
    sealed.unlink()


def _replace(sealed: Path, live: Path) -> None:
    """Put another run of the program in its place."""
    shutil.copyfile(sealed.with_name("other.rdbg"), sealed)


def _remove_header(sealed: Path, live: Path) -> None:
    (live / "header.json").unlink()


@pytest.mark.parametrize("change", [_cut, _damage, _remove, _replace, _remove_header])
def test_what_is_not_in_the_sealed_file_stays(change: object, place: Place) -> None:
    place.record_and_kill("before the first file")
    assert place.do("record", "-q", "-o", "store/other", "program.py").status == 0
    assert place.names() == ["other.rdbg", "run-1.rdbg", "run-1.rdbg-live"]
    assert callable(change)
    change(place.store / "run-1.rdbg", place.store / "run-1.rdbg-live")
    before = place.names()

    assert place.do("gc").status in (0, 1)  # a damaged recording keeps the blocks
    assert place.do("record", "-q", "program.py").status == 0

    assert place.names() == sorted([*before, "run-2.rdbg"])


def test_what_is_being_recorded_stays(place: Place) -> None:
    """A recording that replaces another one has the same name, and its file is that of the other."""
    place.store.mkdir()
    words = ("record", "-q", "--children=none", "-o", "store/r", "program.py")
    assert place.do(*words).status == place.do("record", "-q", "program.py").status == 0
    place.program(_WAITS)
    launcher = subprocess.Popen([sys.executable, "-m", "replaydbg", *words], cwd=place.path, env=place.env())
    wait_until((place.path / "begun").exists)

    done = place.do("gc")
    stays = place.names()
    (place.path / "go").touch()

    assert done.status == 0, done
    assert stays == ["r.rdbg", "r.rdbg-live", "run-1.rdbg"]
    assert launcher.wait(60) == 0
    assert place.names() == ["r.rdbg", "run-1.rdbg"]


def _killed_group(place: Place, when: str = "before the first file") -> Path:
    """Record a group whose launcher, and the process that seals, are killed; return its directory."""
    place.program(_FORKS)
    place.record_and_kill(when, "--children=fork")
    place.program("print('done')\n")
    return place.store / "run-1.rdbgs"


def test_a_group_of_which_all_is_sealed_has_no_directories(place: Place) -> None:
    group = _killed_group(place)
    assert len(list(group.glob("*.rdbg-live"))) == 2

    done = place.do("record", "-q", "program.py")

    assert done.status == 0, done
    assert sorted(each.name for each in group.glob("*.rdbg*")) == ["1.rdbg", "2.rdbg"]
    assert not has_token(group)
    assert place.do("replay", "-q", "run-1/2").status == 0


def test_a_group_of_which_not_all_is_sealed_stays(place: Place) -> None:
    group = _killed_group(place)
    (group / "2.rdbg").unlink()

    assert place.do("record", "-q", "program.py").status == 0

    assert sorted(each.name for each in group.glob("*.rdbg*")) == ["1.rdbg", "1.rdbg-live", "2.rdbg-live"]


def test_the_process_that_seals_keeps_what_a_killed_launcher_has_sealed(place: Place) -> None:
    """It would seal again what is left of the live directory, and fail."""
    group = _killed_group(place, "before the log, in the launcher")

    wait_until(lambda: not (group / "1.rdbg-live").exists(), message=lambda: place.names())

    assert [(each.recording, each.why_not) for each in completed(group).processes] == [("1.rdbg", ""), ("2.rdbg", "")]
    assert place.do("replay", "-q", "run-1").status == 0
