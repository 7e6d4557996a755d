"""An image is made of a machine that says that it is done; whatever else happens, none is made, and the machine is ended."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError

from contract import tags
from localaws.model import Refused
from localaws.services.ec2_instance import Machine
from reaper.policy import Life, OwningExecution, Rule, Rules, judge
from tests.fakes.baking import BASE, Bakery, BakingEc2, succeed
from tests.fakes.reaping import ENVIRONMENT
from tests.fakes.wire import Call
from tests.functions.reaper.reaped import OURS
from tools.bake_image.machine import Failed
from tools.bake_image.recipe import Rejected

STEPS = ("RunInstances", "DescribeInstances", "GetConsoleOutput", "CreateImage", "DescribeImages")


@pytest.fixture
def bakery(tmp_path: Path) -> Bakery:
    file = tmp_path / "requirements.txt"
    file.write_text("einops==0.8.1\n")
    return Bakery(file)


def fails(bakery: Bakery, **asked: Any) -> str:
    """Bakes, which fails; then nothing of ours is left, and the stranger's machine runs."""
    with pytest.raises(Failed) as problem:
        bakery.bake(**asked)
    assert bakery.left == []
    untouched(bakery)
    return str(problem.value)


def untouched(bakery: Bakery) -> None:
    """The stranger's machine was never in a call that changes something, and runs."""
    assert bakery.stranger.state(bakery.ec2.now) == "running"
    ended = [one for call in bakery.called("TerminateInstances") for one in call["InstanceIds"]]
    assert set(ended) <= {one.id for one in bakery.machines}


# What goes well


def test_an_image_is_made_of_the_machine_that_installed_and_the_machine_is_ended(bakery: Bakery) -> None:
    assert bakery.bake() == 0
    (image,) = bakery.ec2.images.values()
    assert image["Machine"] == bakery.machine.id
    marks = {one["Key"]: one["Value"] for one in image["Tags"]}
    assert marks["trainyard-image:base"] == BASE
    assert len(marks["trainyard-image:requirements"]) == 64
    assert marks["trainyard-image:baked"].endswith("Z")
    assert bakery.left == []
    untouched(bakery)


def test_the_last_line_is_the_setting_with_all_families(bakery: Bakery) -> None:
    bakery.bake()
    (image,) = bakery.ec2.images
    assert json.loads("{" + bakery.said[-1] + "}") == {"images": {"x86_64": image}}


def test_a_second_bake_of_the_same_says_so_and_starts_nothing(bakery: Bakery) -> None:
    bakery.bake()
    calls = len(bakery.aws.changes)
    assert bakery.bake() == 0
    assert len(bakery.aws.changes) == calls
    assert any("nothing is started" in line for line in bakery.said)


def test_other_requirements_are_another_image(bakery: Bakery) -> None:
    bakery.bake()
    bakery.file.write_text("einops==0.8.2\n")
    bakery.bake()
    assert len({one["Name"] for one in bakery.ec2.images.values()}) == 2


def test_an_image_that_is_still_being_made_is_waited_for_and_nothing_is_started(bakery: Bakery) -> None:
    bakery.bake()
    bakery.ec2.images[next(iter(bakery.ec2.images))]["begun"] = bakery.ec2.now
    assert bakery.bake() == 0
    assert len(bakery.machines) == 1


# The machine


def test_the_machine_has_no_rights_no_public_address_no_key_and_stops_when_it_powers_off(bakery: Bakery) -> None:
    bakery.bake()
    (launch,) = bakery.called("RunInstances")
    assert "IamInstanceProfile" not in launch
    assert "KeyName" not in launch
    assert "LaunchTemplate" not in launch
    assert launch["InstanceInitiatedShutdownBehavior"] == "stop"
    assert launch["MetadataOptions"]["HttpTokens"] == "required"
    (interface,) = launch["NetworkInterfaces"]
    assert interface["AssociatePublicIpAddress"] is False
    assert interface["Groups"] == ["sg-default"]


def bake_with(bakery: Bakery, **settings: Any) -> dict[str, Any]:
    """Bakes under these settings, and returns the launch."""
    other = Bakery(bakery.file, **settings)
    other.ec2.bases[BASE]["BlockDeviceMappings"] += [
        {"DeviceName": "/dev/sdb", "Ebs": {"VolumeSize": 20}},
        {"DeviceName": "/dev/sdc", "VirtualName": "ephemeral0"},
    ]
    assert other.bake() == 0
    (launch,), (bakery.aws, bakery.ec2) = other.called("RunInstances"), (other.aws, other.ec2)
    return launch


def marks_of(specifications: list[dict[str, Any]]) -> dict[str, dict[str, str]]:
    return {one["ResourceType"]: {tag["Key"]: tag["Value"] for tag in one["Tags"]} for one in specifications}


def test_everything_that_a_bake_makes_has_the_settings_own_tags_beside_its_own(bakery: Bakery) -> None:
    further = {"CostCenter": "4711", "trainyard-image:base": "mine"}
    launched = marks_of(bake_with(bakery, tags=further)["TagSpecifications"])
    imaged = marks_of(bakery.called("CreateImage")[0]["TagSpecifications"])
    assert launched.keys() == {"instance", "volume", "network-interface"}
    assert imaged.keys() == {"image", "snapshot"}
    for marks in (*launched.values(), *imaged.values()):
        assert (marks["CostCenter"], marks["trainyard-image:base"]) == ("4711", BASE)
        assert tags.DEPLOYMENT not in marks


def test_disks_of_a_bake_are_encrypted_under_the_key_of_the_settings_those_of_further_devices_too(
    bakery: Bakery,
) -> None:
    key = "arn:aws:kms:eu-central-1:444455556666:key/12345678-1234-1234-1234-123456789012"
    regions = [{"region": "eu-central-1", "cidr": "10.70.0.0/16", "volume_key": key}]
    disks = {one["DeviceName"]: one["Ebs"] for one in bake_with(bakery, regions=regions)["BlockDeviceMappings"]}
    assert disks.keys() == {"/dev/xvda", "/dev/sdb"}
    assert [(one["Encrypted"], one["KmsKeyId"], one["DeleteOnTermination"]) for one in disks.values()] == [
        (True, key, True)
    ] * 2


def test_without_a_key_the_accounts_default_decides(bakery: Bakery) -> None:
    (disk,) = bake_with(bakery)["BlockDeviceMappings"]
    assert (disk["DeviceName"], disk["Ebs"].keys() & {"Encrypted", "KmsKeyId"}) == ("/dev/xvda", set())


def test_the_key_of_another_region_is_not_named(bakery: Bakery) -> None:
    key = "arn:aws:kms:us-east-1:444455556666:key/12345678-1234-1234-1234-123456789012"
    regions = [
        {"region": "eu-central-1", "cidr": "10.70.0.0/16"},
        {"region": "us-east-1", "cidr": "10.71.0.0/16", "volume_key": key},
    ]
    assert "KmsKeyId" not in str(bake_with(bakery, regions=regions)["BlockDeviceMappings"])


def test_the_reaper_takes_the_machine_for_a_strangers(bakery: Bakery) -> None:
    bakery.bake()
    machine = bakery.machine
    assert not {tags.DEPLOYMENT, tags.JOB, tags.EXECUTION, tags.DEADLINE} & machine.tags.keys()
    thing = replace(OURS, deployment=machine.tags.get(tags.DEPLOYMENT), profile=machine.profile)
    owner = OwningExecution(life=Life.OVER, ended_at=0.0)
    assert judge(thing, owner, None, bakery.ec2.now + 1e6, Rules.of(ENVIRONMENT)).rule is Rule.FOREIGN


# While it starts


@pytest.mark.parametrize("code", ["InsufficientInstanceCapacity", "VcpuLimitExceeded", "UnauthorizedOperation"])
def test_a_launch_that_ec2_refuses_is_told_with_its_words_and_leaves_nothing(bakery: Bakery, code: str) -> None:
    def refuse(call: Call) -> None:
        if call.operation == "RunInstances":
            raise Refused(code, "not today")

    bakery.before = refuse
    told = fails(bakery)
    assert code in told
    assert "--instance-type" in told
    assert bakery.machines == []
    assert bakery.called("TerminateInstances") == []


def once(operation: str, problem: Callable[[], BaseException]) -> Callable[[Call], None]:
    """Raises at the first call of that operation."""
    left = [operation]

    def strike(call: Call) -> None:
        if call.operation in left:
            left.remove(call.operation)
            raise problem()

    return strike


def lost() -> BaseException:
    return ReadTimeoutError(endpoint_url="https://ec2")


@pytest.mark.parametrize(
    "problem", [lost, KeyboardInterrupt, lambda: Refused("InternalError", "An internal error", 500)]
)
def test_a_launch_whose_answer_never_came_is_found_by_its_token_and_ended(
    bakery: Bakery, problem: Callable[[], BaseException]
) -> None:
    bakery.after = once("RunInstances", problem)
    with pytest.raises((ReadTimeoutError, KeyboardInterrupt, Failed)):
        bakery.bake()
    assert len({one["ClientToken"] for one in bakery.called("RunInstances")}) == 1
    assert (len(bakery.machines), bakery.left) == (1, [])
    untouched(bakery)


def test_where_even_that_is_not_known_a_person_is_told_how_to_look(bakery: Bakery) -> None:
    def strike(call: Call) -> None:
        if call.operation == "RunInstances":
            raise lost()

    bakery.before = strike
    with pytest.raises(ReadTimeoutError):
        bakery.bake()
    assert any("trainyard-image:digest" in line and "describe-instances" in line for line in bakery.said)


# While it installs


def test_a_machine_that_says_that_it_failed_becomes_no_image_and_pips_words_are_told(bakery: Bakery) -> None:
    def fail(ec2: BakingEc2, machine: Machine) -> None:
        ec2.says(machine, "pip: ERROR: No matching distribution found for einops==0.8.1")
        ec2.says(machine, "failed: the requirements cannot be installed")
        ec2.power_off(machine)

    bakery.ec2.install = fail
    assert "No matching distribution" in fails(bakery)
    assert bakery.ec2.images == {}


def test_a_machine_that_powers_itself_off_without_a_word_becomes_no_image(bakery: Bakery) -> None:
    bakery.ec2.install = lambda ec2, machine: ec2.power_off(machine)
    assert "does not say that it is done" in fails(bakery)
    assert bakery.ec2.images == {}


def test_a_word_of_another_bake_does_not_count(bakery: Bakery) -> None:
    def other(ec2: BakingEc2, machine: Machine) -> None:
        ec2.says(machine, "baked 0000000000000000")
        ec2.power_off(machine)

    bakery.ec2.install = other
    assert "does not say that it is done" in fails(bakery)


def test_a_machine_that_somebody_else_stopped_becomes_no_image(bakery: Bakery) -> None:
    def stop(ec2: BakingEc2, machine: Machine) -> None:
        succeed(ec2, machine)
        machine.why = ("Client.UserInitiatedShutdown", "User initiated shutdown")

    bakery.ec2.install = stop
    assert "not by itself" in fails(bakery)
    assert bakery.ec2.images == {}


def test_a_machine_that_is_ended_while_it_installs_is_told_with_ec2s_reason(bakery: Bakery) -> None:
    bakery.ec2.install = lambda ec2, machine: ec2.end(machine, "Server.InternalError", "Internal error on launch")
    assert "Server.InternalError" in fails(bakery)


def test_a_machine_that_hangs_is_ended_at_the_limit(bakery: Bakery) -> None:
    bakery.ec2.install = lambda ec2, machine: ec2.says(machine, "installs with python3")
    began = bakery.ec2.now
    assert "--limit-minutes" in fails(bakery, limit_min=10)
    assert 600 <= bakery.ec2.now - began < 700


def test_a_console_that_comes_late_is_waited_for(bakery: Bakery) -> None:
    def late(ec2: BakingEc2, machine: Machine) -> None:
        ec2.power_off(machine)
        ec2.at(ec2.now + 240, lambda: ec2.says(machine, f"baked {machine.tags['trainyard-image:digest']}"))

    bakery.ec2.install = late
    assert bakery.bake() == 0
    assert len(bakery.ec2.images) == 1


# The image


def test_an_image_that_ec2_refuses_is_told_and_the_machine_is_ended(bakery: Bakery) -> None:
    bakery.before = once("CreateImage", lambda: Refused("SnapshotLimitExceeded", "too many snapshots"))
    assert "SnapshotLimitExceeded" in fails(bakery)


def test_an_image_that_fails_is_told_with_the_command_that_removes_it(bakery: Bakery) -> None:
    bakery.ec2.snapshot_state = "failed"
    told = fails(bakery)
    assert "the snapshot failed" in told
    assert "deregister-image" in told


def test_an_image_that_takes_for_ever_is_given_up(bakery: Bakery) -> None:
    bakery.ec2.snapshot_s = 1e6
    assert "still pending after 120 minutes" in fails(bakery)


def test_a_failed_image_of_before_is_named_and_nothing_is_started(bakery: Bakery) -> None:
    bakery.bake()
    bakery.ec2.snapshot_state = "failed"
    with pytest.raises(Rejected, match="deregister-image"):
        bakery.bake()
    assert len(bakery.machines) == 1


# Ctrl-C


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("nth", [1, 2, 5, 12])
@pytest.mark.parametrize("operation", STEPS)
def test_an_interrupt_in_any_call_ends_the_machine_and_nobody_elses(
    bakery: Bakery, operation: str, nth: int, after: bool
) -> None:
    seen = [0]

    def strike(call: Call) -> None:
        seen[0] += call.operation == operation
        if call.operation == operation and seen[0] == nth:
            raise KeyboardInterrupt

    if after:
        bakery.after = strike
    else:
        bakery.before = strike
    try:
        bakery.bake()
    except KeyboardInterrupt:
        assert seen[0] >= nth
    assert bakery.left == []
    untouched(bakery)


@pytest.mark.parametrize("nth", range(1, 45, 4))
def test_an_interrupt_while_it_waits_ends_the_machine(bakery: Bakery, nth: int) -> None:
    sleeps = [0]

    def strike(_seconds: float) -> None:
        sleeps[0] += 1
        if sleeps[0] == nth:
            raise KeyboardInterrupt

    try:
        bakery.bake(sleep=strike)
    except KeyboardInterrupt:
        assert sleeps[0] >= nth
    assert bakery.left == []
    untouched(bakery)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_second_interrupt_does_not_keep_the_machine_from_being_ended(bakery: Bakery, number: signal.Signals) -> None:
    def again(call: Call) -> None:
        if call.operation == "TerminateInstances":
            signal.raise_signal(number)

    sleeps = [0]

    def first(_seconds: float) -> None:
        sleeps[0] += 1
        if sleeps[0] == 1:
            raise KeyboardInterrupt

    bakery.before, handler = again, signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt):
        bakery.bake(sleep=first)
    assert bakery.left == []
    assert signal.getsignal(number) is handler


# The end


def test_a_refused_end_is_tried_again(bakery: Bakery) -> None:
    bakery.before = once("TerminateInstances", lambda: Refused("InvalidInstanceID.NotFound", "does not exist"))
    assert bakery.bake() == 0
    assert bakery.left == []


def test_a_machine_that_cannot_be_ended_is_told_with_the_command_and_the_status_says_so(bakery: Bakery) -> None:
    def refuse(call: Call) -> None:
        if call.operation == "TerminateInstances":
            raise Refused("UnauthorizedOperation", "no", 403)

    bakery.before = refuse
    assert bakery.bake() == 1
    assert any("COULD NOT BE ENDED" in line and bakery.machine.id in line for line in bakery.said)
