"""Source text of the program: files, statements, stores and the flow of values in expressions."""
