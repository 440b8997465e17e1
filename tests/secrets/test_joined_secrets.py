"""A secret that nothing but its form tells is found where a program received it in several pieces."""

from __future__ import annotations

import itertools
import random
import string
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replaydbg.events.values import ContentRef
from replaydbg.log.edit import joined_secrets
from replaydbg.log.edit.content_parts import Contents
from replaydbg.log.edit.joined_secrets import JoinedSecrets, _Stream
from replaydbg.log.edit.split_secrets import SplitPlace, split_secrets
from replaydbg.log.entries.logfile import LOG_HEADER
from replaydbg.log.reader import open_recording
from replaydbg.secrets.secret_rules import secrets_in
from replaydbg.secrets.user_patterns import searching_for
from tests.harness import tool
from tests.harness.build import LogBuilder
from tests.harness.replays import passed_on, run

_DRAW = random.Random(7)
_LETTERS = string.ascii_letters + string.digits


def token(length: int) -> str:
    return "".join(_DRAW.choices(_LETTERS, k=length))


JWT = ".".join(
    ("eyJ" + token(30), "eyJ" + token(60), token(43)),
)
PEM = "".join(f"{token(64)}\n" for _ in range(12))
KINDS: dict[str, tuple[str, str, str]] = {
    "GitHub": ("see ", "ghp_" + token(36), " here"),
    "GitLab": ("see ", "glpat-" + token(20), " here"),
    "AWS": ("id ", "AKIA" + token(16).upper(), "\n"),
    "JWT": ("jwt ", JWT, "\n"),
    "JSON": ('{"user": "bob", "password": "', token(24), '", "x": 1}'),
    "YAML": ("db:\n  password: '", token(24), "'\n  host: y\n"),
    "XML": ("<a><password>", token(24), "</password></a>"),
    "Python": ("password = '", token(24), "'\n"),
    "header": ("Host: x\r\nAuthorization: Bearer ", token(24), "\r\nAccept: */*\r\n"),
    "setting": ("A=1\nexport DB_PASSWORD=", token(24), "\nB=2\n"),
    "URL": ("postgres://bob:", token(24), "@db.example.com:5432/main\n"),
    "form": ("user=bob&password=", token(24), "&go=1"),
    "request": ("GET /login?user_password=", token(24), " HTTP/1.1\r\n"),
    "connection": ("Server=db;User=sa;Password=", token(24), ";Database=main"),
    "netrc": ("machine h login bob password ", token(24), "\n"),
    "option": ("run --db-password ", token(24), "\n"),
}


NO_CONTENTS = Contents(lambda name, start=0: iter(()))


def log_of(values: list[tuple[bytes, int]], *, between: bool = False) -> bytes:
    """Return a log, from behind its header, of values and the lines that received them."""
    log = LogBuilder()
    for value, line in values:
        log.crossing(0, value, line=line)
        if between:
            log.crossing(4, 1.5, line=line + 1, arguments=("/a/path",))
    return log.to_bytes()[LOG_HEADER:]


def found_in(log: bytes, size: int = 1 << 20) -> set[bytes]:
    joined = JoinedSecrets(NO_CONTENTS)
    for at in range(0, len(log), size):
        joined.add(log[at : at + size])
    return joined.found()


@pytest.mark.parametrize("same_line", [True, False], ids=["one line", "two lines"])
@pytest.mark.parametrize("kind", KINDS)
def test_it_is_found_at_each_cut(kind: str, same_line: bool) -> None:
    before, secret, behind = (each.encode() for each in KINDS[kind])
    text = b"x y z\n" * 30 + before + secret + behind + b"u v w\n" * 30
    first = text.index(secret)

    for cut in range(first + 1, first + len(secret)):
        log = log_of([(text[:cut], 3), (text[cut:], 3 if same_line else 9)], between=not same_line)
        assert any(secret in each for each in found_in(log)), (cut - first, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_its_telling_name_may_be_cut(kind: str) -> None:
    before, secret, behind = (each.encode() for each in KINDS[kind])
    text = b"x y z\n" + before + secret + behind

    for cut in range(1, text.index(secret)):
        if secret not in secrets_in(text[cut:]):
            assert any(secret in each for each in found_in(log_of([(text[:cut], 3), (text[cut:], 3)]))), cut


@pytest.mark.parametrize("size", [3, 7, 20, 64, 100])
def test_tiny_pieces(size: int) -> None:
    keys = ("-----BEGIN PRIVATE KEY-----\n", PEM, "-----END PRIVATE KEY-----\n")
    for before, secret, behind in (*KINDS.values(), keys):
        data = f"{'x y z ' * 20}{before}{secret}{behind}{'u v ' * 30}".encode()
        pieces = [data[at : at + size] for at in range(0, len(data), size)]
        found = found_in(log_of([(each, 3) for each in pieces]), 50)
        assert len(found) < 60
        for line in secret.encode().split():
            assert any(line in each for each in (*found, *(more for each in pieces for more in secrets_in(each)))), line


def test_what_follows_it_may_be_something_else() -> None:
    secret = b"ghp_" + token(36).encode()

    found = found_in(log_of([(b"x " + secret[:20], 3), (secret[20:], 3), (b"abcdefgh", 3)]))

    assert {secret, secret + b"abcdefgh"} <= found


@pytest.mark.parametrize(
    "values",
    [
        [b"password=", b"Traceback"],
        [b"see token", b"ize.py"],
        [b"the secret", b": abcdefg1234"],
    ],
)
def test_different_lines_must_cut_the_secret_itself(values: list[bytes]) -> None:
    assert found_in(log_of([(each, number) for number, each in enumerate(values)], between=True)) == set()


def test_names_in_a_directory_are_not_put_together() -> None:
    log = LogBuilder()
    log.crossing(0, ["glpat-" + token(10), token(10), token(10), "x"])

    assert found_in(log.to_bytes()[LOG_HEADER:]) == set()


@pytest.mark.parametrize("size", [5, 30, 400])
def test_connections_whose_values_come_in_turn(size: int) -> None:
    texts = []
    for number in range(4):
        secret = b"ghp_" + token(36).encode()
        texts.append((b"x" * (50 + number) + secret + b" " + b"y" * 900, secret))
    log = LogBuilder()
    for at in range(0, 400, size):
        for number, (text, _) in enumerate(texts):
            # The line of a loop may be two places.
            log.crossing(1, text[at : at + size] or b"-", line=3 + (at == 0), arguments=(number, 4096))
    found = found_in(log.to_bytes()[LOG_HEADER:])

    for text, secret in texts:
        whole = any(secret in text[at : at + size] for at in range(0, 400, size))
        assert whole or any(secret in each for each in found)


def test_of_a_parents_log_only_what_goes_on_counts() -> None:
    """What is before is searched in the parent's own log: each of a thousand children has it, too."""
    secrets = [b"ghp_" + token(36).encode() for _ in range(2)]
    early = [(b"x " + secrets[0][:20], 3), (secrets[0][20:] + b" " + b"y" * 20_000, 3), (b"z " + secrets[1][:20], 3)]
    prefix = log_of(early)
    joined = JoinedSecrets(NO_CONTENTS, len(prefix))
    joined.add(log_of([*early, (secrets[1][20:] + b" ", 3)]))

    assert joined.found() == {secrets[1]}
    assert found_in(log_of([*early, (secrets[1][20:] + b" ", 3)])) == set(secrets)


@pytest.mark.parametrize("size", [3, 6, 9])
@pytest.mark.parametrize("kind", ["JSON", "netrc"])
def test_a_cut_name_far_before_is_no_obstacle(kind: str, size: int) -> None:
    """After it, what comes next is collected; by the time of the secret, that has been given up."""
    before, secret, behind = (each.encode() for each in KINDS[kind])
    for shift in range(size):
        text = b"x y " * 3 + b"." * shift + b"token " + b"x y z\n" * 7000 + before + secret + behind + b"u v w\n" * 9
        found = found_in(log_of([(text[at : at + size], 3) for at in range(0, len(text), size)]))
        assert any(secret in each for each in found), shift


SIZES = [1, 7, 100, 1024, 5000, 8192, 20_000]


@pytest.mark.parametrize("kind", KINDS)
def test_contents_and_values_of_the_log_are_put_together(kind: str) -> None:
    """Two files are read in turn, and parts of them are stored beside the log, some behind those of another."""
    draw = random.Random(kind)
    for _ in range(40):
        texts = []
        for name in (kind, "GitHub"):
            before, secret, behind = (each.encode() for each in KINDS[name])
            padding = [b"x y z\n" * (draw.choice(SIZES) // 6 + 1) for _ in range(2)]
            texts.append((padding[0] + before + secret + behind + padding[1], secret))
        log, content = LogBuilder(), bytearray()
        found = set[bytes]()
        left = [text for text, _ in texts]
        sizes = draw.sample(SIZES, 3)
        while any(left):
            number, size = draw.randrange(2), draw.choice(sizes)
            value, left[number] = left[number][:size], left[number][size:]
            found |= secrets_in(value)
            received: bytes | ContentRef = value
            if len(value) >= 1024 and draw.random() < 0.5:
                content += b"." * draw.choice([0, 0, 10])
                received = ContentRef(len(content), len(value))
                content += value
            log.crossing(1, received, line=3, arguments=(number, 4096))
        section = bytes(content)
        joined = JoinedSecrets(Contents(lambda name, start=0, section=section: iter([section[start:]])))
        joined.add(log.to_bytes()[LOG_HEADER:])
        found |= joined.found() | secrets_in(section)
        for _, secret in texts:
            assert any(secret in each for each in found)


def test_contents_are_read_from_any_place() -> None:
    section = random.Random(3).randbytes((5 << 20) + 100)
    calls = []

    def pieces(name: str, start: int = 0) -> Iterator[bytes]:
        calls.append(start)
        for at in range(start, len(section), 300_000):
            yield section[at : at + 300_000]

    contents = Contents(pieces)
    for at in [0, 5 << 20, 100, (1 << 20) - 7, (4 << 20) + 5, 200, (5 << 20) + 50]:
        assert contents.read(at, at + 50) == section[at : at + 50]
    assert contents.read((1 << 20) - 5, (3 << 20) + 5) == section[(1 << 20) - 5 : (3 << 20) + 5]
    assert sorted(calls) == [0, 1 << 20, 2 << 20, 3 << 20, 4 << 20, 5 << 20]


def test_contents_that_grow_are_read_again() -> None:
    section = bytearray(b"first")
    contents = Contents(lambda name, start=0: iter([bytes(section[start:])]))
    assert contents.read(0, 5) == b"first"

    section += b" second"

    assert contents.read(3, 12) == b"st second"


ENDING = {
    "AWS": b"AKIA" + token(16).upper().encode(),
    "line": b"password: zvsekbxqckelfbpkqsxh",
    "setting": b"export DB_PASSWORD=" + token(20).encode(),
}


@pytest.mark.parametrize("following", [b"hello there", b"HTTP/1.1 200 OK", b"9 lives"])
@pytest.mark.parametrize("kind", ENDING)
def test_what_follows_its_last_value_is_not_a_part_of_it(kind: str, following: bytes) -> None:
    """A rule may ask that no letter follows; the next value is of another connection."""
    text = ENDING[kind]
    secret = text[-16:]
    for cut in range(len(text) - 15, len(text)):
        values = [b"x y\n" * 20 + text[:cut], text[cut:], following, following]
        found = found_in(log_of([(each, 3) for each in values]))
        assert any(each.endswith(secret) for each in found), cut


CHUNKS = ("GitHub", "JSON", "JWT", "URL")


@pytest.mark.parametrize("kind", CHUNKS)
@pytest.mark.parametrize("padding", [30, 20_000])
def test_the_end_of_a_chunk_of_a_body_may_be_in_it(kind: str, padding: int) -> None:
    before, secret, behind = (each.encode() for each in KINDS[kind])
    for cut in range(4, len(secret), 5):
        body = b"x y z\n" * (padding // 6) + before + secret[:cut] + b"\r\n2a;a=b\r\n" + secret[cut:] + behind
        text = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1f\r\n" + body + b"\r\n0\r\n\r\n"
        for value in (len(text), 4096, len(text) - len(secret) - len(behind) - 9 + cut):
            log = log_of([(text[at : at + value], 3) for at in range(0, len(text), value)])
            assert any(secret in each for each in found_in(log)), (cut, value)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-16"])
@pytest.mark.parametrize("kind", KINDS)
def test_text_in_utf_16(kind: str, encoding: str) -> None:
    before, secret, behind = KINDS[kind]
    for odd in (b"", b"\x07"):
        data = odd + f"x y z\n{before}{secret}{behind}".encode(encoding)

        assert any(secret.encode() in each for each in secrets_in(data)), odd
        assert any(secret.encode() in each for each in secrets_in(data + b"\x0bA"))


def test_a_long_value_between_two_is_no_obstacle() -> None:
    secret = b"ghp_" + token(36).encode()
    log = log_of(
        [
            (b"x" * 50_000 + secret[:9], 3),
            (secret[9:] + b"\n" + b"y" * 50_000 + secret[:30], 3),
            (secret[30:] + b" ", 3),
        ]
    )

    for size in (1000, 1 << 20):
        assert secret in found_in(log, size)


@pytest.mark.parametrize(
    ("pattern", "text", "secret"),
    [
        ("corp:[a-zA-Z0-9]{12}", b"x corp:abcdefABC123 y", b"corp:abcdefABC123"),
        ("Badge: ([0-9]{8})", b"x Badge: 83920174 y", b"83920174"),
    ],
)
def test_patterns_of_the_user(pattern: str, text: bytes, secret: bytes) -> None:
    for cut in range(3, text.index(secret) + len(secret)):
        with searching_for([pattern]):
            joined = JoinedSecrets(NO_CONTENTS)
        joined.add(log_of([(text[:cut], 3), (text[cut:], 3)]))

        assert joined.found() == {secret}, cut


@given(st.lists(st.binary(min_size=1, max_size=30), max_size=12), st.integers(1, 60))
def test_pieces_of_the_log_do_not_matter(values: list[bytes], size: int) -> None:
    log = log_of([(each, number % 3) for number, each in enumerate([*values, b'"password": "', b"hunter-22", b'2"'])])

    assert found_in(log, size) == found_in(log)


_PARTS = (
    b'"pass',
    b'word": "',
    b"hunt",
    b'er-2222"',
    b"Authorization: ",
    b"Bearer ",
    b"x" * 70,
    b"\n",
    b"gh",
    b"p_" + b"a1" * 18,
)


@given(st.lists(st.tuples(st.sampled_from(_PARTS), st.integers(3, 5)), max_size=30), st.integers(20, 400))
def test_values_that_are_passed_over_have_no_part_of_a_secret(values: list[tuple[bytes, int]], size: int) -> None:
    """What stays in Python from its first value of interest on finds the same."""
    log = log_of(values)
    found = found_in(log, size)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_Stream, "rests", False)
        assert found_in(log, size) == found


def test_of_many_places_the_latest_ones_are_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joined_secrets, "_MOST_STREAMS", 8)
    begun = [(f'"password": "begun-{line}-'.encode(), line) for line in range(3, 30)]
    ended = [(f'ended-{line}"'.encode(), line) for line in range(29, 2, -1)]

    found = found_in(log_of([*begun, *ended, *begun, *ended]))

    assert {f"begun-{line}-ended-{line}".encode() for line in range(28, 30)} <= found
    assert b"begun-3-ended-3" not in found


def places_of(secret: bytes, values: list[tuple[int, bytes]]) -> list[tuple[bytes, SplitPlace]]:
    """Return the pieces of a secret in values of calls of some gates, each with its bytes."""
    log = LogBuilder()
    for gate, value in values:
        log.crossing(gate, value, arguments=("x",))
    data = log.to_bytes()
    found = split_secrets([secret], lambda name, start=0: iter([data[start:]]) if name == "log" else iter(()))
    return [(data[each.at : each.at + each.end - each.start], each) for each in found]


def test_one_byte_of_something_else_is_no_piece() -> None:
    secret = b"ghp_Qb3dEf6hIj9kLm2"

    found = places_of(secret, [(1, b"/a/path/of/mg"), (0, secret[1:]), (0, b"xg")])

    assert [piece for piece, _ in found] == [secret[1:]]


def test_one_byte_received_in_the_same_way_is_one() -> None:
    secret = b"ghp_Qb3dEf6hIj9kLm2"

    found = places_of(secret, [(0, b"xg"), (1, b"/a/path/of/mg"), (0, secret[1:9]), (0, secret[9:])])

    assert sorted(piece for piece, _ in found) == sorted([b"g", secret[1:9], secret[9:]])


def test_tiny_values_between_long_ones() -> None:
    secret = b"rl63XykWZeiNNCiia3anXnQ4"
    values = [b'filler 12345\n{"password": "rl', *(secret[at : at + 7] for at in range(2, 24, 7)), b'"x":1}\n']

    found = places_of(secret, [(0, each) for each in values])

    assert b"".join(piece for piece, _ in sorted(found, key=lambda each: each[1].at)) == secret


AT_A_BUFFERS_EDGE = """
with open("settings") as file:
    print(sum(len(line) for line in file))
"""
IN_TINY_READS = """
import os
fd = os.open("settings", os.O_RDONLY)
size = 0
while data := os.read(fd, 20):
    size += len(data)
print(size)
"""
IN_LARGE_READS = """
import os
fd = os.open("settings", os.O_RDONLY)
print(len(os.read(fd, 1 << 20)), len(os.read(fd, 1 << 20)))
"""
WAYS = {
    "buffer": (AT_A_BUFFERS_EDGE, 8192, 200),
    "tiny": (IN_TINY_READS, 200, 200),
    "large": (IN_LARGE_READS, 1 << 20, 1 << 19),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "kind"), [*itertools.product(WAYS, ("GitHub", "JSON")), ("tiny", "PEM"), ("buffer", "JWT")]
)
def test_nothing_of_it_is_in_the_clear(way: str, kind: str, tmp_path: Path) -> None:
    program, edge, rest = WAYS[way]
    before, secret, behind = KINDS.get(kind, ("-----BEGIN PRIVATE KEY-----\n", PEM, "-----END PRIVATE KEY-----\n"))
    cut = len(secret) // 2
    padding = "x y\n" * (edge // 4)
    text = padding[: edge - len(before) - cut] + before + secret + behind + "u v\n" * (rest // 4)
    (tmp_path / "settings").write_text(text)
    (tmp_path / "prog.py").write_text(program)
    env = {**passed_on(), "XDG_DATA_HOME": str(tmp_path / "data")}

    made = run(tool.record(sys.executable, tmp_path / "r", ["prog.py"]), cwd=tmp_path, env=env)

    assert made.status == 0, made
    parts = {line[at : at + 8].encode() for line in secret.split() for at in range(len(line) - 7)}
    with open_recording(tmp_path / "r.rdbg", with_secrets=False) as recording:
        for name in recording.sections:
            data = b"".join(recording.pieces(name))
            assert not [part for part in parts if part in data], name
    for command in (["replay", "-q", "r.rdbg"], ["redact", "r.rdbg", "-o", "copy.rdbg"]):
        done = run([sys.executable, "-m", "replaydbg", *command], cwd=tmp_path, env=env)
        assert done.status == 0, done
    with open_recording(tmp_path / "copy.rdbg") as copy:
        for name in copy.sections:
            data = b"".join(copy.pieces(name))
            assert not [part for part in parts if part in data], name


BOTH_IN_TURN = """
import os
files = [os.open(name, os.O_RDONLY) for name in ("one", "two")]
for _ in range(24):
    for fd in files:
        os.read(fd, 65536)
"""


@pytest.mark.slow
def test_two_large_files_in_turn(tmp_path: Path) -> None:
    """Their contents are stored in pieces of 1 MiB, first one of the first file, then one of the second."""
    parts = set()
    for name in ("one", "two"):
        secret = "ghp_" + token(36)
        parts |= {secret[at : at + 8].encode() for at in range(33)}
        (tmp_path / name).write_text("x y\n" * ((1 << 18) - 5) + secret + " \n" + "u v\n" * (1 << 18))
    (tmp_path / "prog.py").write_text(BOTH_IN_TURN)
    env = {**passed_on(), "XDG_DATA_HOME": str(tmp_path / "data")}

    made = run(tool.record(sys.executable, tmp_path / "r", ["prog.py"]), cwd=tmp_path, env=env)

    assert made.status == 0, made
    with open_recording(tmp_path / "r.rdbg", with_secrets=False) as recording:
        assert recording.size("content") > 1 << 21
        for name in recording.sections:
            data = b"".join(recording.pieces(name))
            assert not [part for part in parts if part in data], name


@pytest.mark.slow
def test_a_file_that_is_read_backwards_can_be_redacted(tmp_path: Path) -> None:
    """The first byte of the secret is at the end of a path, too."""
    (tmp_path / "value").write_text("xghp_Qb3dEf6hIj9kLm2")
    (tmp_path / "prog.py").write_text(
        f"import os\nos.path.exists({str(tmp_path / 'mg')!r})\nfd = os.open('value', os.O_RDONLY)\n"
        "last = os.pread(fd, 100, 2)\nprint(len(os.pread(fd, 2, 0) + last))\n"
    )
    env = {**passed_on(), "XDG_DATA_HOME": str(tmp_path / "data"), "A_TOKEN": "ghp_Qb3dEf6hIj9kLm2"}
    made = run(tool.record(sys.executable, tmp_path / "r", ["prog.py"]), cwd=tmp_path, env=env)
    assert made.status == 0, made

    done = run([sys.executable, "-m", "replaydbg", "redact", "r.rdbg", "-o", "copy.rdbg"], cwd=tmp_path, env=env)

    assert done.status == 0, done
