"""Real programs from PyPI and the standard library, recorded once and replayed five times."""
