"""Inputs of scenarios that are made rather than checked in."""

import array
import io
import struct
import zipfile
from pathlib import Path


def data_folder(directory: Path) -> None:
    """A folder with a few files, two of them equal, one empty, one in a folder below."""
    data = directory / "data"
    (data / "below").mkdir(parents=True)
    (data / "one.txt").write_text("a line\n" * 200)
    (data / "two.txt").write_text("a line\n" * 200)
    (data / "empty").touch()
    (data / "below" / "bytes.bin").write_bytes(bytes(range(256)) * 40)


def array_files(directory: Path) -> None:
    """`given.npy` and `given.raw`: arrays of floats as other programs left them."""
    raw = array.array("d", [0.5, 1.5, 2.5]).tobytes()
    (directory / "given.raw").write_bytes(raw)
    heading = b"{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }"
    heading += b" " * (64 - (10 + len(heading) + 1) % 64) + b"\n"
    (directory / "given.npy").write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(heading)) + heading + raw)


def wheel_folder(directory: Path) -> None:
    """A folder with one small wheel, as an index without network."""
    wheels = directory / "wheels"
    wheels.mkdir()
    content = io.BytesIO()
    info = "tinything-1.0.dist-info"
    with zipfile.ZipFile(content, "w") as wheel:
        wheel.writestr("tinything.py", "value = 1\n")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tinything\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    (wheels / "tinything-1.0-py3-none-any.whl").write_bytes(content.getvalue())


def working_folder(directory: Path) -> None:
    """An empty folder `sub`."""
    (directory / "sub").mkdir()
