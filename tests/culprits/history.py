"""Released versions of a package as the commits of a repository."""

import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

from tests.harness.history import Change, make_history


def fetch(package: str, release: str, cache: Path) -> Path:
    """The wheel of a release; downloaded once."""
    place = cache / package / release
    found = sorted(place.glob("*.whl"))
    if not found:
        wanted = f"{package}=={release}"
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
        subprocess.run([*command, "--dest", str(place), wanted], check=True, stdout=sys.stderr)
        found = sorted(place.glob("*.whl"))
    return found[0]


def sources(wheel: Path) -> dict[str, str]:
    """The Python sources of a wheel, and what tells which distribution they are."""
    with zipfile.ZipFile(wheel) as opened:
        names = [name for name in opened.namelist() if name.endswith((".py", ".dist-info/METADATA"))]
        return {name: opened.read(name).decode("utf-8", "surrogateescape") for name in names}


def make_repository(directory: Path, package: str, releases: Sequence[str], cache: Path) -> Path:
    """A repository with a commit for each release, tagged with its number; what a release dropped is removed."""
    changes, before = [], set[str]()
    for release in releases:
        files = sources(fetch(package, release, cache))
        changes.append(Change(release, files, removed=sorted(before - set(files))))
        before = set(files)
    return make_history(directory, changes)
