"""Resume a group of processes that were recorded together: from a recovery line, with the bytes that were in flight."""
