"""The index of a remote recording, the cuts, and the cache of pieces."""

import json
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replaydbg.errors import Corrupt, NewerFormat
from replaydbg.log.group import FACTS
from replaydbg.log.sealed.shared import DIRECTORY
from replaydbg.remote.cutting import LocalFile, cut
from replaydbg.remote.remote_index import (
    ONE,
    Piece,
    PiecePlaces,
    RecordedFile,
    RemoteIndex,
    parse_index,
)
from replaydbg.store.piece_cache import name_of_piece

_NAMES = ("created", "command", "commit", "exception", "python", "parent", "cwd", "run")
FACTS_OF_ONE = dict.fromkeys(_NAMES, "") | {"status": 0, "events": 5, "seconds": 0.5, "processes": 1}


def index(files: list[tuple[str, int]], pieces: list[int]) -> RemoteIndex:
    return RemoteIndex(
        dict(FACTS_OF_ONE),
        tuple(RecordedFile(*each) for each in files),
        tuple(Piece(name_of_piece(b"%d" % number), size) for number, size in enumerate(pieces)),
    )


def sealed(fields: object) -> bytes:
    text = json.dumps(fields).encode()
    return text + b"\n" + name_of_piece(text).encode() + b"\n"


def test_an_index_is_read_as_it_was_written() -> None:
    one = index([(ONE, 700), (f"{DIRECTORY}/{'a' * 32}", 300)], [600, 400])

    assert parse_index("x", one.encode()) == one


@given(data=st.data())
def test_an_index_that_was_cut_or_changed_is_refused(data: st.DataObject) -> None:
    whole = index([(ONE, 1000)], [600, 400]).encode()
    at = data.draw(st.integers(0, len(whole) - 2))
    changed = data.draw(st.sampled_from([whole[:at], whole[:at] + b"\x00" + whole[at + 1 :], whole + b"x"]))

    with pytest.raises(Corrupt, match="its index is cut off or was changed"):
        parse_index("x", changed)


FORGED = {
    "no object": [1],
    "no files": {"format": 1, "facts": FACTS_OF_ONE, "pieces": []},
    "facts": {"format": 1, "facts": FACTS_OF_ONE | {"events": "x"}, "files": [[ONE, 0]], "pieces": []},
    "a status": {"format": 1, "facts": FACTS_OF_ONE | {"status": True}, "files": [[ONE, 0]], "pieces": []},
    "seconds": {"format": 1, "facts": FACTS_OF_ONE | {"seconds": 10**400}, "files": [[ONE, 0]], "pieces": []},
    "no number": {"format": 1, "facts": FACTS_OF_ONE | {"seconds": float("nan")}, "files": [[ONE, 0]], "pieces": []},
    "events": {"format": 1, "facts": FACTS_OF_ONE | {"events": -1}, "files": [[ONE, 0]], "pieces": []},
    "a run": {"format": 1, "facts": FACTS_OF_ONE | {"run": "../../x"}, "files": [[ONE, 0]], "pieces": []},
    "a format": {"format": "1", "facts": FACTS_OF_ONE, "files": [[ONE, 0]], "pieces": []},
    "a path above": {"format": 1, "facts": FACTS_OF_ONE, "files": [["../x", 0]], "pieces": []},
    "a path below": {"format": 1, "facts": FACTS_OF_ONE, "files": [[ONE, 0], ["x/y", 0]], "pieces": []},
    "a block above": {"format": 1, "facts": FACTS_OF_ONE, "files": [[ONE, 0], [f"{DIRECTORY}/../x", 0]], "pieces": []},
    "twice": {"format": 1, "facts": FACTS_OF_ONE, "files": [[ONE, 0], [ONE, 0]], "pieces": []},
    "an empty group": {"format": 1, "facts": FACTS_OF_ONE, "files": [[FACTS, 0]], "pieces": []},
    "a member": {"format": 1, "facts": FACTS_OF_ONE, "files": [[FACTS, 0], ["0.rdbg", 0]], "pieces": []},
    "no hash": {"format": 1, "facts": FACTS_OF_ONE, "files": [[ONE, 1]], "pieces": [["../../etc", 1]]},
    "a size": {"format": 1, "facts": FACTS_OF_ONE, "files": [[ONE, -1]], "pieces": []},
    "true": {"format": 1, "facts": FACTS_OF_ONE, "files": [[ONE, True]], "pieces": [["a" * 64, 1]]},
    "too large": {"format": 1, "facts": FACTS_OF_ONE, "files": [[ONE, 1 << 30]], "pieces": [["a" * 64, 1 << 30]]},
    "a command": {"format": 1, "facts": FACTS_OF_ONE | {"command": "[1]"}, "files": [[ONE, 0]], "pieces": []},
    "a deep one": {"format": 1, "facts": FACTS_OF_ONE | {"command": "[" * 99_999}, "files": [[ONE, 0]], "pieces": []},
    "a sum": {"format": 1, "facts": FACTS_OF_ONE, "files": [[ONE, 5]], "pieces": [["a" * 64, 4]]},
}


@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED)
def test_an_index_that_names_what_no_recording_has_is_refused(forged: object) -> None:
    with pytest.raises(Corrupt):
        parse_index("x", sealed(forged))


def test_an_index_of_a_later_version() -> None:
    with pytest.raises(NewerFormat):
        parse_index("x", sealed({"format": 2}))


@given(
    files=st.lists(st.integers(0, 50), min_size=1, max_size=6),
    cuts=st.lists(st.integers(1, 30), max_size=8),
    data=st.data(),
)
def test_places_are_those_of_the_bytes(files: list[int], cuts: list[int], data: st.DataObject) -> None:
    """Compared with a table that has one row for each byte."""
    total = sum(files)
    pieces: list[int] = []
    for each in [*cuts, total]:
        left = total - sum(pieces)
        if left:
            pieces.append(min(each, left))
    pieces += [total - sum(pieces)] if total > sum(pieces) else []
    names = [str(number) for number in range(len(files))]
    places = PiecePlaces(index(list(zip(names, files, strict=True)), pieces))
    owner = [(name, at) for name, size in zip(names, files, strict=True) for at in range(size)]
    piece_of = [number for number, size in enumerate(pieces) for _ in range(size)]

    name = data.draw(st.sampled_from(names))
    size = files[int(name)]
    if size:
        offset = data.draw(st.integers(0, size - 1))
        length = data.draw(st.integers(1, size - offset))
        wanted = {piece_of[i] for i, (file, at) in enumerate(owner) if file == name and offset <= at < offset + length}
        assert set(places.pieces(name, offset, length)) == wanted
    for number in range(len(pieces)):
        first = sum(pieces[:number])
        expected = {owner[i][0] for i in range(first, first + pieces[number])}
        found = dict(places.files(number))
        assert {each.path for each in found if files[int(each.path)]} == expected
        for file, start in found.items():
            assert sum(files[: int(file.path)]) + start == first


def blocks(folder: Path, sizes: dict[str, int]) -> list[LocalFile]:
    found = []
    for name, size in sorted(sizes.items()):
        (folder / name).write_bytes(random.Random(name).randbytes(size))
        found.append(LocalFile(folder / name, RecordedFile(f"{DIRECTORY}/{name}", size)))
    return found


def test_one_more_small_block_changes_one_piece(tmp_path: Path) -> None:
    chance = random.Random(5)
    sizes = {chance.randbytes(16).hex(): 15_000 for _ in range(200)}
    before = {each.piece for each in cut(blocks(tmp_path, sizes))}
    assert 5 < len(before) < 60

    sizes[chance.randbytes(16).hex()] = 15_000
    after = {each.piece for each in cut(blocks(tmp_path, sizes))}

    assert len(after - before) <= 2


def test_pieces_are_the_bytes_of_the_files(tmp_path: Path) -> None:
    chance = random.Random(6)
    files = blocks(tmp_path, {chance.randbytes(16).hex(): chance.randrange(200_000) for _ in range(50)})
    found = list(cut(files))

    assert b"".join(each.read() for each in found) == b"".join(each.path.read_bytes() for each in files)
    assert all(name_of_piece(each.read()) == each.piece.digest for each in found)
