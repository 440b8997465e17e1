"""Marks for the parts of a session, test by test: so that a recording can omit tests that are not needed.

Before each test a question is asked outside. During the recording the answer is meaningless. In a recording that was
made smaller (`minimize.py`) it means: this test is left out, here are its reports. pytest's `log` hooks of a test are
called in either case, so that the output is unchanged; the test's own work is between them.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from replaydbg.pytest_plugin.settings import is_worker
from replaydbg.pytest_plugin.shared import shared_names
from replaydbg.pytest_plugin.shared.marks_of_tests import (
    REPORT_LEFT_OUT,
    AttemptBegun,
    AttemptEnded,
    PhaseRaised,
    RandomState,
    mark_fields,
)

if TYPE_CHECKING:
    from replaydbg.launch.replay_question import TestAnswer

# Bound now: tests replace functions of modules.
_audit = sys.audit
_dumps, _loads = json.dumps, json.loads
_text = json.encoder.encode_basestring_ascii
_ask = os.listxattr  # `tested.QUESTION` in the log

PLACE = "/"
"""The question reads the root directory's extended attributes: it is cheap, and the answer is a list of texts."""

_REPORT_PLACE = "/."
"""The same for the question before the report of a failure is made. Its path differs, because replays of edited code
look up answers by the arguments.
"""

_LONGEST = 40000
"""Maximum length of a report as text; a test with a longer one cannot be left out."""

_REPORTS_BEGIN = '{"do": "say"}'
_REPORT_ASKED, _REPORT_MADE = '{"do": "report"}', '{"do": "reported"}'
_REPORTS_END, _LAST = '{"do": "said"}', '{"do": "said", "last": true}'

_PLAIN = pytest.TestReport("", ("", 0, ""), {}, "passed", None, "call").__dict__.keys() | {shared_names.KEPT}
"""The attributes of a report without additions by plugins. Versions of pytest differ in their own."""


@dataclass(frozen=True, slots=True)
class TestReports:
    """The answer to the question before a test."""

    __test__ = False

    reports: list[object] | None
    """The reports of a test that is left out; None: it runs, after tests that were left out."""
    random: RandomState | None
    """The state of the module `random` that these would have left behind; None: unknown."""


def mark_name(name: str) -> None:
    """Mark the program's present position with a name, and notify the process that waits for the program."""
    _audit("replaydbg.mark", _dumps({"name": name}))


def mark(do: str, name: str, content: PhaseRaised | None = None) -> None:
    """Mark progress of the session, as `mark_reader` reads it. `name` is that of the moment; empty: it has none."""
    fields: dict[str, object] = {"do": do}
    if name:
        fields["name"] = name
    if content is not None:
        fields |= mark_fields(content)
    _audit("replaydbg.mark", _dumps(fields))


def mark_begin(begun: AttemptBegun) -> None:
    """Mark that an attempt of a test begins. The JSON is written out, as below: `json.dumps` is slow."""
    _audit(
        "replaydbg.mark",
        f'{{"do": "begin", "name": "test", "node": {_text(begun.node)}, "slug": {_text(begun.slug)}, '
        f'"attempt": {begun.attempt}, "seed": {begun.seed}, "crash": {"true" if begun.crash else "false"}}}',
    )


def mark_end(ended: AttemptEnded) -> None:
    """Mark that the attempt has ended."""
    _audit(
        "replaydbg.mark",
        f'{{"do": "end", "keep": {"true" if ended.keep else "false"}, "outcome": {_text(ended.outcome)}, '
        f'"failure": {ended.failure}}}',
    )


def note(text: str) -> None:
    """Mark the position in the log only, without opening a file."""
    _audit("replaydbg.mark", text, False)


def _answer() -> TestReports | None:
    """Ask, and return the answer; None: the test is to run as always."""
    try:
        answer = _ask(PLACE)
    except OSError:
        return None  # a file system without such attributes
    if len(answer) != 1 or not answer[0].startswith("{"):
        return None
    try:
        found = _loads(answer[0])
    except ValueError:
        return None  # a real attribute
    reports, state = found.get("reports"), found.get("random")
    if not ({"reports", "random"} & found.keys()) or not isinstance(reports, list | None):
        return None
    return TestReports(reports, (state[0], tuple(state[1]), state[2]) if state is not None else None)


class Parts:
    """Marks where parts begin and end, and what each test inherits from earlier ones."""

    def __init__(self) -> None:
        self._number = 0
        self._begun: dict[str, int] = {}
        """By node id: the index of the last test begun with that name. With --keep-duplicates there may be several."""
        self._alive: list[tuple[pytest.FixtureDef[object], int]] = []
        self._set_up: dict[pytest.Package, int] = {}
        self._random: object = None
        self._nodeid = ""
        self.is_asked_again = False
        """Whether answers for tests that were left out are ignored: in edited code others may run."""

    def begin(self, item: pytest.Item) -> TestReports | None:
        """Begin the next test; return the answer to the question, None if the test is to run as always."""
        self._number += 1
        self._nodeid = item.nodeid
        _ = item.location  # queries the file's state, the first time
        needs = {number for _, number in self._alive} | self._packages(item)
        question: dict[str, object] = {}  # as in `TestAsked`
        before = self._begun[item.nodeid] = self._begun.get(item.nodeid, -1) + 1
        if before:
            question["before"] = before
        if is_worker(item.config):
            question["is_worker"] = True
        generator = sys.modules.get("random")
        if generator is not None:
            state = generator.getstate()
            if state != self._random:
                self._random = state
                question["random"] = state
        more = f", {_dumps(question)[1:-1]}" if question else ""
        note(f'{{"do": "item", "needs": [{", ".join(map(str, sorted(needs)))}]{more}}}')
        found = _answer()
        while self.is_asked_again and found is not None and found.reports is not None:
            found = _answer()
        return found

    def _packages(self, item: pytest.Item) -> set[int]:
        """Return the tests that set up the packages which this one finds set up: that imports their `__init__.py`."""
        stack = item.session._setupstate.stack
        found = set()
        for node in item.listchain():
            if isinstance(node, pytest.Package):
                if node not in stack:
                    self._set_up[node] = self._number
                elif node in self._set_up:
                    found.add(self._set_up[node])
        return found

    def over(self, answer: TestAnswer) -> None:
        """Report the outcome of the replay; it ends here."""
        _audit("replaydbg.over", answer.as_text())

    def take_over(self, item: pytest.Item, answer: TestReports) -> None:
        """Restore the state that the omitted tests would have left behind."""
        if answer.random is not None:
            sys.modules["random"].setstate(answer.random)
        # Fixtures of an earlier test that the next omitted one would have torn down.
        item.session._setupstate.teardown_exact(item)

    def begin_making(self) -> bool:
        """Mark that the report of a failure is about to be made; return whether to leave it out."""
        note(_REPORT_ASKED)
        try:
            return _ask(_REPORT_PLACE) == [REPORT_LEFT_OUT]
        except OSError:
            return False  # a file system without such attributes

    def end_making(self) -> None:
        """Mark that the report is made, or left out."""
        note(_REPORT_MADE)

    def begin_reports(self) -> None:
        """Mark that reports of a test follow, as opposed to its own work."""
        note(_REPORTS_BEGIN)

    def end_reports(self, *, is_last: bool = False) -> None:
        """Mark the end of the reports; `is_last`: no more follow for this test."""
        note(_LAST if is_last else _REPORTS_END)

    def report(self, config: pytest.Config, report: pytest.TestReport) -> None:
        """Mark a report, with its content."""
        if self._is_plain(report):
            times = (report.duration, report.start, report.stop)
            is_plain = type(times[0]) is type(times[1]) is type(times[2]) is float
            text = f"{times[0]!r}, {times[1]!r}, {times[2]!r}" if is_plain else _dumps(times)[1:-1]
            note(f'{{"do": "say", "report": ["{report.when}", {text}]}}')
            return
        data = config.hook.pytest_report_to_serializable(config=config, report=report)
        if data is not None:
            # They are shown at the session's end, which no recording of a test reaches.
            data |= {"sections": [], "longrepr": data["longrepr"] if not report.failed else "left out"}
        text = _dumps({"do": "say", "report": data}, default=str)
        note(text if len(text) < _LONGEST else _dumps({"do": "say", "report": None}))

    def _is_plain(self, report: pytest.TestReport) -> bool:
        """Whether it only reports that a phase of the running test has passed: most do."""
        return (
            type(report) is pytest.TestReport
            and report.outcome == "passed"
            and report.longrepr is None
            and report.nodeid == self._nodeid
            and not report.user_properties
            and report.__dict__.keys() <= _PLAIN
        )

    def report_of(self, item: pytest.Item, data: object) -> pytest.TestReport:
        """Return the report from its mark. JSON has no tuples, and pytest checks for them."""
        if isinstance(data, list):
            when, duration, start, stop = data
            keywords: dict[str, Any] = dict.fromkeys(item.keywords, 1)
            return pytest.TestReport(
                item.nodeid, item.location, keywords, "passed", None, when, (), duration, start, stop
            )
        config = item.config
        report: pytest.TestReport = config.hook.pytest_report_from_serializable(config=config, data=data)
        longrepr: object = report.longrepr
        if isinstance(longrepr, list):
            path, line, reason = longrepr
            report.longrepr = (path, line, reason)
        file, number, name = report.location
        report.location = (file, number, name)
        report.user_properties = [(key, value) for key, value in report.user_properties]
        return report

    def fixture_begins(self, fixturedef: pytest.FixtureDef[object]) -> None:
        """Record the test to which it belongs."""
        if fixturedef.scope != "function":
            self._alive.append((fixturedef, self._number))

    def fixture_ends(self, fixturedef: pytest.FixtureDef[object]) -> None:
        """Remove it; a missing one was removed before."""
        self._alive = [each for each in self._alive if each[0] is not fixturedef]
