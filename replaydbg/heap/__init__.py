"""Pictures of a program's objects: what there was at a moment, how it was held, and what differs between two moments.

Nothing here runs anything of a recording; the pictures are taken by the native core.
"""
