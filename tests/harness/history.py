"""Git repositories for tests: a list of commits becomes a history, in one git process."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}


@dataclass(frozen=True, slots=True)
class Change:
    """One commit: its tag, the new content of its files, the tags of its parents (empty: the previous one)."""

    tag: str
    files: Mapping[str, str] = field(default_factory=dict)
    parents: Sequence[str] | None = None
    removed: Sequence[str] = ()


def git(directory: Path, *words: str, given: bytes | None = None) -> str:
    """Run git there and return its output."""
    command = ["git", "-C", str(directory), *words]
    done = subprocess.run(command, input=given, capture_output=True, check=True, env=ENVIRONMENT)
    return done.stdout.decode()


def make_history(directory: Path, changes: Sequence[Change]) -> Path:
    """Create a repository with these commits, each tagged; the last one is checked out on `main`."""
    directory.mkdir(parents=True)
    git(directory, "init", "--quiet", "-b", "main")
    marks = {change.tag: f":{number}" for number, change in enumerate(changes, 1)}
    stream = bytearray()
    for number, change in enumerate(changes):
        text = f"Change {change.tag}"
        stream += f"reset refs/heads/main\ncommit refs/heads/main\nmark {marks[change.tag]}\n".encode()
        stream += f"committer Ann <ann@example.org> {1700000000 + 60 * number} +0000\n".encode()
        stream += f"data {len(text)}\n{text}\n".encode()
        before = change.parents if change.parents is not None else [changes[number - 1].tag] if number else []
        for index, parent in enumerate(before):
            stream += f"{'merge' if index else 'from'} {marks[parent]}\n".encode()
        for path in change.removed:
            stream += f"D {path}\n".encode()
        for path, content in change.files.items():
            data = content.encode("utf-8", "surrogateescape")
            stream += f"M 100644 inline {path}\ndata {len(data)}\n".encode() + data + b"\n"
        stream += f"reset refs/tags/{change.tag}\nfrom {marks[change.tag]}\n\n".encode()
    git(directory, "fast-import", "--quiet", given=bytes(stream))
    git(directory, "reset", "--quiet", "--hard", "main")
    return directory


def picture(directory: Path) -> dict[str, str]:
    """Return the complete state of a repository from its user's view."""
    return {
        "status": git(directory, "status", "--porcelain", "--ignored"),
        "refs": git(directory, "for-each-ref"),
        "head": (directory / ".git" / "HEAD").read_text(),
        "worktrees": git(directory, "worktree", "list", "--porcelain"),
        "stash": git(directory, "stash", "list"),
        "index": (directory / ".git" / "index").read_bytes().hex(),
        "config": (directory / ".git" / "config").read_text(),
        "log": git(directory, "reflog"),
        "known": " ".join(sorted(path.name for path in (directory / ".git").iterdir())),
    }
