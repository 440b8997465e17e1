"""The launcher's process: it records pytest, cuts a recording for each kept test, and has it examined."""
