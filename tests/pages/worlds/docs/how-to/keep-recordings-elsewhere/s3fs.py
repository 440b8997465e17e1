"""Buckets as directories, in place of the real package: nothing of a page leaves the machine."""

from fsspec.implementations.local import LocalFileSystem


class S3FileSystem(LocalFileSystem):
    protocol = "s3"

    def __init__(self, *args, **options):
        super().__init__(*args, auto_mkdir=True, **options)

    @classmethod
    def _strip_protocol(cls, path):
        import os

        path = str(path).removeprefix("s3://")
        top = os.path.expanduser("~/buckets")
        return path if path.startswith(top) else f"{top}/{path}".rstrip("/")


__version__ = "2025.3"
