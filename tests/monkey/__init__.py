"""The terminal UI under random keys, sizes and mouse events, in a real terminal."""
