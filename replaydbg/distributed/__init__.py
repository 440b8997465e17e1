"""Messages between processes that were recorded together: pure functions over their transfers."""
