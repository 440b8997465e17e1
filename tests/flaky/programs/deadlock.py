# mypy: ignore-errors
# ruff: noqa
"""Two threads take two locks in opposite orders: each has one in some runs, and waits for the other one for ever."""

import threading

first, second = threading.Lock(), threading.Lock()


def work(one: threading.Lock, other: threading.Lock) -> None:
    for _ in range(4):
        with one:
            with other:
                pass


threads = [
    threading.Thread(target=work, args=(first, second), name="forwards"),
    threading.Thread(target=work, args=(second, first), name="backwards"),
]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
