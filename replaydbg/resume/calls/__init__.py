"""What the log and the file system show of a call in flight that makes, moves or removes a name of a file."""
