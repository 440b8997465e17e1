"""Encode and decode values."""
