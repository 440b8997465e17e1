"""`channels`, `sender` and `receiver` show who sent what to whom, from the recordings alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from replaydbg.cli.common.schema import SCHEMA_VERSION
from replaydbg.cli.main import main
from replaydbg.events.transfers import Endpoint, Transfer
from tests.groups.group_builder import received, sent, write_member, write_run

PIPE = Endpoint(1, "pipe", "13:77", "13:77", 0, "")
ONE = Endpoint(2, "tcp", "127.0.0.1:5000", "127.0.0.1:80", 8, "")
OTHER = Endpoint(2, "tcp", "127.0.0.1:80", "[::ffff:127.0.0.1]:5000", 9, "")


@pytest.fixture(autouse=True)
def plain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPLAYDBG_STORE", str(tmp_path))
    monkeypatch.delenv("FORCE_COLOR", raising=False)


def a_run(tmp_path: Path, **headers: dict[str, Any]) -> Path:
    """Two processes: a pipe from 1 to 2, of which a rest is not read, and a connection from 2 to 1."""
    return write_run(
        tmp_path,
        {
            1: ([PIPE, OTHER], [sent(b"hello", 2, 1), sent(b"you there", 3, 3), received(b"answer", 5, 8, endpoint=2)]),
            2: (
                [PIPE, ONE],
                [received(b"hel", 4, 2), received(b"loyou", 6, 5), sent(b"answer", 8, 7, endpoint=2), open_receive()],
            ),
        },
        **headers,
    )


def open_receive() -> Transfer:
    return received(b"", 0, 0, begun=8)


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, list[str], str]:
    code = main(list(words))
    printed = capsys.readouterr()
    return code, printed.out.splitlines(), printed.err


def run_json(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any]:
    code = main([*words, "--json"])
    data = json.loads(capsys.readouterr().out)
    assert data["schema_version"] == SCHEMA_VERSION
    return code, data


def test_channels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a_run(tmp_path)

    code, lines, errors = run(capsys, "channels", "run-1")

    assert (code, errors) == (0, "")
    assert lines == [
        "1\tpipe\t13:77\t1\t2\t2\t14\t6 bytes never received, process 2 was waiting to receive",
        "2\ttcp\t127.0.0.1:5000 -> 127.0.0.1:80\t2\t1\t1\t6\tall received",
    ]


def test_channels_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a_run(tmp_path)

    code, data = run_json(capsys, "channels", "run-1")

    assert code == 0
    assert [(each["kind"], each["from"], each["to"]) for each in data["channels"]] == [
        ("pipe", [1], [2]),
        ("tcp", [2], [1]),
    ]
    assert data["channels"][0]["never_received"] == 6
    assert data["channels"][0]["waiting_to_receive"] == [{"process": 2, "begun": 8}]
    assert data["problems"] == []


def test_sender_of_several_sends(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a_run(tmp_path)

    assert run(capsys, "sender", "run-1/2", "6") == (
        0,
        [
            "1@2  prog.py:3  bytes 3..5 of pipe 13:77  step(3)",
            "1@3  prog.py:4  bytes 5..8 of pipe 13:77  step(4)",
        ],
        "",
    )


def test_receiver_of_a_send_that_is_received_in_part(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a_run(tmp_path)

    code, lines, errors = run(capsys, "receiver", "run-1/1", "3")

    assert (code, lines) == (0, ["2@6  prog.py:7  bytes 5..8 of pipe 13:77  step(7)"])
    assert errors == "replaydbg: pipe 13:77: 6 bytes were never received.\n"


def test_sender_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a_run(tmp_path)

    code, data = run_json(capsys, "sender", "run-1", "5")

    (message,) = data["messages"]
    (part,) = message["parts"]
    assert code == 0
    assert (message["channel"]["kind"], message["way"], message["length"], message["unmatched"]) == (
        "tcp",
        "receive",
        6,
        0,
    )
    assert (part["process"], part["event"], part["line"], part["source"]) == (2, 8, 9, "step(9)")
    assert (part["first"], part["length"], part["certainty"]) == (0, 6, "certain")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["sender", "run-1/2", "0"], "EVENT must be at least 1 (got 0)."),
        (["sender", "run-1/2", "99"], "run-1/2 has no event 99."),
        (["sender", "run-1/2", str(1 << 63)], "run-1/2 has no event 9223372036854775808."),
        (["sender", "run-1/2", "5"], "Event 5 of run-1/2 received nothing through a channel."),
        (["sender", "run-1/2", "8"], "Event 8 of run-1/2 sent something. Use `replaydbg receiver run-1/2 8`."),
        (["receiver", "run-1/2", "6"], "Event 6 of run-1/2 received something. Use `replaydbg sender run-1/2 6`."),
        (["sender", "run-1/7", "6"], "No recording 'run-1/7'"),
        (["channels", "nothing"], "No recording 'nothing'"),
    ],
)
def test_bad_input_gets_a_sentence(
    words: Sequence[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a_run(tmp_path)

    code, lines, errors = run(capsys, *words)

    assert (code, lines) == (2, [])
    assert sentence in errors


def test_an_event_from_before_the_fork_is_that_of_the_parent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    branch = {"process": 1, "event": 4, "log": 64, "world": 64, "content": 0}
    a_run(tmp_path, p2={"branch": branch})

    assert run(capsys, "receiver", "run-1/2", "2")[:2] == run(capsys, "receiver", "run-1/1", "2")[:2]
    assert run(capsys, "sender", "run-1/2", "6")[0] == 0


@pytest.mark.parametrize("what", ["missing", "cut", "of another group", "of another process", "transfers"])
def test_a_bad_member_is_outside(what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = a_run(tmp_path) / "1.rdbg"
    data = path.read_bytes()
    path.unlink()
    if what == "cut":
        path.write_bytes(data[:50])
    elif what == "transfers":
        write_member(path.parent, 1, [PIPE], [sent(b"hello", 2, 1, endpoint=2)])
    elif what != "missing":
        header = {"group": "cd"} if what == "of another group" else {"process": 3}
        write_member(path.parent, 1, [PIPE], [sent(b"hello", 2, 1)], **header)

    code, lines, errors = run(capsys, "channels", "run-1")

    assert code == 1
    assert "process 1: " in errors
    assert lines[0].split("\t")[3:5] == ["outside", "2"]
    code, lines, errors = run(capsys, "sender", "run-1/2", "6")
    assert (code, lines) == (0, [])
    assert "5 bytes were sent by no recorded process." in errors


def test_recordings_without_transfers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = a_run(tmp_path)
    for number in (1, 2):
        (path / f"{number}.rdbg").unlink()
        write_member(path, number, [], [])

    code, lines, _ = run(capsys, "channels", "run-1")

    assert (code, lines) == (0, [])


def test_a_contradiction_names_both_places(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(
        tmp_path,
        {
            1: ([PIPE], [sent(b"one", 1, 1), sent(b"two", 2, 3), sent(b"x", 3, 5)]),
            2: ([PIPE], [received(b"one", 2, 2), received(b"owt", 3, 4), received(b"x", 4, 6)]),
        },
    )

    code, lines, errors = run(capsys, "channels", "run-1")
    assert code == 0
    assert lines[0].endswith("\tunsure from byte 3")
    assert "1@2, prog.py:3" in errors
    assert "2@3, prog.py:4" in errors
    assert run_json(capsys, "channels", "run-1")[1]["channels"][0]["contradiction"]["receive"]["event"] == 3
    assert run(capsys, "sender", "run-1/2", "2")[0] == 0
    code, lines, errors = run(capsys, "sender", "run-1/2", "4")
    assert (code, lines) == (3, ["1@3  prog.py:4  bytes 6..7 of pipe 13:77  unsure  step(4)"])
    assert "messages#unsure-channel" in errors


def test_an_ambiguous_message_shows_all_sends_that_fit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(
        tmp_path,
        {
            1: ([PIPE], [received(b"x", 1, 3), received(b"x", 2, 4)]),
            2: ([PIPE], [sent(b"x", 1, 1)]),
            3: ([PIPE], [sent(b"x", 1, 2)]),
        },
    )

    code, lines, errors = run(capsys, "sender", "run-1/1", "1")

    assert code == 3
    assert [line.split("  ")[0] for line in lines] == ["2@1", "3@1"]
    assert all("  ambiguous  " in line for line in lines)
    assert "messages#ambiguous-message" in errors
    assert [line.split("  ")[0] for line in run(capsys, "receiver", "run-1/3", "1")[1]] == ["1@2", "1@1"]


def test_peeking_and_the_end_of_a_stream(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(
        tmp_path,
        {
            1: ([PIPE], [sent(b"ab", 1, 1)]),
            2: ([PIPE], [received(b"ab", 1, 2, peeks=True), received(b"ab", 2, 3), received(b"", 3, 4)]),
        },
    )

    assert "this receive took nothing (MSG_PEEK)" in run(capsys, "sender", "run-1/2", "1")[2]
    assert run(capsys, "sender", "run-1/2", "2")[1] == ["1@1  prog.py:2  bytes 0..2 of pipe 13:77  step(2)"]
    assert "no bytes, the end of the stream" in run(capsys, "sender", "run-1/2", "3")[2]
