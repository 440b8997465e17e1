"""Global snapshots of agents inside one process, by the algorithm of Chandy and Lamport; see `replaydbg.distributed`.

It runs inside the user's program, so it imports little, and nothing of the recorder or of the debugger.
"""
