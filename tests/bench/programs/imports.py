"""Imports three packages that many programs import."""

import sys
from importlib import import_module

for name in ("aiohttp", "pandas", "sqlalchemy"):
    import_module(name)
print(len(sys.modules) > 1_000)
