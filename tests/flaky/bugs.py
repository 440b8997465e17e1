"""The bugs, and the expected diagnosis of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_PROGRAMS = Path(__file__).parent / "programs"
_FIXTURES = Path(__file__).parents[2] / "fixtures"

THREADS = {"thread switches"}
ANSWER = {"answer"}
RACES, FLAKY = _FIXTURES / "races", _FIXTURES / "flaky"
CHAOS = ("-n", "1000", "--chaos")


@dataclass(frozen=True, slots=True)
class Bug:
    """One bug."""

    # The program's name without its suffix.
    name: str
    # The affected package and version.
    package: str
    # Where it was reported or fixed.
    link: str
    # What it is, for the table.
    what: str
    # The deciding kind of input.
    told: set[str]
    # Returns the places (file, line of source) to be reported; one of them must be in `line`.
    places: Callable[[dict[str, Any]], list[tuple[str, str]]]
    # The end of the file's path, and a part of the line.
    line: tuple[str, str]
    # Arguments for `hunt`.
    options: tuple[str, ...] = ()
    # The program's directory.
    folder: Path = _PROGRAMS

    @property
    def program(self) -> Path:
        return self.folder / f"{self.name}.py"

    def is_wrong_with_confidence(self, facts: dict[str, Any]) -> bool:
        """Whether another cause is named as if it were certain."""
        return bool(self.wrong(facts)) and facts["outcome"] == "found" and bool(facts["flip"]["is_confirmed"])

    def wrong(self, facts: dict[str, Any]) -> str:
        """Return why the output of `bisect recordings --json` is wrong; empty if it is right."""
        if facts["outcome"] != "found":
            return f"nothing was found: {facts['reason']}"
        told = {each["kind"] for each in facts["flip"]["inputs"]}
        if told != self.told:
            return f"the difference is not {self.told} but {told}"
        if self.place(facts) is None:
            return f"no place is {self.line}: {self.places(facts)}"
        return ""

    def place(self, facts: dict[str, Any]) -> tuple[str, str] | None:
        """Return the expected place."""
        file, source = self.line
        found = (each for each in self.places(facts) if each[0].endswith(file) and source in each[1])
        return next(found, None)


def _of_inputs(facts: dict[str, Any]) -> list[tuple[str, str]]:
    return [_place(each) for each in facts["flip"]["inputs"]]


def _of_states(facts: dict[str, Any]) -> list[tuple[str, str]]:
    return [_place(each) for each in facts["states"]]


def _of_switches(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """Yield where threads were interrupted, and the first and last lines of other threads meanwhile, or before."""
    flip = facts["flip"]
    found = [_place(each) for each in flip["preemptions"]]
    ran = [ran for each in flip["preemptions"] for ran in each["meanwhile"]]
    ran += [ran for each in flip["switches"] for ran in (*each["first"], *each["then"])]
    ran += [each[name] for each in flip["preemptions"] for name in ("resumed", "called_from") if each[name]]
    return found + [(each["file"], each["function"]) for each in ran]


def _place(each: dict[str, Any]) -> tuple[str, str]:
    return each["file"] or "", each["source"]


BUGS = (
    Bug(
        "marshmallow_fields",
        "marshmallow 3.19.0",
        "https://github.com/marshmallow-code/marshmallow/issues/988",
        "the fields of a record are dumped in the order of a set",
        {"hash seed"},
        _of_states,
        ("marshmallow/schema.py", "for field_name in field_names"),
    ),
    Bug(
        "cachetools_expiry",
        "cachetools 0.8.1",
        "https://github.com/tkem/cachetools/issues/29",
        "`get` raises if an item expires between its two readings of the clock",
        {"answer"},
        _of_inputs,
        ("cachetools/ttl.py", "__timer()"),
        ("-n", "400"),
    ),
    Bug(
        "injector_singleton",
        "injector 0.20.1",
        "https://github.com/python-injector/injector/pull/215",
        "two threads that ask for a singleton at once get two",
        THREADS,
        _of_switches,
        ("injector/__init__.py", ""),
        ("-n", "600", "--chaos"),
    ),
    *(
        Bug(name, "a small program", "", what, THREADS, _of_switches, (f"{name}.py", function), options, folder)
        for name, what, function, options, folder in (
            ("lost_update", "a counter is raised without a lock", "", CHAOS, RACES),
            ("check_then_act", "a balance is checked, then taken from", "", CHAOS, RACES),
            ("lock_order", "two locks are taken in opposite orders", "", CHAOS, RACES),
            ("made_twice", "an instance is made when it is first asked for", "", CHAOS, RACES),
            ("missed_notify", "what is waited for comes before the wait", "", CHAOS, RACES),
            ("order_of_children", "two threads wait for their children", "work", (), FLAKY),
            ("race_beside_random", "a race, of threads that draw random numbers", "cashier", CHAOS, _PROGRAMS),
            ("lazy_cache", "a race, with random keys", "", CHAOS, _PROGRAMS),
            ("stale_copy", "a copy is changed and put back, with the time in it", "", CHAOS, _PROGRAMS),
            ("random_sleeps", "threads sleep for random times", "", (), _PROGRAMS),
            ("late_producer", "a wait is over before the producer comes", "produce", (), _PROGRAMS),
            ("order_of_completion", "results are taken in the order in which they come", "work", (), _PROGRAMS),
            ("deadlock", "two locks are taken in opposite orders, for ever", "work", CHAOS, _PROGRAMS),
        )
    ),
    *(
        Bug(name, "a small program", "", what, told, places, line, ("-n", "400"), folder)
        for name, what, told, places, line, folder in (
            ("order_of_a_set", "the first of a set", {"hash seed"}, _of_states, ("order_of_a_set.py", ""), FLAKY),
            (
                "clock_across_midnight",
                "two readings of the date",
                ANSWER,
                _of_inputs,
                ("midnight.py", "time.time()"),
                FLAKY,
            ),
            ("order_of_listdir", "the order of a directory", ANSWER, _of_inputs, ("listdir.py", "os.listdir"), FLAKY),
            ("draws_in_threads", "threads draw random numbers", ANSWER, _of_inputs, ("random.py", ""), _PROGRAMS),
            ("dice_in_a_pool", "random numbers, beside threads", ANSWER, _of_inputs, ("random.py", ""), _PROGRAMS),
            (
                "set_order_in_threads",
                "the order of a set, beside threads",
                {"hash seed"},
                _of_states,
                ("threads.py", "order = list(names)"),
                _PROGRAMS,
            ),
            ("too_late", "the clock has run out", ANSWER, _of_inputs, ("too_late.py", "perf_counter"), _PROGRAMS),
            ("name_of_a_file", "names of temporary files", ANSWER, _of_inputs, ("random.py", ""), _PROGRAMS),
            (
                "number_of_the_process",
                "the process id",
                ANSWER,
                _of_inputs,
                ("process.py", "getpid"),
                _PROGRAMS,
            ),
        )
    ),
)
