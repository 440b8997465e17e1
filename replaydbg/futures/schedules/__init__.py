"""Schedules of futures: given ones, and the decisions that were taken in them."""
