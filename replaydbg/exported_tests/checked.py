"""Run a test that was written, and compare how it fails with how the recorded run failed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from replaydbg.exported_tests.exported_file import WrittenTest
from replaydbg.log.hidden import RecordingMask
from replaydbg.replay.launcher import replay

_LIMIT = 600
"""Seconds after which the check is given up: the test itself gives up earlier."""


@dataclass(frozen=True, slots=True)
class TestVerdict:
    """Whether a test does what the recorded run did."""

    __test__ = False

    is_as_recorded: bool
    sentence: str


def check_test(test: WrittenTest, recording: Path) -> TestVerdict:
    """Run the test once, and compare. For a program, the recording is replayed for the text of its exception."""
    wanted = _recorded_end(test, recording)
    report = _run(test.path)
    if report is None:
        return TestVerdict(False, "differs: pytest did not run the test")
    failure, error = report.find(".//failure"), report.find(".//error")
    if error is not None:
        return TestVerdict(False, f"differs: pytest could not run the test: {_last(error.get('message') or '')}")
    if failure is None:
        if not test.program.has_failed:
            return TestVerdict(True, "checked: the test passes, as the recorded run did")
        return TestVerdict(False, f"differs: the test passes; the recorded run ended with {wanted}")
    text = failure.text or ""
    is_same = re.search(rf"exit code {wanted.status}(?!\d)", text) is not None and wanted.is_printed_in(text)
    if is_same and test.program.has_failed:
        return TestVerdict(True, f"checked: the test fails as the recorded run did: {wanted}")
    return TestVerdict(False, f"differs: the recorded run ended with {wanted}, the test with {_found(text)}")


@dataclass(frozen=True, slots=True)
class _End:
    """How the recorded run ended."""

    status: int
    type: str
    """The type of its exception; empty: none."""
    text: str | None
    """The first line of the exception's text; None: unknown."""

    def __str__(self) -> str:
        return f"{self.type}: {self.text}" if self.text else self.type or f"exit code {self.status}"

    def is_printed_in(self, text: str) -> bool:
        """Whether Python printed this exception there."""
        if not self.type:
            return True
        for line in text.splitlines():
            head, _, rest = line.strip().partition(": ")
            if self.type in (head, head.rpartition(".")[2]) and self.text in (None, rest.rstrip()):
                return True
        return False


def _recorded_end(test: WrittenTest, recording: Path) -> _End:
    program = test.program
    if program.kind == "test":
        return _End(program.status, program.exception, program.message.partition("\n")[0].rstrip())
    if not program.exception:
        return _End(program.status, "", None)
    with open(os.devnull, "wb") as null:  # noqa: PTH123 - a descriptor is wanted
        ended = replay(recording, stdout=null.fileno(), stderr=null.fileno(), with_outcome=True).outcome
    found = ended.exception if ended is not None else None
    # It is printed, and the test has no secrets: so it can be compared only without them.
    shown = found.text.encode("utf-8", "surrogatepass") if found is not None and found.text is not None else None
    text = None
    if shown is not None:
        text = test.mask(RecordingMask(recording).masked(shown)).decode("utf-8", "replace")
    name = (found.type if found is not None else program.exception).rpartition(".")[2]
    return _End(program.status, name, None if text is None else text.partition("\n")[0].rstrip())


def _run(path: Path) -> ElementTree.Element | None:
    """Run a test by pytest; return its report as JUnit's XML."""
    with tempfile.TemporaryDirectory(prefix="replaydbg-") as directory:
        report = Path(directory) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--basetemp={directory}/base"]
        command += [f"--junitxml={report}", "-o", "junit_logging=no", "--", str(path)]
        try:
            subprocess.run(command, capture_output=True, timeout=_LIMIT, check=False)
            return ElementTree.fromstring(report.read_bytes())
        except (OSError, ElementTree.ParseError, subprocess.TimeoutExpired):
            return None


def _last(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1][:300] if lines else ""


def _found(text: str) -> str:
    """Return how the program of a test ended, from the text of its failure."""
    code = next((line for line in text.splitlines() if "exit code" in line), "").removeprefix("Failed: ")
    return ": ".join(dict.fromkeys(each for each in (code, _last(text)) if each))
