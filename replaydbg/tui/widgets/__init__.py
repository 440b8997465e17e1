"""What panels and dialogs are made of: rows with a cursor, plain text, and the symbols of the terminal."""
