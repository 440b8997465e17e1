# mypy: ignore-errors
# ruff: noqa
"""Two cashiers look at the balance before they take random amounts: the order of the threads decides, not the amounts."""

import random
import threading

balance = 100


def cashier() -> None:
    global balance
    for _ in range(6):
        amount = random.randint(30, 35)
        if balance >= amount:
            left = balance - amount
            balance = left
            taken.append(amount)


taken: list[int] = []
threads = [threading.Thread(target=cashier, name=name) for name in ("ann", "bob")]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(balance, taken)
assert sum(taken) <= 100, "more was taken than there was"
