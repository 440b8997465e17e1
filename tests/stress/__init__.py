"""Programs with many threads, recorded while these are interleaved at random, and replayed very often."""
