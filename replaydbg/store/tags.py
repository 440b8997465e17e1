"""Tags of recordings: words that users give them, each recording's in a small file of its own in the store.

They are not in the catalog, because that may be deleted; and not in the recording, because that never changes. A file
is named by the run's id, so the tags stay with a recording that is renamed, and a later one of the same name has none
of them. The name is in it as well, for a recording that cannot be read any more.
"""

from __future__ import annotations

import json
import re
from _blake2 import blake2b  # hashlib would import OpenSSL before every recorded program
from collections.abc import Callable, Iterable
from pathlib import Path

from replaydbg.errors import ReplaydbgError, UsageError
from replaydbg.events.run_facts import Header
from replaydbg.log.allowance import load_json
from replaydbg.store.directory import Store
from replaydbg.store.own_files import OwnFiles

DIRECTORY = ".tags"
"""Its name in the store."""
PINNED = "pinned"
"""The tag that the rule of this name keeps."""
_KEY = re.compile(r"[0-9a-f]{32}")
_TAG = re.compile(r"[^\W_][\w.:+-]{0,39}")
_MOST, _MOST_BYTES = 50, 1 << 16
_PATIENCE = 2.0
"""Seconds to wait for another command that changes tags."""


class TagsUnreadable(ReplaydbgError):
    """A file with tags cannot be read, so it is not known which recordings are pinned."""

    slug = "tags-unreadable"
    fields = ("path",)

    def __init__(self, path: str, result: str) -> None:
        """`path` is that of the file, or of the directory with all tags; `result` is a clause for what follows."""
        self.path = path
        super().__init__(f"{_what_is_unreadable(path)}: {result}. {_repair(path)}")


def check_tag(tag: str) -> str:
    """Return a tag. Raises UsageError if it is none."""
    if not _TAG.fullmatch(tag):
        raise UsageError(
            f"{tag!r} cannot be a tag: it needs a letter or digit, then up to 39 letters, digits or . : + - _"
        )
    return tag


class Tags:
    """The tags of all recordings of a store, as they are now."""

    def __init__(self, store: Store) -> None:
        """Read them."""
        self._by_run: dict[str, tuple[str, ...]] = {}
        self._by_name: dict[str, tuple[str, ...]] = {}
        self.unreadable = ""
        """The path of the first file with tags that cannot be read, or of their directory; empty: all can."""
        files = _files(store)
        try:
            keys = files.names()
        except OSError:
            self.unreadable = str(store.directory / DIRECTORY)
            return
        for key in keys:
            try:
                data = files.read(key, _MOST_BYTES)
                if data is None:
                    continue  # they have been removed meanwhile
                name, words = _parsed(data)
            except (OSError, ValueError):
                self.unreadable = self.unreadable or str(store.directory / DIRECTORY / key)
                continue
            self._by_run[key] = words
            self._by_name[name] = tuple(sorted({*words, *self._by_name.get(name, ())}))

    def __bool__(self) -> bool:
        """Whether a recording may have tags."""
        return bool(self._by_run)

    def warning(self) -> str:
        """Return a sentence for those who go on without the tags that cannot be read."""
        is_all = Path(self.unreadable).name == DIRECTORY
        whose = "all recordings count" if is_all else "the recording counts"
        return f"{_what_is_unreadable(self.unreadable)}: {whose} as untagged."

    def of(self, name: str, run: str) -> tuple[str, ...]:
        """Return the tags of a recording, sorted; `run` is its key, empty if it cannot be read."""
        return self._by_run.get(run, ()) if run else self._by_name.get(name, ())


def key_of(header: Header) -> str:
    """Return what identifies a recording: the id of its run.

    Of one that continues another, which has the same id, and of those of earlier versions, when it began is in it, too.
    A future has the id of the run that it comes from; several of one run differ in their names.
    """
    run, resumed, future = (header.raw.get(each) for each in ("run", "resumed", "future"))
    if isinstance(run, str) and is_key(run) and not resumed and not future:
        return run
    own = [future, header.raw.get("name")] if future else []
    return blake2b(json.dumps([run, header.created, resumed, *own]).encode(), digest_size=16).hexdigest()


def is_key(text: str) -> bool:
    """Whether `key_of` can have returned this: the name of a file with tags."""
    return bool(_KEY.fullmatch(text))


def change_tags(store: Store, name: str, run: str, change: Callable[[set[str]], set[str]]) -> tuple[str, ...]:
    """Give a recording the tags that `change` returns for those that it has; return them, sorted.

    Raises OSError, TagsUnreadable, or UsageError if there are too many or another command changes them all the time.
    """
    files, unchanged = _files(store), "no tag was changed"
    try:
        files.names()
    except OSError as error:
        raise TagsUnreadable(str(store.directory / DIRECTORY), unchanged) from error
    with files.locked(".lock", seconds=_PATIENCE) as is_locked:
        if not is_locked:
            raise UsageError("Another command is changing tags of this store.")
        try:
            data = files.read(run, _MOST_BYTES)
            before = () if data is None else _parsed(data)[1]
        except (OSError, ValueError) as error:
            raise TagsUnreadable(str(store.directory / DIRECTORY / run), unchanged) from error
        after = sorted(change(set(before)))
        if len(after) > _MOST:
            raise UsageError(f"A recording can have at most {_MOST} tags.")
        if not after:
            files.remove(run)
        elif tuple(after) != before:
            # On the disk before it counts: `gc` may remove what is not pinned after the power has failed.
            files.write(run, json.dumps({"name": name, "tags": after}).encode(), is_durable=True)
    return tuple(after)


def tagged_runs(store: Store) -> Iterable[str]:
    """Return the keys of the recordings with tags; none if they cannot be read."""
    try:
        return _files(store).names()
    except OSError:
        return ()


def forget_tags(store: Store, run: str) -> None:
    """Remove the tags of a recording that is removed. Raises OSError."""
    _files(store).remove(run)


def _parsed(data: bytes) -> tuple[str, tuple[str, ...]]:
    """Return the name and the tags in a file. Raises ValueError, also for an empty one, as a full disk leaves it."""
    found = load_json(data)
    if not isinstance(found, dict):
        raise ValueError("it is no object")
    name, words = found.get("name"), found.get("tags")
    if type(name) is not str or type(words) is not list or len(words) > _MOST:
        raise ValueError("it has other fields")
    if not all(type(each) is str and _TAG.fullmatch(each) for each in words):
        raise ValueError("it has words that are no tags")
    return name, tuple(sorted(set(words)))


def _what_is_unreadable(path: str) -> str:
    if Path(path).name == DIRECTORY:
        return f"Cannot read the directory of all tags, {path!r}"
    return f"Cannot read the tags in {path!r}"


def _repair(path: str) -> str:
    if Path(path).name == DIRECTORY:
        return f"Restore it. If you delete it, all recordings lose their tags, also `{PINNED}`."
    return f"Restore the file. If you delete it, the recording loses its tags, also `{PINNED}`."


def _files(store: Store) -> OwnFiles:
    return OwnFiles(store.directory / DIRECTORY)
