"""Where the work folder lies: on instance stores that nobody uses, and otherwise, whatever goes wrong, on the root volume."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.disk import devices
from agent.disk.devices import Disks, Done
from agent.disk.place import ALL_S, IMAGE_PATIENCE_S, IMAGES_OWN
from agent.disk.policy import LABEL
from tests.node.machines import EBS, GIB, FakeMachine

ON_ROOT = "the work folder stays on the root volume: "
MOUNTED = "/var/lib/trainyard"
Change = Callable[[FakeMachine], None]


@pytest.fixture
def machine(tmp_path: Path) -> FakeMachine:
    return FakeMachine(tmp_path)


def stays(machine: FakeMachine, why: str) -> None:
    """Nothing was changed, and the node's log says why."""
    place = machine.settle()
    assert (place.on_instance_store, place.reason) == (False, ON_ROOT + why)
    assert machine.changes == []
    assert place.folder == machine.root / "var/lib/trainyard"


def falls_back(machine: FakeMachine, why: str) -> None:
    """Something was tried and the work folder is on the root volume, where it can be written to."""
    place = machine.settle()
    assert not place.on_instance_store
    assert place.reason.startswith(ON_ROOT)
    assert why in place.reason
    assert f" {MOUNTED} " not in (machine.root / "proc/self/mountinfo").read_text()


# What is used


def test_a_single_instance_store_gets_a_file_system_and_is_mounted_without_access_times(machine: FakeMachine) -> None:
    machine.disk("nvme1n1")
    place = machine.settle()
    assert place.on_instance_store
    assert place.reason == (
        "the work folder is on the instance store (nvme1n1, 232.8 GiB) with a new file system (xfs)"
    )
    assert machine.changes == [
        ("mkfs.xfs", "-q", "-K", "-L", LABEL, "/dev/nvme1n1"),
        ("mkdir", "-p", MOUNTED),
        ("mount", "-t", "xfs", "-o", "noatime", "/dev/nvme1n1", MOUNTED),
    ]


def test_several_are_joined_by_mdadm(machine: FakeMachine) -> None:
    for number in range(1, 9):
        machine.disk(f"nvme{number}n1", size=10**12)
    assert machine.settle().on_instance_store
    create, make, *_ = machine.changes
    assert create[:2] == ("mdadm", "--create")
    assert {"--level=0", "--raid-devices=8", "--run"} <= {*create}
    assert [one for one in create if "nvme" in one] == [f"/dev/nvme{number}n1" for number in range(1, 9)]
    assert make[-1] == "/dev/md/trainyard"


def test_several_are_striped_by_lvm_where_there_is_no_mdadm(machine: FakeMachine) -> None:
    machine.tools -= {"mdadm"}
    machine.disk("nvme1n1")
    machine.disk("nvme2n1")
    place = machine.settle()
    assert "joined by LVM" in place.reason
    assert machine.changes[:2] == [
        ("vgcreate", LABEL, "/dev/nvme1n1", "/dev/nvme2n1"),
        ("lvcreate", "--yes", "--stripes", "2", "--extents", "100%FREE", "--name", "work", LABEL),
    ]
    assert machine.changes[-1][-2:] == ("/dev/trainyard/work", MOUNTED)


def test_the_largest_alone_is_used_where_nothing_can_join_several(machine: FakeMachine) -> None:
    machine.tools -= {"mdadm", "lvcreate"}
    machine.disk("nvme1n1", size=200 * GIB)
    machine.disk("nvme2n1", size=300 * GIB)
    assert "one of 2, because the image has neither mdadm nor LVM" in machine.settle().reason
    assert machine.changes[0][-1] == "/dev/nvme2n1"


def test_ext4_is_made_where_the_image_has_no_xfs(machine: FakeMachine) -> None:
    machine.tools -= {"mkfs.xfs"}
    machine.disk("nvme1n1")
    assert "(ext4)" in machine.settle().reason
    assert machine.changes[0][0] == "mkfs.ext4"


def of_deep_learning_image(machine: FakeMachine, **facts: str) -> None:
    for number in (1, 2):
        machine.disk(f"nvme{number}n1")
        machine.content[f"nvme{number}n1"] = "TYPE=LVM2_member\nUSAGE=raid\n"
    machine.disk("dm-0", "", 2 * 250 * 10**9, members=("nvme1n1", "nvme2n1"))
    machine.content["dm-0"] = "TYPE=ext4\n"
    machine.bound_from = "dm-0"
    machine.mounted("dm-0", "/opt/dlami/nvme", facts.get("kind", "ext4"), facts.get("options", "rw,relatime"))


def test_what_a_deep_learning_image_has_mounted_is_used_and_none_of_its_disks_is_touched(machine: FakeMachine) -> None:
    of_deep_learning_image(machine)
    place = machine.settle()
    assert place.on_instance_store
    assert place.reason.startswith(
        "the work folder is on the instance store that is mounted at /opt/dlami/nvme (200.0 GiB"
    )
    assert machine.changes == [
        ("mkdir", "-p", "/opt/dlami/nvme/trainyard", MOUNTED),
        ("mount", "-o", "bind,noatime", "/opt/dlami/nvme/trainyard", MOUNTED),
    ]


def test_an_image_that_is_still_joining_its_disks_is_waited_for(machine: FakeMachine) -> None:
    (machine.root / "etc/systemd/system").mkdir(parents=True)
    (machine.root / "etc/systemd/system" / IMAGES_OWN).touch()
    machine.units = ["activating", "activating", "inactive"]
    of_deep_learning_image(machine)
    assert machine.settle().on_instance_store
    assert machine.slept == 2.0


def test_a_file_system_of_ours_that_is_not_mounted_is_mounted_and_not_made_again(machine: FakeMachine) -> None:
    machine.disk("nvme1n1")
    machine.content["nvme1n1"] = f"LABEL={LABEL}\nTYPE=xfs\n"
    assert machine.settle().on_instance_store
    assert [one[0] for one in machine.changes] == ["mkdir", "mount"]


@pytest.mark.parametrize("disks", [1, 3])
def test_a_second_time_changes_nothing(machine: FakeMachine, disks: int) -> None:
    for number in range(1, disks + 1):
        machine.disk(f"nvme{number}n1")
    assert machine.settle().on_instance_store
    before = len(machine.changes)
    place = machine.settle()
    assert len(machine.changes) == before
    assert place.on_instance_store
    assert place.reason == "the work folder stays where it is: it has a file system of its own (xfs) already"


# What is not touched


def test_a_machine_without_instance_stores_has_nothing_examined(machine: FakeMachine) -> None:
    machine.disk("nvme1n1", EBS)
    stays(machine, "the machine has no NVMe instance store")
    assert machine.ran == []


def holder(machine: FakeMachine) -> None:
    machine.disk("md0", "", members=("nvme1n1",))


def mounted_disk(machine: FakeMachine) -> None:
    machine.mounted("nvme1n1", "/scratch", "btrfs")


OBJECTIONS: dict[str, tuple[Change, str]] = {
    "a file system": (lambda one: one.content.update(nvme1n1="TYPE=ext4\n"), "holds ext4"),
    "a file system with another label": (
        lambda one: one.content.update(nvme1n1="LABEL=data\nTYPE=xfs\n"),
        "holds xfs",
    ),
    "swap": (lambda one: one.content.update(nvme1n1="TYPE=swap\n"), "holds swap"),
    "a part of LVM": (lambda one: one.content.update(nvme1n1="TYPE=LVM2_member\n"), "holds LVM2_member"),
    "a part of md": (lambda one: one.content.update(nvme1n1="TYPE=linux_raid_member\n"), "holds linux_raid_member"),
    "a table of partitions without one": (lambda one: one.content.update(nvme1n1="PTTYPE=gpt\n"), "holds gpt"),
    "an array on it": (holder, "belongs to md0"),
    "a mount": (mounted_disk, "is mounted at /scratch"),
    "no blkid": (lambda one: one.fails.update(blkid=Done(127, err="no such file")), "could not be examined"),
    "two answers of blkid": (lambda one: one.fails.update(blkid=Done(8, "", "")), "could not be examined"),
    "a blkid that cannot open it": (
        lambda one: one.fails.update(blkid=Done(2, "", "blkid: error: /dev/nvme1n1: Permission denied")),
        "could not be examined",
    ),
    "a device that is in use or cannot be opened": (
        lambda one: (one.root / "dev/nvme1n1").unlink(),
        "could not be examined",
    ),
    "a blkid that says nothing of use": (lambda one: one.fails.update(blkid=Done(0, "DEVNAME=x\n")), "could not be"),
}


@pytest.mark.parametrize("what", OBJECTIONS)
def test_an_instance_store_that_may_hold_something_is_not_touched(machine: FakeMachine, what: str) -> None:
    change, why = OBJECTIONS[what]
    machine.disk("nvme1n1")
    change(machine)
    place = machine.settle()
    assert place.reason.startswith(f"{ON_ROOT}no instance store is free: nvme1n1 {why}")
    assert machine.changes == []


def test_partitions_and_a_write_protection_are_seen_without_blkid(machine: FakeMachine) -> None:
    machine.disk("nvme1n1", partitions=("nvme1n1p1", "nvme1n1p2"))
    machine.disk("nvme2n1", ro="1")
    machine.disk("nvme3n1", size=0)
    stays(
        machine,
        "no instance store is free: nvme1n1 has partitions (nvme1n1p1, nvme1n1p2); nvme2n1 is read-only; nvme3n1 has no size",
    )


def test_a_disk_in_use_stays_out_of_what_is_joined(machine: FakeMachine) -> None:
    for number in (1, 2, 3):
        machine.disk(f"nvme{number}n1")
    machine.content["nvme2n1"] = "TYPE=ext4\n"
    assert machine.settle().on_instance_store
    assert not any("nvme2n1" in word for one in machine.changes for word in one)


def test_an_ebs_volume_with_our_label_is_not_mounted(machine: FakeMachine) -> None:
    machine.disk("nvme1n1")
    machine.content["nvme1n1"] = "TYPE=ext4\n"
    machine.disk("nvme2n1", EBS)
    machine.content["nvme2n1"] = f"LABEL={LABEL}\nTYPE=xfs\n"
    stays(machine, "no instance store is free: nvme1n1 holds ext4")
    assert not any("nvme2n1" in word for one in machine.ran for word in one)


def test_a_mount_that_is_partly_on_ebs_is_not_used(machine: FakeMachine) -> None:
    machine.disk("nvme1n1")
    machine.content["nvme1n1"] = "TYPE=LVM2_member\n"
    machine.disk("nvme2n1", EBS)
    machine.disk("dm-0", "", members=("nvme1n1", "nvme2n1"))
    machine.mounted("dm-0", "/data", "ext4")
    stays(machine, "no instance store is free: nvme1n1 belongs to dm-0")


@pytest.mark.parametrize("facts", [{"options": "ro,relatime"}, {"kind": "btrfs"}])
def test_a_mount_that_is_read_only_or_of_another_kind_is_not_used(machine: FakeMachine, facts: dict[str, str]) -> None:
    of_deep_learning_image(machine, **facts)
    stays(machine, "no instance store is free: nvme1n1 belongs to dm-0; nvme2n1 belongs to dm-0")


def test_an_instance_store_with_less_room_than_the_volume_that_was_asked_for_is_not_used(machine: FakeMachine) -> None:
    machine.disk("nvme1n1", size=125 * 10**9)
    stays(
        machine,
        "the instance store (nvme1n1) has 116.4 GiB, less than the 140.0 GiB that are free on the root volume",
    )


def test_nor_is_one_that_the_image_has_mounted_and_half_filled(machine: FakeMachine) -> None:
    of_deep_learning_image(machine)
    machine.store_free = 139 * GIB
    stays(
        machine,
        "the instance store at /opt/dlami/nvme has 139.0 GiB, less than the 140.0 GiB that are free on the root volume",
    )


def test_files_of_the_work_folder_are_not_hidden_by_a_mount(machine: FakeMachine) -> None:
    machine.disk("nvme1n1")
    (machine.root / "var/lib/trainyard/code").mkdir(parents=True)
    stays(machine, "it has files already")


@pytest.mark.parametrize("missing", [{"mount"}, {"mkfs.xfs", "mkfs.ext4"}])
def test_an_image_without_the_tools_says_so(machine: FakeMachine, missing: set[str]) -> None:
    machine.disk("nvme1n1")
    machine.tools -= missing
    stays(machine, "the image has no tool that makes and mounts a file system (mkfs.xfs or mkfs.ext4, mount)")


def test_a_path_of_a_device_beside_the_device_itself_is_no_disk(machine: FakeMachine) -> None:
    machine.disk("nvme1c1n1", hidden="1")
    stays(machine, "the machine has no NVMe instance store")


# What fails


@pytest.mark.parametrize("tool", ["mdadm", "mkfs.xfs", "mkdir", "mount"])
def test_a_tool_that_fails_leaves_the_work_folder_on_the_root_volume(machine: FakeMachine, tool: str) -> None:
    machine.disk("nvme1n1")
    machine.disk("nvme2n1")
    machine.fails[tool] = Done(1, "", f"{tool}: device is busy")
    falls_back(machine, f"{tool} of nvme1n1, nvme2n1 failed (1): {tool}: device is busy")
    assert machine.changes[-1][0] == tool


@pytest.mark.parametrize("tool", ["vgcreate", "lvcreate"])
def test_so_does_lvm(machine: FakeMachine, tool: str) -> None:
    machine.tools -= {"mdadm"}
    machine.disk("nvme1n1")
    machine.disk("nvme2n1")
    machine.fails[tool] = Done(5, "Insufficient free space")
    falls_back(machine, f"{tool} of nvme1n1, nvme2n1 failed (5): Insufficient free space")


def test_a_mount_that_is_not_there_afterwards_is_a_failure(machine: FakeMachine) -> None:
    machine.disk("nvme1n1")
    machine.fails["mount"] = Done(0)
    falls_back(machine, "the mount is not there, although mount reported no error")


def test_disks_that_answer_too_slowly_do_not_use_up_the_nodes_time(machine: FakeMachine) -> None:
    for number in range(1, 9):
        machine.disk(f"nvme{number}n1")
    machine.takes["blkid"] = 60.0
    falls_back(machine, "mdadm of nvme1n1, nvme2n1 failed (127): not started, 120 s had passed")
    assert [one[0] for one in machine.ran].count("blkid") == 2
    assert machine.time == ALL_S


def test_a_file_system_that_takes_too_long_is_not_mounted(machine: FakeMachine) -> None:
    machine.disk("nvme1n1")
    machine.takes["mkfs.xfs"] = ALL_S
    falls_back(machine, "mkdir of nvme1n1 failed (127): not started, 120 s had passed")


def test_a_look_that_fails_after_the_mount_takes_it_away_again(
    machine: FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.disk("nvme1n1")
    shown = devices.read_disks

    def once(root: Path, work: str, **ways: Any) -> Disks:
        monkeypatch.setattr(devices, "read_disks", broken)
        return shown(root, work, **ways)

    def broken(*_: object, **__: object) -> Disks:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(devices, "read_disks", once)
    falls_back(machine, "what was mounted cannot be used: [Errno 5]")


def test_a_mount_of_something_else_is_taken_away_again(machine: FakeMachine) -> None:
    of_deep_learning_image(machine)
    machine.bound_from = "nvme0n1p1"
    falls_back(machine, "the mount is on nvme0n1, which is not an instance store")
    assert machine.changes[-1] == ("umount", "-l", MOUNTED)


def test_a_mount_that_cannot_be_written_to_is_taken_away_again(
    machine: FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.disk("nvme1n1")

    def broken(_file: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("os.fsync", broken)
    falls_back(machine, "what was mounted cannot be used: [Errno 5] Input/output error")


def test_a_kernel_that_does_not_show_its_mounts_leaves_every_disk_alone(machine: FakeMachine) -> None:
    machine.disk("nvme1n1")
    (machine.root / "proc/self/mountinfo").unlink()
    place = machine.settle()
    assert not place.on_instance_store
    assert machine.changes == []


@pytest.mark.parametrize("text", ["", "garbage\n", "1 2 3 - \n", "\xff\n"])
def test_a_mountinfo_that_nobody_understands_ends_no_node(machine: FakeMachine, text: str) -> None:
    machine.disk("nvme1n1")
    (machine.root / "proc/self/mountinfo").write_text(text, "latin-1")
    machine.fails["mount"] = Done(32, "", "mount: no")
    assert not machine.settle().on_instance_store


def test_an_image_that_never_finishes_its_own_service_keeps_its_disks(machine: FakeMachine) -> None:
    (machine.root / "usr/lib/systemd/system").mkdir(parents=True)
    (machine.root / "usr/lib/systemd/system" / IMAGES_OWN).touch()
    machine.units = ["activating"]
    machine.disk("nvme1n1")
    stays(machine, f"{IMAGES_OWN} of the image is still starting after 60 s")
    assert machine.slept == IMAGE_PATIENCE_S
