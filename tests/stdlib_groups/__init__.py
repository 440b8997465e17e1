"""CPython's own tests of processes, plain and recorded with all of their children: the same results, equal replays."""
