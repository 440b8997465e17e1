"""Some commits of a git repository as a pack, and a repository made of it, in which they can be checked out."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from replaydbg.commits.repository import GitFailed, Repository, outside_environment

QUIET = ("-c", "core.hooksPath=/dev/null", "-c", "gc.auto=0", "-c", "core.fsmonitor=false")
"""Options of git for a repository that is nobody's."""


def pack_of(root: Path, commits: Sequence[str], target: Path) -> bytes:
    """Write the objects of these commits of the repository in `root`; return facts about them for `unpack`.

    The history before them is left out: a checkout does not need it, as in a shallow clone. Raises GitFailed, OSError.
    """
    repository = Repository(root)
    given = "\n".join(commits) + "\n"
    # With their trees and files; a commit that is named twice counts once.
    objects = repository.run("rev-list", "--objects", "--no-walk", "--stdin", given=given)
    names = "".join(f"{line.split(maxsplit=1)[0]}\n" for line in objects.splitlines())
    parents = repository.run("rev-list", "--no-walk", "--parents", "--stdin", given=given)
    known = set(commits)
    cut = [name for name, *above in map(str.split, parents.splitlines()) if not known.issuperset(above)]
    with target.open("wb") as file:
        # In one thread, the same objects make the same pack, and a worker that has it needs no other.
        command = ["pack-objects", "--quiet", "--stdout", "--threads=1", "--delta-base-offset"]
        _git(repository.program, command, root, given=names.encode(), output=file)
    form = repository.ask("rev-parse", "--show-object-format")
    return json.dumps({"format": form, "shallow": sorted(cut), "name": repository.root.name}).encode()


def unpack(pack: Path, facts: bytes, directory: Path) -> None:
    """Make a repository in `directory`, which does not exist, under its own name. Raises GitFailed and OSError."""
    about = json.loads(facts)
    target = directory / about["name"]
    target.mkdir(parents=True)
    program = "git"
    _git(program, ["init", "--quiet", f"--object-format={about['format']}", "-b", "main"], target)
    with pack.open("rb") as file:
        _git(program, ["index-pack", "--stdin"], target, source=file)
    if about["shallow"]:
        (target / ".git" / "shallow").write_text("".join(f"{name}\n" for name in about["shallow"]), encoding="ascii")


def _git(
    program: str,
    words: list[str],
    directory: Path,
    *,
    given: bytes | None = None,
    source: IO[bytes] | None = None,
    output: IO[bytes] | None = None,
) -> None:
    """Run git. Raises GitFailed, and OSError if it is not installed."""
    stdin: dict[str, Any] = {"input": given} if given is not None else {"stdin": source or subprocess.DEVNULL}
    done = subprocess.run(
        [program, *QUIET, *words],
        cwd=directory,
        env=outside_environment() | {"LC_ALL": "C.UTF-8", "GIT_CONFIG_NOSYSTEM": "1"},
        **stdin,
        stdout=output or subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        check=False,
    )
    if done.returncode:
        errors = done.stderr.decode(errors="replace").strip().splitlines() or [f"git {words[0]} failed"]
        raise GitFailed(errors[-1].removeprefix("fatal: ").rstrip("."))
