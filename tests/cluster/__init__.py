"""Tasks on the workers of a real dask cluster on this machine."""
