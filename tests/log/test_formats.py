"""A recording of each older format opens, verifies, and replays under the interpreter that made it.

That of format 3 has the header of its beginning: three numbers of the collector, so its full collections come later;
`format-3-threads` was recorded by 3.11 with a trace function that counts its ticks.
"""

import sys
from pathlib import Path

import pytest

from replaydbg.log.reader import open_recording
from tests.harness import tool
from tests.harness.replays import run
from tests.harness.sanitizer import runtime

OLD = sorted((Path(__file__).parents[2] / "fixtures" / "formats").glob("*.rdbg"))
OUTPUT = {
    "format-1": "6 225 1795375821.5086193\n",
    "format-2": "interrupted 2022009\n1795625043.4609513\n",
    "format-3": "[137, 23, 0] (0, 7983) (17, 1, 23) 1795645468.1577492\n",
    "format-3-threads": "900000 a0a1a2b0b1a3b2a4b3b4\n",
}
STATUS = {"format-1": 3, "format-2": 3, "format-3": 3, "format-3-threads": 0}


@pytest.mark.parametrize("path", OLD, ids=lambda path: path.stem)
def test_a_recording_of_an_older_format_is_read_whole(path: Path) -> None:
    with open_recording(path) as recording:
        assert recording.header.format == int(path.stem.split("-")[1])
        assert not recording.problems
        assert recording.end is not None and recording.end.status == STATUS[path.stem]
        assert recording.log_header is not None
        assert sum(1 for _ in recording.events(controls=False)) == recording.log_header.crossings


@pytest.mark.slow
@pytest.mark.parametrize("path", OLD, ids=lambda path: path.stem)
def test_a_recording_of_an_older_format_replays(path: Path, tmp_path: Path) -> None:
    with open_recording(path) as recording:
        python = recording.header.python
    if python.hexversion != sys.hexversion:
        pytest.skip(f"recorded with Python {python.version}, and only that replays it")

    ended = run(tool.replay(sys.executable, path), cwd=tmp_path, env=runtime(), stdin=None)

    assert ended.stdout == OUTPUT[path.stem]
    assert ended.status == STATUS[path.stem]
    assert ended.stderr == ""
