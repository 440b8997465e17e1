"""Questions about processes that were recorded together: reads their recordings, and replays nothing."""
