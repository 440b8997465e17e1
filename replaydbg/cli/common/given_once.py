"""An option that would silently lose its earlier value if it were given twice."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any


class GivenOnce(argparse.Action):
    """Store the value; refuse a second one, which would replace it."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        """Store the value, or end with a usage error."""
        if getattr(namespace, self.dest) is not None:
            raise argparse.ArgumentError(self, "can be given only once")
        setattr(namespace, self.dest, values)
