"""Parts of panels and dialogs: rows with a cursor, plain text, and the symbols of the terminal."""
