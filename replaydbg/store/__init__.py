"""The store of recordings: a directory of the user, in which each has a name such as `run-12`."""
