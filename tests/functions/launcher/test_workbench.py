"""The launch of a workbench: the tags by which its owner may open it, and what the output says to paste."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from contract import tags
from contract.jobs import Job, Market
from contract.workbench import Workbench
from launcher.arguments import LaunchMarks, build_arguments
from tests.builders import JOB, TAGS_AT_LAUNCH, rung
from tests.fakes.functions import Functions
from tests.fakes.yard import admitted, deployed, home

BENCH = replace(JOB, nodes=1, owner="ada", workbench=Workbench(idle_minutes=60))


def launch(job: Job) -> tuple[dict[str, Any], dict[str, str]]:
    """The output of Launch, and the tags of the first instance."""
    aws = deployed()
    admitted(aws, job)
    functions = Functions(aws)
    with functions.installed():
        outcome = functions.invoke("launcher", {"job": job.id, "attempt": 1})
    assert outcome.error == "", outcome
    return outcome.value, next(iter(home(aws).machines.values())).tags


def test_the_output_has_the_command_that_opens_a_bench() -> None:
    output, _ = launch(BENCH)
    (instance,) = output["instances"]
    assert output["open"] == (
        f"aws ssm start-session --region {output['region']} --target {instance} --document-name AWS-StartPortForwardingSession "
        "--parameters portNumber=8888,localPortNumber=8888"
    )


def test_its_instance_says_that_it_is_a_bench_and_whose() -> None:
    _, found = launch(BENCH)
    assert (found[tags.WORKBENCH], found[tags.OWNER], found[tags.DEPLOYMENT]) == ("true", "ada", JOB.deployment)


@pytest.mark.parametrize("market", [Market.ON_DEMAND, Market.SPOT])
def test_everything_that_the_launch_makes_says_so(market: Market) -> None:
    sent = build_arguments(
        BENCH, 1, replace(rung(), market=market), group="", security_group="sg-1", marks=LaunchMarks(profile="arn:p")
    )
    for specification in sent["TagSpecifications"]:
        assert {tag["Key"] for tag in specification["Tags"]} == {*TAGS_AT_LAUNCH, tags.WORKBENCH}


def test_a_job_that_is_no_bench_has_neither() -> None:
    output, found = launch(JOB)
    assert "open" not in output
    assert tags.WORKBENCH not in found


def test_no_key_pair_and_no_public_address_is_asked_for() -> None:
    sent = build_arguments(BENCH, 1, rung(), group="", security_group="sg-1", marks=LaunchMarks(profile="arn:p"))
    assert "KeyName" not in sent
    assert [one["AssociatePublicIpAddress"] for one in sent["NetworkInterfaces"]] == [False]
