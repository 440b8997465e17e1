"""The engine of the debugger: processes at moments of a replay, and their protocol."""
