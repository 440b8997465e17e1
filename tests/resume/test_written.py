"""Writes in flight are found on the disk, whatever part of them was written, and in whatever order."""

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from replaydbg.resources.kinds import Descriptor, Handle, LastFileWrite, MakingCall, OpenedFile, Unknown
from replaydbg.resume.conversation import CallInFlight
from replaydbg.resume.digest import output_digest
from replaydbg.resume.findings import CallVerdict
from replaydbg.resume.written import find_written

ORIGIN = MakingCall(5, 0, None)
UNKNOWN = Unknown("it is not recorded")


def write_of(thread: int, data: bytes) -> CallInFlight:
    return CallInFlight(thread, "", "_io.FileIO.write", False, 3, (), {}, data, len(data), "", 0, "")


def opened(path: Path, *, flags: int, offset: "int | Unknown", size: "int | Unknown", last: bytes = b"") -> OpenedFile:
    handle = Handle((Descriptor(3, ORIGIN, True, None),), ORIGIN, flags, ())
    written = LastFileWrite(9, offset - len(last) if isinstance(offset, int) else 0, len(last), output_digest(last))
    return OpenedFile(handle, str(path), str(path), True, offset, size, False, written if last else None)


def found(content: bytes, calls: Sequence[CallInFlight], *, size: "int | Unknown", last: bytes = b"") -> list[object]:
    """Return how many bytes of each call count as written, and what `moved` is; "?" for what is not known."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        path.write_bytes(content)
        file = opened(path, flags=os.O_WRONLY | os.O_APPEND, offset=size, size=size, last=last)
        written = find_written(file, calls)
    kinds = {CallVerdict.REPEAT: 0, CallVerdict.UNKNOWN: "?", CallVerdict.CHANGED: "!"}
    return [each.value if each.verdict is CallVerdict.DONE else kinds[each.verdict] for each in written.findings]


@settings(deadline=None)
@given(st.binary(max_size=20), st.binary(min_size=1, max_size=20), st.integers(0, 20))
def test_a_part_of_an_append_is_found(before: bytes, data: bytes, part: int) -> None:
    part = min(part, len(data))

    assert found(before + data[:part], [write_of(0, data)], size=len(before)) == [part]


@settings(deadline=None)
@given(st.binary(max_size=20), st.binary(min_size=1, max_size=20), st.binary(min_size=1, max_size=20))
def test_something_else_at_the_end_is_no_append_of_ours(before: bytes, data: bytes, other: bytes) -> None:
    is_ours = data.startswith(other)

    assert (found(before + other, [write_of(0, data)], size=len(before)) == ["!"]) == (not is_ours)


@settings(deadline=None)
@given(
    st.binary(max_size=5),
    st.lists(st.binary(min_size=1, max_size=4), min_size=1, max_size=4),
    st.randoms(use_true_random=False),
    st.integers(0, 4),
)
def test_what_threads_appended_in_any_order_adds_up(
    before: bytes, data: list[bytes], chance: "object", done: int
) -> None:
    order = list(range(len(data)))
    chance.shuffle(order)  # type: ignore[attr-defined]
    content = before + b"".join(data[index] for index in order[:done])

    counts = found(content, [write_of(index, each) for index, each in enumerate(data)], size=len(before))

    assert sum(count for count in counts if isinstance(count, int)) == len(content) - len(before)


@settings(deadline=None)
@given(st.binary(max_size=30), st.binary(min_size=8, max_size=20), st.binary(min_size=8, max_size=20), st.booleans())
def test_the_last_write_shows_where_a_file_of_unknown_size_ended(
    before: bytes, last: bytes, data: bytes, is_done: bool
) -> None:
    content = before + last + (data if is_done else b"")

    counts = found(content, [write_of(0, data)], size=UNKNOWN, last=last)

    # More than one place fits if the data is like what was there before.
    assert counts in ([len(data) * is_done], ["?"])


def test_equal_lines_at_the_end_of_a_file_of_unknown_size_are_asked_about() -> None:
    assert found(b"a\na\n", [write_of(0, b"a\n")], size=UNKNOWN, last=b"a\n") == ["?"]
    assert found(b"b\na\n", [write_of(0, b"a\n")], size=UNKNOWN, last=b"b\n") == [2]


def test_a_write_in_the_middle_is_repeated_unless_it_is_there(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    file = opened(path, flags=os.O_RDWR, offset=2, size=10)

    there = find_written(file, [write_of(0, b"234")])
    other = find_written(file, [write_of(0, b"2x4")])

    assert (there.findings[0].verdict, there.moved) == (CallVerdict.DONE, 3)
    assert (other.findings[0].verdict, other.moved) == (CallVerdict.REPEAT, 0)
