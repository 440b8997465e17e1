"""The plugin in a process that is recorded: marks where tests begin, fail and end.

What it does is part of the recording. So it asks the outside for nothing while tests run: a mark is an audit event,
which the recorder hears.
"""

from __future__ import annotations

import os
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from replaydbg.pytest_plugin import shared_names
from replaydbg.pytest_plugin.session_marks import Parts, mark
from replaydbg.pytest_plugin.settings import MODES, mode_of

if TYPE_CHECKING:
    from collections.abc import Generator

# Bound now: tests replace functions of modules.
_audit = sys.audit
_LONGEST = 2000


class TestRecording:
    """What the fixture `replaydbg_recording` gives."""

    __test__ = False

    def __init__(self, path: Path | None) -> None:
        self.path = path
        """Where the recording will be, if it is kept; None: the session is not recorded."""
        self.is_kept = False
        """Whether `keep` was called."""

    def mark(self, name: str) -> None:
        """Name this moment: in the debugger it is `@NAME`. Raises UsageError for a name that means something else."""
        problem = shared_names.why_no_name(name)
        if problem:
            raise pytest.UsageError(problem)
        mark_called(name)

    def snapshot(self, name: str = "") -> None:
        """Keep a picture of the program's objects."""
        _audit("replaydbg.snapshot", name)

    def keep(self) -> None:
        """Keep the recording however the test ends."""
        self.is_kept = True


def mark_called(name: str) -> None:
    """Name this moment. By the calls of this function a debugger finds the line from which each was named."""
    mark(name=name)


@dataclass(slots=True)
class Running:
    """A test that runs."""

    nodeid: str
    mode: str
    attempt: int
    slug: str
    recording: TestRecording
    is_begun: bool = False
    outcome: str = "passed"
    raised: int = 0
    """Exceptions that came out of its phases."""
    failure: int = -1
    """Which of them made it fail first, from 0."""


_running: pytest.StashKey[Running] = pytest.StashKey()


def recording_of(item: pytest.Item) -> TestRecording:
    """Return what the fixture gives for a test."""
    running = item.stash.get(_running, None)
    return running.recording if running is not None else TestRecording(None)


class Recorded:
    """The hooks."""

    def __init__(self, config: pytest.Config, told: shared_names.LaunchToken) -> None:
        self._config = config
        self._mode = mode_of(config)
        self._told = told
        self._slugs: dict[str, str] = {}
        self._attempts: dict[str, int] = {}
        """By node id: how often a test of that name was begun in this process."""
        self._parts = Parts()
        self._item: pytest.Item | None = None
        """That of the test that runs."""

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Say that all that tests have in common is there."""
        mark(do="collected", name="collected")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        """Ask whether this test is left out: only a replay of a test alone has its reports in the place of it."""
        told = self._parts.begin(item)
        reports = told.get("reports")
        if reports is None:
            if told:
                self._parts.take_over(item, told)
            return None
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for each in reports:
            report = self._parts.report_of(item, each)
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logstart(self) -> Generator[None, None, None]:
        """Mark what is said of a test, as opposed to what it does."""
        self._parts.say()
        result = yield
        self._parts.said()
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> Generator[None, None, None]:
        """The same, with the report."""
        self._parts.report(self._config, report)
        result = yield
        self._parts.said()
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logfinish(self) -> Generator[None, None, None]:
        """The same."""
        self._parts.say()
        result = yield
        self._parts.said(is_last=True)
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
            # Other plugins tear down what they set up: they must have had their turn.
            yield
            raise
        mark(
            do="begin",
            name="test",
            node=running.nodeid,
            slug=running.slug,
            attempt=running.attempt,
            seed=self._told.seed,
            crash=running.mode != "off",
        )
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
        path = Path(self._told.directory) / slug / shared_names.RECORDING
        return Running(item.nodeid, mode, attempt, slug, TestRecording(path))

    def _attempt_of(self, item: pytest.Item) -> int:
        """Return how often the test that runs was run before: by a plugin, or because it was asked for twice."""
        # pytest-rerunfailures counts from 1, and also those in a worker process that is no more.
        return max(self._attempts.get(item.nodeid, 1), int(getattr(item, "execution_count", 1))) - 1

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Mark a failure, and the end of the attempt."""
        running = item.stash.get(_running, None)
        if running is None:
            return (yield)
        # Before anything else is done with it. Whether it counts as a failure the report will say.
        was_seen = self._see(running, item, call)
        report = yield
        if report.failed:
            # pytest's part for unittest puts it there only now.
            if not was_seen and not self._see(running, item, call):
                mark(do="raised", name="failure", **_place(report))
                running.raised += 1
            running.outcome = "failed"
            if running.failure < 0:
                running.failure = running.raised - 1
            if running.mode != "off":
                self._say(item, running, report)
        elif report.skipped and running.outcome == "passed":
            running.outcome = "skipped"
        if report.when == "teardown":
            if self._end(running) and running.outcome != "failed":
                # It goes with the report, to whoever shows it.
                setattr(report, shared_names.KEPT, [running.slug, running.outcome])
            del item.stash[_running]
            self._item = None
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Tell the process that shows results by whom a worker is recorded."""
        output = getattr(self._config, "workeroutput", None)
        if output is not None:
            output[shared_names.LAUNCHER] = self._told.parent

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Mark the end of the test that Ctrl-C or `pytest.exit` has ended, as where pytest is asked to end."""
        item, self._item = self._item, None
        running = item.stash.get(_running, None) if item is not None else None
        if item is None or running is None or running.mode == "off":
            return
        if running.outcome != "failed":  # else it was `--pdb` that was left
            running.outcome, running.failure = "interrupted", running.raised
            _audit("replaydbg.snapshot", "failure", excinfo.value)
            mark(do="raised", name="failure", **failure_of(excinfo, item, _phase()))
        self._end(running)
        shown = self._config.pluginmanager.get_plugin("replaydbg-shown")
        if shown is not None:
            shown.expect(running.slug)

    def _see(self, running: Running, item: pytest.Item, call: pytest.CallInfo[None]) -> bool:
        """Mark an exception that came out of a phase, with a picture of all that its frames hold."""
        if call.excinfo is None or isinstance(call.excinfo.value, pytest.skip.Exception):
            return False
        _audit("replaydbg.snapshot", "failure", call.excinfo.value)
        mark(do="raised", name="failure", **failure_of(call.excinfo, item, call.when))
        running.raised += 1
        return True

    def _say(self, item: pytest.Item, running: Running, report: pytest.TestReport) -> None:
        path = shown_path(running.recording.path)
        report.sections.append(("replaydbg", f"{path}\nreplaydbg debug {path}"))
        known = ("replaydbg_recording", path)
        if known not in item.user_properties:
            # The item's go into the reports that are still to come, and of those JUnit's file takes the last one.
            item.user_properties.append(known)
            report.user_properties.append(known)

    def _end(self, running: Running) -> bool:
        """Mark the end; return whether the recording is kept."""
        keep = running.recording.is_kept or running.mode == "on"
        if running.mode in ("retain-on-failure", "retry"):
            keep = keep or running.outcome in ("failed", "interrupted")
        if running.mode == "retry":
            keep = keep or running.attempt > 0
        mark(do="end", keep=keep, outcome=running.outcome, failure=running.failure)
        return keep


def shown_path(path: Path | None) -> str:
    """Return a path as short as it stays right from where pytest was started."""
    text = str(path or "")
    here = os.getcwd()  # noqa: PTH109 - tests replace what pathlib calls
    return text[len(here) + 1 :] if text.startswith(here + "/") else text


def failure_of(excinfo: pytest.ExceptionInfo[BaseException], item: pytest.Item, phase: str) -> dict[str, Any]:
    """Return what is told of an exception that a test fails with."""
    value = excinfo.value
    while isinstance(value, BaseExceptionGroup) and value.exceptions:
        value = value.exceptions[0]  # what a task of a group has raised
    # `traceback.walk_tb` and not `extract_tb`: that would read the sources.
    entries = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(value.__traceback__)]
    last = entries[-1] if entries else ("", 0)
    own_file = str(item.path)
    own = next((each for each in reversed(entries) if each[0] == own_file), last)
    return {
        "type": type(value).__qualname__,
        "message": _text(value),
        "file": last[0],
        "line": last[1] or 0,
        "own_file": own[0],
        "own_line": own[1] or 0,
        "phase": phase,
    }


def _phase() -> str:
    """Return the phase of the test that runs: pytest has it in the environment, behind the test's name."""
    phase = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[2].removesuffix(")")
    return phase if phase in ("setup", "teardown") else "call"


def _place(report: pytest.TestReport) -> dict[str, Any]:
    file, line, _ = report.location
    where = {"file": file, "line": (line or 0) + 1}
    return {
        "type": "",
        "message": str(report.longrepr)[:_LONGEST],
        "own_file": file,
        "own_line": where["line"],
        **where,
        "phase": report.when,
    }


def _text(value: BaseException) -> str:
    try:
        return str(value)[:_LONGEST]
    except Exception as error:  # noqa: BLE001 - the program's own __str__
        return f"<cannot be shown: {type(error).__name__}>"
