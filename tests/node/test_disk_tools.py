"""The real tools that look at disks, where this machine has them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from agent.disk import devices
from agent.disk.devices import Done
from agent.disk.policy import LABEL


def test_a_tool_that_is_missing_or_hangs_is_an_answer_and_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    assert devices.run(["no-such-tool-of-disks"]).code == 127
    assert devices.run([sys.executable, "-c", "import sys; print(sys.stdin.read()); sys.exit(3)"]) == Done(3, "\n", "")
    monkeypatch.setattr(devices, "PATIENCE_S", 0.1)
    assert devices.run(["sleep", "60"]).code == 127


def test_blkid_says_nothing_of_an_empty_disk_and_the_same_of_one_that_is_not_there(tmp_path: Path) -> None:
    if "blkid" not in devices.tools():
        pytest.skip("this machine has no blkid")
    (tmp_path / "empty").write_bytes(bytes(1024**2))
    for name in ("empty", "missing"):
        assert devices.run(["blkid", "-p", "-o", "export", str(tmp_path / name)]) == Done(2, "", "")


def test_blkid_sees_a_file_system_with_its_label(tmp_path: Path) -> None:
    if not {"blkid", "mkfs.ext4"} <= devices.tools():
        pytest.skip("this machine has no blkid or no mkfs.ext4")
    disk = tmp_path / "disk"
    disk.write_bytes(bytes(8 * 1024**2))
    made = subprocess.run(["mkfs.ext4", "-q", "-F", "-L", LABEL, str(disk)], env={"PATH": devices.path()}, check=False)
    assert made.returncode == 0
    found = devices.run(["blkid", "-p", "-o", "export", str(disk)])
    assert {"TYPE=ext4", f"LABEL={LABEL}"} <= {*found.out.splitlines()}


def test_free_room_is_that_of_the_nearest_folder_that_exists(tmp_path: Path) -> None:
    assert devices.free(tmp_path / "not/yet") > 0
