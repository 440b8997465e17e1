"""A secret ends where the value ends in which it is, and goes on in the next one that was received."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replaydbg.log.edit.whole_values import in_contents, in_leaves
from replaydbg.log.entries.leaves import Content, Leaf, leaves
from replaydbg.log.entries.logfile import LOG_HEADER
from replaydbg.log.reader import open_recording
from replaydbg.secrets.secret_rules import SecretPlace
from tests.harness.recording import record_file

SECRET = "zQ9w-err0r"

AT_THE_END = """
with open("n.env", "w") as file:
    file.write("DB_PASSWORD=" + SECRET)
print(len(open("n.env").read()))
print("hello", SECRET, "there")
"""
SERVER = """
import socket
ours, theirs = socket.socketpair()
for number in range(3):
    theirs.sendall(b"user=u&password=" + SECRET.encode())
    ours.recv(4096)
    theirs.sendall(b"welcome " + SECRET.encode() + b"!")
    ours.recv(4096)
print(number)
"""
STRADDLING = """
import socket
ours, theirs = socket.socketpair()
theirs.sendall(b"DB_PASSWORD=" + SECRET.encode() + b"-more-T4444yUiO" + b"\\nrest=1\\n")
print(ours.recv(len("DB_PASSWORD=" + SECRET)), ours.recv(4096))
theirs.sendall(SECRET.encode() + b"-more-T4444yUiO")
print(ours.recv(4096))
"""
PROGRAMS = {"at the end of a file": AT_THE_END, "at the end of a message": SERVER, "in two messages": STRADDLING}


def recorded(program: str, place: Path) -> Path:
    # Its own source has the secret only in parts.
    path = place / "program.py"
    path.write_text(f'SECRET = "{SECRET[:5]}" + "{SECRET[5:]}"\n{program}')
    return record_file(path, place)


@pytest.mark.parametrize("kind", PROGRAMS)
def test_everybody_can_read_the_log(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recording = recorded(PROGRAMS[kind], tmp_path)
    with open_recording(recording) as own:
        events = list(own.events())
        assert own.secrets

    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "somebody else"))
    with open_recording(recording) as foreign:
        assert foreign.masked_for
        assert len(list(foreign.events())) == len(events)
        foreign.check()
        assert not foreign.damage
        for name in foreign.sections:
            assert SECRET.encode() not in b"".join(foreign.pieces(name)), name


def test_a_value_that_goes_on_is_masked_where_it_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recording = recorded(STRADDLING, tmp_path)

    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "somebody else"))
    with open_recording(recording) as foreign:
        log = b"".join(foreign.pieces("log"))
    assert b"more-T4444yUiO" not in log


# ---- the leaves of a log ----


def test_the_leaves_are_where_they_say(tmp_path: Path) -> None:
    with open_recording(recorded(SERVER, tmp_path)) as recording:
        log = b"".join(recording.pieces("log"))[LOG_HEADER:]

    for size in (1, 7, 1 << 20):
        found = [
            each for each in leaves(log[at : at + size] for at in range(0, len(log), size)) if isinstance(each, Leaf)
        ]
        assert all(log[each.start : each.end] == each.data for each in found)
        assert sum(SECRET.encode() in each.data for each in found) == 6
        assert sorted(found) == found


@settings(deadline=None)
@given(st.lists(st.binary(min_size=1, max_size=12), min_size=1, max_size=8), st.data())
def test_nothing_of_the_framing_is_taken(values: list[bytes], data: st.DataObject) -> None:
    frame = b"l\x05~"
    leaves, log = [], b""
    for each in values:
        log += frame
        leaves.append(Leaf(len(log), each))
        log += each
    at = data.draw(st.integers(0, len(log) - 1))
    text = log[at : data.draw(st.integers(at + 1, len(log)))]

    for secret in in_leaves([SecretPlace(at, text, True)], leaves):
        parts = [one.data + two.data for one, two in zip(leaves, [*leaves[1:], Leaf(0, b"")], strict=True)]
        assert any(secret in each for each in parts)


def test_behind_the_last_leaf_everything_stays() -> None:
    assert in_leaves([SecretPlace(100, b"t0ken-4711", True)], [Leaf(3, b"abc")]) == {b"t0ken-4711"}


def test_contents_end_where_they_end() -> None:
    both = [Content(0, 22), Content(22, 40)]
    assert in_contents([SecretPlace(12, b"t0ken-4711next", True)], both) == {b"t0ken-4711", b"t0ken-4711next"}
    assert in_contents([SecretPlace(12, b"t0ken-4711", True)], [Content(0, 40)]) == {b"t0ken-4711"}
    assert in_contents([SecretPlace(50, b"t0ken-4711", True)], [Content(0, 40)]) == {b"t0ken-4711"}
