"""The rehearsal's mount: what it shows, and what it refuses in the words of the real programs."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from localaws.machines import file_systems
from localaws.machines.file_systems import FileSystem, keep

STANDINS = Path(file_systems.__file__).with_name("standins")
AMI = Path(__file__).parents[2] / "build/ami"
LUSTRE = FileSystem(id="fs-0a", type="lustre", region="eu-central-1", security_group="sg-1", mount_name="abcdefgh")
EFS = FileSystem(id="fs-0b", type="efs", region="eu-central-1", security_group="sg-2", access_point="fsap-0b")
KEYS = "[node]\naws_access_key_id = ASIA\naws_secret_access_key = s\n"
OPTIONS = "tls,iam,awsprofile=node,region=eu-central-1,accesspoint=fsap-0b"


class Node:
    """A machine without a mount namespace of its own: what is mounted becomes a link."""

    def __init__(self, folder: Path) -> None:
        self.root, self.work, self.place = folder / "node", folder / "account", folder / "node/data"
        self.place.mkdir(parents=True)
        (self.root / "root/.aws").mkdir(parents=True)
        self.keys = self.root / "root/.aws/credentials"
        self.keys.write_text(KEYS)

    def run(self, *words: str, path: str = "") -> tuple[int | None, str]:
        """Exit code and words; None where it does not end."""
        variables = {
            "PATH": path or f"{STANDINS}:{AMI}/bin:/usr/bin:/bin",
            "HOME": str(self.root / "root"),
            "LOCAL_AWS_ROOT": str(self.root),
            "LOCAL_AWS_FILE_SYSTEMS": str(self.work / file_systems.FOLDER),
        }
        try:
            done = subprocess.run(
                [str(STANDINS / words[0]), *words[1:]], env=variables, capture_output=True, text=True, timeout=3
            )
        except subprocess.TimeoutExpired:
            return None, ""
        return done.returncode, done.stderr.strip()

    def lustre(self, source: str = "fs-0a.fsx.eu-central-1.amazonaws.com@tcp:/abcdefgh") -> tuple[int | None, str]:
        return self.run("mount", "-t", "lustre", "-o", "relatime,flock,nodev,nosuid", source, str(self.place))

    def efs(self, options: str = OPTIONS) -> tuple[int | None, str]:
        return self.run("mount", "-t", "efs", "-o", options, "fs-0b:/", str(self.place))


@pytest.fixture
def node(tmp_path: Path) -> Node:
    made = Node(tmp_path)
    for one in (LUSTRE, EFS):
        (keep(made.work, one) / "a.txt").write_text(one.id)
    return made


def test_the_files_appear_and_are_gone_once_it_is_unmounted(node: Node) -> None:
    assert node.lustre() == (0, "")
    assert (node.place / "a.txt").read_text() == "fs-0a"
    assert node.run("umount", str(node.place)) == (0, "")
    assert list(node.place.iterdir()) == []


def test_keys_and_access_point_open_an_efs(node: Node) -> None:
    assert node.efs() == (0, "")
    assert (node.place / "a.txt").read_text() == "fs-0b"


def test_a_folder_that_is_not_there_is_no_mount_point(node: Node) -> None:
    node.place.rmdir()
    assert node.lustre() == (32, f"mount: {node.place}: mount point does not exist.")


def test_a_type_without_a_helper_is_unknown(node: Node) -> None:
    said = node.run("mount", "-t", "nfs9", "-o", "ro", "fs-0b:/", str(node.place))
    assert said == (32, f"mount: {node.place}: unknown filesystem type 'nfs9'.")


def test_a_file_system_that_there_is_not_does_not_resolve(node: Node) -> None:
    code, said = node.run("mount", "-t", "efs", "-o", OPTIONS, "fs-0c:/", str(node.place))
    assert (code, said.startswith('Failed to resolve "fs-0c"')) == (1, True)
    assert "Can't resolve hostname" in node.lustre("fs-0c.fsx.eu-central-1.amazonaws.com@tcp:/abcdefgh")[1]


def test_another_mount_name_is_none_that_the_servers_know(node: Node) -> None:
    code, said = node.lustre("fs-0a.fsx.eu-central-1.amazonaws.com@tcp:/other")
    assert (code, "Is the MGS specification correct?" in said) == (2, True)


@pytest.mark.parametrize("options", ["tls,iam,awsprofile=other", "tls,iam"])
def test_a_profile_without_keys_is_named(node: Node, options: str) -> None:
    assert "AWS security credentials not found" in node.efs(options)[1]


def test_another_access_point_and_a_closed_file_system_deny(node: Node) -> None:
    assert "access denied by server" in node.efs(OPTIONS.rpartition(",")[0])[1]
    keep(node.work, replace(EFS, closed=True))
    assert "access denied by server" in node.efs()[1]


def test_one_to_which_no_way_leads_never_answers(node: Node) -> None:
    reached = node.root / file_systems.REACHED
    reached.parent.mkdir(parents=True)
    reached.write_text(json.dumps(["fs-0b"]))
    assert node.lustre() == (None, "")
    assert node.efs() == (0, "")


def test_other_ways_to_call_mount_are_refused(node: Node) -> None:
    assert node.run("mount", "--bind", "/", str(node.place))[0] == 1


class Rules:
    """EC2's answer about groups."""

    def __init__(self, **groups: dict[str, list[dict[str, object]]]) -> None:
        self.groups = groups

    def client(self, _service: str, _region: str) -> Rules:
        return self

    def describe_security_groups(self, GroupIds: list[str]) -> dict[str, object]:  # noqa: N803 (as EC2 calls it)
        empty = {"IpPermissions": list[object](), "IpPermissionsEgress": list[object]()}
        return {"SecurityGroups": [{"GroupId": one, **empty, **self.groups.get(one, {})} for one in GroupIds]}


def rule(port: int, last: int, group: str) -> dict[str, object]:
    return {"IpProtocol": "tcp", "FromPort": port, "ToPort": last, "UserIdGroupPairs": [{"GroupId": group}]}


def test_a_machine_reaches_what_the_groups_of_both_sides_let_it(node: Node) -> None:
    out = {"IpPermissionsEgress": [rule(988, 988, "sg-1"), rule(1018, 1023, "sg-1")]}
    both = {"IpPermissions": [rule(988, 988, "sg-c"), rule(1018, 1023, "sg-c")]}
    open_ = Rules(**{"sg-c": out, "sg-1": both})
    assert file_systems.reached(open_, node.work, "eu-central-1", ["sg-j", "sg-c"]) == ["fs-0a"]
    assert file_systems.reached(open_, node.work, "eu-central-1", ["sg-j"]) == []
    assert file_systems.reached(open_, node.work, "eu-west-1", ["sg-c"]) == []
    for groups in ({"sg-c": out}, {"sg-1": both}, {"sg-c": out, "sg-1": {"IpPermissions": both["IpPermissions"][:1]}}):
        assert file_systems.reached(Rules(**groups), node.work, "eu-central-1", ["sg-c"]) == []
