"""The costs of recording and replaying, measured beside the plain run."""
