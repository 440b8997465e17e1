"""The user's directories are those of platformdirs, which the recorder does not import."""

from pathlib import Path

import platformdirs
import pytest

from replaydbg.config import load_settings, user_config_file


@pytest.mark.parametrize("given", [None, "", "/somewhere"])
def test_the_directories_of_the_user_are_those_of_the_platform(
    given: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        if given is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, given)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("REPLAYDBG_STORE", raising=False)
    monkeypatch.chdir(tmp_path)

    assert user_config_file() == platformdirs.user_config_path("replaydbg") / "config.toml"
    assert load_settings().store == platformdirs.user_data_path("replaydbg") / "recordings"
