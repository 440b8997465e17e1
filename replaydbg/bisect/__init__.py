"""Search for the first bad item: pure algorithms over values and functions, without side effects of their own."""
