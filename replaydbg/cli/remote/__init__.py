"""Commands for recordings that are kept elsewhere."""
