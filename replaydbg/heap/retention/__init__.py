"""Questions about the graph of a snapshot: what an expression names, what keeps it alive, what grows."""
