"""The debugger's prompt: lines from a terminal or from anywhere else, and what they say on it."""
