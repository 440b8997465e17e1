"""The bytes of a recording: how values, events and files are written and read. It holds no policy."""
