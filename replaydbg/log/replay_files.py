"""Write the raw files that a replay maps into memory, truncated where a damaged recording becomes unreadable."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from replaydbg.classes import dataclass
from replaydbg.errors import Corrupt, SecretsMasked
from replaydbg.events.run_facts import GateRow
from replaydbg.events.stops import StopReason
from replaydbg.log.allowance import FLOOR, LOG_FLOOR, allowance
from replaydbg.log.coding.encode import FORMAT
from replaydbg.log.entries.logfile import LOG_HEADER, LogHeader, pack_log_header
from replaydbg.log.entries.stream import LogStream
from replaydbg.log.sealed.sections import Sections

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

_EMPTY = LogHeader(FORMAT, StopReason.NOT_STOPPED, LOG_HEADER, 0, 0)


@dataclass(frozen=True, slots=True)
class Unpacked:
    """The files written for a replay."""

    log: LogHeader
    """The header of the event log as written."""
    is_cut: bool
    """Whether a part of the event log or of the content was lost, so that the replay ends earlier."""
    is_world_cut: bool
    """Whether a part of the import world was lost, without which the program finds other modules than recorded."""
    content: int
    """Bytes of the content that are undamaged, from its beginning."""


def records(pieces: Iterator[bytes], end: int) -> Iterator[bytes]:
    """Yield the part of `pieces` after the log's header and before `end`."""
    offset = 0
    for piece in pieces:
        part = piece[max(0, LOG_HEADER - offset) : max(0, end - offset)]
        if part:
            yield part
        offset += len(piece)
        if offset >= end:
            return


def unpack(
    sections: Sections,
    headers: Mapping[str, LogHeader | None],
    gates: Sequence[GateRow],
    target: Path | Mapping[str, BinaryIO],
) -> Unpacked:
    """Write `log`, `world` and `content`; see `Recording.unpack`."""
    with ExitStack() as stack:
        files: Mapping[str, BinaryIO]
        if isinstance(target, Path):
            # "x": an existing file or symbolic link is not overwritten.
            files = {name: stack.enter_context((target / name).open("x+b")) for name in ("log", "world", "content")}
        else:
            files = target
        for name, floor in (("content", FLOOR), ("log", LOG_FLOOR), ("world", FLOOR)):
            _check_claim(sections, name, floor)
        # Content that stays in the recording is checked only.
        pieces = sections.pieces("content")
        size = _copy(pieces, files["content"]) if "content" in files else sum(map(len, pieces))
        content = None if size == sections.size("content") and sections.is_whole("content") else size
        hidden = first_masks(sections)
        if "content" in hidden:
            content = min(hidden["content"], size)
        world, is_world_cut = _write_log(sections, "world", headers["world"] or _EMPTY, (), files["world"], content)
        assert world.committed >= LOG_HEADER, world
        log, is_cut = _write_log(
            sections, "log", headers["log"] or _EMPTY, gates, files["log"], content, hidden.get("log")
        )
        for file in files.values():
            file.flush()
        return Unpacked(log, is_cut, is_world_cut or not sections.is_whole("world"), size)


def first_masks(sections: Sections) -> dict[str, int]:
    """Return of each section the offset of the first secret that this user cannot see.

    Raises SecretsMasked if one is needed before the first event.
    """
    masked = sections.hidden
    if masked is None:
        return {}
    if any(name in ("header", "world") and each for name, each in masked.places.items()):
        raise SecretsMasked("the recording", masked.recipients)
    return {name: each[0][0] for name, each in masked.places.items() if each}


def _check_claim(sections: Sections, name: str, floor: int) -> None:
    """Raise Corrupt if a section claims to expand to far more memory than its stored bytes allow."""
    size, stored = sections.size(name), sections.stored(name)
    if size > allowance(stored, floor=floor):
        raise Corrupt(
            "the recording", f"its section {name!r} claims {size:,} bytes, too many for its {stored:,} stored bytes"
        )


def _copy(pieces: Iterator[bytes], out: BinaryIO, limit: int | None = None) -> int:
    size = 0
    for piece in pieces:
        part = piece if limit is None else piece[: limit - size]
        out.write(part)
        size += len(part)
        if limit is not None and size >= limit:
            break
    return size


def _write_log(
    sections: Sections,
    name: str,
    header: LogHeader,
    gates: Sequence[GateRow],
    out: BinaryIO,
    content: int | None,
    until: int | None = None,
) -> tuple[LogHeader, bool]:
    """Write one log and return its header and whether it was truncated;

    `content` is the available size of the content, None for all; the log is used up to the offset `until`.
    """
    size = _copy(sections.pieces(name), out, header.committed if until is None else min(until, header.committed))
    if size == header.committed and content is None:
        # The program may still run: its log has grown since the header was read.
        out.seek(0)
        out.write(pack_log_header(header))
        return header, False
    end, crossings = _sound_end(sections, name, size, gates, content)
    cut = header._replace(committed=LOG_HEADER + end, crossings=crossings if name == "log" else header.crossings)
    out.seek(0)
    out.write(pack_log_header(cut))
    out.truncate(cut.committed)
    return cut, cut.committed != header.committed


def _sound_end(
    sections: Sections, name: str, size: int, gates: Sequence[GateRow], content: int | None
) -> tuple[int, int]:
    """Return the end of the last record that is complete with its content, and the number of events up to it."""
    stream = LogStream(
        records(sections.pieces(name), size),
        total=max(0, size - LOG_HEADER),
        stored=sections.stored(name),
        gates=gates,
    )
    end = crossings = 0
    for _ in stream.entries() if name == "log" else stream.answers():
        if content is not None and stream.content_end > content:
            break
        end, crossings = stream.position, stream.crossings
    return end, crossings
