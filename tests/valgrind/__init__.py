"""The fixtures under valgrind's memcheck: the core reads and writes only its own memory, after it was set."""
