"""What the long-running harnesses share: running a command and its cost, the tool's command lines, reading figures."""
