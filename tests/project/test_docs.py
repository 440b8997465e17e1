"""The documentation is correct: links resolve, the README keeps its shape, examples run."""

import argparse
import random
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from replaydbg.cli.main import COMMANDS, command_module, main
from replaydbg.config import Settings
from replaydbg.errors import ReplaydbgError
from replaydbg.log.group import WHY_NOT
from replaydbg.replay.report import CAUSES

ROOT = Path(__file__).parents[2]
TEXTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "tests" / "README.md"])
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.M | re.S)


def anchors(text: str) -> set[str]:
    """Return the anchors of a text's headings, as Markdown renderers make them."""
    headings = re.findall(r"^#+ (.*)$", re.sub(FENCE, "", text), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    for target in LINK.findall(re.sub(FENCE, "", path.read_text(encoding="utf-8"))):
        if "://" in target or target.startswith("mailto:"):
            continue
        name, _, anchor = target.partition("#")
        linked = (path.parent / name).resolve() if name else path
        assert linked.exists(), f"{path}: {target}"
        if anchor:
            assert anchor in anchors(linked.read_text(encoding="utf-8")), f"{path}: {target}"


def test_readme_opens_with_one_sentence_and_two_commands() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    title, sentence, *_ = text.split("\n\n")
    commands = [body for language, body in FENCE.findall(text) if language == "sh"]

    assert title == "# replaydbg"
    assert sentence.count(".") == 1
    assert [command.count("\n") for command in commands] == [1, 1]
    assert all(text.index(command) < text.index("\n## ") for command in commands)


# Signs that a sentence needs rewriting: in the field's words a program prints, returns or reports.
_RIDDLES = re.compile(r"\b(told|speaks?|otherwise than|is no number|so many|stands at)\b|\blies\b")
# Their words change together with the messages that they quote.
_WITH_MESSAGES = {ROOT / "docs" / "reference" / name for name in ("cli.md", "messages.md", "debugger.md")}


@pytest.mark.parametrize("path", sorted(set(TEXTS) - _WITH_MESSAGES), ids=lambda path: str(path.relative_to(ROOT)))
def test_prose_has_no_riddles(path: Path) -> None:
    prose = re.sub(r"`[^`\n]*`", "", re.sub(FENCE, "", path.read_text(encoding="utf-8")))

    assert [line for line in prose.splitlines() if _RIDDLES.search(line)] == []


def tutorial_program() -> dict[str, Any]:
    """Return the names that the tutorial's program defines, when it is imported and not run."""
    text = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    source = next(body for language, body in FENCE.findall(text) if language == "python")
    names: dict[str, Any] = {"__name__": "lottery"}
    exec(compile(source, "lottery.py", "exec"), names)
    return names


def test_tutorial_program_fails_about_as_often_as_it_says() -> None:
    program = tutorial_program()
    random.seed(1)

    drawn = [program["winners"](["ann", "bob", "cem", "dee", "eve"]) for _ in range(1000)]
    failed = sum(program["share"](100, lucky) * len(lucky) != 100 for lucky in drawn)

    assert 200 < failed < 300


def test_tutorial_repair_repairs_it() -> None:
    program = tutorial_program()

    for number in (1, 2, 3, 4):
        lucky = ["ann"] * number
        assert program["share"](100, lucky) * len(lucky) + 100 % len(lucky) == 100


def parser_of(command: str) -> argparse.ArgumentParser:
    """Return the parser of one command of replaydbg."""
    parser = argparse.ArgumentParser(prog=f"replaydbg {command}", exit_on_error=False)
    command_module(command).add_arguments(parser)
    return parser


def slugs() -> set[str]:
    """Return the slug of every error, and of every kind of divergence."""
    found = {f"divergence-{kind}" for kind in CAUSES}
    classes = [ReplaydbgError]
    while classes:
        one = classes.pop()
        found.add(one.slug)
        classes += one.__subclasses__()
    return found


def test_every_message_is_explained() -> None:
    explained = anchors((ROOT / "docs" / "reference" / "messages.md").read_text(encoding="utf-8"))

    assert slugs() <= explained
    assert {name for name in explained if name.startswith("divergence-")} <= slugs()


def test_every_kind_of_note_is_explained() -> None:
    sources = [path.read_text(encoding="utf-8") for path in ROOT.glob("replaydbg/native/*/*.c")]
    kinds = {kind for source in sources for kind in re.findall(r'\bnote\("(\w+)"', source)}
    explained = anchors((ROOT / "docs" / "reference" / "messages.md").read_text(encoding="utf-8"))

    assert kinds == {name.removeprefix("note-") for name in explained if name.startswith("note-")}


def test_every_reason_of_a_process_without_a_recording_is_explained() -> None:
    text = (ROOT / "docs" / "reference" / "messages.md").read_text(encoding="utf-8")
    section = text.partition("\n## process-not-recorded\n")[2].partition("\n## ")[0]

    assert {*filter(None, WHY_NOT), "too many processes"} == set(re.findall(r"^\| \*(.*?)\*", section, re.M))


def test_every_kind_of_divergence_has_a_cause() -> None:
    sources = [path.read_text(encoding="utf-8") for path in ROOT.glob("replaydbg/native/*/*.c")]
    kinds = {kind for source in sources for kind in re.findall(r'diverge\("(\w+)"', source)}

    # A future that ends with its test is no divergence.
    assert kinds - {"stop", "fence", "output", "test"} <= set(CAUSES)


def cli_sections() -> dict[str, str]:
    """Return the sections of the command line's reference by their titles."""
    text = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    return {part.partition("\n")[0]: part for part in text.split("\n## ")}


def test_reference_has_a_section_for_every_command() -> None:
    assert set(COMMANDS) <= set(cli_sections())


def options_of(parser: argparse.ArgumentParser) -> set[str]:
    """Return the options of a parser and of the parsers of its subcommands."""
    found = {option for action in parser._actions for option in action.option_strings}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            found.update(*map(options_of, action.choices.values()))
    return found


@pytest.mark.parametrize("command", COMMANDS)
def test_reference_names_every_option_and_no_other(command: str) -> None:
    options = options_of(parser_of(command))

    named = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", cli_sections()[command])) - {"-m", "-c"}

    # `--no-fence` is described once, for every command that replays.
    assert {option for option in options if option.startswith("--")} - {"--help", "--no-fence"} <= named
    assert named <= options


def test_reference_names_every_setting() -> None:
    named = set(re.findall(r"REPLAYDBG_(\w+)", cli_sections()["config"]))

    assert {name.upper() for name in Settings._fields} == named


def examples() -> list[str]:
    """Return our command lines that the texts show after a prompt."""
    return sorted(
        {
            line.partition("  #")[0].strip()
            for path in TEXTS
            for _, body in FENCE.findall(path.read_text(encoding="utf-8"))
            for line in re.findall(r"^\$ (replaydbg .*)$", body, re.M)
        }
    )


@pytest.mark.parametrize("line", examples())
def test_examples_are_command_lines_that_exist(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    words = shlex.split(line)[1:]
    # The shell's part: where input comes from, and where output goes.
    words = words[: next((at for at, word in enumerate(words) if word in ("<", ">", ">>")), None)]
    monkeypatch.setattr(command_module(words[0]), "run", lambda args: 0)

    assert main(words) == 0
