"""`heap --resources` and `diff --resources` show descriptors beside the objects of a moment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from replaydbg.cli.main import main
from replaydbg.events.records import Event
from replaydbg.log.reader import open_recording
from tests.harness.recording import record_file

pytestmark = pytest.mark.slow

_PROGRAM = """\
import os, socket
first = open("first.txt", "w")
listener = socket.create_server(("127.0.0.1", 0))
address = listener.getsockname()
os.getppid()
first.close()
second = open("second.txt", "w")
second.write("abc")
second.flush()
os.getppid()
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("heap") / "program.py"
    program.write_text(_PROGRAM)
    return record_file(program, program.parent)


def _shown(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    main([*words, "-q", "--json"])
    return json.loads(capsys.readouterr().out)


def test_a_heap_names_file_offset_and_address(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = _shown(capsys, "heap", str(recorded), "@end", "--resources")["resources"]["opened"]

    (file,) = [each for each in found if each["kind"] == "file" and str(each["path"]) == "second.txt"]
    (listener,) = [each for each in found if each["kind"] == "socket"]
    assert (file["numbers"], file["offset"]) == ([3], 3)
    assert (listener["numbers"], listener["state"], listener["bound"][0]) == ([4], "listening", "127.0.0.1")


def test_a_difference_names_what_was_opened_and_closed(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with open_recording(recorded) as recording:
        before = next(each.number for each in recording.events(gate="posix.getppid") if isinstance(each, Event))

    found = _shown(capsys, "diff", str(recorded), str(before), "@end", "--resources", "--no-writes")["resources"]

    opened = [each["resource"]["path"] for line in found["lines"] for each in line["descriptors"]]
    closed = [each["resource"]["path"] for each in found["closed_descriptors"]]
    assert (opened, closed, found["closed"]) == (["second.txt"], ["first.txt"], 1)


def test_without_a_moment_it_is_a_usage_error(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["heap", str(recorded), "--growth", "--resources"]) == 2
    assert main(["diff", str(recorded), str(recorded), "--resources"]) == 2
