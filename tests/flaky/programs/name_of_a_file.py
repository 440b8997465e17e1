# mypy: ignore-errors
# ruff: noqa
"""Two temporary files are sorted by their names, which are random: the newer one may come first."""

import os
import tempfile

with tempfile.TemporaryDirectory() as place:
    names = [tempfile.NamedTemporaryFile(dir=place, delete=False).name for _ in range(2)]
    is_sorted = sorted(names) == names
print(is_sorted)
assert is_sorted, "the newer file comes first"
