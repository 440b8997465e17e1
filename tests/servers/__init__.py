"""The middleware and `--keep-failing-requests` with real frameworks and servers: `tox -e servers`."""
