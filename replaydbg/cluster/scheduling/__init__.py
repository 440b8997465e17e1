"""The workers of a dask scheduler: the connection, what is sent to them, and what runs there."""
