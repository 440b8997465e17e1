"""The question that a replay of edited code passes to the pytest plugin in the program's process."""

VARIABLE = "REPLAYDBG_PYTEST_ASKED"
"""The environment variable that carries it. No recording contains it."""
