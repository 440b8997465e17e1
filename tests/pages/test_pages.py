"""Each code block of the documentation is run and does what its page shows, or the page says why it is not run."""

from __future__ import annotations

import configparser
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

import pytest

from tests.pages.blocks import ROOT, BadPage, Block, blocks_of, pages, parsed
from tests.pages.comparison import compared, kinds, replaced, without_progress
from tests.pages.page_run import RUN_BY, WORLDS, PageRun, why_not_run
from tests.pages.shell import Shell
from tests.pages.transcript import steps_of

NOT_RUN = 98
"""Blocks that are not run; `python -m tests.pages` lists them. Raise it only for a block that cannot run."""


def every_block() -> list[Block]:
    return [block for page in pages() for block in blocks_of(page)]


def is_run_here(page: Path) -> bool:
    """Whether a page has a block for `PageRun`."""
    return any(why_not_run(each) is None and (each.page, each.language) not in RUN_BY for each in blocks_of(page))


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="tracebacks and numbers of lines are those of Python 3.11")
@pytest.mark.parametrize(
    "page", [each for each in pages() if is_run_here(each)], ids=lambda page: str(page.relative_to(ROOT))
)
def test_blocks_do_what_the_page_shows(page: Path) -> None:
    # A short path: tables would break longer ones.
    with tempfile.TemporaryDirectory(prefix="page-") as name:
        shell = Shell(Path(name))
        try:
            PageRun(page, shell).run()
        finally:
            shell.close()


def test_blocks_that_are_not_run_are_counted() -> None:
    found = [f"{each.place}: {why_not_run(each)}" for each in every_block() if why_not_run(each) is not None]

    assert len(found) == NOT_RUN, "\n".join(["not run:", *found])


def test_every_page_with_a_test_of_its_own_is_in_that_test() -> None:
    for (page, language), path in RUN_BY.items():
        assert any(each.language == language for each in blocks_of(ROOT / page)), (page, language)
        assert Path(page).name in (ROOT / path).read_text(encoding="utf-8")


def test_every_world_has_a_page() -> None:
    prepared = {
        each.relative_to(WORLDS).with_suffix(".md")
        for page in pages()
        for each in [WORLDS / page.relative_to(ROOT).with_suffix("")]
    }
    folders = {each.parent for each in WORLDS.rglob("*") if each.is_file()}

    assert [
        each for each in folders if not any(each.is_relative_to(WORLDS / page.with_suffix("")) for page in prepared)
    ] == []


# ---- commands of blocks that take too long to be run ----


def contributors_commands() -> list[str]:
    """Return the commands of the pages for contributors that start parts of the test suite."""
    lines = [line for each in every_block() for line in each.text.splitlines()]
    found = {re.sub(r"^\$ ", "", line).partition("  ")[0].strip() for line in lines}
    return sorted(each for each in found if re.match(r"(\w+=\S+ )?(python[\d.]* -m tests\.|tox -e )", each))


def test_environments_of_contributors_commands_exist() -> None:
    reader = configparser.ConfigParser(interpolation=None)
    reader.read(ROOT / "tox.ini")
    named = {
        each for command in contributors_commands() if "tox -e " in command for each in command.split()[2].split(",")
    }

    assert len(named) > 10
    assert {each for each in named if not environment_exists(each, reader)} == set()


def options_by_module() -> dict[str, set[str]]:
    """Return the options that the pages give to each module of the tests."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for words in map(str.split, contributors_commands()):
        if words[0] != "tox":
            found[words[words.index("-m") + 1]].update(word for word in words if word.startswith("--"))
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("module", "options"), sorted(options_by_module().items()))
def test_options_of_contributors_commands_exist(module: str, options: set[str]) -> None:
    command = [sys.executable, "-m", module, "--help"]

    helped = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60).stdout

    assert {each for each in options if not re.search(rf"(?<![\w-]){each}(?![\w-])", helped)} == set()


def environment_exists(name: str, reader: configparser.ConfigParser) -> bool:
    """Return whether tox.ini has an environment, with a version of Python before it or not."""
    plain = re.sub(r"^py\d+-", "", name)
    sections = {each.partition(":")[2] for each in reader.sections() if each.startswith("testenv:")}
    named = {re.sub(r"^\{,[^}]*\}", "", each) for each in sections}
    return plain in named or bool(re.fullmatch(r"py\d*", name))


# ---- the mechanism itself ----


def test_marks_belong_to_the_next_block() -> None:
    (block,) = parsed("Text\n\n<!-- varies: sizes -->\n<!-- exits: 1 -->\n```console\n$ false\n```\n", "page.md")

    assert (block.place, block.value("varies"), block.value("exits")) == ("page.md:5", "sizes", "1")


def test_an_indented_block_is_read() -> None:
    (block,) = parsed("1. Text:\n\n    ```console\n    $ true\n    ```\n", "page.md")

    assert block.text == "$ true\n"


@pytest.mark.parametrize("text", ["<!-- exits: 1 -->\nText\n", "```sh\ntrue\n", "<!-- exits: 1 -->\n"])
def test_what_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(BadPage, match=r"^page\.md"):
        parsed(text, "page.md")


def test_a_reason_is_more_than_a_word() -> None:
    (block,) = parsed("<!-- not run: slow -->\n```sh\ntrue\n```\n", "page.md")

    with pytest.raises(BadPage, match="a reason is needed"):
        why_not_run(block)


def test_steps_have_what_is_shown_after_them() -> None:
    steps = steps_of("$ one ||\n> two\noutput\n> more\n(replaydbg 2) why x\nanswer\n")

    assert [(each.prompt, each.text, each.shown) for each in steps] == [
        ("", "one ||\ntwo", ["output", "> more"]),
        ("(replaydbg 2)", "why x", ["answer"]),
    ]


@pytest.mark.parametrize(
    ("shown", "printed", "varies", "agrees"),
    [
        ("a\n", "a\n", "", True),
        ("a\n", "b\n", "", False),
        ("a\n", "a\nb\n", "", False),
        ("a\n...\nz\n", "a\nb\nc\nz\n", "", True),
        ("at ...:3\n", "at /tmp/x.py:3\n", "", True),
        ("at ...:3\n", "at /tmp/x.py:4\n", "", False),
        ("12.0 KiB, 3 events\n", "9 KiB, 3 events\n", "sizes", True),
        ("12.0 KiB, 3 events\n", "9 KiB, 4 events\n", "sizes", False),
        ("12.0 KiB, 3 events\n", "9 KiB, 4 events\n", "sizes, events", True),
        ("12.0 KiB\n", "a lot\n", "sizes", False),
        ("ann\n", "bob\n", "/ann|bob/", True),
        ("ann\n", "cem\n", "/ann|bob/", False),
        ("1  x\n", "100   x\n", "numbers", True),
    ],
)
def test_only_what_is_said_to_vary_may_differ(shown: str, printed: str, varies: str, agrees: bool) -> None:
    assert isinstance(compared(shown, printed, kinds(varies)), dict) == agrees


def test_commands_get_what_was_printed() -> None:
    values = compared("bound at 64:78, run-3\n", "bound at 65:2, run-14\n", kinds(r"positions, /run-\d+/"))

    assert values == {"64:78": "65:2", "run-3": "run-14"}
    assert isinstance(values, dict)
    assert replaced("seek 64:78 in run-3 and run-31, 164:78", values) == "seek 65:2 in run-14 and run-31, 164:78"


def test_reports_of_progress_are_left_out() -> None:
    assert without_progress("\x1b[1mone\x1b[0m\r\nfirst 3%\rtwo\nreplaydbg: replaying ...\nthree") == "one\ntwo\nthree"


def test_a_wrong_page_fails(tmp_path: Path) -> None:
    page = ROOT / "docs" / "wrong.md"
    shell = Shell(tmp_path)

    with pytest.raises(AssertionError, match="echo one"):
        run_text("```console\n$ echo one\ntwo\n```\n", page, shell)
    with pytest.raises(AssertionError, match=r"exit codes \[1\]"):
        run_text("```console\n$ false\n```\n", page, shell)
    with pytest.raises(AssertionError, match="needs a file"):
        run_text("```toml\na = 1\n```\n", page, shell)
    run_text("<!-- exits: 1 -->\n```console\n$ false\n$ echo one\none\n```\n", page, shell)


def run_text(text: str, page: Path, shell: Shell) -> None:
    """Run the blocks of a text."""
    PageRun(page, shell).run_blocks(parsed(text, page.name))
