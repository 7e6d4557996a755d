"""Nodes of the local EC2 as processes: they boot late, read their metadata, power off, and take everything with them."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest

from localaws.services import ec2
from localaws.testing.calm import refusal
from localaws.testing.ec2 import FORKS, Yard, local_aws
from localaws.testing.waiting import lives, until

pytestmark = pytest.mark.rehearsal

READS_AND_POWERS_OFF = r"""#!/bin/bash
set -eu
md() { curl -sf -H "X-aws-ec2-metadata-token: $token" "$AWS_EC2_METADATA_SERVICE_ENDPOINT/latest/$1"; }
echo "without a token: $(curl -s -o /dev/null -w '%{http_code}' "$AWS_EC2_METADATA_SERVICE_ENDPOINT/latest/meta-data/instance-id")"
token=$(curl -sf -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' "$AWS_EC2_METADATA_SERVICE_ENDPOINT/latest/api/token")
echo "I am $(md meta-data/instance-id), rank $(md meta-data/ami-launch-index) at $(md meta-data/local-ipv4)"
echo "job $(md meta-data/tags/instance/job), role $(md meta-data/iam/security-credentials/)"
md "meta-data/iam/security-credentials/$(md meta-data/iam/security-credentials/)" | grep AccessKeyId > /dev/null
until master=$(md meta-data/tags/instance/master-address); do sleep 0.1; done
echo "master $master"
env | grep -c ^AWS_SECRET || true
shutdown -h now
"""


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    with local_aws(tmp_path_factory.mktemp("yard")) as made:
        yield made


def on(instance: str) -> bool:
    node = ec2.nodes().get(instance)
    return node is not None and node.alive


def test_two_nodes_read_their_metadata_and_power_off(yard: Yard) -> None:
    started = time.monotonic()
    instances = yard.run(2, UserData=READS_AND_POWERS_OFF)
    until(lambda: yard.states(instances) == {"running"})
    assert time.monotonic() - started > 0.1
    until(lambda: "role node" in yard.console(instances[0]))
    address = yard.instance(instances[0]).address
    yard.ec2.create_tags(Resources=instances, Tags=[{"Key": "master-address", "Value": address}])
    until(lambda: yard.states(instances) == {"terminated"})
    for rank, one in enumerate(instances):
        assert yard.console(one).splitlines() == [
            "without a token: 401",
            f"I am {one}, rank {rank} at {yard.instance(one).address}",
            "job digits, role node",
            f"master {address}",
            "0",
        ]
        until(lambda one=one: yard.states_of(one)[-1:] == ["terminated"])  # type: ignore[misc]
        assert yard.states_of(one) == ["pending", "running", "shutting-down", "terminated"]
        assert not on(one)
    described = yard.ec2.describe_instances(InstanceIds=instances)["Reservations"][0]["Instances"]
    assert {one["StateReason"]["Code"] for one in described} == {"Client.InstanceInitiatedShutdown"}


def test_a_nodes_processes_are_not_born_deaf_to_the_signals_that_end_them(yard: Yard) -> None:
    """One that ignores SIGTERM holds up each shutdown for its whole grace period, and no trainer hears of an order."""
    instances = yard.run(1, UserData="#!/bin/bash\ngrep SigIgn /proc/self/status\n")
    until(lambda: "SigIgn" in yard.console(instances[0]))
    ignored = int(yard.console(instances[0]).split("SigIgn:")[1].split()[0], 16)
    ends = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
    assert [one for one in ends if ignored >> (one - 1) & 1] == []
    yard.ec2.terminate_instances(InstanceIds=instances)


def test_terminating_kills_grandchildren_in_sessions_of_their_own(yard: Yard) -> None:
    instances = yard.run(1, UserData=FORKS)
    node = until(lambda: ec2.nodes().get(instances[0]))  # the state is running a moment before the node exists
    until(lambda: (node.folder / "grandchild").exists() and node.exit_code == 0)
    process = int((node.folder / "grandchild").read_text())
    assert lives(process)
    yard.ec2.terminate_instances(InstanceIds=instances)
    until(lambda: yard.states(instances) == {"terminated"})
    until(lambda: yard.states_of(instances[0])[-2:] == ["shutting-down", "terminated"])
    assert not lives(process)
    assert not lives(node.pid)


def test_a_node_whose_user_data_has_ended_stays_on(yard: Yard) -> None:
    instances = yard.run(1, UserData="#!/bin/bash\nexit 3\n")
    node = until(lambda: ec2.nodes().get(instances[0]))
    until(lambda: node.exit_code == 3)
    until(lambda: yard.states(instances) == {"running"})
    time.sleep(0.3)
    assert yard.states(instances) == {"running"}
    assert node.alive


def test_a_timer_powers_off_after_the_script_has_ended(yard: Yard) -> None:
    script = """#!/bin/bash
units=$LOCAL_AWS_ROOT/etc/systemd/system
printf '[Service]\\nExecStart=/usr/sbin/poweroff\\n' > "$units/off.service"
printf '[Timer]\\nOnCalendar=%s\\n' "$(date -u -d '+2 seconds' '+%Y-%m-%d %H:%M:%S UTC')" > "$units/off.timer"
systemctl daemon-reload && systemctl enable --now off.timer && systemctl is-active off.timer && echo armed
systemctl start nothing.service || echo refused
"""
    instances = yard.run(1, UserData=script)
    until(lambda: yard.states(instances) == {"terminated"})
    assert yard.console(instances[0]).splitlines()[0] == "armed"
    assert yard.console(instances[0]).splitlines()[-1] == "refused"


def test_a_timer_in_the_past_never_comes(yard: Yard) -> None:
    script = """#!/bin/bash
units=$LOCAL_AWS_ROOT/etc/systemd/system
printf '[Service]\\nExecStart=systemctl poweroff\\n' > "$units/off.service"
printf '[Timer]\\nOnCalendar=2026-01-01 00:00:00 UTC\\n' > "$units/off.timer"
systemctl enable --now off.timer && echo armed
"""
    instances = yard.run(1, UserData=script)
    until(lambda: "armed" in yard.console(instances[0]))
    time.sleep(0.5)
    assert yard.states(instances) == {"running"}


def test_a_node_of_shutdown_behaviour_stop_stops(yard: Yard) -> None:
    instances = yard.run(1, UserData="#!/bin/bash\npoweroff\n", InstanceInitiatedShutdownBehavior="stop")
    until(lambda: yard.states(instances) == {"stopped"})
    assert not on(instances[0])


def test_a_lost_node_takes_its_processes_with_it_and_says_nothing_first(yard: Yard) -> None:
    instances = yard.run(1, UserData="#!/bin/bash\ntrap 'echo warned' TERM\nsleep 60 & wait\n")
    until(lambda: yard.states_of(instances[0])[-1:] == ["running"])  # told, and not only shown
    ec2.machines().vanish(yard.instance(instances[0]), "Server.InternalError", "lost")
    assert yard.states(instances) == {"terminated"}
    assert not on(instances[0])
    assert "warned" not in yard.console(instances[0])
    until(lambda: yard.events[-1][1] == "terminated")
    assert yard.states_of(instances[0]) == ["pending", "running", "terminated"]


def test_instances_are_found_by_the_profile_that_they_run_under(yard: Yard) -> None:
    under = yard.run(1)
    without = yard.run(1, IamInstanceProfile=None)

    def found(profile: str) -> list[str]:
        pages = yard.ec2.get_paginator("describe_instances").paginate(
            Filters=[
                {"Name": "iam-instance-profile.arn", "Values": [profile]},
                {"Name": "instance-state-name", "Values": ["pending", "running"]},
            ]
        )
        return [one["InstanceId"] for page in pages for part in page["Reservations"] for one in part["Instances"]]

    until(lambda: yard.states([*under, *without]) == {"running"})
    assert set(under) <= set(found(yard.profile))
    assert not set(without) & set(found(yard.profile))
    assert found(f"{yard.profile}x") == []


def test_volumes_and_interfaces_have_their_tags_and_go_with_the_instance(yard: Yard) -> None:
    ours: Any = [{"Name": "tag:job", "Values": ["digits"]}]
    before = len(yard.ec2.describe_volumes(Filters=ours)["Volumes"])
    instances = yard.run(1)
    assert len(yard.ec2.describe_volumes(Filters=ours)["Volumes"]) == before + 1
    until(lambda: yard.states(instances) == {"running"})
    yard.ec2.terminate_instances(InstanceIds=instances)
    until(lambda: yard.states(instances) == {"terminated"})
    assert len(yard.ec2.describe_volumes(Filters=ours)["Volumes"]) == before
    left = yard.ec2.create_volume(
        AvailabilityZone="us-east-1a",
        Size=1,
        TagSpecifications=[{"ResourceType": "volume", "Tags": [{"Key": "job", "Value": "left"}]}],
    )
    available: Any = [{"Name": "tag:job", "Values": ["left"]}, {"Name": "status", "Values": ["available"]}]
    (shown,) = yard.ec2.describe_volumes(Filters=available)["Volumes"]
    assert shown["VolumeId"] == left["VolumeId"]
    yard.ec2.delete_volume(VolumeId=left["VolumeId"])
    assert yard.ec2.describe_volumes(Filters=available)["Volumes"] == []


def test_what_has_no_machine_can_be_asked_for_all_the_same(yard: Yard) -> None:
    ours: Any = [{"Name": "tag:owner", "Values": ["us"]}]
    assert yard.ec2.describe_spot_instance_requests(Filters=ours)["SpotInstanceRequests"] == []
    available: Any = [*ours, {"Name": "status", "Values": ["available"]}]
    assert yard.ec2.describe_network_interfaces(Filters=available)["NetworkInterfaces"] == []


def shown(yard: Yard, instance: str, *, newest: bool) -> str:
    """What GetConsoleOutput says, as a client decodes it."""
    answer = yard.ec2.get_console_output(InstanceId=instance, Latest=newest)
    return str(answer.get("Output", ""))


def test_the_newest_lines_of_a_console_are_there_at_once_and_ec2s_own_after_a_while(yard: Yard) -> None:
    (one,) = yard.run(1, UserData="#!/bin/bash\necho booted\nsleep 1\necho done\npoweroff\n")
    until(lambda: yard.states([one]) == {"running"})
    until(lambda: "booted" in shown(yard, one, newest=True))
    until(lambda: yard.states([one]) == {"terminated"})
    assert "done" not in shown(yard, one, newest=True)
    until(lambda: "done" in shown(yard, one, newest=False))
    assert "done" in shown(yard, one, newest=True)


def test_only_nitro_gives_the_newest_lines(yard: Yard) -> None:
    (one,) = yard.run(1, UserData="#!/bin/bash\necho booted\n", InstanceType="t2.micro")
    until(lambda: yard.states([one]) == {"running"})
    assert refusal(yard.ec2.get_console_output, InstanceId=one, Latest=True) == "UnsupportedOperation"
    until(lambda: "booted" in shown(yard, one, newest=False))


def test_the_console_of_no_instance_is_refused(yard: Yard) -> None:
    call = yard.ec2.get_console_output
    assert refusal(call, InstanceId="i-0123456789abcdef0", Latest=True) == "InvalidInstanceID.NotFound"


def test_volumes_have_awss_own_key_until_somebody_sets_another(yard: Yard) -> None:
    yard.run(1)  # the first encrypted volume makes the key
    assert yard.ec2.get_ebs_default_kms_key_id()["KmsKeyId"] == "alias/aws/ebs"
    key = yard.aws.client("kms", "us-east-1").create_key()["KeyMetadata"]["Arn"]
    yard.ec2.modify_ebs_default_kms_key_id(KmsKeyId=key)
    assert yard.ec2.get_ebs_default_kms_key_id()["KmsKeyId"] == key
