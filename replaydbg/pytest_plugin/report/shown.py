"""The plugin in the process that reports: header, sections of reports, summary, and the files that list all results."""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from replaydbg.pytest_plugin.settings import directory_of, makes_pages, mode_of, wait_of
from replaydbg.pytest_plugin.shared import shared_names
from replaydbg.store.private import make_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from replaydbg.pytest_plugin.shared.results import Result

# Bound now: tests replace functions of modules, and tools that freeze time must not affect these.
_sleep, _now, _epoch = time.sleep, time.monotonic, time.time
_LOOK_EVERY = 0.05
_CUTTING = 1.0
"""Seconds that a test's recording may still take when the process is no longer recorded."""
_CRASHED = "???"
"""pytest-xdist's name of the phase in which a worker crashed."""


class Shown:
    """The plugin's hooks."""

    def __init__(self, config: pytest.Config, token: shared_names.LaunchToken | None) -> None:
        self._config = config
        self._mode = mode_of(config)
        self._token = token
        self._directory = directory_of(config)
        self._wait = wait_of(config)
        self._makes_pages = makes_pages(config)
        self._began = _epoch()
        self._folders: dict[str, list[pytest.TestReport]] = {}
        """The directories of kept tests, with the reports of their failures."""
        self._results: dict[str, Result] = {}
        self._missing: dict[str, str] = {}
        """Directories of kept tests without a result, with a line about each."""
        self._recorded = {"": token} if token is not None else {}
        """The tokens of the recorded processes, by the name of the worker; empty: this process."""
        self._gives_up = 0.0
        """The time after which no further results of such a process are expected."""
        self._unlisted = ""
        """Why the lists of all results could not be written."""
        self._passed: dict[str, tuple[str, str, str]] = {}
        """Directory, outcome and node id of recordings that are kept without a failure."""
        self._futures: dict[str, tuple[str, int]] = {}
        """By node id, the directory of a test that is to have futures, and how many."""
        self._crashed: list[str] = []
        """Directories of tests in which a worker crashed; they exist if it was recorded."""

    def pytest_report_header(self) -> str:
        """Announce that the session is recorded."""
        seed = f", hash seed {self._token.seed}" if self._token is not None else ""
        return f"replaydbg: {self._mode}, recordings in {_shown(self._directory)}{seed}"

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Remove the lists of an earlier session: if this one is interrupted, they must not remain."""
        if session.config.option.collectonly:
            return
        for ending in ("md", "json"):
            with suppress(OSError):  # usually there is none
                os.unlink(os.path.join(self._directory, f"{shared_names.INDEX}.{ending}"))  # noqa: PTH108,PTH118

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record where the recordings of tests will be."""
        if kept := getattr(report, shared_names.KEPT, None):
            directory, outcome = kept
            self._passed[directory] = (directory, outcome, report.nodeid)
        if wanted := getattr(report, shared_names.FUTURES, None):
            self._futures[report.nodeid] = (self._folder(wanted[0]), wanted[1])
        if report.when == _CRASHED:
            self._crashed.append(self._folder(shared_names.slug(report.nodeid)))
        for name, value in report.user_properties:
            if name == "replaydbg_recording":
                reports = self._folders.setdefault(os.path.dirname(str(value)), [])  # noqa: PTH120
                if any(title == "replaydbg" for title, _ in report.sections):
                    reports.append(report)
                    if self._makes_pages:
                        # Imported here, as below.
                        from replaydbg.pytest_plugin.report.failure_pages import add_link

                        add_link(self._config, report, os.path.dirname(str(value)))  # noqa: PTH120

    def expect(self, slug: str) -> None:
        """Record the directory of a kept test that no report mentions."""
        self._folders.setdefault(self._folder(slug), [])

    def _folder(self, slug: str) -> str:
        return _shown(os.path.join(self._directory, slug))  # noqa: PTH118

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Wait a while for the results of the recordings' examination, and add them to the reports."""
        for folder in self._crashed:
            if os.path.isdir(folder):  # noqa: PTH112
                self._folders.setdefault(folder, [])
        if not self._folders and not self._passed:
            return
        # Imported here and below: most sessions keep nothing, and it would be loaded in each.
        from replaydbg.pytest_plugin.report import report_text

        until = _now() + self._wait
        self._gives_up = min(until, _now() + _CUTTING)
        for folder, reports in self._folders.items():
            worker = str(getattr(reports[0], "worker_id", "")) if reports else ""
            result = self._result(folder, until, self._recorded.get(worker))
            if result is None:
                text = self._missing[folder]
            else:
                result = self._results[folder] = (
                    result if result.is_examined else report_text.unfinished(result, self._wait)
                )
                text = report_text.section(result, folder)
            if self._makes_pages and (result is None or not result.page):
                self._say_no_page(folder, reports, result)
            for number, report in enumerate(reports):
                if number and result is not None:
                    text = report_text.section(result, folder, is_first=False)
                report.sections[:] = [(name, text if name == "replaydbg" else it) for name, it in report.sections]
        if self._results or self._passed:
            try:
                self._write_lists()
            except OSError as error:
                self._unlisted = error.strerror or str(error)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Receive the identity of a worker's recorder."""
        launcher = getattr(node, "workeroutput", {}).get(shared_names.LAUNCHER)
        if launcher is not None:
            self._recorded[node.gateway.id] = shared_names.LaunchToken(launcher, 0, self._directory)

    def _result(self, folder: str, until: float, token: shared_names.LaunchToken | None) -> Result | None:
        reason = ""
        while True:
            result, damage = _read(Path(folder) / shared_names.META)
            if result is not None and result.kept < self._began:
                result = None  # it belongs to an earlier session
            if (result is not None and result.is_examined) or _now() >= until:
                break
            if result is None and token is not None:
                from replaydbg.pytest_plugin.report.recording_errors import why_stopped, why_unwritten

                reason = why_unwritten(token, os.path.basename(folder))  # noqa: PTH119
                if reason:
                    break
                reason = why_stopped(token)
                if reason and _now() >= self._gives_up:
                    break
            _sleep(_LOOK_EVERY)
        if result is None:
            from replaydbg.pytest_plugin.report import report_text

            self._missing[folder] = (
                report_text.unreadable_text(folder, damage)
                if damage and not reason
                else report_text.nothing_text(folder, self._wait, reason)
            )
        return result

    def _say_no_page(self, folder: str, reports: list[pytest.TestReport], result: Result | None) -> None:
        """Say in a page of its own why there is none about a failure."""
        from replaydbg.pytest_plugin.report.failure_pages import write_instead

        nodeid = result.nodeid if result is not None else reports[0].nodeid if reports else folder
        reason = f"it was not finished within {self._wait:g} s (--replaydbg-wait)."
        if result is None:
            reason = self._missing[folder]
        elif result.is_examined:
            reason = result.no_page or result.unwritten or result.verification or "the recording was not analysed."
        write_instead(folder, nodeid, reason, since=self._began)

    def _write_lists(self) -> None:
        from replaydbg.pytest_plugin.report import report_text
        from replaydbg.pytest_plugin.shared.results import SCHEMA_VERSION

        failed = sorted(self._results.items())
        passed = [report_text.Passed(*each) for each in sorted(self._passed.values())]
        directory = Path(self._directory)
        text = report_text.index(failed, passed, _shown(self._directory))
        data = {
            "schema_version": SCHEMA_VERSION,
            "results": [{"directory": os.path.basename(folder), **asdict(each)} for folder, each in failed],  # noqa: PTH119
            "passed": [each._asdict() for each in passed],
        }
        make_directory(directory)
        report_text.write(directory / f"{shared_names.INDEX}.md", text)
        report_text.write(directory / f"{shared_names.INDEX}.json", json.dumps(data, indent=1) + "\n")
        step_summary = os.environ.get("GITHUB_STEP_SUMMARY")
        if step_summary and failed:
            report_text.write(Path(step_summary), report_text.index(failed, [], ""), "a")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """List the recordings of failing tests, and what came of futures."""
        self._write_recordings(terminalreporter)
        if self._futures:
            # Imported here, as above.
            from replaydbg.pytest_plugin.report.futures_shown import write_futures

            write_futures(terminalreporter, self._futures, since=self._began, wait=self._wait)

    def _write_recordings(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not (self._results or self._missing):
            return
        from replaydbg.pytest_plugin.report import report_text

        terminalreporter.section("replaydbg")
        for line in self._missing.values():
            terminalreporter.write_line(line)
        for folder, each in self._results.items():
            # For those that were not examined the report has given the reason.
            is_known = each.is_examined or each.verified is not None
            verified = f": {report_text.verified_text(each)}" if is_known else ""
            terminalreporter.write_line(f"{each.nodeid}{verified}")
            if not each.unwritten:
                terminalreporter.write_line(f"  {report_text.command(folder)}")
            for line in report_text.page_lines(each, folder):
                terminalreporter.write_line(f"  {line}")
        written = [each for each in self._results.values() if not each.unwritten]
        unverified = report_text.unverified_text(sum(each.verified is None for each in written), len(written))
        if unverified:
            terminalreporter.write_line(unverified)
        if self._unlisted:
            terminalreporter.write_line(f"The index of the recordings could not be written: {self._unlisted}")


def _read(path: Path) -> tuple[Result | None, str]:
    """Return the result in a file, or None and why it cannot be read; that is empty if there is no file yet."""
    from replaydbg.pytest_plugin.shared.results import parse_result

    try:
        return parse_result(path.read_text(encoding="utf-8")), ""
    except OSError:
        return None, ""  # not written yet
    except ValueError as error:
        return None, str(error)


def _shown(path: str) -> str:
    here = os.getcwd()  # noqa: PTH109
    return path[len(here) + 1 :] if path.startswith(here + "/") else path
