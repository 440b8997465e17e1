"""The terminal UI: a view of a debugger's session. It imports Textual, and nothing else of the package does."""
