"""The server of the Debug Adapter Protocol: the debugger's answers in editors."""
