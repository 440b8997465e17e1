"""A reference for the origins of values: a small interpreter that carries labels along with each value.

It knows enough Python for the programs of `tests.harness.tainted_programs`. Each constant is a label, and so
is each input from outside. A value has the labels that it was made from, and those of the containers that it was
taken out of.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

OUTSIDE = ("perf_counter", "monotonic_ns")
"""Functions of `time`: each call is an event, and its answer a label of its own."""


@dataclass(slots=True)
class Tainted:
    """A value with its labels."""

    value: Any
    """A number, or a list, a dict or an object of tainted values."""
    labels: frozenset[str] = frozenset()
    """The labels of the values from which it was made."""
    around: frozenset[str] = frozenset()
    """The labels of the containers from which it was taken."""

    def all_labels(self) -> frozenset[str]:
        """Return its labels and those of its items."""
        items = list(self.value) if isinstance(self.value, list) else []
        items += self.value.values() if isinstance(self.value, dict) else ()
        return self.labels.union(*(each.all_labels() for each in items))

    def confirmed(self) -> frozenset[str]:
        """Return the permitted origins of it."""
        items = list(self.value) if isinstance(self.value, list) else []
        return self.all_labels() | self.around.union(*(each.confirmed() for each in items))


class Returned(Exception):
    """A function returns."""


class Raised(Exception):
    """The program raises."""


@dataclass(slots=True)
class Reference:
    """Runs a program."""

    names: dict[str, Tainted] = field(default_factory=dict)
    """The module's variables."""
    functions: dict[str, ast.FunctionDef] = field(default_factory=dict)
    events: int = 0
    returned: Tainted | None = None

    def run(self, source: str) -> None:
        """Run a module."""
        self._block(ast.parse(source).body, self.names)

    def value(self, expression: str) -> Tainted:
        """Return the present value of an expression of the module."""
        return self._value(ast.parse(expression, mode="eval").body, self.names)

    # ---- statements ----

    def _block(self, statements: list[ast.stmt], names: dict[str, Tainted]) -> None:
        for each in statements:
            self._statement(each, names)

    def _statement(self, node: ast.stmt, names: dict[str, Tainted]) -> None:
        match node:
            case ast.FunctionDef():
                self.functions[node.name] = node
            case ast.Import() | ast.ClassDef():
                pass
            case ast.Expr():
                self._value(node.value, names)
            case ast.Assign():
                value = self._value(node.value, names)
                for target in node.targets:
                    self._store(target, value, names)
            case ast.AugAssign():
                old = self._value(_as_load(node.target), names)
                added = self._value(node.value, names)
                self._store(node.target, _made(old.value + added.value, old, added), names)
            case ast.For():
                values = self._value(node.iter, names)
                for each in values.value:
                    self._store(node.target, _taken(each, values), names)
                    self._block(node.body, names)
            case ast.If():
                self._block(node.body if self._value(node.test, names).value else node.orelse, names)
            case ast.Try():
                try:
                    self._block(node.body, names)
                except Raised:
                    self._block(node.handlers[0].body, names)
            case ast.Raise():
                raise Raised
            case ast.Return():
                assert node.value is not None
                self.returned = self._value(node.value, names)
                raise Returned
            case _:
                raise NotImplementedError(ast.dump(node))

    def _store(self, target: ast.expr, value: Tainted, names: dict[str, Tainted]) -> None:
        match target:
            case ast.Name():
                names[target.id] = value
            case ast.Tuple():
                for at, each in enumerate(target.elts):
                    if isinstance(each, ast.Starred):
                        rest = Tainted(value.value[at:], around=value.confirmed())
                        self._store(each.value, rest, names)
                    else:
                        self._store(each, _taken(value.value[at], value), names)
            case ast.Subscript():
                key = self._value(target.slice, names).value
                self._value(target.value, names).value[key] = value
            case ast.Attribute():
                self._value(target.value, names).value[target.attr] = value
            case _:
                raise NotImplementedError(ast.dump(target))

    # ---- expressions ----

    def _value(self, node: ast.expr, names: dict[str, Tainted]) -> Tainted:
        match node:
            case ast.Constant():
                return Tainted(node.value, frozenset({f"constant {node.value!r}"}))
            case ast.Name():
                return names[node.id] if node.id in names else self.names[node.id]
            case ast.BinOp():
                left, right = self._value(node.left, names), self._value(node.right, names)
                is_sum = isinstance(node.op, ast.Add)
                return _made(left.value + right.value if is_sum else left.value * right.value, left, right)
            case ast.IfExp():
                return self._value(node.body if self._value(node.test, names).value else node.orelse, names)
            case ast.BoolOp():
                return self._of_bool(node, names)
            case ast.NamedExpr():
                value = self._value(node.value, names)
                self._store(node.target, value, names)
                return value
            case ast.Tuple() | ast.List():
                return Tainted([self._value(each, names) for each in node.elts])
            case ast.Dict():
                keys = [self._value(each, names).value for each in node.keys if each is not None]
                pairs = zip(keys, node.values, strict=True)
                return Tainted({key: self._value(value, names) for key, value in pairs})
            case ast.Subscript():
                owner = self._value(node.value, names)
                return _taken(owner.value[self._value(node.slice, names).value], owner)
            case ast.Attribute():
                owner = self._value(node.value, names)
                return _taken(owner.value[node.attr], owner)
            case ast.ListComp():
                return self._of_comprehension(node, names)
            case ast.Call():
                return self._of_call(node, names)
            case _:
                raise NotImplementedError(ast.dump(node))

    def _of_bool(self, node: ast.BoolOp, names: dict[str, Tainted]) -> Tainted:
        for each in node.values:
            value = self._value(each, names)
            if bool(value.value) is isinstance(node.op, ast.Or):
                break
        return value

    def _of_comprehension(self, node: ast.ListComp, names: dict[str, Tainted]) -> Tainted:
        (part,) = node.generators
        values = self._value(part.iter, names)
        found = []
        for each in values.value:
            inner = dict(names)
            self._store(part.target, _taken(each, values), inner)
            found.append(self._value(node.elt, inner))
        return Tainted(found)

    def _of_call(self, node: ast.Call, names: dict[str, Tainted]) -> Tainted:
        if isinstance(node.func, ast.Attribute) and node.func.attr in OUTSIDE:
            self.events += 1
            return Tainted(3, frozenset({f"event {self.events}"}))
        assert isinstance(node.func, ast.Name)
        name = node.func.id
        given = [self._value(each, names) for each in node.args]
        by_name = {str(each.arg): self._value(each.value, names) for each in node.keywords}
        if name in ("abs", "max", "float"):
            return _made(max(each.value for each in given), *given)
        if name == "Box":
            return Tainted({"v": given[0]})
        function = self.functions[name]
        parameters = [each.arg for each in function.args.args]
        try:
            self._block(function.body, dict(zip(parameters, given, strict=False)) | by_name)
        except Returned:
            assert self.returned is not None
            return self.returned
        return Tainted(None)


def _made(value: Any, *parts: Tainted) -> Tainted:
    return Tainted(
        value,
        frozenset().union(*(each.all_labels() for each in parts)),
        frozenset().union(*(each.around for each in parts)),
    )


def _taken(value: Tainted, owner: Tainted) -> Tainted:
    if isinstance(value.value, (list, dict)):
        return value
    return Tainted(value.value, value.labels, value.around | owner.confirmed())


def _as_load(target: ast.expr) -> ast.expr:
    return ast.parse(ast.unparse(target), mode="eval").body
