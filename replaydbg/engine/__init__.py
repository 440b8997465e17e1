"""The engine of the debugger: processes that stand at moments of a replay, and what is said to them and by them."""
