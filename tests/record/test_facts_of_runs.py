"""A recording has the commit of its program, and the type of the exception that ended it."""

from __future__ import annotations

from pathlib import Path

import pytest

from replaydbg.log.reader import open_recording
from tests.harness.history import Change, git, make_history
from tests.harness.in_directory import record_in

ENDS = {
    "it ends": ("pass", ""),
    "an exception": ("{}['x']", "KeyError"),
    "a class of its own": ("class Lost(Exception): pass\nraise Lost('at sea')", "Lost"),
    "an exit": ("raise SystemExit(3)", ""),
    "Ctrl-C": ("raise KeyboardInterrupt", "KeyboardInterrupt"),
    "a hook": ("import sys\nsys.excepthook = lambda *_: None\n1 / 0", "ZeroDivisionError"),
    "another thread": (
        "import threading\nthread = threading.Thread(target=lambda: 1 / 0)\nthread.start()\nthread.join()\nexit(1)",
        "",
    ),
    "caught": ("try:\n    1 / 0\nexcept ZeroDivisionError:\n    exit(2)", ""),
    "a name that is hostile": ("raise type('a\\tb\\nchild\\t3' + 'c' * 300, (Exception,), {})", "abchild3" + "c" * 192),
    "the system's end": ("import os\ntry:\n    1 / 0\nfinally:\n    os._exit(1)", ""),
}


@pytest.mark.parametrize("kind", ENDS)
@pytest.mark.parametrize("way", ["script", "module", "command"])
def test_the_exception(tmp_path: Path, kind: str, way: str) -> None:
    source, expected = ENDS[kind]
    (tmp_path / "prog.py").write_text(source + "\n")
    words = {"script": ["prog.py"], "module": ["-m", "prog"], "command": ["-c", source]}[way]
    record_in(tmp_path, *words)

    (made,) = tmp_path.glob("*.rdbg")
    with open_recording(made) as recording:
        end = recording.end
    assert end is not None
    assert end.exception == expected
    assert end.notes == ()


def test_the_commit(tmp_path: Path) -> None:
    repository = make_history(tmp_path / "repository", [Change("one", {"prog.py": "print(1)\n"})])
    record_in(tmp_path, "repository/prog.py")

    (made,) = tmp_path.glob("*.rdbg")
    with open_recording(made) as recording:
        assert recording.header.commit == git(repository, "rev-parse", "HEAD").strip()
