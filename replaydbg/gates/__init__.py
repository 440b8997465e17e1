"""The table of gated functions. The C core binds it; nothing here runs inside the program."""
