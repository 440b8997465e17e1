"""What the processes of a session send each other and leave in files, each with its reader."""
