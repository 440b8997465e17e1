import sys

sys.path.insert(0, ".")
from orders import Cache


def test_order():
    cache = Cache()
    cache.put("answer", 42)
    sum(range(10_000))
    assert cache.get("answer") == 42
