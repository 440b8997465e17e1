"""The files of a future: what a recording knows of them up to a moment, as the core takes it."""
