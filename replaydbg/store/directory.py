"""The user's directory of recordings: naming new ones, finding and removing old ones."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from replaydbg.classes import NamedTuple
from replaydbg.errors import NoSuchRecording, UsageError
from replaydbg.events.nearest_words import nearest
from replaydbg.log.group import PAGE
from replaydbg.log.unfinished_group import check_finished, is_finished

SEALED, LIVE, GROUP = ".rdbg", ".rdbg-live", ".rdbgs"
"""The suffixes of a sealed recording, of a live directory, and of the directory of a group of processes."""
FOLLOWING = ".rdbg-next"
"""The suffix of the directory that takes the place of a live directory after a checkpoint."""

PULLED = ".pulled-"
"""The beginning of the name of a directory into which a recording is fetched; the process id follows."""

INDEX = ".index"
"""The suffix of an index, after the whole name of its recording."""

_RUN = re.compile(r"run-([1-9][0-9]{0,17})")


_RANKS = {SEALED: 0, LIVE: 1, GROUP: 2}
"""Of several with one name, the first of these counts."""


def number_of(name: str) -> int:
    """Return the number in the name of a recording; 0 if it was named by its user."""
    match = _RUN.fullmatch(name)
    return int(match[1]) if match else 0


class StoredRecording(NamedTuple):
    """One recording of the store."""

    name: str
    """Its name, such as `run-12`."""
    path: Path
    """The sealed file, or the live directory."""
    is_live: bool
    """Whether it is a live directory."""
    group: Path | None = None
    """The directory of the group whose first process it is; None: it is a recording of one process."""

    @property
    def number(self) -> int:
        """The number in its name; 0 if it was named by its user."""
        return number_of(self.name)


class Store:
    """A directory of recordings. It need not exist until something is created in it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def create(self) -> Path:
        """Make the live directory of a new recording and return it.

        Two concurrent recorders get different names. Raises OSError if the store cannot be written.
        """
        return self._create(LIVE)

    def create_group(self) -> Path:
        """Make the directory of a new group of processes and return it; see `create`."""
        return self._create(GROUP)

    def _create(self, ending: str) -> Path:
        # Recordings contain environments and file contents: only their user may read them.
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        # By the names alone: each recording waits for it, and there may be very many.
        names = os.listdir(self.directory)  # noqa: PTH208
        number = max((number_of(name.partition(".")[0]) for name in names if name.startswith("run-")), default=0)
        while True:
            number += 1
            made = self.directory / f"run-{number}{ending}"
            try:
                made.mkdir(mode=0o700)
            except FileExistsError:
                continue
            # Another recorder may have taken the number, sealed, and removed its directory since the check.
            others = [self.directory / f"run-{number}{each}" for each in (SEALED, LIVE, GROUP) if each != ending]
            if not any(os.path.lexists(each) for each in others):
                return made
            made.rmdir()

    def list(self) -> list[StoredRecording]:
        """Return the recordings, oldest first; one that is both sealed and live counts as sealed."""
        return [self.stored(name, ending) for name, (ending, _) in self.files().items()]

    def stored(self, name: str, ending: str) -> StoredRecording:
        """Return the recording of this name whose file, or directory, ends so."""
        path = self.directory / (name + ending)
        if ending != GROUP:
            return StoredRecording(name, path, ending == LIVE)
        first = member_path(path, 1)
        return StoredRecording(name, first, first.name.endswith(LIVE), path)

    def files(self) -> dict[str, tuple[str, os.DirEntry[str]]]:
        """Return for each recording, by their numbers, the ending of its file and the entry of the directory."""
        found: dict[str, tuple[str, os.DirEntry[str]]] = {}
        try:
            with os.scandir(self.directory) as entries:
                for entry in entries:
                    name, dot, ending = entry.name.rpartition(".")
                    rank = _RANKS.get(dot + ending)
                    if rank is None or not name or name.startswith("."):
                        continue
                    if (known := found.get(name)) is not None and _RANKS[known[0]] < rank:
                        continue
                    is_ours = _is_shown(Path(entry.path)) if rank == _RANKS[GROUP] else rank or not entry.is_dir()
                    if is_ours:
                        found[name] = dot + ending, entry
        except OSError:
            return {}  # there are no recordings yet
        return dict(sorted(found.items(), key=lambda each: (number_of(each[0]), each[0])))

    def named(self, text: str) -> StoredRecording | None:
        """Return the recording of the store with this name, or the last one for `latest`; None: there is none."""
        stored = self.list()
        if text == "latest":
            return _latest(stored)
        return next((each for each in stored if each.name == text), None)

    def resolve(self, text: str) -> Path:
        """Return the recording that `text` names: `latest`, a name in the store, or a path, with or without its suffix.

        `run-12/3` is the third process of the group `run-12`, and the group's name alone its first one.
        A name in the store takes precedence over a file with that name in the working directory, which needs a `./` in
        front. Raises NoSuchRecording, UnfinishedGroup, or UsageError for an empty text.
        """
        if not text:
            raise UsageError("The name of a recording is empty. `replaydbg ls` shows those that exist.")
        stored = self.list()
        if text == "latest":
            latest = _latest(stored)
            if latest is None:
                raise NoSuchRecording(text, str(self.directory))
            return latest.path
        for one in stored:
            if one.name == text:
                if one.group is not None:
                    check_finished(one.group, text)
                return one.path
        group, number = self._split(text)
        directory = self.find_group(group) if group else None
        if directory is not None:
            check_finished(directory, group)
            path = member_path(directory, number)
            if os.path.lexists(path):
                return path
            raise NoSuchRecording(text, str(self.directory))
        path = Path(text)
        candidates = [path]
        if path.name.endswith(SEALED):
            candidates.append(path.with_name(path.name.removesuffix(SEALED) + LIVE))
        elif path.name and not path.name.endswith(LIVE):
            # As `record -o NAME` takes it.
            candidates += [path.with_name(path.name + ending) for ending in (SEALED, LIVE)]
        for candidate in candidates:
            if os.path.lexists(candidate):
                return candidate
        raise NoSuchRecording(text, str(self.directory), _hint(text, [each.name for each in stored]))

    @staticmethod
    def _split(text: str) -> tuple[str, int]:
        """Return the name of a group and the number of a process in it; an empty name if it cannot be one."""
        group, slash, number = text.rstrip("/").rpartition("/")
        if slash and number.isascii() and number.isdigit() and len(number) < 8:
            return group, int(number)
        return text, 1

    def find_group(self, text: str) -> Path | None:
        """Return the directory of the group that `text` names, as for `resolve`; None: it names none."""
        stored = self.list()
        if text == "latest":
            latest = _latest(stored)
            return latest.group if latest is not None else None
        for one in stored:
            if one.name == text:
                return one.group
        path = Path(text)
        candidates = [path]
        # As `record -o NAME` takes it.
        if path.name.endswith(SEALED) and not os.path.lexists(path):
            candidates.append(path.with_name(path.name.removesuffix(SEALED) + GROUP))
        elif path.name:
            candidates.append(path.with_name(path.name + GROUP))
        for candidate in candidates:
            if candidate.name.endswith(GROUP) and _is_shown(candidate):
                return candidate
        return None

    def name_of(self, path: Path) -> str:
        """Return the text that `resolve` turns into `path`: a name if it is in the store, else the path itself."""
        if path.parent.name.endswith(GROUP) and path.parent.parent == self.directory:
            return f"{path.parent.name.removesuffix(GROUP)}/{path.name.partition('.')[0]}"
        for ending in (SEALED, LIVE):
            if path.parent == self.directory and path.name.endswith(ending):
                return path.name.removesuffix(ending)
        return str(path)


_MEMBER = re.compile(rf"[0-9]+({re.escape(SEALED)}|{re.escape(LIVE)})")


def is_group(directory: Path) -> bool:
    """Whether a directory has recordings of a group; the name alone says nothing: other files may be left in it."""
    try:
        return any(_MEMBER.fullmatch(name) for name in os.listdir(directory))  # noqa: PTH208 - names are enough
    except (OSError, ValueError):  # it is no directory, or no name
        return False


def _is_shown(directory: Path) -> bool:
    """Whether a directory with the name of a group can be named by users: if only to remove it."""
    return is_group(directory) or os.path.lexists(directory / PAGE)


def _hint(text: str, stored: Iterable[str]) -> str:
    """Return a hint at the recording that is probably meant, in the store or beside the path; empty: none is."""
    path = Path(text)
    if path.name.startswith("run-"):
        return ""  # another number is another recording
    return nearest(text, [*stored, *map(str, recordings_in(path.parent))])


def recordings_in(directory: Path) -> list[Path]:
    """Return the paths in a directory whose names are those of recordings; none if it cannot be listed."""
    try:
        return [each for each in directory.iterdir() if each.suffix in (SEALED, LIVE, GROUP)]
    except (OSError, ValueError):  # it does not exist, or its name has a null character
        return []


def _latest(stored: list[StoredRecording]) -> StoredRecording | None:
    """Return the last recording; groups that nobody has finished do not count."""
    return next((each for each in reversed(stored) if each.group is None or is_finished(each.group)), None)


def index_path(recording: Path) -> Path:
    """Return where the debugger keeps its index of a recording."""
    return recording.with_name(recording.name + INDEX)


def member_path(group: Path, number: int) -> Path:
    """Return the recording of a process of a group: the live directory if there is no sealed file."""
    sealed, live = group / f"{number}{SEALED}", group / f"{number}{LIVE}"
    return live if os.path.lexists(live) and not os.path.lexists(sealed) else sealed


def sealed_path(live: Path) -> Path:
    """Return the path to which the live directory `live` is sealed."""
    return live.with_name(live.name.removesuffix(LIVE) + SEALED)


def group_path(sealed: Path) -> Path:
    """Return the directory of the group that has the name of the sealed file `sealed`."""
    return sealed.with_name(sealed.name.removesuffix(SEALED) + GROUP)


def live_path(sealed: Path) -> Path:
    """Return the live directory that belongs to the sealed file `sealed`."""
    return sealed.with_name(sealed.name.removesuffix(SEALED) + LIVE)


def following_path(live: Path) -> Path:
    """Return where the recording of a program that goes on from a checkpoint is prepared, see `checkpoint.c`.

    `live` is the live directory whose place it takes.
    """
    return live.with_name(live.name.removesuffix(LIVE) + FOLLOWING)
