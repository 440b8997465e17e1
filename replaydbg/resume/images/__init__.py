"""Images of a standby: CRIU saves the process that replays, and brings it back, so that less has to be replayed."""
