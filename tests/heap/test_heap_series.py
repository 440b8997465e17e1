"""The snapshots of a run are encoded against each other, and decoded again; hostile chains end with a sentence."""

from __future__ import annotations

import itertools
import json
import random
import struct
import zlib
from array import array
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replaydbg.errors import Corrupt, NewerFormat
from replaydbg.heap.builder import Node, build
from replaydbg.heap.snapshot import Snapshot, Taken
from replaydbg.heap.storage import delta_coding
from replaydbg.heap.storage.recorded_snapshots import load_stored, stored_snapshots
from replaydbg.heap.storage.snapshot_file import LONGEST_CHAIN, DeltaBase, mark_of, pack, read_begin, unpack
from replaydbg.heap.storage.snapshot_series import SnapshotPacker
from replaydbg.heap.walks import column_prediction
from replaydbg.heap.walks.kernel import KERNEL, Kernel, PythonKernel
from replaydbg.log.container import Writer
from replaydbg.log.reader import open_recording
from replaydbg.log.sealed.sections import SealedFile
from tests.harness.heap_capture import capture
from tests.harness.recording import record_file
from tests.heap.test_heap_pack import contents

HEAD = struct.Struct("<8sIIQ")

Objects = dict[int, tuple[Any, list[tuple[str | int, int]]]]


@pytest.fixture(params=[PythonKernel(), KERNEL], ids=["python", "native"], scope="module")
def kernel(request: pytest.FixtureRequest) -> Iterator[Kernel]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delta_coding, "KERNEL", request.param)
        yield request.param


def graph(objects: Objects, number: int) -> Snapshot:
    """Return the snapshot of objects by address, each with a value and its references."""
    nodes = [Node(16 * at, f"T{at % 5}", 16 + at, value, at % 3) for at, (value, _) in objects.items()]
    edges = [
        (16 * at, label, 16 * target)
        for at, (_, held) in objects.items()
        for label, target in held
        if target in objects
    ]
    roots = [("app", 16 * min(objects))] if objects else []
    return build(nodes, edges, roots, taken=Taken(number, run="r"))


values = st.none() | st.integers() | st.floats() | st.text(max_size=4)
held = st.lists(st.tuples(st.integers(0, 9) | st.sampled_from([".a", ".b", "~.c"]), st.integers(1, 30)), max_size=5)
some = st.dictionaries(st.integers(1, 30), st.tuples(values, held), max_size=20)


@given(st.lists(some, min_size=1, max_size=11), st.data())
@settings(max_examples=60, deadline=None)
def test_a_series_is_read_as_it_was(kernel: Kernel, steps: list[Objects], data: st.DataObject) -> None:
    objects: Objects = {}
    series, snapshots, files = SnapshotPacker(), [], []
    for number, changed in enumerate(steps, 1):
        gone = data.draw(st.sets(st.sampled_from(sorted(objects)))) if objects else set()
        objects = {at: each for at, each in objects.items() if at not in gone} | changed
        snapshots.append(graph(objects, number))
        files.append(series.pack(snapshots[-1]))

    bases: list[DeltaBase] = []
    for snapshot, file in zip(snapshots, files, strict=True):
        begin = read_begin(file, "x")
        assert begin is not None
        link = begin[1]
        base = bases[link.number - 1] if link else None
        bases.append(DeltaBase(unpack(file, "x", base=base), mark_of(file)))
        assert contents(bases[-1].snapshot) == contents(snapshot)


@given(some, some)
@settings(max_examples=100, deadline=None)
def test_any_two_snapshots_can_be_coded_against_each_other(kernel: Kernel, one: Objects, other: Objects) -> None:
    before, after = graph(one, 1), graph(other, 2)
    base = DeltaBase(before, mark_of(pack(before)))

    assert contents(unpack(pack(after, base), "x", base=base)) == contents(after)


def test_the_walks_in_both_languages_agree() -> None:
    rng = random.Random(1)
    column, table = array("I", (rng.randrange(50 << 4) for _ in range(99))), array("I", range(50, 0, -1))
    for kernel in (PythonKernel(), KERNEL):
        assert kernel.degrees(array("I", [0, 3, 3, 7])) == array("I", [3, 0, 4])
        assert kernel.degrees(array("I")) == array("I")
        assert kernel.other_bits(array("I", [1, 2]), array("I", [3, 2])) == b"\2" + bytes(7)
        assert kernel.renumbered(column, table, 7, 1, 4) == column_prediction.renumbered(column, table, 7, 1, 4)
        with pytest.raises(ValueError, match="equally long"):
            kernel.other_bits(array("I", [1]), array("I"))
        for wrong in (array("I", [50]), array("I", [2**32 - 1])):
            with pytest.raises(IndexError):
                kernel.renumbered(wrong, table, 0, 0, 0)
        with pytest.raises(IndexError):
            kernel.renumbered(array("I", [16]), array("I", [0, 1 << 30]), 0, 0, 4)


@given(
    st.lists(st.integers(0, 40)), st.sampled_from("IQ"), st.booleans(), st.sampled_from([0, 3, 7]), st.integers(0, 7)
)
def test_numbers_are_in_order_and_in_range_in_both_languages(
    numbers: list[int], code: Literal["I", "Q"], is_strict: bool, mask: int, kind: int
) -> None:
    pairs = list(itertools.pairwise(numbers))
    meant = [each for each in numbers if each & mask == kind]
    for kernel in (PythonKernel(), KERNEL):
        rises = kernel.rises(array(code, numbers), is_strict=is_strict)
        assert rises is all(before < now or (before == now and not is_strict) for before, now in pairs)
        assert kernel.highest(array("I", numbers), mask, kind) == max(meant, default=-1)
        assert kernel.highest(array("I", [2**32 - 1]), 7, 7) == 2**32 - 1


class _Order:
    def __init__(self, number: int) -> None:
        self.number = number
        self.name = f"order {number}"
        self.lines = [number * 1.5, str(number)]


def test_little_that_changed_takes_little() -> None:
    rng = random.Random(5)
    orders = [_Order(i) for i in range(10_000)]
    rng.shuffle(orders)
    kept = dict(enumerate(orders))
    series = SnapshotPacker()
    first = capture({"kept": kept})
    alone = series.pack(replace(first, taken=Taken(1, run="r")))
    for at in rng.sample(sorted(kept), 100):
        del kept[at]
        kept[10_000 + at] = _Order(10_000 + at)
    second = replace(capture({"kept": kept}), taken=Taken(2, run="r"))
    changed = series.pack(second)

    assert len(second) > 50_000
    assert len(changed) < len(alone) / 5
    assert contents(unpack(changed, "x", base=DeltaBase(unpack(alone, "x"), mark_of(alone)))) == contents(second)


def links(files: list[bytes]) -> list[int]:
    found = []
    for file in files:
        begin = read_begin(file, "x")
        assert begin is not None
        found.append(begin[1].number if begin[1] else 0)
    return found


def many(number: int) -> Snapshot:
    return graph({at: (f"text {at}", [(0, 1 + at * 7 % 200)]) for at in range(1 + number, 200)}, number)


def test_every_eighth_stands_alone() -> None:
    series = SnapshotPacker()

    assert links([series.pack(many(number)) for number in range(1, 18)]) == [
        *(0, 1, 2, 3, 4, 5, 6, 7),
        *(0, 9, 10, 11, 12, 13, 14, 15),
        0,
    ]


def test_what_has_nothing_in_common_stands_alone() -> None:
    series = SnapshotPacker()
    files = [series.pack(many(1)), series.pack(graph({1: (None, [])}, 2)), series.pack(many(3))]
    files.append(series.pack(replace(many(4), taken=Taken(4, run="another"))))

    assert links(files) == [0, 0, 0, 0]


# ---- hostile files ----


@pytest.fixture(scope="module")
def pair() -> tuple[DeltaBase, bytes]:
    before = many(1)
    base = DeltaBase(before, mark_of(pack(before)))
    return base, pack(many(2), base)


def refused(data: bytes, base: DeltaBase | None, *, limit: int = 1 << 30) -> str:
    with pytest.raises(Corrupt) as caught:
        unpack(data, "x.snap", base=base, limit=limit)
    assert str(caught.value).startswith("'x.snap' is damaged: ")
    return str(caught.value)


def with_header(data: bytes, change: Callable[[dict[str, Any]], None]) -> bytes:
    _, version, _, length = HEAD.unpack_from(data)
    header = json.loads(data[HEAD.size : HEAD.size + length])
    change(header)
    text = json.dumps(header).encode()
    return HEAD.pack(b"RDBGSNAP", version, zlib.crc32(text), len(text)) + text + data[HEAD.size + length :]


def test_another_base_than_the_one_it_was_coded_against_is_refused(pair: tuple[DeltaBase, bytes]) -> None:
    base, data = pair

    assert "is missing" in refused(data, None)
    for other in (
        DeltaBase(base.snapshot, base.mark ^ 1),
        DeltaBase(replace(base.snapshot, taken=Taken(1, run="another")), base.mark),
        DeltaBase(replace(base.snapshot, taken=Taken(3, run="r")), base.mark),
    ):
        assert "another number 1" in refused(data, other)


def test_damage_anywhere_is_found(pair: tuple[DeltaBase, bytes]) -> None:
    base, data = pair
    rng = random.Random(3)
    for _ in range(300):
        damaged = bytearray(data)
        damaged[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        with pytest.raises((Corrupt, NewerFormat)):
            unpack(bytes(damaged), "x.snap", base=base)
    for length in range(0, len(data), 7):
        refused(data[:length], base)


def test_columns_that_do_not_fit_are_refused(pair: tuple[DeltaBase, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    base, _ = pair
    after = many(2)
    rng = random.Random(11)
    true = delta_coding.differences(after, base.snapshot)
    for _ in range(300):
        wrong = {name: column[:] for name, column in true.items()}
        column = wrong[rng.choice([name for name in wrong if name != "strings"])]
        what = rng.randrange(3)
        if what == 0 or not column:
            column.extend([1] * rng.randrange(1, 3))
        elif what == 1:
            column.pop()
        else:
            place = rng.randrange(len(column))
            column[place] = type(column[0])(rng.choice([0, 1, 199, 10**6, 2**31]))
        monkeypatch.setattr("replaydbg.heap.storage.snapshot_file.differences", lambda *_, wrong=wrong: wrong)
        try:
            data = pack(after, base)
        except OverflowError:
            continue  # a decreasing column cannot even be written
        try:
            read = unpack(data, "x.snap", base=base)
        except Corrupt:
            continue
        assert read.taken == after.taken  # another snapshot, whose numbers are all valid


def test_texts_that_multiply_take_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    before = graph({1: ("x" * 100_000, [])}, 1)
    base = DeltaBase(before, mark_of(pack(before)))
    after = graph({1: ("x" * 100_000, [])}, 2)
    bomb = delta_coding.differences(after, before) | {"string_from": array("q", [2]) * 100_000}
    monkeypatch.setattr("replaydbg.heap.storage.snapshot_file.differences", lambda *_: bomb)

    assert "need more than" in refused(pack(after, base), base)


def test_a_claim_of_ten_gigabytes_takes_no_memory(pair: tuple[DeltaBase, bytes]) -> None:
    base, data = pair

    def claim(header: dict[str, Any]) -> None:
        header["columns"][2][1] = 10 << 28

    assert "claims to need" in refused(with_header(data, claim), base)


@pytest.mark.parametrize("said", [5, [], {}, {"number": 1}, {"number": -1, "mark": 0}, {"number": "1", "mark": 0}])
def test_wrong_links_are_refused(pair: tuple[DeltaBase, bytes], said: object) -> None:
    base, data = pair

    assert "does not name the one it is encoded against" in refused(
        with_header(data, lambda header: header.update(base=said)), base
    )


# ---- chains in a recording ----


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("series")
    program = folder / "program.py"
    program.write_text(
        "import replaydbg\nkept = []\n"
        "for i in range(10):\n    kept.append([i])\n    replaydbg.snapshot(f'number {i}')\n"
    )
    return record_file(program, folder)


def sections_of(path: Path) -> dict[int, bytes]:
    with closing(SealedFile(path)) as sealed:
        return {int(name[5:]): b"".join(sealed.pieces(name)) for name in sealed.names() if name.startswith("heap/")}


def recording_with(snapshots: Mapping[int, bytes], recorded: Path, target: Path) -> Path:
    with closing(SealedFile(recorded)) as sealed, target.open("wb") as file:
        writer = Writer(file)
        for name in sealed.names():
            if not name.startswith("heap/"):
                writer.section(name, list(sealed.pieces(name)), is_compressed=False)
        for number, data in snapshots.items():
            writer.section(f"heap/{number:06}", [data], is_compressed=False)
        writer.finish()
    return target


def test_those_of_a_recording_are_coded_against_each_other(recorded: Path) -> None:
    with open_recording(recorded) as recording:
        loaded = {each.number: load_stored(recording, each.number) for each in stored_snapshots(recording)}
        with pytest.raises(KeyError):
            load_stored(recording, 11)

    assert links([data for _, data in sorted(sections_of(recorded).items())]) == [0, 1, 2, 3, 4, 5, 6, 7, 0, 9]
    assert [each.taken.name for each in loaded.values()] == [f"number {i}" for i in range(10)]
    lists = [sum(each.type_name(node) == "builtins.list" for node in range(len(each))) for each in loaded.values()]
    assert [each - lists[0] for each in lists] == list(range(10))


def test_chains_that_lead_nowhere_end_with_a_sentence(recorded: Path, tmp_path: Path) -> None:
    sections = sections_of(recorded)

    def linked(number: int, to: int) -> bytes:
        mark = mark_of(sections[to]) if to in sections else 0
        return with_header(sections[number], lambda header: header.update(base={"number": to, "mark": mark}))

    def refused_with(changed: dict[int, bytes], number: int) -> str:
        path = recording_with(changed, recorded, tmp_path / "x.rdbg")
        with open_recording(path) as recording, pytest.raises(Corrupt) as caught:
            load_stored(recording, number)
        return str(caught.value)

    assert "does not end in a full snapshot" in refused_with(sections | {2: linked(2, 2)}, 2)
    assert "does not end in a full snapshot" in refused_with(sections | {2: linked(2, 3)}, 3)
    assert "does not end in a full snapshot" in refused_with(sections | {9: linked(9, 8)}, 9)
    assert LONGEST_CHAIN == 8
    assert "is missing" in refused_with({number: data for number, data in sections.items() if number != 3}, 5)
    assert "is missing" in refused_with(sections | {2: linked(2, 77)}, 2)
    renamed = with_header(sections[1], lambda header: header["taken"].update(name="other"))
    assert "another number 1" in refused_with(sections | {1: renamed}, 2)
    damaged = bytearray(sections[1])
    damaged[-3] ^= 1
    assert "checksum" in refused_with(sections | {1: bytes(damaged)}, 4)
