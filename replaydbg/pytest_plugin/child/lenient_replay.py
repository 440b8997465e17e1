"""The plugin in a replay of edited code: runs the recorded tests, and reports the outcome of the last one.

The edited code may have other tests, in another order; and pytest's work after a test was not recorded. So its own loop
is not used, and the replay is over as soon as there is an outcome.
"""

from __future__ import annotations

import sys
import unittest
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from replaydbg.launch.replay_question import TestAnswer
from replaydbg.pytest_plugin.child.recorded import Recorded, failure_of

if TYPE_CHECKING:
    from collections.abc import Generator

    from replaydbg.launch.replay_question import TestQuestion
    from replaydbg.pytest_plugin.shared import shared_names
    from replaydbg.pytest_plugin.shared.marks_of_tests import PhaseRaised

_SHOWN = 400


class QuestionHooks(Recorded):
    """The plugin's hooks in such a replay."""

    def __init__(self, config: pytest.Config, token: shared_names.LaunchToken, question: TestQuestion) -> None:
        super().__init__(config, token)
        self._tests = question.tests
        self._last = self._tests[-1][0]
        self._attempt = question.attempt
        self._phase = question.phase
        self._check = question.check
        self._parts.is_asked_again = True
        self._hear_of_imports()

    def _hear_of_imports(self) -> None:
        """Report at once why a file cannot be imported.

        For its own report pytest reads sources that the recording lacks.
        """
        python: Any = sys.modules["_pytest.python"]
        original = getattr(python, "import_path", None)
        if original is None:
            return

        wanted = str(self._config.rootpath / _file_of(self._last))

        def import_path(path: object, **options: object) -> object:
            try:
                return original(path, **options)
            except (Exception, SystemExit) as error:
                if str(path) != wanted:
                    return ModuleType(str(path))  # for tests that ran before it, and do not exist yet
                self._report_end("uncollected", f"{type(error).__name__}: {error}".removesuffix(": "))
                raise

        python.import_path = import_path

    def pytest_ignore_collect(self, collection_path: Path, config: pytest.Config) -> bool | None:
        """Ignore the files of other tests: in the edited code they may not even import."""
        wanted = {config.rootpath / _file_of(each) for each, *_ in self._tests}
        return None if any(each.is_relative_to(collection_path) for each in wanted) else True

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the recorded tests. A worker of pytest-xdist would wait for its controller's messages."""
        for plugin in session.config.pluginmanager.get_plugins():
            if type(plugin).__name__ == "WorkerInteractor":
                session.config.pluginmanager.unregister(plugin)
        found: dict[str, list[pytest.Item]] = {}  # with --keep-duplicates several may have one name
        for item in session.items:
            found.setdefault(item.nodeid, []).append(item)
        if self._last not in found:
            self._report_end("missing", self._last)
        ran = [each for each in self._tests if each[1] < len(found.get(each[0], ()))]
        items = [found[name][number] for name, number, _ in ran]
        last = session.items.index(items[-1]) if items else -1
        after = session.items[last + 1] if last + 1 < len(session.items) else None
        for (name, _, begun), item, following in zip(ran, items, [*items[1:], after], strict=True):
            self._attempts[name] = begun
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        return True

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Report the outcome of the phase that matters."""
        is_last = item.nodeid == self._last and self._attempt_of(item) == self._attempt
        # pytest's own report of a failure, for which it reads sources, is not needed any more.
        if is_last and _is_failure(item, call):
            self._report_failure(item, _raised(item, call))
        report = yield
        if is_last and report.failed:
            self._report_failure(item, call.excinfo, report)
        elif is_last and (report.skipped or call.when == (self._phase or "teardown")):
            self._report_end(report.outcome, _reason(report), item)
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Report that the session was interrupted in the test that matters: that is how it failed."""
        item = self._item
        if item is not None and item.nodeid == self._last and self._attempt_of(item) == self._attempt:
            self._report_failure(item, excinfo)

    def _report_failure(
        self,
        item: pytest.Item,
        raised: pytest.ExceptionInfo[BaseException] | None,
        report: pytest.TestReport | None = None,
    ) -> None:
        failure = failure_of(raised, item, "") if raised is not None else None
        message = failure.message if failure is not None else str(report and report.longrepr)
        self._report_end("failed", message, item, failure)

    def _report_end(
        self, outcome: str, message: str, item: pytest.Item | None = None, failure: PhaseRaised | None = None
    ) -> None:
        answer = TestAnswer(
            outcome=outcome,
            message=message[:_SHOWN],
            check=_checked(self._check, item) if self._check and item is not None else None,
            type=failure.type if failure is not None else "",
            own_file=failure.own_file if failure is not None else str(item.path) if item is not None else "",
            own_line=failure.own_line if failure is not None else 0,
        )
        self._parts.over(answer)


def _file_of(nodeid: str) -> str:
    return nodeid.partition("::")[0]


def _raised(item: pytest.Item, call: pytest.CallInfo[None]) -> pytest.ExceptionInfo[BaseException] | None:
    """Return the exception of a phase.

    For unittest's tests it is stored in the item until pytest's unittest plugin runs.
    """
    waiting = getattr(item, "_excinfo", None) or [call.excinfo]
    found: pytest.ExceptionInfo[BaseException] | None = waiting[0]
    return found


def _is_failure(item: pytest.Item, call: pytest.CallInfo[None]) -> bool:
    raised = _raised(item, call)
    if raised is None or isinstance(raised.value, (unittest.SkipTest, pytest.skip.Exception, pytest.xfail.Exception)):
        return False
    return item.get_closest_marker("xfail") is None


def _reason(report: pytest.TestReport) -> str:
    return str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else ""


def _checked(source: str, item: pytest.Item) -> tuple[str, str]:
    """Return the value of an expression over the variables of the test's module and the values of its fixtures."""
    module = getattr(item, "module", None)
    known = {**getattr(module, "__dict__", {}), **getattr(item, "funcargs", {})}
    try:
        return ("holds" if eval(source, known) else "fails"), ""
    except Exception as error:  # noqa: BLE001 - any of the program's
        return "raised", f"{type(error).__name__}: {error}".removesuffix(": ")[:_SHOWN]
