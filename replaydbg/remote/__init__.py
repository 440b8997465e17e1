"""Recordings that are kept elsewhere: in a bucket, on a server, or in another directory, through fsspec."""
