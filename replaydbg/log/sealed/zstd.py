"""zstd, by what this Python has of it: its own module since 3.14, the package zstandard, or the backport of the former.

Only compiled parts are loaded: the packages import typing and platform first, 4 ms for each recording.
"""

from __future__ import annotations

import sys
from functools import cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Protocol

    class _Codec(Protocol):
        def compressor(self, level: int) -> Callable[[bytes], bytes]: ...

        def expand(self, data: bytes | memoryview, most: int, window_log: int) -> bytes: ...

        def content_size(self, data: bytes | memoryview) -> int | None: ...


_PACKAGE, _COMPILED = "zstandard", "zstandard.backend_c"
_CHOICE = "PYTHON_ZSTANDARD_IMPORT_POLICY"
"""The package's own variable, with which a user chooses another implementation."""
_PIECE = (1 << 20) + 1
"""Bytes that are read at once: more than a block, so that its end is noticed, and what follows it is not read."""


def load_zstd() -> None:
    """Load the code. Raises ImportError."""
    _codec()


def compressor(level: int) -> Callable[[bytes], bytes]:
    """Return a function that compresses bytes to a frame, which contains their length. Raises ImportError."""
    return _codec().compressor(level)


def expand(data: bytes | memoryview, most: int, window_log: int) -> bytes:
    """Return what the frame at the beginning of `data` contains, at most `most` bytes of it.

    The length that the frame claims is not believed, and `1 << window_log` bytes are as much as it may look back.
    A frame that is cut gives what is there of it. Raises ValueError for other damage, and ImportError.
    """
    return _codec().expand(data, most, window_log)


def content_size(data: bytes | memoryview) -> int | None:
    """Return the length that the frame at the beginning of `data` claims; None: it claims none.

    Raises ValueError if there is no frame, and ImportError.
    """
    return _codec().content_size(data)


class _Standard:
    """The compiled part of `compression.zstd`, or of its backport."""

    def __init__(self, part: ModuleType) -> None:
        self._part = part

    def compressor(self, level: int) -> Callable[[bytes], bytes]:
        made = self._part.ZstdCompressor(level=level)

        def compress(data: bytes) -> bytes:
            whole: bytes = made.compress(data, made.FLUSH_FRAME)
            return whole

        return compress

    def expand(self, data: bytes | memoryview, most: int, window_log: int) -> bytes:
        reader = self._part.ZstdDecompressor(options={self._part.ZSTD_d_windowLogMax: window_log})
        try:
            plain: bytes = reader.decompress(data, most)
        except self._part.ZstdError as error:
            raise ValueError(str(error)) from None
        return plain

    def content_size(self, data: bytes | memoryview) -> int | None:
        try:
            size: int | None = self._part.get_frame_info(data)[0]
        except self._part.ZstdError as error:
            raise ValueError(str(error)) from None
        return size


class _Package:
    """The package zstandard, or its compiled part."""

    def __init__(self, package: ModuleType) -> None:
        self._package = package

    def compressor(self, level: int) -> Callable[[bytes], bytes]:
        compress: Callable[[bytes], bytes] = self._package.ZstdCompressor(level=level).compress
        return compress

    def expand(self, data: bytes | memoryview, most: int, window_log: int) -> bytes:
        # A stream: decompress() trusts the claimed length. In pieces: a stream makes room for all that is asked for.
        reader = self._package.ZstdDecompressor(max_window_size=1 << window_log).stream_reader(data)
        pieces: list[bytes] = []
        try:
            while most > 0:
                piece = reader.read(min(most, _PIECE))
                pieces.append(piece)
                most -= len(piece)
                if len(piece) < _PIECE:
                    break  # the end of the frame: it would go on with the next one
        except self._package.ZstdError as error:
            raise ValueError(str(error)) from None
        return b"".join(pieces)

    def content_size(self, data: bytes | memoryview) -> int | None:
        try:
            size: int = self._package.frame_content_size(data)
        except self._package.ZstdError as error:
            raise ValueError(str(error)) from None
        return None if size < 0 else size


@cache
def _codec() -> _Codec:
    own = _own()
    if own is not None:
        return _Standard(own)
    package = sys.modules.get(_PACKAGE) or sys.modules.get(_COMPILED) or _compiled()
    if package is not None:
        return _Package(package)
    try:
        import zstandard
    except ImportError:
        # The package has no wheels for PyPy; the backport has.
        from backports.zstd import _zstd as backport

        return _Standard(backport)
    return _Package(zstandard)


def _own() -> ModuleType | None:
    """Return the module of 3.14; None: it was built without, for lack of the library's headers, or Python is older."""
    if sys.version_info >= (3, 14):
        try:
            import _zstd
        except ImportError:
            return None
        return _zstd
    return None


def _compiled() -> ModuleType | None:
    """Return the compiled module of zstandard; None if it is not where the package has it today."""
    # Both are modules of the interpreter itself; importlib would import more than is saved here.
    import _frozen_importlib_external as importer
    import _imp
    import os

    package = importer.PathFinder.find_spec(_PACKAGE)
    if package is None or not package.submodule_search_locations or os.environ.get(_CHOICE):
        return None
    spec = importer.PathFinder.find_spec(_COMPILED, list(package.submodule_search_locations))
    if spec is None or not isinstance(spec.loader, importer.ExtensionFileLoader):
        return None
    module: ModuleType = _imp.create_dynamic(spec)
    _imp.exec_dynamic(module)
    # The package finds it there if it is imported later, so it is not loaded twice.
    return sys.modules.setdefault(_COMPILED, module)
