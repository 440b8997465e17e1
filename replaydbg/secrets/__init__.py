"""Find secrets in what is recorded, and keep them out of recordings."""
