"""`python -m tests.scale`: catalog, store and scheduler at the size of a million recordings and a thousand workers."""
