"""Options, output and streams that the commands share."""
