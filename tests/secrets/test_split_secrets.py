"""A known secret that a program receives in several pieces is masked, and so are its lines in base64."""

from __future__ import annotations

import base64
import sys
from pathlib import Path

import pytest

from replaydbg.heap.storage.recorded_snapshots import load_series
from replaydbg.heap.storage.snapshot_file import unpack
from replaydbg.log.edit.split_secrets import split_secrets
from replaydbg.log.reader import open_recording
from tests.harness import tool
from tests.harness.build import LogBuilder
from tests.harness.children import completed
from tests.harness.replays import passed_on, run

pytestmark = pytest.mark.slow

SECRET = "qZ7xKw93-LmP0vT5yRb2_Nd8"

IN_PIECES = """
import os, random, time
draw, secret = random.Random(5), os.environ["DB_PASSWORD"].encode()
reader, writer = os.pipe()
for _ in range(150):
    ends = sorted(draw.sample(range(1, len(secret)), draw.randint(1, 4)))
    pieces = [secret[start:end] for start, end in zip([0, *ends], [*ends, None])]
    first, last = len(pieces[0]), len(pieces[-1])
    if max(first, last) < 6 and min(first, last) < 4:
        continue
    for number, piece in enumerate(pieces, 1):
        os.write(writer, b"in front of it " * (number == 1) + piece + b" behind" * (number == len(pieces)))
        os.read(reader, 100)
        time.time()
        os.path.exists(__file__)
    print(len(pieces))
"""
AT_A_BUFFERS_EDGE = """
import os
with open("value", "w") as file:
    file.write("x" * (8192 - {before}) + os.environ["DB_PASSWORD"] + "\\n" * 100)
with open("value") as file:
    for line in file:
        print(len(line))
"""
IN_A_LONG_CONTENT = """
import os
with open("value", "wb") as file:
    file.write(b"x" * (300_000 - 7) + os.environ["DB_PASSWORD"].encode() + b"y" * 300_000)
with open("value", "rb", buffering=0) as file:
    print(len(file.read(300_000)), len(file.read(10)), len(file.read()))
"""
THROUGH_A_PIPE = """
import os
secret = os.environ.pop("DB_PASSWORD").encode()
reader, writer = os.pipe()
if os.fork():
    for piece in (secret[:7], secret[7:15], secret[15:]):
        os.write(writer, piece)
    os.close(writer)
    print(os.waitpid(-1, 0)[1])
else:
    os.close(writer)
    while os.read(reader, 5):
        pass
"""
SEVERAL_RECEIVERS = """
import os, socket
secret = os.environ["DB_PASSWORD"].encode()
pairs = [socket.socketpair() for _ in range(3)]
for one, _ in pairs:
    one.send(b"head " + secret[:11])
print([other.recv(100, socket.MSG_PEEK)[:4] for _, other in pairs])
firsts = [other.recv(100) for _, other in pairs]
for one, _ in pairs:
    one.send(secret[11:] + b" tail")
print([first + other.recv(100) == b"head " + secret + b" tail" for first, (_, other) in zip(firsts, pairs)])
"""
FROM_THE_END = """
import os
secret = os.environ["DB_PASSWORD"].encode()
with open("value", "wb") as file:
    file.write(b"x" * 100 + secret + b"y" * 90)
fd = os.open("value", os.O_RDONLY)
for at in range(160, -1, -16):
    print(len(os.pread(fd, 16, at)))
os.pread(fd, 110, 0)
"""
FAR_APART = """
import os
secret = os.environ["DB_PASSWORD"].encode()
reader, writer = os.pipe()
os.write(writer, secret[:10])
os.read(reader, 100)
for _ in range(600):
    os.getloadavg(), os.stat(".")
os.write(writer, secret[10:])
os.read(reader, 100)
"""
SHOWN = """
import os
secret = os.environ["DB_PASSWORD"].encode()
reader, writer = os.pipe()
os.write(writer, secret)
print("got", os.read(reader, 9), "and then", os.read(reader, 100))
with open("log.txt", "w") as file:
    file.write(f"first {secret[:9]}, then {secret[9:]}.")
print(len(open("log.txt").read()))
"""
IN_THE_MIDDLE_OF_LINES = """
import base64, os
text = base64.b64encode(b"x" * 300_000 + os.environ["DB_PASSWORD"].encode() + b"y" * 300_000)
with open("value", "wb") as file:
    file.write(b"\\n".join(text[at : at + 10] for at in range(0, len(text), 10)))
with open("value", "rb", buffering=0) as file:
    print(len(file.read()))
"""
PROGRAMS = {
    "pieces": IN_PIECES,
    "buffer-4": AT_A_BUFFERS_EDGE.format(before=4),
    "buffer-12": AT_A_BUFFERS_EDGE.format(before=12),
    "buffer-21": AT_A_BUFFERS_EDGE.format(before=21),
    "content": IN_A_LONG_CONTENT,
    "child": THROUGH_A_PIPE,
    "receivers": SEVERAL_RECEIVERS,
    "backwards": FROM_THE_END,
    "apart": FAR_APART,
    "shown": SHOWN,
}


def recorded(text: str, place: Path, secret: str = SECRET) -> tuple[list[Path], str]:
    (place / "prog.py").write_text(text)
    env = {**passed_on(), "XDG_DATA_HOME": str(place / "data"), "DB_PASSWORD": secret}
    found = run(tool.record(sys.executable, place / "r", ["prog.py"], options=["--children=fork"]), cwd=place, env=env)
    assert found.status == 0, found
    group = place / "r.rdbgs"
    if group.is_dir():
        completed(group)
    command = [sys.executable, "-m", "replaydbg", "replay", "-q", str(group if group.is_dir() else place / "r.rdbg")]
    replayed = run(command, cwd=place, env=env)
    assert (replayed.status, replayed.stdout) == (0, found.stdout), replayed
    return sorted(place.rglob("*.rdbg")), found.stdout


def left_of(secret: str, recordings: list[Path]) -> list[tuple[str, str, bytes]]:
    """Return each part of the secret, of four bytes, that somebody without the key can see."""
    parts = {secret[at : at + 4].encode() for at in range(len(secret) - 3)}
    found = []
    for path in recordings:
        with open_recording(path, with_secrets=False) as recording:
            assert not recording.damage
            for name in recording.sections:
                data = b"".join(recording.pieces(name))
                found += [(path.name, name, part) for part in sorted(parts) if part in data]
    return found


@pytest.mark.parametrize("kind", PROGRAMS)
def test_no_piece_is_left(kind: str, tmp_path: Path) -> None:
    recordings, _ = recorded(PROGRAMS[kind], tmp_path)

    assert left_of(SECRET, recordings) == []


def test_a_copy_with_pseudonyms_has_pieces_of_these(tmp_path: Path) -> None:
    (recording,), output = recorded(IN_PIECES, tmp_path)
    env = {**passed_on(), "XDG_DATA_HOME": str(tmp_path / "data")}
    command = [sys.executable, "-m", "replaydbg", "redact", str(recording), "-o", "copy.rdbg"]

    redacted = run(command, cwd=tmp_path, env=env)

    assert redacted.status == 0, redacted
    assert left_of(SECRET, [tmp_path / "copy.rdbg"]) == []
    command = [sys.executable, "-m", "replaydbg", "replay", "-q", "copy.rdbg"]
    replayed = run(command, cwd=tmp_path, env={**env, "XDG_DATA_HOME": str(tmp_path / "others")})
    assert (replayed.status, replayed.stdout) == (0, output), replayed


@pytest.mark.parametrize("text", [SEVERAL_RECEIVERS, FROM_THE_END, SHOWN], ids=["receivers", "backwards", "shown"])
def test_copies_have_pseudonyms_of_pieces_in_any_order(text: str, tmp_path: Path) -> None:
    (recording,), output = recorded(text, tmp_path)
    env = {**passed_on(), "XDG_DATA_HOME": str(tmp_path / "data")}

    redacted = run([sys.executable, "-m", "replaydbg", "redact", str(recording), "-o", "c.rdbg"], cwd=tmp_path, env=env)

    assert redacted.status == 0, redacted
    assert left_of(SECRET, [tmp_path / "c.rdbg"]) == []
    replayed = run([sys.executable, "-m", "replaydbg", "replay", "-q", "c.rdbg"], cwd=tmp_path, env=env)
    assert replayed.status == 0
    assert (replayed.stdout == output) == (text is not SHOWN)


def test_lines_of_base64_in_the_middle_of_a_long_content(tmp_path: Path) -> None:
    recordings, _ = recorded(IN_THE_MIDDLE_OF_LINES, tmp_path)

    form = base64.b64encode(SECRET.encode())[:-4].decode()  # 300,000 bytes before it are a multiple of three
    assert [each for each in left_of(form, recordings) if each[2].decode() in form[4:-4]] == []


def test_a_secret_of_several_lines_in_pieces(tmp_path: Path) -> None:
    secret = "Alpha-9 hunter2 omega\nSecond k3y line %$ here\nThird-row 77xx zz"
    (tmp_path / "value").write_text(secret)
    text = "import os\nfd = os.open('value', os.O_RDONLY)\nwhile os.read(fd, 23):\n    pass\n"

    recordings, _ = recorded(text, tmp_path, secret)

    with open_recording(recordings[0], with_secrets=False) as recording:
        log = b"".join(recording.pieces("log"))
    assert b"\n" in log
    assert not [part for part in (b"Alpha-9", b"hunter2", b"omega", b"k3y line", b"Third-row", b"77xx") if part in log]


WRAPPED = """
import glob
for name in glob.glob("value-*"):
    with open(name, "rb") as file:
        print(len(file.read()))
"""


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_base64_with_line_ends(end: bytes, tmp_path: Path) -> None:
    """Of the secret in front of, behind, and across the end of a line only the bits at its ends are left."""
    places = range(0, 60, 3)
    for before in places:
        text = base64.encodebytes(b"x" * before + SECRET.encode() + b"y" * 90)
        (tmp_path / f"value-{before}").write_bytes(text.replace(b"\n", end))

    recordings, _ = recorded(WRAPPED, tmp_path)

    with open_recording(recordings[0], with_secrets=False) as recording:
        data = b"".join(recording.pieces("log"))
    assert data.count(b"eXl5eXl5") >= len(places)
    for before in places:
        whole = base64.b64encode(b"x" * before + SECRET.encode() + b"y" * 90)
        first, last = -(-8 * before // 6), 8 * (before + len(SECRET)) // 6
        assert not any(whole[at : at + 6] in data for at in range(first, last - 5)), before


def test_many_values_between_two_pieces_end_the_search(tmp_path: Path) -> None:
    text = IN_PIECES.replace("time.time()", "[os.getppid() for _ in range(2)]")

    recordings, _ = recorded(text, tmp_path)

    assert left_of(SECRET, recordings) == []


IN_OBJECTS = """
import os
reader, writer = os.pipe()
os.write(writer, os.environ["DB_PASSWORD"].encode())
first, second = os.read(reader, 8).decode(), os.read(reader, 100).decode()
kept = {"first": [first + "!"], "second": ["<" + second + ">"]}
raise ValueError
"""


def test_pieces_in_objects_are_masked_in_snapshots(tmp_path: Path) -> None:
    """The second one has only letters."""
    secret = "Zz42-98_batterystaple"
    env = {**passed_on(), "XDG_DATA_HOME": str(tmp_path / "data"), "DB_PASSWORD": secret}
    (tmp_path / "prog.py").write_text(IN_OBJECTS)
    options = ["--snapshot-at-exceptions"]
    made = run(tool.record(sys.executable, tmp_path / "r", ["prog.py"], options=options), cwd=tmp_path, env=env)
    assert made.status == 1, made
    command = [sys.executable, "-m", "replaydbg", "heap", "-q", "-o", "here.heap", "r.rdbg", "@exc"]

    shown = run(command, cwd=tmp_path, env=env)

    assert shown.status == 0, shown
    heaps = [unpack((tmp_path / "here.heap").read_bytes(), "here.heap")]
    with open_recording(tmp_path / "r.rdbg", with_secrets=False) as recording:
        heaps += load_series(recording, print)
    texts = [each.strings.raw(at) for each in heaps for at in range(len(each.strings))]
    assert len(heaps) > 1
    assert any(b"<" + b"*" * 13 in each for each in texts), [each for each in texts if b"*" in each]
    assert [text for text in texts if secret[:8].encode() in text or b"batterystaple" in text] == []


@pytest.mark.parametrize(("between", "is_found"), [(1000, True), (3 << 20, False)])
def test_a_beginning_and_an_end_of_four_bytes_far_apart_are_chance(between: int, is_found: bool) -> None:
    log = LogBuilder()
    for value in (b"my secr", b"." * between, b"et-0123456789"[:-4], b"6789 it is"):
        log.crossing(0, value)
    data = log.to_bytes()

    found = split_secrets([b"secr6789"], lambda name, start=0: iter([data[start:]] if name == "log" else []))

    assert [data[each.at : each.at + each.end - each.start] for each in found] == [b"secr", b"6789"] * is_found


def test_values_in_the_middle_that_go_on_are_pieces_without_long_ends() -> None:
    secret = b"ab" + b"C1d2E3f4" + b"g5H6i7J8" + b"yz"
    log = LogBuilder()
    for value in (b"x ab", b"C1d2E3f4", b"g5H6i7J8", b"yz x"):
        log.crossing(0, value)
    data = log.to_bytes()

    found = split_secrets([secret], lambda name, start=0: iter([data[start:]] if name == "log" else []))

    pieces = sorted(data[each.at : each.at + each.end - each.start] for each in found)
    assert pieces == sorted([b"ab", b"C1d2E3f4", b"g5H6i7J8", b"yz"])


def test_a_word_that_a_secret_has_is_no_piece() -> None:
    log = LogBuilder()
    for value in (b"production", b"other", b"production", b"-key-4720", b"more"):
        log.crossing(0, value)
    data = log.to_bytes()

    assert (
        split_secrets([b"my-production-key-4711"], lambda name, start=0: iter([data[start:]] if name == "log" else []))
        == []
    )
