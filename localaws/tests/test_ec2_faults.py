"""Faults of EC2, each in a local AWS of its own; and that nothing outlives it."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from localaws.conditions import Conditions
from localaws.faults import plan_faults
from localaws.machines import nodes
from localaws.machines.mischief import Birth, Peace
from localaws.services import ec2, ec2_spot
from localaws.services.ec2_instance import Machine
from localaws.testing.calm import refusal
from localaws.testing.ec2 import FORKS, local_aws
from localaws.testing.waiting import lives, until

pytestmark = pytest.mark.rehearsal


def test_without_capacity_each_place_refuses_once_with_a_server_error(tmp_path: Path) -> None:
    with local_aws(tmp_path, plan_faults("no-capacity:rungs=2")) as yard:
        for kind in ("g5.xlarge", "g5.2xlarge"):
            with pytest.raises(ClientError) as refused:
                yard.ec2.run_instances(**yard.request(InstanceType=kind, ClientToken=kind))
            assert refused.value.response["Error"]["Code"] == "InsufficientInstanceCapacity"
            assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 500
        assert ec2.machines().left() == 0
        with pytest.raises(ClientError, match="InsufficientInstanceCapacity"):  # which the token stands for
            yard.ec2.run_instances(**yard.request(InstanceType="g5.xlarge", ClientToken="g5.xlarge"))
        assert len(yard.run(InstanceType="g5.xlarge", ClientToken="again")) == 2
        assert len(yard.run(InstanceType="g5.4xlarge")) == 2


@pytest.mark.parametrize(
    ("how", "market", "code"),
    [
        ("capacity", "on-demand", "InsufficientInstanceCapacity"),
        ("quota", "on-demand", "VcpuLimitExceeded"),
        ("quota", "spot", "MaxSpotInstanceCountExceeded"),
        ("iops", "spot", "MaxIOPSLimitExceeded"),
        ("profile", "on-demand", "InvalidParameterValue"),
        ("throttled", "on-demand", "RequestLimitExceeded"),
    ],
)
def test_a_place_refuses_in_the_words_of_the_fault_and_another_place_launches(
    tmp_path: Path, how: str, market: str, code: str
) -> None:
    options: dict[str, Any] = {"InstanceMarketOptions": {"MarketType": "spot"}} if market == "spot" else {}
    with local_aws(tmp_path, plan_faults(f"capacity-away:as={how},market={market},type=g5.xlarge")) as yard:
        assert refusal(yard.ec2.run_instances, **yard.request(InstanceType="g5.xlarge", **options)) == code
        assert ec2.machines().left() == 0
        assert len(yard.run(InstanceType="g5.2xlarge", **options)) == 2


def test_a_spot_notice_comes_as_long_before_the_end_as_the_conditions_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with local_aws(tmp_path) as yard:
        conditions = yard.aws.conditions
        monkeypatch.setattr(yard.aws, "conditions", replace(conditions, spot_notice_s=5000 * conditions.speed))
        (instance,) = yard.run(1, InstanceMarketOptions={"MarketType": "spot"})
        node, before = until(lambda: ec2.nodes().get(instance)), time.time()
        ec2.nodes().interrupt(node.machine, notice=True)
        ends = datetime.fromisoformat(node.machine.spot_action["time"]).timestamp()
        assert before + 4999 <= ends <= time.time() + 5000
        assert yard.states([instance]) <= {"pending", "running"}


def test_a_spot_price_moves_where_the_fault_says_and_nowhere_else(tmp_path: Path) -> None:
    wanted = {"InstanceTypes": ["g5.xlarge", "g5.2xlarge"], "ProductDescriptions": ["Linux/UNIX"]}

    def prices(work: Path, *faults: str) -> dict[tuple[str, str], float]:
        with local_aws(work, plan_faults(*faults)) as yard:
            told = yard.ec2.describe_spot_price_history(**wanted)["SpotPriceHistory"]
            return {(one["InstanceType"], one["AvailabilityZone"]): float(one["SpotPrice"]) for one in told}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ec2_spot, "price", lambda _kind, _zone, vcpus, _now: vcpus * 0.25)
        usual = prices(tmp_path / "usual")
        zone = min(zone for _, zone in usual)
        moved = prices(tmp_path / "moved", f"spot-price-moves:factor=2.5,type=g5.xlarge,zone={zone}")
    assert {place for place, usd in moved.items() if usd != usual[place]} == {("g5.xlarge", zone)}
    assert moved["g5.xlarge", zone] == pytest.approx(2.5 * usual["g5.xlarge", zone])


def test_a_lost_answer_has_had_its_effect(tmp_path: Path) -> None:
    with local_aws(tmp_path, plan_faults("response-lost")) as yard:
        assert refusal(yard.ec2.run_instances, **yard.request(2, ClientToken="one")) == "InternalError"
        assert ec2.machines().left() == 2
        assert len(yard.run(2, ClientToken="one")) == 2
        assert ec2.machines().left() == 2


def test_a_refused_termination_refuses_the_whole_call_until_it_is_allowed(tmp_path: Path) -> None:
    with local_aws(tmp_path, plan_faults("terminate-refused:job=digits")) as yard:
        ours = yard.run(1)
        theirs = yard.run(1, TagSpecifications=None)
        until(lambda: yard.states([*ours, *theirs]) == {"running"})
        both = {"InstanceIds": [*ours, *theirs]}
        assert refusal(yard.ec2.terminate_instances, **both) == "OperationNotPermitted"
        assert yard.states([*ours, *theirs]) == {"running"}
        yard.ec2.terminate_instances(InstanceIds=theirs)
        yard.aws.conditions = replace(yard.aws.conditions, faults=())
        yard.ec2.terminate_instances(InstanceIds=ours)
        until(lambda: yard.states([*ours, *theirs]) == {"terminated"})


POWERS_OFF_LATER = """#!/bin/bash
units=$LOCAL_AWS_ROOT/etc/systemd/system
printf '[Timer]\\nOnActiveSec=1\\n' > "$units/off.timer"
printf '[Service]\\nExecStart=/sbin/poweroff\\n' > "$units/off.service"
systemctl start off.timer
echo armed
"""


class Timerless(Peace):
    """No timer of a machine of the job ever fires."""

    def birth(self, machine: Machine, conditions: Conditions, /) -> Birth:
        return replace(super().birth(machine, conditions), timerless=machine.tags.get("job") == "digits")


def test_a_node_without_its_timer_stays_on(tmp_path: Path) -> None:
    with local_aws(tmp_path, mischief=Timerless()) as yard:
        (ours,) = yard.run(1, UserData=POWERS_OFF_LATER)
        (theirs,) = yard.run(1, UserData=POWERS_OFF_LATER, TagSpecifications=None)
        until(lambda: yard.states([theirs]) == {"terminated"})
        assert "armed" in yard.console(ours)
        assert yard.states([ours]) == {"running"}


def test_a_timer_powers_off_in_a_checkout_whose_folder_has_a_blank(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nodes, "STANDINS", shutil.copytree(nodes.STANDINS, tmp_path / "with a blank"))
    with local_aws(tmp_path) as yard:
        (one,) = yard.run(1, UserData=POWERS_OFF_LATER)
        until(lambda: yard.states([one]) == {"terminated"} or "No such file" in yard.console(one))
        assert "No such file" not in yard.console(one)


def test_programs_find_their_disk_by_the_names_that_a_user_gave(tmp_path: Path) -> None:
    with local_aws(tmp_path, root_variables=("PLACE",)) as yard:
        (one,) = yard.run(1, UserData='#!/bin/bash\necho "$PLACE is $LOCAL_AWS_ROOT."\n')
        until(lambda: "." in yard.console(one))
        place, _, root = yard.console(one).strip().partition(" is ")
        assert (place, bool(place)) == (root.removesuffix("."), True)


def test_leaving_ends_every_process(tmp_path: Path) -> None:
    with local_aws(tmp_path) as yard:
        instances = yard.run(2, UserData=FORKS)
        until(lambda: ec2.nodes().running() == 2)
        folders = [tmp_path / "nodes" / one for one in instances]
        until(lambda: all((folder / "grandchild").exists() for folder in folders))
        processes = [int((folder / "grandchild").read_text()) for folder in folders]
        assert all(map(lives, processes))
    assert not any(map(lives, processes))
    assert not any(os.fsencode(str(tmp_path)) in command for command in commands())


def commands() -> list[bytes]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and lives(int(entry.name)):
            found.append((entry / "cmdline").read_bytes())
    return found
