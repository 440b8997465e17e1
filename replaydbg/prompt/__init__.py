"""The debugger's prompt: reads command lines from a terminal or another source and prints the answers."""
