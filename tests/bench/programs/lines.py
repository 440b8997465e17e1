"""A little of everything, about six million lines: recursion, loops, exceptions, generators, instances, sort keys."""

from collections.abc import Iterator


def fibonacci(number: int) -> int:
    return number if number < 2 else fibonacci(number - 1) + fibonacci(number - 2)


class Vector:
    def __init__(self, x: int, y: int) -> None:
        self.x = x
        self.y = y

    def plus(self, other: "Vector") -> "Vector":
        return Vector(self.x + other.x, self.y + other.y)


def thirds(count: int) -> Iterator[int]:
    for number in range(count):
        if number % 3 == 0:
            yield number


def loops(count: int) -> int:
    total = 0
    for number in range(count):
        twice = number * 2
        less = twice - 1
        if less % 7 == 3:
            total += less
        else:
            total -= 1
    return total


def exceptions(count: int) -> int:
    caught = 0
    for number in range(count):
        try:
            if number % 10 == 0:
                raise ValueError(number)
            caught += 1
        except ValueError:
            caught -= 1
    return caught


def main() -> None:
    for _ in range(3):
        fibonacci(22)
        loops(200_000)
        exceptions(60_000)
        sum(thirds(150_000))
        vector = Vector(0, 0)
        for number in range(40_000):
            vector = vector.plus(Vector(number, 1))
        numbers = [(number * 7919) % 10_007 for number in range(30_000)]
        numbers.sort(key=lambda number: -number)


if __name__ == "__main__":
    main()
