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
from replaydbg.exported_tests.last_words import LastWords, last_words
from replaydbg.log.hidden import RecordingMask
from replaydbg.replay.launcher import replay

_LIMIT = 600
"""Seconds after which the check is given up: the test itself gives up earlier."""
_KEPT = re.compile(r"PATH|HOME|USER|LOGNAME|TMPDIR|TERM|VIRTUAL_ENV|PYTHON(?:PATH|HOME|USERBASE)|LD_.*|LANG|LC_.*|TZ")
"""Variables that the test gets for a check: what else the program reads has to be in the test."""
_DIRECTORY = re.compile(r"[^\s'\"]*/replaydbg-\w+/base/\w+/work(?![^\s/'\"])")
"""The program's working directory while the test is checked."""


@dataclass(frozen=True, slots=True)
class TestVerdict:
    """Whether a test does what the recorded run did."""

    __test__ = False

    is_as_recorded: bool
    sentence: str


def check_test(test: WrittenTest, recording: Path) -> TestVerdict:
    """Run the test once, and compare. For a program, the recording is replayed for what it printed."""
    wanted = _recorded_end(test, recording)
    report = _run(test.path)
    if isinstance(report, str):
        return TestVerdict(False, f"differs: pytest did not run the test: {report}")
    failure, error = report.find(".//failure"), report.find(".//error")
    if error is not None:
        return TestVerdict(False, f"differs: pytest could not run the test: {_last(error.get('message') or '')}")
    if failure is None:
        if not test.program.has_failed:
            return TestVerdict(True, "checked: the test passes, as the recorded run did")
        return TestVerdict(False, f"differs: the test passes; the recorded run ended with {wanted}")
    text = _DIRECTORY.sub(lambda _: test.program.cwd, failure.text or "")
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
    words: LastWords | None
    """The last exception and line that the program printed; None: it is a test of pytest."""
    text: str = ""
    """Of a test of pytest: the first line of the exception's text."""

    def __str__(self) -> str:
        if self.words is not None and self.type:
            return self.words.exception or self.type
        if self.words is not None and self.words.line:
            return f"exit code {self.status}: {self.words.line}"
        return f"{self.type}: {self.text}" if self.text else self.type or f"exit code {self.status}"

    def is_printed_in(self, text: str) -> bool:
        """Whether the text, which has the output of a test's program, shows this end."""
        if self.words is not None:
            return last_words(text.partition("\n")[2]) == self.words  # the first line is the test's own
        if not self.type:
            return True
        # After the report of pytest, which may quote other exceptions, the test prints its own.
        return any(self._is(line.strip()) for line in text[_end_of_report(text) :].splitlines())

    def _is(self, line: str) -> bool:
        head, _, rest = line.partition(": ")
        return self.type in (head, head.rpartition(".")[2]) and self.text == rest.rstrip()


def _recorded_end(test: WrittenTest, recording: Path) -> _End:
    program = test.program
    if program.kind == "test":
        return _End(program.status, program.exception, None, program.message.partition("\n")[0].rstrip())
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        replay(recording, stdout=output.fileno(), stderr=errors.fileno())
        printed = b""
        for each in (output, errors):
            each.seek(0)
            printed += each.read()
    # It is printed, and the test has no secrets: so it can be compared only without them.
    text = test.mask(RecordingMask(recording).masked(printed)).decode("utf-8", "backslashreplace")
    return _End(program.status, program.exception, last_words(text))


def _end_of_report(text: str) -> int:
    ends = [each.end() for each in re.finditer(r"\d+ (?:failed|errors?)\b.* in \d+\.\d+s.*", text)]
    return ends[-1] if ends else 0


def _run(path: Path) -> ElementTree.Element | str:
    """Run a test by pytest; return its report as JUnit's XML, or why there is none."""
    with tempfile.TemporaryDirectory(prefix="replaydbg-") as directory:
        report = Path(directory) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--basetemp={directory}/base"]
        command += [f"--junitxml={report}", "-o", "junit_logging=no", "--", str(path)]
        env = {name: value for name, value in os.environ.items() if _KEPT.fullmatch(name)}
        try:
            done = subprocess.run(command, capture_output=True, timeout=_LIMIT, check=False, env=env)
        except subprocess.TimeoutExpired:
            return f"no end after {_LIMIT} s"
        try:
            return ElementTree.fromstring(report.read_bytes())
        except (OSError, ElementTree.ParseError):
            printed = (done.stdout + done.stderr).decode(errors="backslashreplace")
            return last_words(printed).line or f"exit code {done.returncode}"


def _last(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1][:300] if lines else ""


def _found(text: str) -> str:
    """Return how the program of a test ended, from the text of its failure."""
    code = next((line for line in text.splitlines() if "exit code" in line), "").removeprefix("Failed: ")
    return ": ".join(dict.fromkeys(each for each in (code, _last(text)) if each))
