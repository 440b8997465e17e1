"""`cut --svg` draws the cut: well-formed, with the messages in flight, and safe whatever recordings contain."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replaydbg.cli.main import main
from replaydbg.events.transfers import Endpoint
from replaydbg.render.groups.svg_canvas import Spot, SvgCanvas
from tests.groups.group_builder import received, sent, write_run
from tests.groups.test_channels_command import PIPE, a_run, run, run_json
from tests.harness import cut_picture
from tests.harness.recorded_group import BANK, record_program

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(autouse=True)
def plain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REPLAYDBG_STORE", str(tmp_path))
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.chdir(tmp_path)


def drawing(file: Path) -> ElementTree.Element:
    """Return a drawing, which loads nothing and runs nothing."""
    text = file.read_text(encoding="utf-8")
    assert "http" not in text.replace('"http://www.w3.org/2000/svg"', "")
    assert not re.search(r"<script|<image|<foreignObject|<use|@import|url\(|href|\son[a-z]+=", text)
    assert all(sign.isprintable() or sign == "\n" for sign in text)
    return ElementTree.fromstring(text)


def texts(root: ElementTree.Element, tag: str = "text") -> list[str]:
    return [each.text or "" for each in root.iter(f"{SVG}{tag}")]


def count(root: ElementTree.Element, tag: str, kind: str) -> int:
    return sum(each.get("class") == kind for each in root.iter(f"{SVG}{tag}"))


def crossing(root: ElementTree.Element, kind: str) -> list[bool]:
    """Return for each message of a kind whether its line crosses the cut; lines of the legend are in no group."""
    (cut,) = (float(each.get("x1", "0")) for each in root.iter(f"{SVG}line") if is_upright(each))
    lines = [each for group in root.iter(f"{SVG}g") for each in group.iter(f"{SVG}line") if each.get("class") == kind]
    return [float(each.get("x1", "0")) < cut < float(each.get("x2", "0")) for each in lines]


def is_upright(line: ElementTree.Element) -> bool:
    return line.get("class") == "cut" and line.get("x1") == line.get("x2")


def test_the_drawing_of_a_cut(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a_run(tmp_path)

    code, lines, errors = run(capsys, "cut", "run-1", "1@2", "--svg", "cut.svg")

    assert (code, errors) == (0, "")
    assert lines[2] == "in flight: 1 message"
    root = drawing(tmp_path / "cut.svg")
    assert texts(root, "title")[0] == "Cut of run-1: 1@2 2@5"
    assert "In flight across it: 1 message." in texts(root, "desc")[0]
    assert {"In flight: 1 message", "2 bytes (rest), pipe", "1@2  prog.py:3  step(3)"} <= set(texts(root))
    assert {"2@6  prog.py:7  step(7)", "event 2 of 7", "event 5 of 11", "cut"} <= set(texts(root))
    # One arrow of the part that was received, one of the rest, and what is later: the second message, and the answer.
    assert count(root, "polygon", "tip") == 3
    assert count(root, "polygon", "flying-tip") == count(root, "circle", "badge") == 1
    assert crossing(root, "flying") == [True]
    assert crossing(root, "message") == [False] * 3


def test_what_nobody_received_has_no_point(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a_run(tmp_path)

    run(capsys, "cut", "run-1", "--svg", "cut.svg")

    root = drawing(tmp_path / "cut.svg")
    assert "nobody" in texts(root)
    assert count(root, "polygon", "flying-tip") == 0
    assert count(root, "line", "flying") == 4  # the line, its cross, and the legend


def test_a_process_that_sends_to_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(tmp_path, {1: ([PIPE], [sent(b"me", 2, 1), received(b"me", 5, 2)]), 2: ([], [])})

    run(capsys, "cut", "run-1", "1@3", "--svg", "cut.svg")

    assert count(drawing(tmp_path / "cut.svg"), "path", "flying") == 1


def test_only_the_events_near_the_cut_are_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sends = [sent(b"x", number, 2 * number) for number in range(1, 51)]
    receives = [received(b"x", number, 2 * number + 1) for number in range(1, 51)]
    write_run(tmp_path, {1: ([PIPE], sends), 2: ([PIPE], receives)})

    code, _, _ = run(capsys, "cut", "run-1", "2@25", "1@25", "--svg", "cut.svg", "--around", "3")

    root = drawing(tmp_path / "cut.svg")
    assert code == 0
    assert count(root, "polygon", "tip") == 6
    left_out = "Only the events near the cut are drawn: 44 events earlier and 44 events later are left out."
    assert left_out in texts(root)


def test_many_messages_in_flight(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sends = [sent(b"x", number, number) for number in range(1, 101)]
    write_run(tmp_path, {1: ([PIPE], sends), 2: ([PIPE], [received(b"x" * 100, 1, 200)])})

    run(capsys, "cut", "run-1", "2@0", "--svg", "cut.svg")

    root = drawing(tmp_path / "cut.svg")
    assert count(root, "circle", "badge") == 40
    assert "60 messages in flight that were sent earlier are not drawn." in texts(root)


def test_a_contradiction_is_said_in_the_drawing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    members: dict[int, Any] = {1: ([PIPE], [sent(b"abc", 2, 1)]), 2: ([PIPE], [received(b"abd", 2, 2)])}
    write_run(tmp_path, members)

    code, _, _ = run(capsys, "cut", "run-1", "--svg", "cut.svg")

    root = drawing(tmp_path / "cut.svg")
    assert code == 3
    assert "cut, perhaps not consistent" in texts(root)
    assert any(text.startswith("It is not known whether this cut is consistent: pipe 13:77") for text in texts(root))


def test_a_damaged_recording_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (a_run(tmp_path) / "2.rdbg").write_bytes(b"nothing")

    code, _ = run_json(capsys, "cut", "run-1", "--svg", "cut.svg")

    assert code == 1
    sentence = "Process 2 is not drawn: its recording is missing or damaged."
    assert sentence in texts(drawing(tmp_path / "cut.svg"))


HOSTILE = "</text><script>alert(1)</script>&\"'\x00\x1b[31m\u202e\ud800\uffff" + "long " * 2000


def test_hostile_text_is_escaped_and_cut(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evil = HOSTILE.replace("\0", "").encode("utf-8", "replace").decode()
    ends = [Endpoint(1, "fifo", "13:77", "13:77", 0, evil)]
    members: dict[int, Any] = {1: (ends, [sent(b"ab", 2, 1)]), 2: (ends, [received(b"ab", 2, 2)])}
    group = write_run(tmp_path, members)
    rows = (group / "group.json").read_text()
    assert '"argv": null' in rows
    (group / "group.json").write_text(
        rows.replace('"argv": null', '"argv": ["</text><script>", "\\u001b[31m\\u202e", "' + "long" * 9999 + '"]')
    )

    code, _, errors = run(capsys, "cut", "run-1", "2@1", "--svg", "cut.svg")
    assert errors == ""

    file = tmp_path / "cut.svg"
    assert code == 0
    assert file.stat().st_size < 20_000
    assert any("</text><script>" in text for text in texts(drawing(file)))


@given(st.text(), st.text())
def test_any_text_makes_a_well_formed_drawing(title: str, text: str) -> None:
    canvas = SvgCanvas(title, text)
    canvas.text(Spot(1, 2), text)
    canvas.text(Spot(1, 2), HOSTILE, within=canvas.group(title))

    root = ElementTree.fromstring(canvas.to_bytes(10, 20))

    assert root.get("viewBox") == "0 0 10 20"


def test_a_forged_start_is_not_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    group = a_run(tmp_path)
    rows = (group / "group.json").read_text()
    old = '"event": 0,\n   "how": "fork"'
    assert old in rows
    (group / "group.json").write_text(rows.replace(old, f'"event": {1 << 70},\n   "how": "python"'))

    code, _, errors = run(capsys, "cut", "run-1", "--svg", "cut.svg")

    assert (code, errors) == (0, "")
    assert count(drawing(tmp_path / "cut.svg"), "line", "start") == 1  # the legend


# ---- writing the file ----


def test_an_existing_file_is_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a_run(tmp_path)
    (tmp_path / "cut.svg").write_text("old")

    assert run(capsys, "cut", "run-1", "--svg", "cut.svg")[0] == 0

    assert drawing(tmp_path / "cut.svg").tag == f"{SVG}svg"
    assert (tmp_path / "cut.svg").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--svg", "nowhere/cut.svg"], "'nowhere/cut.svg' cannot be written: No such file or directory."),
        (["--svg", "/dev/full"], "'/dev/full' cannot be written: No space left on device."),
        (["--svg", "."], "'.' cannot be written: Is a directory."),
        (["--svg", "cut.svg", "--around", "0"], "--around must be between 1 and 1000 (got 0)."),
    ],
)
def test_bad_input_gets_a_sentence(
    words: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a_run(tmp_path)

    code, _, errors = run(capsys, "cut", "run-1", *words)

    assert code == 2
    assert sentence in errors
    assert not (tmp_path / "cut.svg").exists()


# ---- from a program ----


@pytest.mark.slow
def test_the_picture_of_the_documentation_is_current(tmp_path: Path) -> None:
    cut_picture.draw(tmp_path, tmp_path / "cut.svg")

    drawing(cut_picture.PICTURE)
    assert cut_picture.normal((tmp_path / "cut.svg").read_text()) == cut_picture.normal(cut_picture.PICTURE.read_text())


def test_a_recorded_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bank = record_program(tmp_path, BANK)
    main(["events", str(bank / "1.rdbg"), "--call", "posix.write"])
    first = int(capsys.readouterr().out.split()[0])

    code, _, errors = run(capsys, "cut", str(bank), f"1@{first}", "2@end", "--svg", "cut.svg")

    root = drawing(tmp_path / "cut.svg")
    assert (code, errors) == (0, "")
    assert "8 bytes, pipe" in texts(root)
    assert count(root, "line", "start") == 2  # the fork, and the legend
    assert any("prog.py:12  os.write(answer" in text for text in texts(root))
