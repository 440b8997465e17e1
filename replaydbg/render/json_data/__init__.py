"""Answers as JSON data: what `--json` prints."""
