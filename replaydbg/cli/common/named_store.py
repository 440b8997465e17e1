"""The store in which commands look up the recordings that users name. It imports little: each replay needs it."""

from __future__ import annotations

from pathlib import Path

from replaydbg.cli.common.fetched_names import with_addresses
from replaydbg.config import load_settings
from replaydbg.remote.address import is_address, shown
from replaydbg.store.directory import Store


class NamedStore(Store):
    """The user's store, which also finds what is kept elsewhere: that is fetched, and gone when the command ends."""

    def resolve(self, text: str) -> Path:
        """Return the recording as `Store.resolve`, or that at an address."""
        if not is_address(text):
            return super().resolve(text)
        # Imported here, as below: most commands are given no address.
        from replaydbg.cli.common.transfer_progress import TransferProgress
        from replaydbg.remote.fetched_files import fetched

        with TransferProgress(f"fetching {shown(text)}") as progress:
            return fetched(text, progress.show)

    def find_group(self, text: str) -> Path | None:
        """Return the directory of a group as `Store.find_group`, or of that at an address."""
        if not is_address(text):
            return super().find_group(text)
        from replaydbg.cli.common.transfer_progress import TransferProgress
        from replaydbg.remote.fetched_files import fetched_group

        with TransferProgress(f"fetching {shown(text)}") as progress:
            return fetched_group(text, progress.show)

    def name_of(self, path: Path) -> str:
        """Return the text that `resolve` turns into `path`, as `Store.name_of`; of what was fetched its address."""
        return with_addresses(super().name_of(path))


def the_store() -> Store:
    """Return the user's store."""
    return NamedStore(load_settings().store)
