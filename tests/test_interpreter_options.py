"""The interpreter's own options: what is passed on to the bootstrap, and what the core does in their place."""

import pytest

from replaydbg.launch.interpreter import held_warnings, leading_options, split_options


@pytest.mark.parametrize(
    ("given", "passed"),
    [
        (["-BWdefault::E"], ["-B", "-W", "default::E"]),
        (["-W", "error::ResourceWarning", "-OO"], ["-W", "error::ResourceWarning", "-O", "-O"]),
        (["-IB"], ["-s", "-B"]),
        (["-SX", "dev"], ["-X", "dev"]),
        (["--check-hash-based-pycs", "always", "-u"], ["--check-hash-based-pycs", "always", "-u"]),
        (["-bb", "-E"], ["-b", "-b"]),
        (["-R", "-P"], []),
    ],
)
def test_only_what_the_core_emulates_is_taken_out(given: list[str], passed: list[str]) -> None:
    assert split_options(given).passed == ["-S", "-P", *passed]


def test_letters_in_the_value_of_an_option_mean_nothing() -> None:
    options = split_options(["-W", "error::ResourceWarning", "-WIgnore", "-XE"])

    assert options.site
    assert not options.isolated
    assert not options.ignore_environment
    assert not options.is_randomized


def test_emulated_options_are_known() -> None:
    options = split_options(["-SEIR"])

    assert not options.site
    assert options.isolated
    assert options.ignore_environment
    assert options.is_randomized


@pytest.mark.parametrize(
    ("words", "options", "rest"),
    [
        (["-O", "-m", "module"], ["-O"], ["-m", "module"]),
        (["-Om", "module"], ["-O"], ["-m", "module"]),
        (["-X", "dev", "prog.py", "-O"], ["-X", "dev"], ["prog.py", "-O"]),
        (["-Wm", "prog.py"], ["-Wm"], ["prog.py"]),
    ],
)
def test_options_end_where_the_program_begins(words: list[str], options: list[str], rest: list[str]) -> None:
    assert leading_options(words) == (options, rest)


@pytest.mark.parametrize(
    ("flags", "variable", "held"),
    [
        (["-W", "error::ResourceWarning:json.decoder"], "default", []),
        (["-W", "error::a.B"], "default,ignore:text", ["default", "ignore:text", "error::a.B"]),
        (["-Wdefault"], "error::a.B", ["error::a.B", "default"]),
        (["-E", "-Wdefault"], "error::a.B", []),
    ],
)
def test_warnings_whose_category_is_of_a_module_are_held_back(flags: list[str], variable: str, held: list[str]) -> None:
    assert held_warnings({"PYTHONWARNINGS": variable}, split_options(flags)) == held
