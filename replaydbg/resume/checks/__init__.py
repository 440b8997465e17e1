"""Checks before a program goes live: was it already resumed, and have its sources changed?"""
