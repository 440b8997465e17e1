# mypy: ignore-errors
# ruff: noqa
"""An item expires between the two looks at the clock that `get` takes: it raises instead of giving the default.

cachetools 0.8.1; https://github.com/tkem/cachetools/issues/29
"""

import collections
import collections.abc

# This version is older than Python 3.10, where the old names have gone.
collections.MutableMapping = collections.abc.MutableMapping

from cachetools import TTLCache

cache = TTLCache(maxsize=4, ttl=0.001)
cache["answer"] = 42
looks = 0
for _ in range(500):
    looks += 1
    sum(range(300))
    if cache.get("answer") is None:
        break
print("expired in time" if looks < 500 else "never expired")
