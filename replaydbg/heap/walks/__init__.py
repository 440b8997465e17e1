"""The algorithms over all nodes and edges of snapshots, in Python and in C behind one Protocol.

They take and return plain columns. Everything else in the folder above that visits a whole snapshot uses them.
"""
