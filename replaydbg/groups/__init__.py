"""Answer questions about processes recorded together, from their recordings, without a replay."""
