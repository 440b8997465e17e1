"""Copies of recordings that have pseudonyms in the place of their secrets."""
