"""Tasks that test the code in a directory of today, such as the user's checkout, against recordings."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from replaydbg.cluster.tasks import ContentSink, JsonObject
from replaydbg.errors import UsageError
from replaydbg.log.reader import open_recording
from replaydbg.replay.changed import where_today

_INSTALLED = ("site-packages", "dist-packages")
_ENDINGS = (".py", ".so")
"""What a replay of edited code reads from today's directories: modules; data comes from the recording."""
_MOST_FILES = 20_000
"""Number of modules that go along; more are not the code of one program."""


@dataclass(frozen=True, slots=True, eq=False)
class OfCode:
    """Does the code of today still fail on the inputs of a recording?"""

    sources: Mapping[str, str]
    """Directories of the recording, and where they are today; other paths are as recorded."""
    expr: str = ""
    """An expression that is true at the end of a good run; empty: the program no longer fails as recorded."""
    timeout: int = 0
    """Limit of CPU time in seconds; 0: none."""

    @property
    def kind(self) -> str:
        """The name of its handler."""
        return "code"

    def order(self, recording: Path | None, sink: ContentSink) -> JsonObject:
        """Return the fields of the order. Raises ReplaydbgError, OSError, and UsageError if there is too much code."""
        assert recording is not None, self
        roots, installed = code_roots(recording, self.sources)
        return {
            "recording": sink.recording(recording),
            "recorded": installed,
            "trees": [[old, sink.tree(root, _modules(root))] for old, root in roots.items()],
            "expr": self.expr,
            "timeout": self.timeout,
        }


def code_roots(recording: Path, sources: Mapping[str, str]) -> tuple[dict[str, Path], list[str]]:
    """Return where the program's own code was recorded, with the directories of today, and installed packages in them.

    It is a repository, or the directory of a script or of packages. What is not there today is left out.
    """
    with open_recording(recording) as opened:
        paths = sorted(opened.end.sources) if opened.end is not None else []
        interpreter = opened.header.python.prefix
    roots: dict[str, Path] = {}
    installed = set()
    for path in paths:
        parts = Path(path).parts
        inside = next((parts.index(each) for each in _INSTALLED if each in parts), 0)
        if inside:
            installed.add(str(Path(*parts[: inside + 1])))
            continue
        today = Path(where_today(path, sources) or path)
        if not path.startswith("/") or "/lib/python3." in path or not today.is_file():
            continue
        root = _root_of(today, interpreter)
        rest = str(today.relative_to(root))
        if path.endswith("/" + rest):
            roots.setdefault(path.removesuffix("/" + rest) or "/", root)
    below = [each for each in sorted(installed) if any(each.startswith(f"{old}/") for old in roots)]
    # The innermost first: the first that contains a file decides.
    return dict(sorted(roots.items(), key=lambda pair: -len(pair[0]))), below


def _root_of(path: Path, interpreter: str) -> Path:
    """Return the repository of a module, or the directory from which it is imported."""
    for parent in path.parents:
        if (parent / ".git").exists():
            return parent
    folder = path.parent
    while (folder / "__init__.py").is_file() and folder.parent != folder:
        folder = folder.parent
    return folder


def _modules(root: Path) -> Iterator[str]:
    """Yield the modules below a directory, except those of installed packages, in order."""
    is_repository = (root / ".git").exists()
    count = 0
    for folder, names, files in os.walk(root):
        is_package = folder == str(root) or is_repository or "__init__.py" in files
        # Outside of a repository only packages: a script may be in the user's home directory.
        names[:] = sorted(name for name in names if _is_code(Path(folder, name))) if is_package else []
        for name in sorted(files) if is_package else ():
            if name.endswith(_ENDINGS):
                count += 1
                if count > _MOST_FILES:
                    raise UsageError(
                        f"{str(root)!r} has more than {_MOST_FILES:,} modules, which would be sent to the workers: "
                        "name the program's own directory by --source-root."
                    )
                yield os.path.relpath(Path(folder, name), root)


def _is_code(folder: Path) -> bool:
    is_hidden = folder.name.startswith(".") or folder.name in ("__pycache__", "node_modules", *_INSTALLED)
    return not is_hidden and not (folder / "pyvenv.cfg").exists()
