"""Tasks that run a command once and record it: the runs of `hunt` on the workers of a pool."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from replaydbg.cluster.tasks import ContentSink, JsonObject, RecordingTask, TaskPool, TaskResult
from replaydbg.commits.repository import Repository
from replaydbg.commits.surroundings import Surroundings, without_python
from replaydbg.config import Settings
from replaydbg.errors import UsageError
from replaydbg.hunt.capture import Outside
from replaydbg.hunt.worker import Finished, WantedRecordings
from replaydbg.secrets.age_keys import own_identity, recipient_of

_MOST_BYTES = 512 << 20
"""Bytes of the working directory that go along; more is data, which belongs on the workers."""

# fmt: off
SENT_SETTINGS = (
    "max_size", "real_ids", "chaos", "on_deadlock", "durable", "children", "secret_names", "secret_patterns", "secrets",
)
# fmt: on
"""The settings of a recording that are the same on a worker."""


@dataclass(frozen=True, slots=True, eq=False)
class OneRun:
    """How does a run of a command end? With its recording, if that is wanted."""

    files: ProgramFiles
    command: tuple[str, ...]
    settings: Settings
    timeout: float | None
    """The program's time limit in seconds; None: none."""
    pattern: str
    """A run whose output matches it has failed, too; empty: none."""
    keeping: WantedRecordings

    @property
    def kind(self) -> str:
        """The name of its handler."""
        return "run"

    def order(self, recording: Path | None, sink: ContentSink) -> JsonObject:
        """Return the fields of the order. Raises OSError."""
        identity = own_identity(make=self.settings.secrets == "mask")
        own = (recipient_of(identity),) if identity is not None else ()
        return {
            "tree": self.files.reference(sink),
            "prefix": self.files.prefix,
            "root": str(self.files.root),
            "installed": [str(path) for path in self.files.installed],
            "command": list(self.command),
            "settings": {name: getattr(self.settings, name) for name in SENT_SETTINGS}
            # What a worker masks can be seen here: its own key is another one.
            | {"recipients": [*self.settings.recipients, *own]},
            "environment": {name: text for name, text in os.environ.items() if name.startswith("PYTHON")},
            "timeout": self.timeout,
            "pattern": self.pattern,
            "keeping": list(self.keeping),
        }


class ProgramFiles:
    """The files that go along: those of the repository of the working directory, or of that directory."""

    def __init__(self, directory: Path) -> None:
        """Find them. Raises UsageError if they are too large."""
        self.root, self.prefix = directory, ""
        names: Sequence[str] | None = None
        with suppress(UsageError, OSError, subprocess.SubprocessError):
            repository = Repository(directory)
            self.root, self.prefix = repository.root, repository.prefix
            words = ("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--full-name")
            names = [each for each in repository.run(*words, directory=self.root).split("\0") if each]
        found = names if names is not None else _walked(directory)
        self.names = sorted(each for each in set(found) if _is_file(self.root / each))
        size = sum((self.root / each).stat(follow_symlinks=False).st_size for each in self.names)
        if size > _MOST_BYTES:
            raise UsageError(
                f"{str(self.root)!r} has {size >> 20:,} MiB of files, which would be sent to the workers (the limit is "
                f"{_MOST_BYTES >> 20}): hunt in the program's own directory, or have git ignore what is not part of it."
            )
        self.installed = Surroundings(self.root, self.prefix, self.names).installed()
        """Directories of it from which installed packages are imported."""
        self._known: JsonObject | None = None

    def reference(self, sink: ContentSink) -> JsonObject:
        """Return the reference to them, as they were at the first call."""
        if self._known is None:
            self._known = sink.tree(self.root, self.names)
        return self._known


def _is_file(path: Path) -> bool:
    return path.is_symlink() or path.is_file()


def _walked(directory: Path) -> list[str]:
    found = []
    for folder, names, files in os.walk(directory):
        names[:] = [each for each in names if not each.startswith(".") and each != "__pycache__"]
        found += [os.path.relpath(Path(folder, each), directory) for each in files]
    return found


class ClusterRuns:
    """Starts runs as tasks of a pool: a RunStarter."""

    def __init__(self, pool: TaskPool, directory: Path, pattern: str) -> None:
        """Run commands in copies of `directory`. Raises UsageError."""
        self._pool, self._pattern, self._files = pool, pattern, ProgramFiles(directory)

    def __call__(
        self, argv: list[str], output: Path, settings: Settings, *, timeout: float | None, keeping: WantedRecordings
    ) -> ClusterRun:
        """Start a run."""
        asked = OneRun(self._files, without_python(argv), settings, timeout, self._pattern, keeping)
        return ClusterRun(self._pool, self._pool.submit(RecordingTask(None, asked)), output)


class ClusterRun:
    """A run on a worker: a RunInProgress."""

    def __init__(self, pool: TaskPool, future: Future[TaskResult], output: Path) -> None:
        self._pool, self._future, self._output = pool, future, output
        self.fd = os.eventfd(0, os.EFD_CLOEXEC)
        future.add_done_callback(self._wake)

    @property
    def seconds_left(self) -> float | None:
        """None: the worker ends the program if it takes too long."""
        return None

    def remind(self) -> None:
        """Do nothing: see `seconds_left`."""

    def finish(self) -> Finished:
        """Return the result, and write the recording."""
        os.close(self.fd)
        result = self._future.result()
        facts = result.facts
        if not facts:
            return Finished(Outside(1, b"", b""), self._output, 0, result.why, False)
        outside = Outside(facts["status"], facts["output"], facts["errors"])
        path = self._output.with_name(self._output.name.removesuffix(".rdbg") + facts["ending"])
        for name, data in facts["made"].items():
            target = path / name if name else path
            target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with open(target, "wb", opener=lambda file, flags: os.open(file, flags, 0o600)) as file:
                file.write(data)
        return Finished(outside, path, facts["events"], facts["error"], facts["is_overdue"])

    def kill(self) -> None:
        """End the run."""
        self._pool.give_up(self._future)
        os.close(self.fd)

    def _wake(self, future: Future[TaskResult]) -> None:
        with suppress(OSError, CancelledError):  # closed by `kill`
            if not future.cancelled():
                os.eventfd_write(self.fd, 1)
