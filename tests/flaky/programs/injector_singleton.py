# mypy: ignore-errors
# ruff: noqa
"""Two threads ask for a singleton at once, and get two.

injector 0.20.1; https://github.com/python-injector/injector/pull/215
"""

import threading

from injector import Injector, singleton


@singleton
class Connection:
    pass


injector = Injector(auto_bind=True)
found: list[Connection] = []


def ask() -> None:
    found.append(injector.get(Connection))


threads = [threading.Thread(target=ask) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(set(map(id, found))), "connections")
assert len(found) == 2 and found[0] is found[1], "there are two singletons"
