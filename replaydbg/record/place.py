"""The live directory to which a recording is written while the program runs, with the files needed before the start."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from replaydbg.errors import CannotRecord
from replaydbg.log.coding.codec import encode_value
from replaydbg.log.sealed.origin import MARK, mark_live
from replaydbg.store.directory import GROUP, LIVE, SEALED, Store, group_path, sealed_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from replaydbg.log.json_data import HeaderData

_FIRST_SIZE = 1 << 20
"""Initial size of each log (FIRST_SIZE in the core)."""
_LONGEST_NAME = 255
"""Bytes of a file's name on nearly all file systems."""
_LARGEST_PID = 1 << 22
"""PID_MAX_LIMIT of Linux: the number of the process that seals is in the name of its file."""
_OF_GROUPS = ("group", "process", "outputs")
"""Fields of the header that only processes of a group have."""


def make_live_directory(output: Path | None, store: Path) -> Path:
    """Make the live directory of a recording to `output`, or of a new one in `store`. Raises CannotRecord."""
    if output is None:
        try:
            return Store(store).create().absolute()
        except OSError as error:
            raise CannotRecord(str(store), reason_of(error)) from error
    output = absolute_output(output)
    check_name_fits(output)
    check_replaceable(output)
    live = output.with_name(output.name.removesuffix(SEALED) + LIVE)
    check_no_group(group_path(sealed_path(live)))
    try:
        if os.path.lexists(live):
            # Imported here: it seldom happens, and takes longer to load than the start itself.
            from replaydbg.store.sealed_leftovers import remove_if_sealed

            remove_if_sealed(live)
        live.mkdir(mode=0o700)
    except FileExistsError as error:
        reason = f"{live.name!r} exists: another recording is being written to it, or its recorder was killed"
        raise CannotRecord(str(output), reason) from error
    except OSError as error:
        raise CannotRecord(str(output), reason_of(error)) from error
    return live


def absolute_output(output: Path) -> Path:
    """Return the path of a recording as it is shown: absolute and, unless a link was named, as it was typed."""
    absolute = output.absolute()
    # What lies above a link, only the system knows.
    return absolute.parent.resolve() / absolute.name if ".." in absolute.parts else absolute


def shared_store(output: Path | None, store: Path) -> Path | None:
    """Return the store that a recording to `output` shares blocks with; None: it is one file that needs no other."""
    return store if output is None else None


def check_no_group(directory: Path) -> None:
    """Raise CannotRecord if `directory` exists."""
    if os.path.lexists(directory):
        reason = "it exists: a group of processes is not replaced; remove it with `replaydbg rm`, or use another name"
        raise CannotRecord(str(directory), reason)


def check_name_fits(output: Path) -> None:
    """Raise CannotRecord if a name that is made of that of a recording, as that of a partial file, is too long."""
    try:
        longest = os.pathconf(output.parent, "PC_NAME_MAX")
    except OSError:  # there is no such directory
        longest = _LONGEST_NAME
    size = len(os.fsencode(output.name.removesuffix(GROUP).removesuffix(SEALED)))
    room = longest - len(f".{SEALED}.{_LARGEST_PID}.partial")
    if size > room:
        raise CannotRecord(str(output), f"its name has {size:,} bytes, and at most {room:,} are possible there")


def check_replaceable(output: Path) -> None:
    """Raise CannotRecord if `output` is something that no recording may replace."""
    if output.exists() and not output.is_file():
        raise CannotRecord(str(output), "it is a directory" if output.is_dir() else "it is not a regular file")


@contextmanager
def removed_unless_begun(live: Path) -> Iterator[None]:
    """Remove the live directory if the block raises before the program has a log: an empty one is useless."""
    try:
        yield
    except BaseException:
        # Imported here: it seldom happens, and takes longer to load than the start itself.
        from replaydbg.log.live_directory import remove_live
        from replaydbg.record.end_facts import log_was_made

        if live.is_dir() and not log_was_made(live):
            remove_live(live)
        raise


def write_start(live: Path, header: HeaderData, boot: Mapping[str, object], *, marks: bool = True) -> Path:
    """Write the header and the core's orders; return the path of the latter.

    `marks`: mark the directory as one that this user made. Raises CannotRecord.
    """
    boot_file = live / "boot"
    try:
        (live / "header.json").write_text(json.dumps(header), encoding="utf-8")
        boot_file.write_bytes(encode_value(boot))
        if marks:
            mark_live(live)
        if header["durable"]:
            for path in (
                live / "header.json",
                *((live / MARK,) if marks else ()),
                live,
                live.parent,
                live.parent.parent,
            ):
                sync_path(path)
    except OSError as error:
        raise CannotRecord(str(live), reason_of(error)) from error
    return boot_file


def sync_path(path: Path) -> None:
    """Wait until the disk has a file, or the entries of a directory, if it exists. Raises OSError."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def handled_signals(live: Path) -> int:
    """Return how many signals the program has handled: a count in the header of its log, see format.md."""
    try:
        with (live / "log").open("rb") as log:
            return int.from_bytes(log.read(44)[40:], "little")
    except OSError:
        return 0  # it has not begun


def leave_group(live: Path, header: HeaderData) -> None:
    """Remove from a live directory what only processes of a group need: no other process was recorded.

    `header` is used if the directory's own, which is another one after a checkpoint, cannot be read.
    """
    with suppress(OSError, ValueError):
        header = json.loads((live / "header.json").read_bytes())
    facts = {name: fact for name, fact in header.items() if name not in _OF_GROUPS}
    facts["name"] = live.name.removesuffix(LIVE)
    partial = live / "header.json.partial"
    try:
        (live / "transfers").unlink(missing_ok=True)
        partial.write_text(json.dumps(facts), encoding="utf-8")
        partial.replace(live / "header.json")
    except OSError:  # the disk is full: all of it can be read with these, too
        partial.unlink(missing_ok=True)


def why_no_log(live: Path) -> str:
    """Return why the program's process could not make its two logs, by allocating the same space again."""
    try:
        for name in ("log", "world"):
            with (live / name).open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, _FIRST_SIZE)
    except OSError as error:
        return reason_of(error)
    return "there was no space for its log, but there is now: try again"


def reason_of(error: OSError) -> str:
    """Return the system's words for an error."""
    return os.strerror(error.errno) if error.errno is not None else str(error)
