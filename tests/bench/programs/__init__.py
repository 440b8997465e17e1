"""The programs that are measured; each is run as a script and prints one line."""
