"""The terminal UI: a view of a debugger's session. It imports Textual, and nothing else of the package does.

`worker` asks the debugger in a thread of its own, `panels` and `dialogs` draw, and `apps` connects them.
"""
