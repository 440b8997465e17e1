"""What the prompt offers at a moment of a recorded program, and that asking for it harms neither program nor prompt."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from replaydbg.commands import Prompt
from replaydbg.commands.completion.completer import ALL_SECONDS, Completion, complete
from replaydbg.debugger import Session
from replaydbg.debugger.session_results import WorkProgress
from replaydbg.engine.completion.offers import MOST_OFFERED, Offered
from replaydbg.prompt.line_reader import for_readline
from replaydbg.prompt.screen import Screen
from replaydbg.prompt.terminal import Interrupts
from tests.harness.recording import record_file
from tests.harness.typed import TRAVEL, Typed

PROGRESS: list[WorkProgress] = []


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    recording = record_file(TRAVEL / "values_to_complete.py", tmp_path_factory.mktemp("values"), status=1)
    with Session(recording, progress=PROGRESS.append) as session:
        yield session


@pytest.fixture
def prompt(session: Session) -> Prompt:
    return Typed.at("@exc", session).prompt


def words(prompt: Prompt, line: str) -> list[str]:
    """What is offered at the `|` of a line, or at its end."""
    before, _, behind = line.partition("|")
    return list(complete(prompt, before + behind, len(before)).words)


# ---- attributes ----


def test_attributes_of_the_object_of_its_class_and_of_its_bases(prompt: Prompt) -> None:
    assert words(prompt, "p account.") == ["balance", "kind", "name", "owner", "save", "total"]
    assert words(prompt, "p account.na") == ["name"]
    assert words(prompt, "p Record.") == ["kind", "save"]
    assert "OrderedDict" in words(prompt, "p collections.Ord")
    assert "decoder" in words(prompt, "p json.")


def test_names_with_an_underscore_are_offered_once_one_is_typed(prompt: Prompt) -> None:
    assert "_hidden" not in words(prompt, "p account.")
    offered = words(prompt, "p account._")
    assert offered[0] == "_hidden"
    assert "__init__" in offered
    assert "_private" not in words(prompt, "p ")
    assert words(prompt, "p _pri") == ["_private"]


def test_no_property_runs_for_a_list_of_attributes(prompt: Prompt) -> None:
    assert "computed" in words(prompt, "p raising.")
    words(prompt, "p account.total.")

    assert prompt.view.evaluate("account.balance").value == prompt.view.evaluate("10").value
    assert prompt.view.here.is_changed is False


def test_an_object_names_its_attributes_itself(prompt: Prompt) -> None:
    assert words(prompt, "p proxy.") == ["inner", "virtual"]


def test_what_an_object_does_to_it_neither_harms_nor_hangs(prompt: Prompt, capfd: pytest.CaptureFixture[str]) -> None:
    assert words(prompt, "p raising.") == ["computed", "field"]
    began = time.monotonic()
    assert words(prompt, "p endless.") == ["field"]
    assert words(prompt, "p endless.missing.") == []
    assert words(prompt, "p raising.missing.") == []
    assert words(prompt, "p endless[") == words(prompt, "p ")
    assert time.monotonic() - began < 4 * ALL_SECONDS

    assert PROGRESS == [] or all(each.what != "completing" for each in PROGRESS)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("p f(self.na", "name"),
        ("p 1 + account.ba", "balance"),
        ("p table[account.ki", "kind"),
        ("not account.sa", "save"),
        ("listed[0].ba", "balance"),
        ("p table['na me'].ba", "balance"),
        ("p Account('Bob').ba", "balance"),
        ("p {'a': account}['a'].na", "name"),
        ("p [account.na", "name"),
        ("p values_to_complete.acc", ""),
        ("x = account.ba", "balance"),
        ("! del account.ba", "balance"),
        ("set var account.balance = account.ba", "balance"),
        ("b ends if self.ba", "balance"),
        ("condition 1 self.ba", "balance"),
        ("log values_to_complete.py:74 'self.ba", "balance"),
        ("log values_to_complete.py:74 'self' if self.ba", "balance"),
        ("watch -l account.ba", "balance"),
        ("bisect --check --linear account.ba", "balance"),
        ("display account.ba", "balance"),
    ],
)
def test_the_word_ends_at_brackets_commas_and_operators(prompt: Prompt, line: str, word: str) -> None:
    assert words(prompt, line) == ([word] if word else [])


# ---- names ----


def test_variables_builtins_keywords_and_modules(prompt: Prompt) -> None:
    assert words(prompt, "p loc") == ["local", "locals"]
    assert words(prompt, "p isinst") == ["isinstance"]
    assert words(prompt, "p lam") == ["lambda"]
    assert "threading" not in words(prompt, "p ")
    assert words(prompt, "p encodin") == ["encodings"]
    assert words(prompt, "p account i") == ["if", "in", "is"]
    assert words(prompt, "! whi") == ["while"]
    assert words(prompt, "! from json imp") == ["import"]
    assert words(prompt, "p json imp") == []
    assert words(prompt, "p whi") == []
    assert {"local", "self", "table"} <= set(words(prompt, "p "))
    assert "isinstance" not in words(prompt, "p ")


def test_a_line_begins_with_a_command_or_with_a_name(prompt: Prompt) -> None:
    assert words(prompt, "reverse-f") == ["reverse-finish"]
    assert {"tasks", "tbreak", "table"} <= set(words(prompt, "t"))
    assert words(prompt, "# t") == []
    assert "@exc" in words(prompt, "@e")
    assert words(prompt, "where ac") == []


# ---- keys ----


def test_keys_of_a_dictionary(prompt: Prompt) -> None:
    assert words(prompt, "p table['na") == ["'na me']", "'name']"]
    assert words(prompt, 'p table["na') == ['"na me"]', '"name"]']
    assert words(prompt, "p table['it") == ["'it\\'s']"]
    assert words(prompt, "p table['li") == ["'line\\n']"]
    assert words(prompt, "p table[7") == ["71]", "7]"]
    assert words(prompt, "p table[1") == ["1.5]"]
    assert words(prompt, "p table[b'") == ["b'raw']"]
    assert words(prompt, "p ordered['") == ["'name']"]
    everything = ['"it\'s"]', "'line\\n']", "'na me']", "'name']", "(1, 'a')]", "1.5]", "7]", "71]", "b'raw']"]
    assert words(prompt, "p table[") == sorted(everything)


def test_every_offered_key_is_one(prompt: Prompt) -> None:
    for typed in ("", "'", '"', "'''", "b'", "7"):
        for word in words(prompt, f"p table[{typed}"):
            result = prompt.view.evaluate(f"table[{word}")
            assert result.error is None, word


def test_what_is_behind_the_cursor_is_not_repeated(prompt: Prompt) -> None:
    assert words(prompt, "p table['name|']") == ["'name"]
    assert words(prompt, "p table['nam|]") == ["'name'"]
    assert words(prompt, "p table[|]")[-1] == "b'raw'"


def test_keys_that_an_object_names_itself(prompt: Prompt) -> None:
    assert words(prompt, "p columns['f") == ["'first']"]
    assert "account" in words(prompt, "p listed[")


def test_of_very_many_keys_some_are_offered_that_have_no_more_in_common(prompt: Prompt) -> None:
    began = time.monotonic()
    offered = words(prompt, "p many['us")
    seconds = time.monotonic() - began

    assert len(offered) == MOST_OFFERED
    assert {"'user_000000']", "'user_099999']"} <= set(offered)
    assert words(prompt, "p many['user_09999") == [f"'user_09999{digit}']" for digit in range(10)]
    assert seconds < ALL_SECONDS


PIECES = st.sampled_from(
    [
        "p ",
        "account",
        ".",
        "na",
        "table",
        "[",
        "'",
        '"',
        "]",
        "(",
        ")",
        " ",
        "b ",
        " if ",
        "--in ",
        "@",
        "!",
        "log ",
        "7",
        "x:y",
    ]
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pieces=st.lists(PIECES, max_size=7), cursor=st.integers(0, 30))
def test_what_is_offered_begins_as_it_was_typed(prompt: Prompt, pieces: list[str], cursor: int) -> None:
    line = "".join(pieces)
    cursor = min(cursor, len(line))

    found = complete(prompt, line, cursor)

    assert 0 <= found.start <= cursor
    assert all(each.startswith(line[found.start : cursor]) for each in found.words)
    assert len(found.words) <= 2 * MOST_OFFERED
    assert all(each.isprintable() for each in found.words)


# ---- arguments of commands ----


def test_arguments_of_searches(prompt: Prompt) -> None:
    assert words(prompt, "bisect --in jso") == [each for each in words(prompt, "modules jso") if each]
    assert "json.decoder" in words(prompt, "holds x > 1 --in=json.")
    assert words(prompt, "bisect --in __ma") == ["__main__"]
    assert words(prompt, "bisect --inv") == ["--invariant"]
    assert words(prompt, "bisect x --fr") == ["--frame", "--from"]
    assert "ends" in words(prompt, "bisect self --frame en")
    assert words(prompt, "bisect --from @st") == ["@start"]
    assert words(prompt, "bisect --raises ValueE") == ["ValueError"]
    assert words(prompt, "set v") == ["var "]
    assert words(prompt, "direction rev") == ["reverse"]


# ---- the prompt ----


def test_no_control_character_reaches_the_terminal(prompt: Prompt, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the program answers, or has as names of its files and functions."""
    forged = ("name\x1b[2J", "named", "name\u202e", "name" * 1000)
    monkeypatch.setattr(prompt.view.session.ask, "offers", lambda query, seconds: Offered(forged))
    assert words(prompt, "p table['na") == ["'name\\u202e']", "'name\\x1b[2J']", "'named']"]
    assert words(prompt, "p account.na") == ["named"]
    assert words(prompt, "p table[na") == ["named"]
    assert words(prompt, "p table[") == ["named]"]


def test_readline_gets_words_that_begin_where_its_own_word_does() -> None:
    line = "p table['na me.x"

    assert list(for_readline(Completion(8, ("'na me.xy']",)), line, 15)) == ["xy']"]
    assert list(for_readline(Completion(10, ("balance",)), "p account.", 10)) == ["balance"]
    assert list(for_readline(Completion(4, ("name",)), "p a-na", 2)) == ["a-name"]


def test_a_lost_session_offers_nothing(session: Session) -> None:
    with Session(session.path) as other:
        interrupts = Interrupts()
        screen = Screen(io.StringIO(), io.StringIO(), is_coloured=False, check=interrupts.check)
        prompt = Prompt(other, screen, interrupts)
        other.close()

        assert words(prompt, "p account.") == []
        assert words(prompt, "reverse-f") == ["reverse-finish"]


def test_names_of_a_function_in_an_outer_frame(session: Session, prompt: Prompt) -> None:
    assert "local" in words(prompt, "p lo")
    prompt.do("up")

    assert words(prompt, "p local") == ["locals"]
