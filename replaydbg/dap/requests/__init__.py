"""The requests of the protocol, each answered by the debugger."""
