"""The digest of what a program wrote is the one in the event log."""

from pathlib import Path

from replaydbg.log.reader import open_recording
from replaydbg.resume.digest import output_digest
from tests.harness.recording import record_file

_PROGRAM = """
with open({path!r}, "wb", buffering=0) as file:
    for size in range(100):
        file.write(bytes(number * 7 % 256 for number in range(size)))
"""


def test_the_digest_is_that_of_the_event(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(_PROGRAM.format(path=str(tmp_path / "out")))

    with open_recording(record_file(program, tmp_path)) as recording:
        found = [event.digest for event in recording.events(gate="_io.FileIO.write", controls=False)]  # type: ignore[union-attr]

    assert found == [output_digest(bytes(number * 7 % 256 for number in range(size))) for size in range(100)]
