"""Which functions are gated: a table. The C core binds it; nothing here runs inside the program."""
