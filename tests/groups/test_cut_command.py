"""`cut` shows the latest consistent cut of a group, and what was in flight in it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from replaydbg.cli.main import main
from replaydbg.events.transfers import Endpoint
from tests.groups.group_builder import received, sent, write_run
from tests.groups.test_channels_command import PIPE, a_run, run, run_json
from tests.harness.recorded_group import BANK, record_program


@pytest.fixture(autouse=True)
def plain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPLAYDBG_STORE", str(tmp_path))
    monkeypatch.delenv("FORCE_COLOR", raising=False)


def positions(data: Any) -> dict[int, int]:
    return {each["process"]: each["event"] for each in data["processes"]}


# ---- from recordings that were built by hand ----


def test_a_receive_takes_its_send_with_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a_run(tmp_path)

    code, lines, errors = run(capsys, "cut", "run-1", "1@2")

    assert (code, errors) == (0, "")
    assert lines == [
        "1\t2\t7\t\tprog.py:3  step(3)",
        "2\t5\t11\t\tprog.py:6  step(6)",
        "in flight: 1 message",
        "1 pipe\t1\t2\t2 (rest)\t1@2  prog.py:3  step(3)\t2@6  prog.py:7  step(7)",
    ]


def test_an_unfinished_call_is_the_last_position(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a_run(tmp_path)

    code, data = run_json(capsys, "cut", "run-1")

    assert code == 0
    assert positions(data) == {1: 7, 2: 11}
    assert data["is_consistent"]
    # Nobody received the end of what the first process sent.
    assert [(each["length"], each["receive"], each["is_whole"]) for each in data["in_flight"]] == [(6, None, False)]


def test_what_was_asked_for_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a_run(tmp_path)

    _, lines, _ = run(capsys, "cut", "run-1", "1@2", "2@6")

    assert lines[1] == "2\t5\t11\t6\tprog.py:6  step(6)"


def test_a_cut_behind_a_contradiction_is_not_called_consistent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(
        tmp_path,
        {
            1: ([PIPE], [sent(b"abc", 2, 1), sent(b"xyz", 3, 3)]),
            2: ([PIPE], [received(b"abc", 2, 2), received(b"xyy", 3, 4)]),
        },
    )

    code, data = run_json(capsys, "cut", "run-1")
    assert (code, data["is_consistent"]) == (3, False)
    assert data["doubts"] == ["pipe 13:77: what was received does not match what was sent"]

    code, data = run_json(capsys, "cut", "run-1", "2@2")
    assert (code, data["is_consistent"]) == (0, True)

    code, _, errors = run(capsys, "cut", "run-1")
    assert code == 3
    assert errors.startswith("replaydbg: It is not known whether this cut is consistent:\n")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["run-1", "898"], "'898' is not a moment of a process, such as 2@898 or 2@exc."),
        (["run-1", "x@5"], "'x@5' is not a moment of a process, such as 2@898 or 2@exc."),
        (["run-1", "7@5"], "The group has no recording of process 7. Recorded: 1, 2."),
        (["nothing"], "No recording 'nothing'"),
    ],
)
def test_bad_input_gets_a_sentence(
    words: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a_run(tmp_path)

    code, _, errors = run(capsys, "cut", *words)

    assert code == 2
    assert sentence in errors


def test_a_damaged_recording_counts_as_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (a_run(tmp_path) / "2.rdbg").write_bytes(b"nothing")

    code, data = run_json(capsys, "cut", "run-1")

    assert code == 1
    assert positions(data) == {1: 7}
    assert data["in_flight"] == []
    assert len(data["problems"]) == 1


DATAGRAMS = Endpoint(1, "unix-datagram", "55", "66", 5, ""), Endpoint(1, "unix-datagram", "66", "55", 6, "")


def test_a_datagram_that_no_send_is_known_for_is_a_doubt(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Such as one that was cut off by a short buffer: it is not known of which send it is."""
    write_run(
        tmp_path,
        {
            1: ([DATAGRAMS[0]], [sent(b"0abc", 2, 1), sent(b"1abc", 3, 3)]),
            2: ([DATAGRAMS[1]], [received(b"0a", 2, 4)]),
        },
    )

    assert run_json(capsys, "cut", "run-1", "2@1")[0] == 0
    code, data = run_json(capsys, "cut", "run-1", "1@1")
    assert (code, data["is_consistent"]) == (3, False)


def test_all_sends_that_could_be_the_one_are_needed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of 40 equal datagrams one arrived: it may be the last one."""
    sends = [sent(b"equal", number, number) for number in range(1, 41)]
    write_run(tmp_path, {1: ([DATAGRAMS[0]], sends), 2: ([DATAGRAMS[1]], [received(b"equal", 2, 50)])})

    assert positions(run_json(capsys, "cut", "run-1", "1@39")[1]) == {1: 39, 2: 1}
    assert positions(run_json(capsys, "cut", "run-1", "1@40")[1]) == {1: 40, 2: 4}


def test_the_least_of_several_positions_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a_run(tmp_path)

    assert positions(run_json(capsys, "cut", "run-1", "2@2", "2@5")[1])[2] == 2


# ---- from a program ----


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    yield record_program(tmp_path_factory.mktemp("bank"), BANK)


def sends(bank: Path, capsys: pytest.CaptureFixture[str], process: int) -> list[int]:
    """Return the events of a process that sent through a pipe."""
    main(["events", str(bank / f"{process}.rdbg"), "--call", "posix.write", "--json"])
    entries = json.loads(capsys.readouterr().out)["entries"]
    return [each["event"] for each in entries if "callee" in each or each.get("event")]


def test_bytes_in_flight(bank: Path, capsys: pytest.CaptureFixture[str]) -> None:
    second = sends(bank, capsys, 1)[1]

    code, data = run_json(capsys, "cut", str(bank), f"1@{second}", f"2@{sends(bank, capsys, 2)[0]}", "--bytes")

    assert code == 0
    assert positions(data)[1] == second
    assert [bytes.fromhex(each["content"]) for each in data["in_flight"]] == [b"0000020\n"]


def test_quiet_cuts_are_before_waits(bank: Path, capsys: pytest.CaptureFixture[str]) -> None:
    second = sends(bank, capsys, 1)[1]

    code, data = run_json(capsys, "cut", str(bank), f"1@{second - 1}", "--quiet")

    # The parent waited for the first answer, which was in flight, and the child for the second question.
    assert (code, data["is_quiet"]) == (0, True)
    assert positions(data) == {1: second - 2, 2: sends(bank, capsys, 2)[0]}


@pytest.mark.slow
def test_values_in_each_process(bank: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, data = run_json(capsys, "cut", str(bank), "1@end", "--eval", "total")

    assert code == 0
    # The child left its function before it came to the line that sets it.
    assert [(each["process"], each["value"]) for each in data["values"]] == [(1, "200"), (2, None)]
    assert data["values"][1]["reason"] == "NameError: name 'total' is not defined"


# ---- checkpoint policies ----


def test_policies_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a_run(tmp_path)

    code, lines, errors = run(capsys, "cuts", "run-1", "--policy", "uncoordinated:3", "--policy", "induced:3:transfers")

    assert (code, errors) == (0, "")
    assert [line.split("\t")[:2] for line in lines] == [
        ["uncoordinated:3", "1"],
        ["uncoordinated:3", "2"],
        ["induced:3:transfers", "1"],
        ["induced:3:transfers", "2"],
    ]

    code, data = run_json(capsys, "cuts", "run-1", "--policy", "uncoordinated:3", "--failed", "1", "--failed", "2")
    (found,) = data["policies"]
    assert (code, found["failed"], found["checkpoints"]) == (0, [1, 2], {"1": 2, "2": 3})
    # When the second process sent its answer, its last act, the first one had not received it.
    assert found["line"] == {"1": 3, "2": 9}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--policy", "often:3"], "'often:3' is not a policy: KIND:N, KIND:N:transfers"),
        (["--policy", "induced:0"], "'induced:0' is not a policy"),
        (["--policy", "induced:5:seconds"], "KIND one of uncoordinated, coordinated, induced."),
        (["--failed", "7"], "The group has no recording of process 7."),
    ],
)
def test_a_bad_policy_gets_a_sentence(
    words: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a_run(tmp_path)

    code, _, errors = run(capsys, "cuts", "run-1", *words)

    assert code == 2
    assert sentence in errors


# ---- the order of two events ----


@pytest.mark.parametrize(
    ("one", "other", "sentence"),
    [
        ("1@2", "2@4", "1@2 came before 2@4"),
        ("2@4", "1@2", "2@4 came after 1@2"),
        ("1@3", "2@4", "1@3 and 2@4 are concurrent"),
        ("2@4", "2@5", "2@4 came before 2@5"),
        ("2@4", "2@4", "2@4 and 2@4 are the same event"),
    ],
)
def test_the_order_of_two_events(
    one: str, other: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a_run(tmp_path)

    assert run(capsys, "order", "run-1", one, other) == (0, [sentence], "")


def test_clocks_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a_run(tmp_path)

    code, data = run_json(capsys, "order", "run-1", "1@5", "2@6")

    assert (code, data["order"], data["clocks"]) == (0, "after", [{"2": 8}, {"1": 3}])


@pytest.mark.parametrize(
    ("event", "sentence"),
    [
        ("2@x", "'2@x' is not an event of a process, such as 2@898."),
        ("2@0", "'2@0' is not an event of a process, such as 2@898."),
        ("9@1", "The group has no recording of process 9."),
        ("2@99", "Process 2 has no event 99."),
    ],
)
def test_a_bad_event_gets_a_sentence(
    event: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a_run(tmp_path)

    code, _, errors = run(capsys, "order", "run-1", "1@1", event)

    assert code == 2
    assert sentence in errors
