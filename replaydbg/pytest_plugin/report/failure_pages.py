"""Pages about failures in the report of pytest-html: a link to each, and a page that says why there is no other."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import pytest

from replaydbg.pytest_plugin.shared import shared_names


def add_link(config: pytest.Config, report: pytest.TestReport, folder: str) -> None:
    """Link the page of a failing test in the report of pytest-html, where that is made.

    The page itself is made later: the report is written test by test.
    """
    target = getattr(config.option, "htmlpath", None)
    if not target or not config.pluginmanager.hasplugin("html"):
        return
    # Imported here: it need not be installed.
    from pytest_html import extras

    page = os.path.join(os.path.abspath(folder), shared_names.PAGE)  # noqa: PTH100,PTH118
    start = os.path.dirname(os.path.abspath(os.path.expandvars(os.path.expanduser(target))))  # noqa: PTH100,PTH111,PTH120
    link = extras.url(quote(os.path.relpath(page, start)), name="replaydbg: the failure as a page")
    report.extras = [*getattr(report, "extras", []), link]  # type: ignore[attr-defined]


def write_instead(folder: str, nodeid: str, reason: str, *, since: float) -> None:
    """Write a page that says why there is none about a failure, so that links lead somewhere.

    `since`: one that was made after that time, in seconds since the epoch, is kept: it was finished meanwhile.
    """
    page = Path(folder, shared_names.PAGE)
    with suppress(OSError):
        if page.stat().st_mtime >= since:
            return
    # Imported here: it is seldom needed.
    from replaydbg.pages.facts.hidden_texts import HiddenTexts
    from replaydbg.pages.facts.page_facts import PageFacts
    from replaydbg.pages.facts.recording_facts import opening_commands
    from replaydbg.pages.markup.page_document import failure_page
    from replaydbg.store.private import make_directory, write_private

    recording = Path(folder, shared_names.RECORDING)
    is_there = recording.is_file()
    facts = PageFacts(
        kind="No page",
        title=nodeid,
        message="",
        name=str(recording),
        facts=(("test", nodeid),),
        warnings=(f"There is no page about this failure: {reason}",),
        commands=tuple(opening_commands(str(recording), is_failure=True, is_test=True)) if is_there else (),
    )
    with suppress(OSError):  # the report has the reason, too
        make_directory(page.parent)  # where the recording is not there yet
        write_private(page, failure_page(facts, HiddenTexts([recording])))
