"""How a replay of edited code tells the pytest plugin in the program's process what is asked of it."""

VARIABLE = "REPLAYDBG_PYTEST_ASKED"
"""The variable of its environment. No recording has it."""
