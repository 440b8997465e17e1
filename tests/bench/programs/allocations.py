"""Makes and drops many objects while 50,000 that were hashed by their identity stay alive."""


class Node:
    """A node of a tree."""

    __slots__ = ("left", "right")
    left: "Node | None"
    right: "Node | None"


class Key:
    """Hashed by its identity."""


def tree(depth: int) -> Node:
    """Makes 2 ** depth nodes."""
    node = Node()
    node.left = tree(depth - 1) if depth else None
    node.right = tree(depth - 1) if depth else None
    return node


def containers(rounds: int) -> int:
    """Makes and drops lists, tuples, dictionaries, strings and floats."""
    found = 0
    for number in range(rounds):
        numbers = [number, number + 1]
        pair = (number, numbers)
        table = {"pair": pair, number: 1.5 * number}
        found += len(table) + len(f"{number}:{pair}") + len({Key() for _ in range(2)})
    return found


def main() -> None:
    """About ten million objects."""
    keys = {Key() for _ in range(50_000)}
    for _ in range(6):
        tree(15)
    print(containers(600_000) + len(keys))


main()
