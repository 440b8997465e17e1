"""The sealer: the process that seals what the processes of a group have recorded."""
