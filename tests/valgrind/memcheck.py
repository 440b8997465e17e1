"""Start valgrind where the tool starts the program's interpreter, and read its reports."""

import shlex
import shutil
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SUPPRESSIONS = Path(__file__).with_name("python.supp")
_CORE = "_core.cpython-"

# The launcher is pure Python: under valgrind it would find nothing and take most of the time. So it runs as always,
# with a script that starts valgrind as its interpreter.
_LAUNCHER = """#!/bin/sh
# Called as: python -m replaydbg ...
shift 2
exec {python} -c {code} "$@"
"""
# Valgrind does not know the system call that installs the filter of a replay.
_CODE = (
    "import sys; sys.executable = {!r}; from replaydbg.cli.main import main; from replaydbg.replay import launcher; "
    "launcher.is_fence_wanted = lambda: False; sys.exit(main())"
)
# Valgrind, too, writes to the program's directory for temporary files, which is gone when the program is replayed. The
# shell exports the working directory, which is another one then.
_UNDER = """#!/bin/sh
mkdir -p "${{TMPDIR:-/tmp}}"
exec env -u PWD -u OLDPWD {valgrind} {python} "$@"
"""


@dataclass(frozen=True, slots=True)
class Found:
    """One error that valgrind reported."""

    # Valgrind's name for it, such as "InvalidRead".
    kind: str
    what: str
    # Innermost first: "function (file:line)".
    stack: tuple[str, ...]
    # Whether a frame of the native core is in one of its stacks (where it happened, where the memory was allocated or
    # freed).
    is_ours: bool


def write_python(directory: Path) -> Path:
    """Write a stand-in for the interpreter that runs the tool; valgrind's reports go to XML files in `directory`.

    The environment must have PYTHONMALLOC=malloc, or pymalloc hides all but the largest blocks.
    """
    directory.mkdir()
    python, under = directory / "python", directory / "python-under-valgrind"
    valgrind = [
        _valgrind(),
        "--quiet",
        "--track-origins=yes",
        "--num-callers=40",
        "--error-limit=no",
        f"--suppressions={SUPPRESSIONS}",
        "--xml=yes",
        f"--xml-file={directory}/found.%p.xml",
    ]
    under.write_text(_UNDER.format(valgrind=shlex.join(valgrind), python=shlex.quote(sys.executable)))
    code = shlex.quote(_CODE.format(str(under)))
    python.write_text(_LAUNCHER.format(python=shlex.quote(sys.executable), code=code))
    for script in (python, under):
        script.chmod(0o755)
    return python


def _valgrind() -> str:
    """Return the binary itself: Debian's command is a shell script, which changes the environment."""
    command = shutil.which("valgrind")
    assert command is not None, "looked for before"
    return command + ".bin" if Path(command + ".bin").exists() else command


def read_found(directory: Path) -> Iterator[Found]:
    """Return every error in the XML files in `directory`, without leaks at the end.

    The interpreter keeps much memory, and so does the core, which is never unloaded; in XML valgrind always checks for
    it.
    """
    for path in sorted(directory.glob("found.*.xml")):
        for error in _errors(path):
            kind = error.findtext("kind", "?")
            if kind.startswith("Leak_"):
                continue
            frames = list(error.iter("frame"))
            yield Found(
                kind,
                error.findtext("what") or error.findtext("xwhat/text") or "?",
                tuple(_frame(frame) for stack in error.findall("stack")[:1] for frame in stack.iter("frame")),
                any(_CORE in frame.findtext("obj", "") for frame in frames),
            )


def _errors(path: Path) -> Iterator[ElementTree.Element]:
    try:
        for _, element in ElementTree.iterparse(path):
            if element.tag == "error":
                yield element
    except ElementTree.ParseError:
        # The process was killed or replaced before valgrind wrote the end; what came before counts.
        return


def _frame(frame: ElementTree.Element) -> str:
    place = frame.findtext("file")
    function = frame.findtext("fn", "?")
    return f"{function} ({place}:{frame.findtext('line')})" if place else f"{function} ({frame.findtext('obj', '?')})"
