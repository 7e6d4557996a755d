"""The job's code archive: what the node says of one that it does not unpack."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.code import unpack
from agent.failures import CannotStart
from tests.archives import FILE, tar_of


def test_an_unsafe_archive_ends_the_job_with_the_entry_at_fault(tmp_path: Path) -> None:
    file = tar_of(tmp_path, ("../evil", b"x"))
    with pytest.raises(
        CannotStart,
        match=r"^the code archive has the entry '\.\./evil', which points out of its folder; allowed: plain relative names, and links",
    ):
        unpack(file, tmp_path / "code")
    assert not (tmp_path / "evil").exists()


def test_a_full_disk_is_said_with_the_setting_that_helps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("contract.unpacking._place", full)
    with pytest.raises(
        CannotStart, match=r"^the code archive fills the disk at its entry 'train\.py': ask for a larger volume_gb$"
    ):
        unpack(tar_of(tmp_path, FILE), tmp_path / "code")


def test_a_sound_archive_is_unpacked(tmp_path: Path) -> None:
    unpack(tar_of(tmp_path, FILE), tmp_path / "code")
    assert (tmp_path / "code/train.py").read_bytes() == b"print()"
