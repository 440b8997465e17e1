"""Small programs in which values flow in many ways, to compare `why` with the reference in `tests.harness.taint`.

No branch depends on an answer of the outside, and each number is unique: so each origin can be distinguished.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from random import Random

HEAD = """\
import time
class Box:
    def __init__(self, v):
        self.v = v
yes = 1
no = 0
"""

ASKED = ("last", "box.v", "items[0]", "items[1]", "table['k']")
"""Expressions to query at the end besides the variables."""


class Writer:
    """Writes one program."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._numbers = count(100)
        self._names: list[str] = []
        self._functions: list[tuple[str, int]] = []
        self._inside = False

    def program(self) -> str:
        """Return the source."""
        lines = [HEAD]
        for number in range(3):
            lines += self._function(f"f{number}", number % 3)
        lines += self._fails()
        self._names = []
        lines += [f"v0 = {self._number()}", "box = Box(v0)", f"items = [{self._number()}, v0]"]
        lines += [f"table = {{'k': {self._number()}}}"]
        self._names = ["v0", "box.v", "items[0]", "items[1]", "table['k']"]
        for number in range(1, 12):
            lines += self._line(f"v{number}")
        lines += ["last = v0", "yes = 2"]
        return "\n".join(lines) + "\n"

    def variables(self) -> list[str]:
        """Return the expressions to query at the program's end."""
        return [*dict.fromkeys(each for each in self._names)]

    def _number(self) -> str:
        return str(next(self._numbers))

    def _function(self, name: str, parameters: int) -> list[str]:
        self._names = [f"p{each}" for each in range(parameters)]
        self._inside = True
        body = [line for number in range(2) for line in self._line(f"a{number}")]
        body.append(f"return {self._expression(2)}")
        self._inside = False
        head = f"def {name}({', '.join(f'p{each}' for each in range(parameters))}):"
        self._functions.append((name, parameters))
        return [head, *(f"    {each}" for each in body)]

    def _fails(self) -> list[str]:
        self._names = ["p0"]
        return ["def fails(p0):", f"    a0 = {self._expression(1)}", "    time.perf_counter()", "    raise ValueError"]

    # ---- lines ----

    def _line(self, name: str) -> list[str]:
        ways: list[Callable[[str], list[str]]] = [
            self._plain,
            self._plain,
            self._with_discarded,
            self._with_discarded,
            self._with_discarded,
            self._several,
            self._unpacked,
            self._augmented,
            self._chosen,
            self._chosen,
            self._walrus,
            self._twice,
            self._spread,
            self._loop,
        ]
        if not self._inside:
            ways += [self._attribute, self._item, self._key, self._handled, self._comprehension, self._starred]
        found = self._random.choice(ways)(name)
        if name not in self._names:
            self._names.append(name)
        return found

    def _plain(self, name: str) -> list[str]:
        return [f"{name} = {self._expression(2)}"]

    def _discarded(self) -> str:
        return self._random.choice([self._event(), self._call(1), f"abs({self._event()})"])

    def _with_discarded(self, name: str) -> list[str]:
        parts = [f"{name} = {self._expression(2)}", self._discarded()]
        self._random.shuffle(parts)
        return ["; ".join(parts)]

    def _several(self, name: str) -> list[str]:
        first = f"{name}x = {self._expression(1)}"
        self._names.append(f"{name}x")
        return [f"{first}; {name} = {name}x + {self._expression(1)}; {self._discarded()}"]

    def _twice(self, name: str) -> list[str]:
        return [f"{name} = {self._expression(1)}; {name} = {self._expression(1)}"]

    def _unpacked(self, name: str) -> list[str]:
        first, second = self._expression(1), self._expression(1)
        self._names.append(f"{name}x")
        return [f"{name}, {name}x = {first}, {second}", f"{name}, {name}x = {name}x, {name}"]

    def _starred(self, name: str) -> list[str]:
        return [f"{name}, *{name}y = {self._expression(1)}, {self._expression(1)}, {self._expression(1)}"]

    def _augmented(self, name: str) -> list[str]:
        return [f"{name} = {self._expression(1)}", f"{name} += {self._expression(1)}; {self._discarded()}"]

    def _chosen(self, name: str) -> list[str]:
        return [f"{name} = {self._choice(2)}"]

    def _walrus(self, name: str) -> list[str]:
        first = self._expression(1)
        self._names.append(f"{name}x")
        return [f"{name} = ({name}x := {first}) + {self._expression(1)}"]

    def _spread(self, name: str) -> list[str]:
        first, second = self._expression(1), self._expression(1)
        return [f"{name} = max(", f"    {first},", f"    {second})"]

    def _loop(self, name: str) -> list[str]:
        body = f"{name} = {name}i + {self._expression(1)}; {self._discarded()}"
        return [f"for {name}i in [{self._expression(1)}, {self._expression(1)}]:", f"    {body}"]

    def _attribute(self, name: str) -> list[str]:
        return [f"box.v = {self._expression(1)}; {self._discarded()}", f"{name} = box.v"]

    def _item(self, name: str) -> list[str]:
        return [f"items[{self._random.randrange(2)}] = {self._expression(1)}", f"{name} = items[0] + items[1]"]

    def _key(self, name: str) -> list[str]:
        return [f"{self._discarded()}; table['k'] = {self._expression(1)}", f"{name} = table['k']"]

    def _handled(self, name: str) -> list[str]:
        return ["try:", f"    {name} = fails({self._expression(1)})", "except ValueError:", *self._plain(f"    {name}")]

    def _comprehension(self, name: str) -> list[str]:
        return [f"{name}y = [{name}z + {self._expression(1)} for {name}z in [1, 2]]", f"{name} = {name}y[1]"]

    # ---- expressions ----

    def _event(self) -> str:
        return self._random.choice(["time.perf_counter()", "time.monotonic_ns()"])

    def _call(self, depth: int) -> str:
        if not self._functions:
            return self._event()
        name, parameters = self._random.choice(self._functions)
        given = [self._expression(depth - 1) for _ in range(parameters)]
        if parameters == 2 and self._random.random() < 0.4:
            return f"{name}(p1={given[1]}, p0={given[0]})"
        return f"{name}({', '.join(given)})"

    def _choice(self, depth: int) -> str:
        first, second = self._expression(depth - 1), self._expression(depth - 1)
        forms = [
            f"{first} if {self._random.choice(['yes', 'no'])} else {second}",
            f"no or {first}",
            f"{first} or {second}",
            f"yes and {second}",
            f"{first} and {second}",
        ]
        return f"({self._random.choice(forms)})"

    def _expression(self, depth: int) -> str:
        leaves: list[Callable[[], str]] = [
            self._number,
            self._event,
            lambda: self._random.choice(self._names or ["yes"]),
        ]
        if depth <= 0:
            return self._random.choice([*leaves, leaves[-1]])()
        deeper: list[Callable[[], str]] = [
            lambda: f"{self._expression(depth - 1)} + {self._expression(depth - 1)}",
            lambda: f"abs({self._expression(depth - 1)})",
            lambda: f"max({self._expression(depth - 1)}, {self._expression(depth - 1)})",
            lambda: self._call(depth),
            lambda: self._call(depth),
            lambda: self._choice(depth),
        ]
        return self._random.choice([*leaves, *deeper])()
