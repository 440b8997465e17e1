"""Many continuations of a program from one moment of its recording, each with another interleaving of its threads."""
