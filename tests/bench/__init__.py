"""What recording and replaying cost, measured beside the plain run."""
