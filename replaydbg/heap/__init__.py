"""Snapshots of a program's objects: the objects at a moment, their owners, and the differences between two moments.

Nothing here runs code from a recording; the native core takes the snapshots.
"""
