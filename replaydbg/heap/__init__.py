"""Snapshots of a program's objects: the objects at a moment, their owners, and the differences between two moments.

`walks` has the algorithms, `storage` the files, `retention` the questions about one snapshot, `comparison` those about
two. Nothing here runs code from a recording; the native core takes the snapshots.
"""
