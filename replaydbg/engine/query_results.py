"""Results of the queries that the probe answers."""

from __future__ import annotations

from replaydbg.classes import dataclass, field


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable, or a part of a value."""

    name: str
    type: str
    """The qualified name of its type."""
    text: str
    """Its repr, cut to some 400 characters."""
    parts: int
    """How many items or attributes it has."""
    digest: int = field(default=0, compare=False, repr=False)
    """The same for equal values in whatever run; odd if a part of the value is an object of C code, whose content is
    not known without running it."""
    is_shown: bool = field(default=True, compare=False, repr=False)
    """Whether `text` is its repr: that of a value whose `__repr__` takes too long is the reason."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The result of an expression or statements."""

    value: Variable | None
    """None of a statement, or if it raised."""
    output: str
    """The text that it printed."""
    error: str | None
    """The exception that it raised."""
    truth: bool | None = None
    """Whether the value is true, if that was asked."""


@dataclass(frozen=True, slots=True)
class Task:
    """An asyncio task that is not done."""

    name: str
    frames: tuple[tuple[str, int, str], ...]
    """Coroutines that wait for each other, outermost first: file, line, qualified name."""
    waits_for: str
    """The future that the innermost one waits for; empty: it can run."""
    is_running: bool = False
    """Whether it is the one that runs."""
    awaits: tuple[int, ...] = ()
    """The places, in the same list, of the tasks that it awaits: it goes on when one of them, or all, are done."""


@dataclass(frozen=True, slots=True)
class LoadedModule:
    """A module that the program has loaded."""

    name: str
    file: str
    """Empty: it has none, as modules in C within the interpreter."""
    variables: int
    """Number of its variables, without those that Python itself defines, such as `__file__`."""


@dataclass(frozen=True, slots=True)
class VariableHome:
    """The namespace in which a variable lives that a frame sees."""

    kind: str
    """`local`, `global`, `module` if it is named by its module, `lost` if it cannot be tracked, or `absent`."""
    is_cell: bool = False
    """Of a local one: whether it lives in a cell that functions share."""
    detail: str = ""
    """Of a global one: the name of its module; of a lost one: the reason."""
    step: int = 0
    """If it is named by its module: which step from the first name is the variable."""


@dataclass(frozen=True, slots=True)
class DictEntry:
    """A key that a dictionary holds."""

    key: int
    """Its address."""
    type: int
    """The address of its type."""
    hash: int
    """The hash under which it is held."""


@dataclass(frozen=True, slots=True)
class SequenceItems:
    """The items of a sequence."""

    is_named: bool
    """Whether the expression that was given names the sequence."""
    items: list[int]
    """The address of each."""


@dataclass(frozen=True, slots=True)
class ObjectContent:
    """The content of an object, as far as it is seen without running code of the program."""

    type: str
    text: str
    held: int
    """A digest of the containers in it."""
    parts: dict[str, tuple[int, str]]
    """Identity and text of each item and attribute, by its name."""


@dataclass(frozen=True, slots=True)
class Exported:
    """An object, pickled."""

    type: str
    text: str
    lost: tuple[tuple[str, str, str], ...]
    """Path, type and reason of each part that could not be pickled."""
    data: bytes
