"""Dialogs on top of the panels or below them: lists to choose from, the status line, and the input line."""
