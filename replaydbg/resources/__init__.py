"""Resources of a recorded process at a moment: descriptors, locks, timers, children. Read from its event log alone."""
