"""Pure computation: function calls, lists, dictionaries, strings, integers and floats, and no crossing at all."""


def primes(limit: int) -> int:
    """How many primes lie below `limit`."""
    sieve = [True] * limit
    for number in range(2, int(limit**0.5) + 1):
        if sieve[number]:
            for multiple in range(number * number, limit, number):
                sieve[multiple] = False
    return sum(sieve) - 2


def fibonacci(number: int) -> int:
    """By plain recursion: what it costs is calls."""
    return number if number < 2 else fibonacci(number - 1) + fibonacci(number - 2)


def words(count: int) -> int:
    """Counts words that it puts together itself."""
    seen: dict[str, int] = {}
    for number in range(count):
        word = f"w{number * 7919 % 1009}"
        seen[word] = seen.get(word, 0) + len(word)
    return sum(seen.values())


def iterate(steps: int) -> float:
    """The logistic map: floats alone."""
    value = 0.4
    for _ in range(steps):
        value = 3.7 * value * (1.0 - value)
    return value


if __name__ == "__main__":
    print(primes(6_000_000), fibonacci(31), words(5_000_000), iterate(20_000_000))
