"""Exceptions that the importer handles itself are not the program's; others belong to the importing line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from replaydbg.debugger import Session
from tests.harness.recording import record_file
from tests.harness.typed import Typed

FILES = {
    "main.py": """\
from package import a, b
import importlib

def tries(name):
    try:
        importlib.import_module(name)
    except (ImportError, SyntaxError, ValueError):
        pass

try:
    import nothing
except ImportError:
    pass
try:
    from package import missing
except ImportError:
    pass
try:
    import package.gone
except ImportError:
    pass
try:
    import package.broken
except SyntaxError:
    pass
try:
    import package.raises
except ValueError:
    pass
tries("nowhere")
tries("package.raises")
import package.nested
""",
    "package/__init__.py": "",
    "package/a.py": "def f():\n    return 1\n",
    "package/b.py": "X = 1\n",
    "package/broken.py": "def (\n",
    "package/raises.py": "X = 1\nraise ValueError('own')\n",
    "package/nested.py": "X = 1\nimport not_there\n",
}


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("importing")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    with Session(record_file(folder / "main.py", folder, status=1)) as session:
        yield session


def test_each_is_raised_by_a_line_that_can_raise_it(session: Session) -> None:
    assert session.failure is not None
    # To report it, 3.13 raises more.
    own = [each for each in session.index.raised if session.first_own <= each.count <= session.failure.count]

    places = [(each.type, top.file, top.line) for each in own if (top := session.look_at(each.count).top) is not None]

    assert [(kind, "/".join(Path(file).parts[-2:]), line) for kind, file, line in places] == [
        ("ModuleNotFoundError", f"{main(session)}", 11),
        ("ImportError", f"{main(session)}", 15),
        ("ModuleNotFoundError", f"{main(session)}", 19),
        ("SyntaxError", f"{main(session)}", 23),
        ("ValueError", "package/raises.py", 2),
        ("ModuleNotFoundError", "importlib/__init__.py", places[5][2]),
        ("ValueError", "package/raises.py", 2),
        ("ModuleNotFoundError", "package/nested.py", 2),
    ]
    assert [each.is_uncaught for each in own] == [False] * 7 + [True]


def main(session: Session) -> str:
    """Return the program's own file name, in the form for comparison."""
    return "/".join(Path(session.header.argv[0]).parts[-2:])


def test_nothing_stops_at_what_the_importer_handles(session: Session) -> None:
    typed = Typed.at("@exc", session)

    typed("break KeyError", "rc")

    assert session.here.count < session.first_own  # the interpreter's start has others
    typed = Typed.at("@exc", session)
    places = [line for _ in range(5) for line in typed("landmark previous").splitlines() if line.startswith("raises ")]
    assert [line.split(": ")[0] for line in places] == [
        "raises ValueError",
        "raises ValueError",
        "raises SyntaxError",
        "raises ModuleNotFoundError",
        "raises ImportError",
    ]


def test_an_import_can_be_asked_for_by_its_exception(session: Session) -> None:
    typed = Typed.at("@exc", session)

    shown = typed("break ImportError", *["rc"] * 4)

    assert [each for each in re.findall(r"^raises (\w+)", shown, re.M)] == [
        "ModuleNotFoundError",  # a subclass of it
        "ModuleNotFoundError",
        "ImportError",
        "ModuleNotFoundError",
    ]
    assert "cannot import name 'missing'" in shown
