"""Rendering of answers as text, tables, Markdown and JSON."""
