"""Find the object that an expression names in a snapshot, by the names of variables, attributes and items alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeAlias

from replaydbg.errors import UsageError
from replaydbg.heap.labels import INDEX, MEMBER, PLAIN, VALUE, kind_of, number_of
from replaydbg.heap.retention.holding import MAIN, Holding, is_of_lane

MOST_NAMED = 8

Step: TypeAlias = "tuple[int, str | int]"


def find(holding: Holding, source: str) -> int:
    """Return the node of `app.cache['x'][3].price`, or of an address such as `0x7f...`. Raises UsageError.

    A name is a variable of `__main__`, or of a call that is running, or a module.
    """
    text = source.strip()
    # Paths to variables of a call are shown with the function after them.
    expression, is_local, frame = text.partition(" in thread ")
    if not is_local:
        # The form that older versions showed.
        expression, _, frame = text.partition(" in lane ")
    try:
        tree = ast.parse(expression, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UsageError(f"{source!r} cannot be read: {error}.") from None
    if isinstance(tree, ast.Constant) and isinstance(tree.value, int):
        node = holding.snapshot.find(tree.value)
        if node is None:
            raise UsageError(f"The snapshot has no object at {expression}.")
        return node
    steps, name, rest = _steps(source, tree)
    found = [each for each, beginning in _begin(holding, name) if not frame or beginning.startswith(f"thread {frame}")]
    if not found:
        raise UsageError(f"{name!r} is neither a variable nor a module in the snapshot{_known(holding)}.")
    for begin in found:
        at: int | None = begin
        for step in steps:
            at = _follow(holding, at, step) if at is not None else None
        if at is not None:
            return at
    raise UsageError(f"{source!r} is not in the snapshot: {rest or name!r} does not exist there.")


def _steps(source: str, tree: ast.expr) -> tuple[list[Step], str, str]:
    """Return the steps as kinds and names, the variable at the beginning, and the whole source."""
    steps: list[Step] = []
    at = tree
    while not isinstance(at, ast.Name):
        if isinstance(at, ast.Attribute):
            steps.append((PLAIN, f".{at.attr}"))
            at = at.value
            continue
        if not isinstance(at, ast.Subscript):
            raise UsageError(f"{source!r} is a computed value: name a variable, an attribute or an item.")
        key, inner = _constant(source, at.slice), _listed(at.value)
        if inner is not None and isinstance(key, int):
            steps.append((inner[0], key))
            at = inner[1]
            continue
        steps.append((INDEX, key) if type(key) is int and key >= 0 else (PLAIN, f"[{key!r}]"))
        at = at.value
    return steps[::-1], at.id, ast.unparse(tree)


def _constant(source: str, node: ast.expr) -> object:
    try:
        return ast.literal_eval(node)
    except ValueError:
        raise UsageError(f"{source!r}: an index must be a literal number or string.") from None


def _listed(node: ast.expr) -> tuple[int, ast.expr] | None:
    """Return the kind of step, and the expression listed, for `list(x)` and `list(x.values())`."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "list" and node.args):
        return None
    inner = node.args[0]
    if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.func.attr == "values":
        return VALUE, inner.func.value
    return MEMBER, inner


def _begin(holding: Holding, name: str) -> Iterator[tuple[int, str]]:
    """Yield the nodes that a name may mean, with the root that has it."""
    snapshot = holding.snapshot
    roots = sorted(snapshot.roots, key=lambda root: (is_of_lane(root.label), root.label != MAIN))
    for root in roots:
        if root.label == name or root.label.rpartition(".")[2] == name:
            yield root.node, root.label
    for root in roots:
        if is_of_lane(root.label):
            found = _variable(holding, root.node, name)
            if found is None:
                cell = _follow(holding, root.node, (PLAIN, f".<cell {name}>"))
                found = _follow(holding, cell, (PLAIN, ".cell_contents")) if cell is not None else None
        else:
            found = _follow(holding, root.node, (PLAIN, f".{name}")) if root.label == MAIN else None
        if found is not None:
            yield found, root.label


def _variable(holding: Holding, node: int, name: str) -> int | None:
    # A generator's call is represented by the generator.
    for step in ("", ".gi_frame", ".cr_frame", ".ag_frame"):
        found = _follow(holding, node, (PLAIN, f"{step}.f_locals[{name!r}]"))
        if found is not None:
            return found
    return None


def _follow(holding: Holding, node: int, step: Step) -> int | None:
    snapshot = holding.snapshot
    kind, name = step
    for edge in range(snapshot.first_edge[node], snapshot.first_edge[node + 1]):
        label = snapshot.label[edge]
        if kind_of(label) != kind:
            continue
        if name == (snapshot.strings[number_of(label)] if kind == PLAIN else number_of(label)):
            return snapshot.target[edge]
    return None


def _known(holding: Holding) -> str:
    names = [root.label for root in holding.snapshot.roots if not is_of_lane(root.label)]
    more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    return f"; modules are {', '.join(names[:MOST_NAMED])}{more}" if names else ""
