"""A small file that claims much gets one sentence and an exit code, and takes little memory and time.

Recordings of legitimate programs, however uniform, can still be read.
"""

import io
import json
import os
import subprocess
import sys
import zlib
from array import array
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

import replaydbg
from replaydbg.debugger.first_pass import run_index
from replaydbg.errors import Corrupt
from replaydbg.events.values import ContentRef
from replaydbg.heap.snapshot import Snapshot, Strings
from replaydbg.heap.storage import recorded_snapshots
from replaydbg.heap.storage.recorded_snapshots import load_series
from replaydbg.heap.storage.snapshot_file import HEAD_SIZE, UNIFORM, DeltaBase, mark_of, most_claimed, pack, unpack
from replaydbg.log.allowance import allowance, load_json
from replaydbg.log.coding import encode
from replaydbg.log.container import Writer
from replaydbg.log.entries.logfile import LOG_HEADER
from replaydbg.log.files import PIECE
from replaydbg.log.header_and_end import parse_end
from replaydbg.log.reader import open_recording
from replaydbg.log.sealed.blocks import ZSTD
from replaydbg.store.directory import index_path
from replaydbg.tui.worker.mark_notes import load_notes, notes_path
from tests.fuzz.corpus import snapshot
from tests.fuzz.framing import Block, Framing, assembled, blocks_of, sections_of
from tests.harness.build import LogBuilder, end_json, example
from tests.harness.measured import measured
from tests.harness.sanitizer import IS_SANITIZED, SLOWER

pytestmark = pytest.mark.slow

_MEMORY = 1 << 30
_SECONDS = 60.0 * SLOWER
"""CPU time limit of a command: what is bounded takes up to 9 seconds, twice that on a loaded machine, and what is not
takes minutes.
"""


def _bomb(section: str, start: bytes, filler: bytes, size: int) -> list[Block]:
    """Return blocks of a section that begins with `start` and continues with `filler`, in almost no bytes."""
    blocks, at = [], 0
    compress = zstandard.ZstdCompressor(level=1).compress
    full = filler * (PIECE // len(filler) + 2)
    while at < size:
        phase = (at - len(start)) % len(filler)
        raw = full[phase : phase + PIECE] if at else start + full[: PIECE - len(start)]
        raw = raw[: size - at]
        blocks.append(Block(section, at, len(raw), compress(raw), ZSTD))
        at += len(raw)
    return blocks


def _file(path: Path, replaced: dict[str, list[Block]], sections: dict[str, bytes] | None = None) -> Path:
    """Write a recording in which some sections are these blocks."""
    whole = sections if sections is not None else _sections(path)
    blocks = [block for block in blocks_of(whole) if block.section not in replaced]
    for each in replaced.values():
        blocks += each
    path.write_bytes(assembled(Framing(blocks=blocks)))
    return path


def _sections(path: Path) -> dict[str, bytes]:
    folder = path.parent / "made"
    folder.mkdir(exist_ok=True)
    return dict(sections_of(example(2).write(folder, f"{path.stem}-made").read_bytes()))


def _assert_bounded(*words: str | Path, code: int | None = 1) -> str:
    """Run a command, which must end with `code` within the limits; return what it said."""
    path = next(word for word in words if isinstance(word, Path))
    command = [sys.executable, "-m", "replaydbg", *map(str, words)]
    # A sanitizer maps terabytes for itself.
    done = measured(command, cwd=path.parent, env=os.environ, addresses=0 if IS_SANITIZED else 6 << 30)
    said = done.stderr
    assert "Traceback" not in said, said[-2000:]
    assert code is None or done.status == code, said[-2000:]
    assert done.peak < _MEMORY, f"{done.peak >> 20} MiB: {said}"
    assert done.cpu < _SECONDS, f"{done.cpu} s: {said}"
    return said


def _claiming(count: int) -> bytes:
    """Return a snapshot's file of a few kilobytes whose columns claim `count` nodes and references."""
    sound = pack(snapshot(1))
    length = int.from_bytes(sound[16:24], "little")
    header = json.loads(sound[HEAD_SIZE : HEAD_SIZE + length])
    parts = []
    for row in header["columns"]:
        width = 8 if row[0] in ("address", "size", "floats") else 1 if row[0] == "strings" else 4
        plain_length = count * width
        made = zstandard.ZstdCompressor(level=1).compressobj(size=plain_length)
        out = [made.compress(bytes(PIECE)) for _ in range(plain_length // PIECE)]
        out += [made.compress(bytes(plain_length % PIECE)), made.flush()]
        packed = b"".join(out)
        row[1:] = [count, "zstd", len(packed), zlib.crc32(packed)]
        parts.append(packed)
    text = json.dumps(header).encode()
    return b"".join([sound[:12], zlib.crc32(text).to_bytes(4, "little"), len(text).to_bytes(8, "little"), text, *parts])


@pytest.mark.parametrize(
    "words", [("snapshots", "--growth", "FILE"), ("diff", "FILE", "@#1", "@#2"), ("heap", "FILE", "@#1")]
)
def test_a_snapshot_that_claims_gigabytes_is_refused(words: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "bomb.rdbg"
    data = _claiming(20_000_000)
    _file(path, {}, {**_sections(path), "heap/000001": data, "heap/000002": data})

    said = _assert_bounded(*(path if word == "FILE" else word for word in words))

    assert path.stat().st_size < 300_000
    assert "claims to need" in said
    assert "the limit for" in said


def test_a_snapshot_in_a_compressed_block_is_judged_by_what_is_stored(tmp_path: Path) -> None:
    path = tmp_path / "bomb.rdbg"
    data = _claiming(5_000_000)
    blocks = [
        Block("heap/000001", at, len(piece), zstandard.compress(piece, 9), ZSTD)
        for at in range(0, len(data), PIECE)
        for piece in (data[at : at + PIECE],)
    ]
    _file(path, {"heap/000001": blocks})

    said = _assert_bounded("heap", path, "@#1")

    assert "claims to need" in said


def test_many_snapshots_are_compared_within_the_memory_that_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorded_snapshots, "SERIES_LIMIT", 1 << 20)
    path = tmp_path / "many.rdbg"
    made = [_uniform(1500, number) for number in range(1, 31)]
    _file(path, {}, {**_sections(path), **{f"heap/{each.taken.number:06}": pack(each) for each in made}})
    told: list[str] = []

    with open_recording(path) as recording:
        found = load_series(recording, told.append)

    assert 4 < len(found) < 30
    assert (found[0].taken.number, found[-1].taken.number) == (1, 30)
    assert told == [f"{len(found)} of 30 snapshots were compared: all of them would take too much memory."]


def _uniform(count: int, number: int = 1) -> Snapshot:
    """Return a heap of one long chain of equal objects: nothing compresses better."""
    made = snapshot(number)
    base = 0x7F0000000000
    return Snapshot(
        taken=made.taken,
        address=array("Q", range(base, base + 32 * count, 32)),
        since=array("I", bytes(4 * count)),
        type=array("I", bytes(4 * count)),
        size=array("Q", [48]) * count,
        value=array("I", bytes(4 * count)),
        first_edge=array("I", [*range(count), count - 1]),
        target=array("I", range(1, count)),
        label=array("I", [1]) * (count - 1),
        roots=(made.roots[0]._replace(node=0),),
        types=("builtins.tuple",),
        strings=Strings.of(("",)),
        floats=array("d"),
    )


def test_the_most_uniform_heap_can_be_read() -> None:
    count = 400_000
    data = pack(_uniform(count))

    assert len(unpack(data, "uniform")) == count
    # The same with ten times the objects takes ten times the file.
    assert UNIFORM * len(data) > 40 * count


def test_what_a_file_may_claim_follows_its_size() -> None:
    assert most_claimed(10_000) < 100 << 20
    assert most_claimed(100_000) == 256 << 20
    # A usual heap of 20 million objects, 1.2 GB in memory.
    assert most_claimed(16 << 20) > 1200 << 20


def test_what_did_not_change_in_a_large_heap_costs_nothing() -> None:
    before = _uniform(100_000)
    first = pack(before)
    base = DeltaBase(before, mark_of(first))
    after = pack(_uniform(100_000, 2), base)

    read = unpack(after, "second", base=DeltaBase(before, mark_of(first), len(first)))

    assert len(after) < 4000
    assert len(read) == 100_000


def test_a_snapshot_under_another_number_is_named(tmp_path: Path) -> None:
    path = tmp_path / "number.rdbg"
    _file(path, {}, {**_sections(path), "heap/000001": pack(snapshot(3)), "heap/000002": pack(snapshot(2))})

    for words in (("snapshots", path), ("snapshots", "--growth", path), ("heap", path, "@#1")):
        said = _assert_bounded(*words)
        assert "has the wrong number 3" in said
        assert len(said.splitlines()) == 1


@pytest.mark.parametrize("checks", [5, [1], [{"name": 3}], {"a": 1}, None])
@pytest.mark.parametrize("listed", ["x", 3, None, [None], {}, "rows"])
def test_anything_may_stand_in_the_list_of_snapshots(listed: object, checks: object, tmp_path: Path) -> None:
    path = tmp_path / "listed.rdbg"
    rows = [{"number": 1, "checks": checks, "event": "x"}] if listed == "rows" else listed
    for told in ({"listed": rows}, rows):
        end = json.dumps(end_json(snapshots=told)).encode()
        _file(path, {}, {**_sections(path), "end": end, "heap/000001": pack(snapshot(1))})

        assert _in_process("snapshots", path)[0] == 0
        assert _in_process("snapshots", "--json", path)[0] == 0


def _in_process(*words: str | Path) -> tuple[int, str]:
    from contextlib import redirect_stderr, redirect_stdout

    from replaydbg.cli.main import main

    err = io.StringIO()
    with redirect_stdout(io.StringIO()), redirect_stderr(err):
        code = main([str(word) for word in words])
    return code, err.getvalue()


@pytest.mark.parametrize("section", ["header", "end"])
@pytest.mark.parametrize(
    ("start", "filler"),
    [(b'{"x":[', b"[],"), (b'{"x":[', b"[" * 8), (b'{"x":[', b"1234567,"), (b'{"x":[', b'"ab",'), (b"", b'{"":')],
)
def test_json_of_many_brackets_is_refused(section: str, start: bytes, filler: bytes, tmp_path: Path) -> None:
    path = tmp_path / "json.rdbg"
    _file(path, {section: _bomb(section, start, filler, 30 << 20)})

    _assert_bounded("info", path)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "9" * 400, "9" * 5000])
def test_numbers_without_bounds_are_refused(number: str) -> None:
    with pytest.raises(Corrupt):
        parse_end("r.rdbg", f'{{"status": 0, "seconds": {number}}}'.encode())
    with pytest.raises(Corrupt):
        parse_end("r.rdbg", f'{{"status": 0, "cpu_after": {number}}}'.encode())


def test_a_limit_that_is_no_number_starts_nothing(tmp_path: Path) -> None:
    path = tmp_path / "numbers.rdbg"
    sections = _sections(path)
    _file(path, {}, {**sections, "end": sections["end"].rstrip()[:-1] + b', "cpu_between": NaN}'})

    _assert_bounded("replay", path, code=None)
    assert "its end cannot be read" in _assert_bounded("verify", path)


def test_an_index_of_many_brackets_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "index.rdbg"
    blocks = [each for each in blocks_of(_sections(path))]
    data = assembled(Framing(blocks=blocks, index=b"[" + b"[]," * (9 << 20)))
    path.write_bytes(data)

    said = _assert_bounded("info", path)

    assert "index is missing or damaged" in said


def _value(kind: int) -> bytes:
    return {
        0x0C: b"\x0c" + b"\xff\xff\xff\xff\xff\xff\xff\xff\x01" * 13,
        0x09: b"\x09\0",
        0x10: b"\x10\0",
        0x0A: b"\x0a\0",
        0x0E: b"\x0e\0",
        0x16: b"\x16\x06\2ab\x06\2cd",
    }[kind]


@pytest.mark.parametrize("kind", [0x0C, 0x09, 0x10, 0x0A, 0x0E, 0x16])
@pytest.mark.parametrize("where", ["crossing", "arguments"])
def test_a_log_of_values_that_take_much_memory_is_bounded(kind: int, where: str, tmp_path: Path) -> None:
    path = tmp_path / "log.rdbg"
    each = _value(kind)
    count = (60 << 20) // len(each)
    log = LogBuilder()
    log.crossing(0, 1.0)
    if where == "crossing":
        log.raw(encode.varint(1 << 2))
        payload = b"\x09" + encode.varint(count)
    else:
        log.raw(encode.varint(2 << 2 | 3))
        payload = b"\x08" + encode.varint(count)
    size = LOG_HEADER + sum(map(len, log.records)) + len(payload) + count * len(each)
    start = log.to_bytes(committed=size) + payload
    _file(path, {"log": _bomb("log", start, each, size)})

    said = _assert_bounded("verify", path)

    assert path.stat().st_size < 1 << 20
    assert "cannot be read" in said or "breaks off" in said


def test_definitions_have_a_limit_together(tmp_path: Path) -> None:
    path = tmp_path / "definitions.rdbg"
    one = encode.varint(3) + encode.text("x" * 60_000) + encode.text("y") + b"\1"
    log = LogBuilder()
    size = LOG_HEADER + 2000 * len(one)
    blocks = _bomb("log", log.to_bytes(committed=size), one, size)
    _file(path, {"log": blocks})

    said = _assert_bounded("verify", path)

    assert "definitions take more memory" in said


@pytest.mark.parametrize("words", [("replay", "-q", "FILE"), ("debug", "--batch", "-q", "FILE")])
@pytest.mark.parametrize(("section", "size"), [("content", 1 << 30), ("world", 1 << 30), ("log", 1 << 30)])
def test_a_section_that_claims_gigabytes_is_not_replayed(
    section: str, size: int, words: tuple[str, ...], tmp_path: Path
) -> None:
    path = tmp_path / "replay.rdbg"
    start = LogBuilder().to_bytes(committed=size) if section != "content" else b""
    header = example(1).header
    header["python"] |= {
        "version": ".".join(map(str, sys.version_info[:3])),
        "hexversion": sys.hexversion,
        "executable": sys.executable,
        "cache_tag": sys.implementation.cache_tag,
        "soabi": _soabi(),
        "flags": [],
    }
    sections = {**_sections(path), "header": json.dumps(header).encode()}
    _file(path, {section: _bomb(section, start, b"\0", size)}, sections)

    said = _assert_bounded(*(path if word == "FILE" else word for word in words))

    assert "too many for its" in said


def _soabi() -> str:
    import sysconfig

    return str(sysconfig.get_config_var("SOABI"))


def test_contents_that_overlap_are_not_read_again_and_again(tmp_path: Path) -> None:
    path = tmp_path / "sources.rdbg"
    size = 40 << 20
    world = LogBuilder()
    for number in range(200):
        world.answer("read", f"/src/{number}.py", 1, ContentRef(0, size))
    sections = {**_sections(path), "world": world.to_bytes()}
    _file(path, {"content": _bomb("content", b"", b"x", size)}, sections)
    code = (
        "import sys; from replaydbg.log.reader import open_recording; from replaydbg.log.sources import what_was_read\n"
        "print(sum(map(len, what_was_read(open_recording(sys.argv[1])).values())))"
    )

    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True, timeout=60)

    assert int(done.stdout) <= 64 << 20


def test_a_content_that_is_mostly_claimed_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "content.rdbg"
    _file(path, {"content": _bomb("content", b"", b"x", 200 << 20)})

    with open_recording(path) as recording, pytest.raises(Corrupt, match="far more than"):
        recording.content(ContentRef(0, 200 << 20))


def _written_index(recording: Path, make: Callable[[bytes], bytes]) -> None:
    value = [run_index._key(recording), "ended", 1, True, b"", b"", b"", b""]
    plain = make(encode.encode_value(value))
    index_path(recording).write_bytes(run_index.MAGIC + zstandard.compress(plain))


@pytest.mark.parametrize(
    "make",
    [
        lambda plain: plain[:-3],
        lambda plain: plain + bytes(200 << 20),
        lambda plain: b"\x09\xff\xff\xff\xff\x0f",
        lambda plain: b"",
        lambda plain: plain,
    ],
    ids=["cut", "bomb", "count", "empty", "no report"],
)
def test_an_index_that_somebody_else_put_there_is_not_used(make: Callable[[bytes], bytes], tmp_path: Path) -> None:
    path = example(1).write(tmp_path)
    _written_index(path, make)

    assert run_index.load_index(path) is None


@pytest.mark.parametrize(
    "data", [b"[" * 100_000, b'{"format": 1, "marks": [{"name": 1, "event": 1e999, "step": 1}]}', b"[]," * (6 << 20)]
)
def test_notes_that_cannot_be_read_are_none(data: bytes, tmp_path: Path) -> None:
    path = example(1).write(tmp_path)
    notes_path(path).write_bytes(data)

    assert load_notes(path) == ()


def test_json_that_recordings_have_is_read() -> None:
    sources = {f"/usr/lib/python3/site-packages/some/module_{number}.py": "0" * 32 for number in range(100_000)}
    marks = [{"name": f"mark {number}", "event": number} for number in range(200_000)]

    assert load_json(json.dumps({"sources": sources, "marks": marks}).encode())["marks"] == marks


def test_no_reader_unpickles() -> None:
    """Only `export` and `load`, for objects that leave the program as objects, use pickles."""
    package = Path(replaydbg.__file__).parent
    allowed = {"debugger/exported.py", "engine/probe/outgoing.py"}
    for path in package.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        named = [
            word
            for word in ("import dill", "import pickle", "from pickle", "import marshal", "import shelve")
            if word in text
        ]
        assert not named or str(path.relative_to(package)) in allowed, f"{path}: {named}"


def test_what_is_written_can_be_believed_however_uniform_it_is() -> None:
    file = io.BytesIO()
    writer = Writer(file)
    size = 200 * PIECE
    writer.section("log", (bytes(PIECE) for _ in range(size // PIECE)))

    assert allowance(len(file.getbuffer())) >= size
    assert len(file.getbuffer()) < size // 32
