"""The session's thread, and all that runs in it: it asks the debugger, and creates the data that the panels draw."""
