"""Test suites of packages from PyPI: run plainly, run with the pytest plugin, compared test by test, and replayed."""
