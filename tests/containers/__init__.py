"""Recordings and replays with what a container leaves them: a filter of system calls and few capabilities."""
