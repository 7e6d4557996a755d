"""Two jobs at once, one of which attacks the other with everything that its node has: the other ends as if it were alone."""

from __future__ import annotations

import json
import time
from pathlib import Path

import boto3
import pytest

from contract import keys, names
from contract.keys import BytesPrefix
from localaws.testing.waiting import HANG_S
from rehearsal.deployment import ACCOUNT
from rehearsal.yard import StartedJob, Yard
from tests.rehearsal.jobs import DENIALS, HAPPY, ONE, TWO, instances, path, stored, succeeded, train

pytestmark = pytest.mark.rehearsal
VICTIM, ATTACKER = "zz-victim", "zz-attacker"


@pytest.fixture(scope="module")
def jobs(yard: Yard, trainer: str) -> dict[str, StartedJob]:
    """The attacker begins once the victim trains, and knows its instance, as if somebody had told it."""
    yard.client("secretsmanager").create_secret(
        Name=f"{names.secret_prefix('trainyard')}of-{VICTIM}", SecretString="hush"
    )
    victim = yard.start({**TWO, "code": trainer, "command": train(60, 0.2), "checkpoint_minutes": 0.02}, VICTIM)
    until = time.monotonic() + HANG_S
    while not (known := [one["InstanceId"] for one in instances(victim)]):
        assert time.monotonic() < until
        assert victim.runs()
        time.sleep(0.2)
    code = yard.upload(Path(__file__).with_name("attacker"), "attacker")
    told = {
        "job": VICTIM,
        "instance": known[0],
        "home": yard.places.home,
        "stored": yard.places.bytes_,
        "table": names.state_table("trainyard"),
        "log_group": yard.places.log_group,
        "account": ACCOUNT,
        "deployment": "trainyard",
    }
    attacker = yard.start(
        {
            **ONE,
            "code": code,
            "command": ["python", "attack.py", json.dumps(told), str(Path(boto3.__file__).parents[1])],
        },
        ATTACKER,
    )
    return {VICTIM: victim, ATTACKER: attacker}


def test_the_victim_ends_as_without_the_attack(yard: Yard, jobs: dict[str, StartedJob]) -> None:
    succeeded(jobs[VICTIM])
    assert path(jobs[VICTIM]) == HAPPY
    result = json.loads(stored(yard, keys.JobPrefix(VICTIM).result))
    assert (result["error"], result["attempts"]) == (None, 1)


def test_every_try_was_denied(yard: Yard, jobs: dict[str, StartedJob]) -> None:
    succeeded(jobs[VICTIM])
    print(jobs[ATTACKER].wait(HANG_S).get("cause"))
    told = json.loads(stored(yard, BytesPrefix(ATTACKER).artifact(0, "attack.json"), yard.places.bytes_))
    assert {who: len(tried) for who, tried in told.items()} == {"instance": 41, "job": 41}
    assert {
        f"{who}: {what}": answer
        for who, tried in told.items()
        for what, answer in tried.items()
        if answer not in DENIALS
    } == {}


def test_what_the_attacker_tried_is_on_record_and_nobody_else_was_denied_anything(
    yard: Yard, jobs: dict[str, StartedJob]
) -> None:
    jobs[ATTACKER].wait(HANG_S)
    mine = {f"{ATTACKER}.1", *(one["InstanceId"] for one in instances(jobs[ATTACKER]))}
    denied = list(yard.guard.denied)
    assert len({(call.session, call.name) for call in denied if call.session in mine}) >= 30
    assert [(call.session, call.name, call.parameters) for call in denied if call.session not in mine] == []


def test_a_node_that_lies_about_itself_fails_its_own_job_at_most(jobs: dict[str, StartedJob]) -> None:
    """Its reports name another job, which makes them count for nothing."""
    succeeded(jobs[VICTIM])
    assert jobs[ATTACKER].wait(HANG_S)["status"] in ("SUCCEEDED", "FAILED")
