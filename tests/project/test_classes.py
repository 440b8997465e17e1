"""Classes made by `replaydbg.classes` behave as those of the standard library."""

import copy
import dataclasses
import pickle
import subprocess
import sys
import typing
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from replaydbg import classes

_SOURCE = '''
from __future__ import annotations


@dataclass(frozen=True, slots=True)
class Frozen:
    """A value."""

    number: int
    text: str = "none"
    words: list[str] = field(default_factory=list)
    hidden: int = field(default=0, compare=False, repr=False)

    LIMIT = 5

    @property
    def double(self) -> int:
        return 2 * self.number


@dataclass(slots=True)
class Changing:
    a: int
    b: int = 2


@dataclass(frozen=True, slots=True, eq=False)
class Itself:
    a: int


class Row(NamedTuple):
    """One row."""

    name: str
    """Its name."""
    flags: int = 1
    note: Unknown | None = None

    @property
    def full(self) -> str:
        return f"{self.name}!"
'''


def _made(names: dict[str, Any]) -> ModuleType:
    module = ModuleType("made_by_" + str(len(sys.modules)))
    module.__dict__.update(names)
    sys.modules[module.__name__] = module
    exec(_SOURCE, module.__dict__)
    return module


@pytest.fixture
def pair() -> Any:
    standard = _made({"dataclass": dataclasses.dataclass, "field": dataclasses.field, "NamedTuple": typing.NamedTuple})
    ours = _made({"dataclass": classes.dataclass, "field": classes.field, "NamedTuple": classes.NamedTuple})
    yield standard, ours
    del sys.modules[standard.__name__], sys.modules[ours.__name__]


def _outcome(act: Any) -> Any:
    try:
        return act()
    except (TypeError, AttributeError) as error:
        return type(error)


_ACTS = {
    "made": lambda m: repr(m.Frozen(1, words=["x"])),
    "made by names": lambda m: repr(m.Changing(b=3, a=1)),
    "too few": lambda m: m.Frozen(),
    "too many": lambda m: m.Changing(1, 2, 3),
    "unknown name": lambda m: m.Changing(1, c=2),
    "equal": lambda m: (m.Frozen(1) == m.Frozen(1), m.Frozen(1) == m.Frozen(2), m.Frozen(1) == 1),
    "equal by identity": lambda m: (m.Itself(1) == m.Itself(1), isinstance(hash(m.Itself(1)), int)),
    "other class": lambda m: m.Changing(1) == m.Itself(1),
    "equal but for a hidden field": lambda m: (m.Frozen(1, hidden=2) == m.Frozen(1), m.Frozen(1, hidden=2).hidden),
    "hash": lambda m: hash(m.Frozen(1, words=())) == hash(m.Frozen(1, words=())),
    "hash of parts": lambda m: hash(m.Frozen(1)),
    "hash of a changing one": lambda m: hash(m.Changing(1)),
    "change": lambda m: setattr(m.Frozen(1), "number", 2),
    "delete": lambda m: delattr(m.Frozen(1), "number"),
    "new attribute": lambda m: setattr(m.Changing(1), "c", 2),
    "own lists": lambda m: m.Frozen(1).words is m.Frozen(1).words,
    "copy": lambda m: (copy.copy(m.Frozen(1)) == m.Frozen(1), copy.deepcopy(m.Changing(1)) == m.Changing(1)),
    "pickle": lambda m: pickle.loads(pickle.dumps(m.Frozen(1, "a"))) == m.Frozen(1, "a"),
    "match": lambda m: (m.Frozen.__match_args__, m.Changing.__match_args__),
    "property": lambda m: (m.Frozen(4).double, m.Frozen.LIMIT, m.Frozen.__doc__, m.Frozen.__qualname__),
    "as dict": lambda m: dataclasses.asdict(m.Frozen(1, words=["x"])),
    "replace": lambda m: repr(dataclasses.replace(m.Frozen(1, "a"), number=2)),
    "fields": lambda m: [(each.name, each.type, each.compare, each.default) for each in dataclasses.fields(m.Frozen)],
    "is one": lambda m: (dataclasses.is_dataclass(m.Frozen), dataclasses.is_dataclass(m.Row)),
    "weak": lambda m: hasattr(m.Frozen(1), "__dict__"),
    "tuple": lambda m: (m.Row("a"), m.Row("a", note=3), m.Row("a").full, m.Row._fields, m.Row.__doc__),
    "tuple repr": lambda m: repr(m.Row("a", 2)),
    "tuple replace": lambda m: m.Row("a")._replace(flags=3),
    "tuple too few": lambda m: m.Row(),
    "tuple defaults": lambda m: (m.Row._field_defaults, m.Row.__mro__[1:], m.Row.__qualname__),
    "tuple annotations": lambda m: list(m.Row.__annotations__),
    "tuple pickle": lambda m: pickle.loads(pickle.dumps(m.Row("a"))),
    "tuple attribute": lambda m: setattr(m.Row("a"), "other", 1),
    "tuple module": lambda m: m.Row.__module__ == m.__name__,
}


def test_conversions(pair: tuple[ModuleType, ModuleType]) -> None:
    """The functions of `classes` for its own classes."""
    _, ours = pair
    value = ours.Frozen(1, words=[ours.Changing(2), (ours.Itself(3), {"x": ours.Itself(4)})])

    assert classes.asdict(value) == dataclasses.asdict(value)
    assert list(classes.asdict(value)) == ["number", "text", "words", "hidden"]
    assert classes.astuple(ours.Changing(1)) == dataclasses.astuple(ours.Changing(1)) == (1, 2)


@pytest.mark.parametrize("act", _ACTS.values(), ids=_ACTS.keys())
def test_both_do_the_same(pair: tuple[ModuleType, ModuleType], act: Any) -> None:
    standard, ours = pair

    expected, found = _outcome(lambda: act(standard)), _outcome(lambda: act(ours))

    assert found == expected


def test_replace(pair: tuple[ModuleType, ModuleType]) -> None:
    value = pair[1].Frozen(1, "a")

    changed = classes.replace(value, number=2)

    assert (changed.number, changed.text, value.number) == (2, "a", 1)


def test_fields_that_are_not_compared() -> None:
    from replaydbg.events.run_facts import End

    names = [name for name in End.__match_args__ if name != "raw"]
    given = dict.fromkeys(names, 1)

    one, other = End(**given, raw=1), End(**given, raw=2)  # type: ignore[arg-type]

    assert one == other
    assert hash(one) == hash(other)
    assert "raw" not in repr(one)


def test_data_classes_without_slots_are_refused() -> None:
    with pytest.raises(TypeError):
        classes.dataclass(frozen=True)


HEAVY = {"typing", "dataclasses", "inspect", "argparse", "gettext", "locale", "platform", "threading", "zstandard"}
"""Modules that take a millisecond each, with what they import."""


@pytest.mark.parametrize("command", ["record", "replay"])
def test_commands_on_the_way_to_a_program_import_little(command: str, tmp_path: Path) -> None:
    """Every recording and every replay pays for each of them."""
    program = tmp_path / "empty.py"
    program.write_text("")
    recorded = ["record", "-q", "-o", "r.rdbg", "--", "empty.py"]
    script = (
        "import sys, atexit; from replaydbg.cli.main import main;"
        "atexit.register(lambda: print(*sys.modules)); sys.exit(main())"
    )

    def modules(*words: str) -> set[str]:
        done = subprocess.run(
            [sys.executable, "-c", script, *words], capture_output=True, text=True, check=True, cwd=tmp_path
        )
        return set(done.stdout.split())

    before = set(subprocess.check_output([sys.executable, "-c", "import sys; print(*sys.modules)"], text=True).split())
    found = modules(*recorded)
    if command == "replay":
        found = modules("replay", "-q", "r.rdbg")

    assert not HEAVY & (found - before)
