"""A failure as one HTML page, for people who have no replaydbg at hand: a CI server, a bug report."""
