"""Predicates that can be evaluated at any moment: an expression, a function, an invariant, a pattern."""

from __future__ import annotations

import ast
import re
import tokenize
import warnings
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from replaydbg.classes import dataclass
from replaydbg.engine.queries import PredicateQuery
from replaydbg.errors import UsageError

Kind = Literal["bad", "check", "raises", "function", "invariant", "output", "raised"]

_UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)

MOST_SHOWN = 12
"""The most parts of an expression that are shown with their values."""


class OnlyAt(NamedTuple):
    """A place of the program: a line, or the first line of each call of a function."""

    file: str
    """As its code names it; empty: any."""
    line: int
    """0: the first line of a call of `function`."""
    function: str

    def __str__(self) -> str:
        name = Path(self.file).name
        return f"{name}:{self.line}" if self.line else f"the start of {self.function}()"


Q = TypeVar("Q", bound=PredicateQuery[Any])


@dataclass(frozen=True, slots=True)
class Predicate:
    """A question about a moment. Made by the functions below, which check it."""

    kind: Kind
    """Bad is: `bad`, a true expression; `check`, a false one; `raises`, one that raises; `function`, one that returns
    something true; `invariant`, one of the program's that does not hold. For events up to then:
    `output`, a match in what was printed; `raised`, an exception of that type."""
    source: str
    """The expression, the invariant's name, the pattern or the type; of a function the text of its file."""
    module: str = "__main__"
    """In whose names an expression is evaluated."""
    frame: str = ""
    """A function: evaluate with the names of its innermost call in the running thread, or of the only suspended call
    (in another thread, a generator or a coroutine). Without such a call, the verdict is undecided."""
    started: int = 0
    """With `frame`: the call, by the count of its first line; 0: any call."""
    file: str = ""
    """Of a function: where it is from."""
    name: str = ""
    """Of a function: its name."""
    only_at: OnlyAt | None = None
    """The place at which it is evaluated; it is undecided elsewhere. None: every line."""

    @property
    def is_of_history(self) -> bool:
        """Whether it is about past events, which the recording's index answers without a probe."""
        return self.kind in ("output", "raised")

    @property
    def text(self) -> str:
        """Human-readable form of the predicate."""
        place = f" in {self.frame}()" if self.frame else f" in {self.module}" if self.module != "__main__" else ""
        at = f", evaluated only at {self.only_at}" if self.only_at is not None else ""
        text = {
            "bad": f"{self.source}{place}",
            "check": f"not ({self.source}){place}",
            "raises": f"{self.source} raises{place}",
            "function": f"{self.name}() of {Path(self.file).name}",
            "invariant": f"invariant {self.source} does not hold",
            "output": f"the output matches {self.source!r}",
            "raised": f"{self.source} was raised",
        }[self.kind]
        return text + at

    @property
    def parts(self) -> tuple[str, ...]:
        """The values that an expression is made of, as expressions."""
        if self.kind not in ("bad", "check", "raises"):
            return ()
        return tuple(_parts(ast.parse(self.source, mode="eval").body))[:MOST_SHOWN]

    def query(self, query: type[Q], *, source: str | None = None, **more: str) -> Q:
        """Return a query of that type about the predicate, or about another `source`; `more` are its own fields."""
        at = self.only_at
        return query(
            kind=self.kind,
            source=self.source if source is None else source,
            module=self.module,
            function=self.frame,
            started=self.started,
            file=self.file,
            name=self.name,
            only_at=(at.file, at.line, at.function) if at is not None else (),
            **more,
        )


def bad_if(expression: str, *, module: str = "__main__", frame: str = "") -> Predicate:
    """Return the predicate that is bad where `expression` is true. Raises UsageError if it cannot be read."""
    return Predicate("bad", _readable(expression), module, frame)


def check(expression: str, *, module: str = "__main__", frame: str = "", started: int = 0) -> Predicate:
    """Return the predicate that is bad where `expression` is false. Raises UsageError if it cannot be read."""
    return Predicate("check", _readable(expression), module, frame, started)


def raises(what: str, *, module: str = "__main__", frame: str = "") -> Predicate:
    """Return the predicate that is bad where an expression raises; of an exception's name, from where it was raised.

    A name that is not there yet (NameError) leaves an expression undecided. Raises UsageError if it cannot be read.
    """
    readable = _readable(what)
    if re.fullmatch(r"[\w.]+", readable):
        return Predicate("raised", readable, module, frame)
    return Predicate("raises", readable, module, frame)


def function(place: str, *, module: str = "__main__", frame: str = "") -> Predicate:
    """Return the predicate of a function, `FILE.py:NAME`: it is given a dictionary of names, if it takes anything.

    It is bad where the function returns something true, or an assertion in it fails. Raises UsageError.
    """
    path, _, name = place.rpartition(":")
    if not path or not name.isidentifier():
        raise UsageError(f"FILE.py:NAME expected (got {place!r}).")
    try:
        with tokenize.open(path) as file:
            source = file.read()
        tree = ast.parse(source, path)
        _compile(source, path, "exec")
    except OSError as error:
        raise UsageError(f"{path!r} cannot be read: {error.strerror}.") from None
    except _UNREADABLE as error:
        raise UsageError(f"{path!r} is not valid Python: {error}.") from None
    if not any(isinstance(each, ast.FunctionDef) and each.name == name for each in tree.body):
        raise UsageError(f"{path!r} has no function {name!r}.")
    return Predicate("function", source, module, frame, file=str(Path(path).resolve()), name=name)


def invariant(name: str) -> Predicate:
    """Return the predicate of an invariant that the program has given to `replaydbg.check`, by its name."""
    return Predicate("invariant", name)


def output(pattern: str) -> Predicate:
    """Return the predicate that is bad once what was printed matches a regular expression. Raises UsageError."""
    try:
        re.compile(pattern)
    except re.error as error:
        raise UsageError(f"{pattern!r} is not a regular expression: {error}.") from None
    return Predicate("output", pattern)


def _readable(expression: str) -> str:
    source = expression.strip()
    try:
        # Not only read: 'await' and 'yield' are refused by the compiler.
        _compile(source, "<expression>", "eval")
        value = ast.parse(source, mode="eval").body
    except _UNREADABLE as error:
        raise UsageError(f"{expression!r} is not an expression: {getattr(error, 'msg', error)}.") from None
    if isinstance(value, ast.Constant) and isinstance(value.value, (str, bytes)):
        # A non-empty string is true at every moment: surely a mistake.
        raise UsageError(f"{source} is a string, not a condition: remove the quotes.")
    return source


def _compile(source: str, file: str, mode: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compile(source, file, mode)


def _parts(node: ast.AST, inner: frozenset[str] = frozenset()) -> dict[str, None]:
    """The operands, and the names, attributes and items in them; not what only a comprehension knows."""
    found: dict[str, None] = {}
    if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda)):
        inner |= {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
        inner |= {each.arg for each in ast.walk(node) if isinstance(each, ast.arg)}
    names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    is_value = isinstance(node, (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.BinOp))
    is_called = isinstance(node, ast.Call)
    if is_value and names and not names & inner:
        found[ast.unparse(node)] = None
    for child in ast.iter_child_nodes(node):
        # The called function and the methods of a value are not interesting.
        if is_called and child is getattr(node, "func", None):
            child = child.value if isinstance(child, ast.Attribute) else ast.Constant(None)
        found |= _parts(child, inner)
    return found
