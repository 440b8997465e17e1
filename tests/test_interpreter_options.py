"""The interpreter's own options: what is passed on to the bootstrap, and what the core does in their place."""

import pytest

from replaydbg.launch.interpreter import leading_options, split_options


@pytest.mark.parametrize(
    ("given", "passed"),
    [
        (["-BWdefault::E"], ["-S", "-BWdefault::E"]),
        (["-W", "error::ResourceWarning", "-OO"], ["-S", "-W", "error::ResourceWarning", "-OO"]),
        (["-IB"], ["-S", "-B", "-s", "-P"]),
        (["-SX", "dev"], ["-S", "-X", "dev"]),
        (["--check-hash-based-pycs", "always", "-u"], ["-S", "--check-hash-based-pycs", "always", "-u"]),
        (["-bb", "-E"], ["-S", "-bb"]),
        (["-R"], ["-S"]),
    ],
)
def test_only_what_the_core_emulates_is_taken_out(given: list[str], passed: list[str]) -> None:
    assert split_options(given).passed == passed


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
