"""Shared by recording and replaying: the program's options, environment and process, and the core's orders."""
