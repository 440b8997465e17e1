"""The plugin in a process that is recorded: marks where tests begin, fail and end.

Its own actions are part of the recording. So it makes no requests to the outside while tests run: a mark is an audit
event, which the recorder receives.
"""

from __future__ import annotations

import os
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from replaydbg.pytest_plugin.child import session_marks
from replaydbg.pytest_plugin.child.session_marks import Parts, mark, mark_begin, mark_end
from replaydbg.pytest_plugin.settings import MODES, futures_of_test, mode_of, wait_of
from replaydbg.pytest_plugin.shared import shared_names
from replaydbg.pytest_plugin.shared.marks_of_tests import AttemptBegun, AttemptEnded, PhaseRaised

if TYPE_CHECKING:
    from collections.abc import Generator

# Bound now: tests replace functions of modules.
_audit = sys.audit
_LONGEST = 2000
_BODY = '{"do": "body"}'  # as `futures.of_tests` reads it


class TestRecording:
    """The value of the fixture `replaydbg_recording`."""

    __test__ = False

    def __init__(self, path: Path | None) -> None:
        self.path = path
        """The path of the recording, if it is kept; None: the session is not recorded."""
        self.is_kept = False
        """Whether `keep` was called."""

    def mark(self, name: str) -> None:
        """Name this moment: in the debugger it is `@NAME`. Raises UsageError for a name with another meaning."""
        problem = shared_names.why_no_name(name)
        if problem:
            raise pytest.UsageError(problem)
        mark_called(name)

    def snapshot(self, name: str = "") -> None:
        """Take a snapshot of the program's objects."""
        _audit("replaydbg.snapshot", name)

    def keep(self) -> None:
        """Keep the recording whatever the test's outcome."""
        self.is_kept = True


def mark_called(name: str) -> None:
    """Name this moment. From the calls of this function a debugger finds the line at which each was named."""
    session_marks.mark_name(name)


@dataclass(slots=True)
class Running:
    """The running test."""

    nodeid: str
    mode: str
    attempt: int
    slug: str
    recording: TestRecording
    is_begun: bool = False
    outcome: str = "passed"
    raised: int = 0
    """Number of exceptions raised by its phases."""
    failure: int = -1
    """The index of the one that made it fail first, from 0."""
    futures: int = 0
    """How many futures it is to have."""


_running: pytest.StashKey[Running] = pytest.StashKey()


def recording_of(item: pytest.Item) -> TestRecording:
    """Return the value of the fixture for a test."""
    running = item.stash.get(_running, None)
    return running.recording if running is not None else TestRecording(None)


class Recorded:
    """The plugin's hooks."""

    def __init__(self, config: pytest.Config, token: shared_names.LaunchToken) -> None:
        self._config = config
        self._mode = mode_of(config)
        self._token = token
        self._slugs: dict[str, str] = {}
        self._attempts: dict[str, int] = {}
        """By node id: how many attempts of a test with that name were begun in this process."""
        self._parts = Parts()
        self._item: pytest.Item | None = None
        """The item of the running test."""

    def register(self) -> None:
        """Register the plugins of the process."""
        reports = FailureReports(self._parts)
        self._config.pluginmanager.register(self, "replaydbg-recorded")
        self._config.pluginmanager.register(reports, "replaydbg-reports")
        self._config.pluginmanager.register(FailureReportsMade(reports), "replaydbg-reports-made")

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Mark that the state shared by all tests is complete."""
        mark("collected", "collected")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        """Ask whether this test is left out: only a replay of a single test has its reports in place of it."""
        answer = self._parts.begin(item)
        if answer is None:
            return None
        if answer.reports is None:
            self._parts.take_over(item, answer)
            return None
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for each in answer.reports:
            report = self._parts.report_of(item, each)
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logstart(self) -> Generator[None, None, None]:
        """Mark reports of a test, as opposed to its own work."""
        self._parts.begin_reports()
        result = yield
        self._parts.end_reports()
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> Generator[None, None, None]:
        """Do the same, with the report."""
        self._parts.report(self._config, report)
        result = yield
        self._parts.end_reports()
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logfinish(self) -> Generator[None, None, None]:
        """Do the same."""
        self._parts.begin_reports()
        result = yield
        self._parts.end_reports(is_last=True)
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[object]) -> Generator[None, object, object]:
        """Remember which test set up a fixture that outlives it."""
        self._parts.fixture_begins(fixturedef)
        return (yield)

    def pytest_fixture_post_finalizer(self, fixturedef: pytest.FixtureDef[object]) -> None:
        """Forget it."""
        self._parts.fixture_ends(fixturedef)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, None, None]:
        """Mark the beginning of an attempt."""
        self._attempts[item.nodeid] = self._attempts.get(item.nodeid, 0) + 1
        try:
            running = item.stash[_running] = self._begin(item)
            self._item = item
        except pytest.UsageError:
            # Other plugins tear down what they set up: they must run first.
            yield
            raise
        begun = AttemptBegun(
            node=running.nodeid,
            slug=running.slug,
            attempt=running.attempt,
            seed=self._token.seed,
            crash=running.mode != "off",
        )
        mark_begin(begun)
        return (yield)

    def _begin(self, item: pytest.Item) -> Running:
        marker = item.get_closest_marker("replaydbg")
        mode = str(marker.args[0] if marker.args else marker.kwargs.get("mode", "on")) if marker else self._mode
        if mode not in MODES:
            raise pytest.UsageError(f"{item.nodeid}: the marker replaydbg has no mode {mode!r}")
        attempt = self._attempt_of(item)
        slug = shared_names.slug(item.nodeid, attempt)
        if self._slugs.setdefault(slug, item.nodeid) != item.nodeid:
            slug = shared_names.slug(f"{item.nodeid}|", attempt)
        path = Path(self._token.directory) / slug / shared_names.RECORDING
        return Running(item.nodeid, mode, attempt, slug, TestRecording(path), futures=futures_of_test(item))

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, None, None]:
        """Mark where the body of a test begins, if it is to have futures."""
        running = item.stash.get(_running, None)
        if running is not None and running.futures:
            session_marks.note(_BODY)
        return (yield)

    def _attempt_of(self, item: pytest.Item) -> int:
        """Return the number of earlier attempts of the running test: by a plugin, or because it was selected twice."""
        # pytest-rerunfailures counts from 1, and includes attempts in a worker process that no longer exists.
        return max(self._attempts.get(item.nodeid, 1), int(getattr(item, "execution_count", 1))) - 1

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Mark a failure, and the end of the attempt."""
        running = item.stash.get(_running, None)
        if running is None:
            return (yield)
        # Before anything else is done with it. The report will show whether it counts as a failure.
        was_seen = self._see(running, item, call)
        report = yield
        if report.failed:
            # pytest's unittest plugin stores it there only now.
            if not was_seen and not self._see(running, item, call):
                mark("raised", "failure", _place(report))
                running.raised += 1
            running.outcome = "failed"
            if running.failure < 0:
                running.failure = running.raised - 1
            if running.mode != "off":
                self._add_section(item, running, report)
        elif report.skipped and running.outcome == "passed":
            running.outcome = "skipped"
        if report.when == "teardown":
            if self._end(running) and running.outcome != "failed":
                # It travels with the report to the process that shows it.
                setattr(report, shared_names.KEPT, [running.slug, running.outcome])
            if running.futures:
                setattr(report, shared_names.FUTURES, [running.slug, running.futures])
            del item.stash[_running]
            self._item = None
        return report

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self) -> Generator[None, None, None]:
        """Mark that the tests are over; send the identity of a worker's recorder to the process that shows results."""
        # A wrapper: before the process that shows results waits for them.
        # Without a wait, the last examination would be ended as soon as it has begun.
        if wait_of(self._config):
            mark("finished", "")
        output = getattr(self._config, "workeroutput", None)
        if output is not None:
            output[shared_names.LAUNCHER] = self._token.parent
        return (yield)

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Mark the end of the test that Ctrl-C or `pytest.exit` has interrupted, at the point of the interruption."""
        item, self._item = self._item, None
        running = item.stash.get(_running, None) if item is not None else None
        if item is None or running is None or running.mode == "off":
            return
        if running.outcome != "failed":  # else the user left `--pdb`
            running.outcome, running.failure = "interrupted", running.raised
            _audit("replaydbg.snapshot", "failure", excinfo.value)
            mark("raised", "failure", failure_of(excinfo, item, _phase()))
        self._end(running)
        shown = self._config.pluginmanager.get_plugin("replaydbg-shown")
        if shown is not None:
            shown.expect(running.slug)

    def _see(self, running: Running, item: pytest.Item, call: pytest.CallInfo[None]) -> bool:
        """Mark an exception raised by a phase, with a snapshot of all that its frames hold."""
        if call.excinfo is None or isinstance(call.excinfo.value, pytest.skip.Exception):
            return False
        _audit("replaydbg.snapshot", "failure", call.excinfo.value)
        mark("raised", "failure", failure_of(call.excinfo, item, call.when))
        running.raised += 1
        return True

    def _add_section(self, item: pytest.Item, running: Running, report: pytest.TestReport) -> None:
        path = shown_path(running.recording.path)
        report.sections.append(("replaydbg", f"{path}\nreplaydbg debug {path}"))
        known = ("replaydbg_recording", path)
        if known not in item.user_properties:
            # The item's properties go into later reports, and JUnit's file uses those of the last one.
            item.user_properties.append(known)
            report.user_properties.append(known)

    def _end(self, running: Running) -> bool:
        """Mark the end; return whether the recording is kept."""
        keep = running.recording.is_kept or running.mode == "on" or running.futures > 0
        if running.mode in ("retain-on-failure", "retry"):
            keep = keep or running.outcome in ("failed", "interrupted")
        if running.mode == "retry":
            keep = keep or running.attempt > 0
        mark_end(AttemptEnded(keep, running.outcome, running.failure))
        return keep


class FailureReports:
    """Hooks around the innermost step of a report: pytest makes it, reads sources for it, and keeps them in memory.

    Which ones it reads depends on earlier tests, even passed ones. So recordings without these leave the step out.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._is_making = False

    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> pytest.TestReport | None:
        """Leave the report out if the recording says so: only recordings that were made smaller do."""
        if call.excinfo is None or call.when == "collect" or isinstance(call.excinfo.value, pytest.skip.Exception):
            return None
        self._is_making = True
        if not self._parts.begin_making():
            return None
        keywords: dict[str, Any] = dict.fromkeys(item.keywords, 1)
        text = "left out"
        return pytest.TestReport(
            item.nodeid, item.location, keywords, "failed", text, call.when, (), call.duration, call.start, call.stop
        )

    def end(self) -> None:
        """Mark that the report is made, if it was the report of a failure."""
        if self._is_making:
            self._is_making = False
            self._parts.end_making()


class FailureReportsMade:
    """Marks that the report of a failure is made; the innermost of all wrappers."""

    def __init__(self, reports: FailureReports) -> None:
        self._reports = reports

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Mark it, if `FailureReports` asked before."""
        try:
            return (yield)
        finally:
            self._reports.end()


def shown_path(path: Path | None) -> str:
    """Return a path in the shortest form that is valid in pytest's starting directory."""
    text = str(path or "")
    here = os.getcwd()  # noqa: PTH109 - tests replace what pathlib calls
    return text[len(here) + 1 :] if text.startswith(here + "/") else text


def failure_of(excinfo: pytest.ExceptionInfo[BaseException], item: pytest.Item, phase: str) -> PhaseRaised:
    """Return the facts about an exception that made a test fail."""
    value = excinfo.value
    while isinstance(value, BaseExceptionGroup) and value.exceptions:
        value = value.exceptions[0]  # raised by a task of a group
    # `traceback.walk_tb` and not `extract_tb`: that would read the sources.
    entries = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(value.__traceback__)]
    last = entries[-1] if entries else ("", 0)
    own_file = str(item.path)
    own = next((each for each in reversed(entries) if each[0] == own_file), last)
    return PhaseRaised(
        type=type(value).__qualname__,
        message=_text(value),
        file=last[0],
        line=last[1] or 0,
        own_file=own[0],
        own_line=own[1] or 0,
        phase=phase,
    )


def _phase() -> str:
    """Return the phase of the running test: pytest has it in the environment, after the test's name."""
    phase = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[2].removesuffix(")")
    return phase if phase in ("setup", "teardown") else "call"


def _place(report: pytest.TestReport) -> PhaseRaised:
    file, before, _ = report.location
    line = (before or 0) + 1
    message = str(report.longrepr)[:_LONGEST]
    return PhaseRaised(
        type="", message=message, file=file, line=line, own_file=file, own_line=line, phase=str(report.when)
    )


def _text(value: BaseException) -> str:
    try:
        return str(value)[:_LONGEST]
    except Exception as error:  # noqa: BLE001 - the program's own __str__
        return f"<cannot be shown: {type(error).__name__}>"
