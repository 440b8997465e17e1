"""A command line that is parsed without argparse means what argparse takes it for."""

import argparse
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replaydbg.cli.common.plain_words import PlainParser
from replaydbg.cli.common.program_words import split_words
from replaydbg.cli.running import record, replay

_WORDS = [
    "-q",
    "--quiet",
    "-o",
    "out.rdbg",
    "--output",
    "--output=x",
    "-ox",
    "--json",
    "--chaos",
    "7",
    "--chaos-runs",
    "3",
    "many",
    "--on-deadlock",
    "wait",
    "stop",
    "never",
    "--check",
    "a==1",
    "--snapshot-every",
    "5",
    "--snapshot-objects",
    "-1",
    "--",
    "prog.py",
    "-m",
    "-c",
    "-",
    "--to",
    "3:4",
    "latest",
    "--current-source",
    "--real",
    "--real-ids",
    "-qo",
    "-h",
    "--until-outcome",
    "--no-fence",
]


def _by_argparse(command: ModuleType, words: list[str], *, has_program: bool) -> dict[str, Any] | None:
    parser = argparse.ArgumentParser(prog="replaydbg x", add_help=True)
    command.add_arguments(parser)
    try:
        own, program = split_words(parser, words) if has_program else (words, [])
        return vars(parser.parse_args(own, argparse.Namespace(program=program)))
    except SystemExit:
        return None


def _plainly(command: ModuleType, words: list[str], *, has_program: bool) -> dict[str, Any] | None:
    parser = PlainParser()
    command.add_arguments(parser)
    found = parser.parse(words, has_program=has_program)
    return vars(found) if found is not None else None


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--", "a.py", "-q"], {"quiet": None, "program": ["a.py", "-q"]}),
        (["-q", "-o", "x", "a.py"], {"quiet": True, "program": ["a.py"]}),
        (["--check", "a", "--check", "b", "a.py"], {"check": ["a", "b"]}),
    ],
)
def test_usual_command_lines_need_no_argparse(words: list[str], expected: dict[str, Any]) -> None:
    found = _plainly(record, words, has_program=True)

    assert found is not None
    assert {name: found[name] for name in expected} == expected


def test_a_replay_needs_no_argparse() -> None:
    assert _plainly(replay, ["-q", "run-1"], has_program=False) is not None


@pytest.mark.parametrize("words", [["-h"], ["--output"], ["-qq", "a.py"], ["--chaos-runs", "x", "a.py"], ["--re", "a"]])
def test_anything_else_is_left_to_argparse(words: list[str]) -> None:
    assert _plainly(record, words, has_program=True) is None


@given(st.lists(st.sampled_from(_WORDS), max_size=6))
def test_both_parsers_agree(words: list[str]) -> None:
    for command, has_program in ((record, True), (replay, False)):
        found = _plainly(command, words, has_program=has_program)
        if found is not None:
            assert found == _by_argparse(command, words, has_program=has_program)
