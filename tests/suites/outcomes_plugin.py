"""A plugin for pytest, copied into each suite's environment: writes how each test ended, as JSON."""

import json
from typing import Any

import pytest

_open = open


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--outcomes", default="", help="the file to write")


def pytest_configure(config: pytest.Config) -> None:
    path = config.getoption("--outcomes")
    # Workers of pytest-xdist send their reports to the process that is asked.
    if path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Outcomes(str(path)))


class _Outcomes:
    def __init__(self, path: str) -> None:
        self._path = path
        self._outcomes: dict[str, str] = {}

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        before = self._outcomes.get(report.nodeid, "passed")
        outcome = _outcome(report)
        # Of several phases the first counts that did not simply pass; an error in tear-down is one in any case.
        self._outcomes[report.nodeid] = outcome if before == "passed" or outcome == "error" else before

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if not report.passed:
            self._outcomes[report.nodeid] = "error" if report.failed else "skipped"

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        with _open(self._path, "w", encoding="utf-8") as file:
            json.dump(self._outcomes, file)


def _outcome(report: Any) -> str:
    if hasattr(report, "wasxfail"):
        return "xfailed" if report.skipped else "xpassed"
    if report.failed:
        return "failed" if report.when == "call" else "error"
    return str(report.outcome)
