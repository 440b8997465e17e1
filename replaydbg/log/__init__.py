"""The bytes of a recording: reading and writing values, events and files. It holds no policy."""
