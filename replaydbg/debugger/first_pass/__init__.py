"""What the first pass over a recording finds out: its index, output, end and test failure."""
