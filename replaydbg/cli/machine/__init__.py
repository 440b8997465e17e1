"""Commands about this machine: what it can record, and its settings."""
