"""The peers of the programs: small servers, clients and real servers that run beside a recording, never in a replay.

Each is started as `python FILE PORT arguments`, prints `ready` when a program may start, and ends by itself or when its
stdin is closed. A client ends with 0 if everything that it was answered was right.
"""
