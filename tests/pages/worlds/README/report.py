"""A monthly report that fails, and an account that is overdrawn before."""
import time


class Account:
    def __init__(self, balance):
        self.balance = balance


def twice(n):
    # Each month counts for the report and for the account.
    doubled = n * 2
    return doubled


def hidden(items): items.append("hidden")


results = []
started = time.time()
for number in range(5):
    results.append(twice(number))
account = Account(2)
hidden(results)


setattr(account, "balance", account.balance - 3)
print("balance", account.balance, flush=True)

raise RuntimeError(results[-1])
