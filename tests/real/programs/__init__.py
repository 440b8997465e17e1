"""The small programs of the scenarios; each is copied into a directory of its own and run there as a script."""
