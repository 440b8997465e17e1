"""Messages and files of the processes of a session, each with its reader."""
