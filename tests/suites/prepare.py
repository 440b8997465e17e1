"""Makes what a suite needs, once: its tests unpacked, and an environment of its own with our plugin in it."""

import hashlib
import importlib.metadata
import shutil
import subprocess
import sys
import tarfile
import venv
from dataclasses import dataclass
from pathlib import Path

import replaydbg
from tests.suites import outcomes_plugin
from tests.suites.suite import Suite

PYTEST = ("pytest==8.4.1", "pytest-xdist==3.8.0")
_TIMEOUT = 900
"""Seconds for each command that fetches or installs."""


class PrepareFailed(Exception):
    """A suite cannot be laid out; its message says why."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A suite that can be run."""

    suite: Suite
    python: Path
    # The root of its source distribution.
    sources: Path


def prepare(suite: Suite, cache: Path) -> Prepared:
    """Lay a suite out below `cache`, unless it is. Raises PrepareFailed."""
    wanted = [*PYTEST, *_own_requirements(), suite.distribution, *suite.requires]
    name = hashlib.sha256("\n".join([sys.version, *wanted]).encode()).hexdigest()[:12]
    folder = cache / f"{suite.package}-{suite.version}-{name}"
    python = folder / "venv" / "bin" / "python"
    if not (folder / "complete").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        venv.create(folder / "venv", with_pip=True, symlinks=True)
        _run([str(python), "-m", "pip", "install", "-q", *wanted])
        _fetch(suite, python, folder / "sources")
        (folder / "complete").touch()
    _place_ourselves(python)
    return Prepared(suite, python, next(path for path in (folder / "sources").iterdir() if path.is_dir()))


def _fetch(suite: Suite, python: Path, target: Path) -> None:
    """Get the source distribution, and unpack it."""
    # pip builds its metadata, for which it takes wheels of what that needs.
    command = [str(python), "-m", "pip", "download", "-q", "--no-deps", "--no-binary", suite.package, "-d", str(target)]
    _run([*command, suite.distribution])
    archives = list(target.glob("*.tar.gz"))
    if len(archives) != 1:
        raise PrepareFailed(f"{suite.distribution}: no source distribution that is a .tar.gz")
    with tarfile.open(archives[0]) as archive:
        archive.extractall(target, filter="data")


def _own_requirements() -> list[str]:
    return [each for each in importlib.metadata.requires("replaydbg") or [] if "extra ==" not in each]


def _place_ourselves(python: Path) -> None:
    """Make this replaydbg importable there, with its plugin: as it is in the tree, also where it changes afterwards."""
    packages = Path(_run([str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]).strip())
    link = packages / "replaydbg"
    link.unlink(missing_ok=True)
    link.symlink_to(Path(str(replaydbg.__file__)).parent)
    about = packages / "replaydbg-0.dist-info"
    about.mkdir(exist_ok=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: replaydbg\nVersion: 0\n")
    points = importlib.metadata.distribution("replaydbg").entry_points.select(group="pytest11")
    (about / "entry_points.txt").write_text(
        "[pytest11]\n" + "".join(f"{each.name} = {each.value}\n" for each in points)
    )
    shutil.copy(outcomes_plugin.__file__, packages / "suites_outcomes.py")


def _run(command: list[str]) -> str:
    finished = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT)
    if finished.returncode:
        lines = (finished.stderr or finished.stdout).strip().splitlines() or [f"exit code {finished.returncode}"]
        raise PrepareFailed(f"{' '.join(command[1:4])} ...: {' '.join(lines[-2:])}")
    return finished.stdout
