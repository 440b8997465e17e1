"""Packages that reach the outside in C code of their own, which no gate covers; `doctor` names the installed ones."""

from __future__ import annotations

import importlib.util
from typing import NamedTuple


class Uncovered(NamedTuple):
    """One such package."""

    module: str
    """The top-level module that it installs."""
    why: str
    """Its work without Python."""


_LOOP = "has an event loop of its own in C; a recording ends where it begins"
_NETWORK = "talks to the network in C"
_FILES = "reads and writes files in C"

UNCOVERED = (
    Uncovered("gevent", _LOOP),
    Uncovered("eventlet", "replaces functions that are recorded"),
    Uncovered("grpc", "has threads and a network of its own; a recording ends where they begin"),
    Uncovered("confluent_kafka", "has threads and a network of its own"),
    Uncovered("pycurl", _NETWORK),
    Uncovered("psycopg2", _NETWORK),
    Uncovered("psycopg_c", _NETWORK),
    Uncovered("psycopg_binary", _NETWORK),
    Uncovered("MySQLdb", _NETWORK),
    Uncovered("pyodbc", _NETWORK),
    Uncovered("cx_Oracle", _NETWORK),
    Uncovered("oracledb", _NETWORK),
    Uncovered("pymssql", _NETWORK),
    Uncovered("ldap", _NETWORK),
    Uncovered("pygit2", _FILES),
    Uncovered("apsw", "has an SQLite of its own, which reads and writes files in C"),
    Uncovered("duckdb", "reads and writes files in C, with threads of its own"),
    Uncovered("lmdb", _FILES),
    Uncovered("h5py", _FILES),
    Uncovered("netCDF4", _FILES),
    Uncovered("pyarrow", "reads and writes files in C++, with threads of its own"),
    Uncovered("polars", "reads and writes files in Rust, with threads of its own"),
    Uncovered("cv2", "reads files and cameras in C++, with threads of its own"),
    Uncovered("lxml", "reads files and addresses that it is given by name in C"),
    Uncovered("torch", "computes with threads and devices of its own"),
    Uncovered("tensorflow", "computes with threads and devices of its own"),
    Uncovered("jaxlib", "computes with threads and devices of its own"),
    Uncovered("ray", "spreads the program over processes and shared memory"),
)
"""Their input that bypasses Python is not recorded. The rest is; a program that uses only that can be replayed."""


def installed() -> list[Uncovered]:
    """Return those of UNCOVERED that can be imported here; none is imported."""
    return [package for package in UNCOVERED if _is_there(package.module)]


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ValueError:
        # It is in sys.modules without a spec: a stand-in was put there.
        return True
