"""A lazy property is computed by whoever comes first, without a lock: it is computed twice, and two objects exist.

After https://github.com/astropy/astropy/issues/11221 and https://github.com/pallets-eco/blinker/issues/21.
"""

import os
import sys
import threading


class Parser:
    @property
    def tables(self):
        if "tables" not in self.__dict__:
            with open(os.devnull, "rb") as file:  # the tables are read from a file
                file.read()
            self.__dict__["tables"] = object()
        return self.__dict__["tables"]


parsers = [Parser() for _ in range(50)]
seen = [set() for _ in parsers]


def parse():
    start.wait()
    for number, parser in enumerate(parsers):
        seen[number].add(parser.tables)


start = threading.Barrier(3)
threads = [threading.Thread(target=parse) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
twice = [number for number, tables in enumerate(seen) if len(tables) > 1]
print("BUG" if twice else "ok", twice)
sys.exit(bool(twice))
