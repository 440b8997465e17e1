"""The result of `replaydbg ci`: as text, as JSON data, and as one HTML page."""
