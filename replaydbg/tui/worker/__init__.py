"""What asks the debugger while the panels are drawn: the session's thread, and the data that it makes for them."""
