"""`python -m tests.buckets`: the remote store in a bucket of a real S3 server, with uploads that are killed."""
