"""The thread that asks the debugger while the panels are drawn, and the data that it makes for them."""
