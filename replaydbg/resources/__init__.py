"""What a recorded process holds at a moment: descriptors, locks, timers, children. Read from its event log alone."""
