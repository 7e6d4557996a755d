"""A job names its node agent, which stands for as long as the job may run, whatever is deployed meanwhile."""

from __future__ import annotations

from dataclasses import replace

import pytest

from admission.agent_copy import CopyAction, choose_copy_action
from contract import agents, items, keys
from contract.codec import decode
from contract.intents import Intent
from stacks.blocks import LONGEST_TRAINING_H
from stacks.limit_settings import LONGEST_WAIT_H
from tests.builders import ADMISSION, JOB
from tests.fakes.aws import Aws
from tests.fakes.functions import Functions
from tests.fakes.state import stored
from tests.fakes.yard import admitted, deployed
from tests.functions.admission.account import Account, start
from tools.refusals.jobs import LEAST

AGENT = keys.agent(ADMISSION.agent)
DAY_S = 86400.0


def copied(there: Account) -> list[tuple[str, str, str]]:
    """Source, key, and what becomes of the metadata."""
    return [
        (one["CopySource"], one["Key"], one.get("MetadataDirective", "COPY"))
        for one in there.find_params("s3:CopyObject")
    ]


def test_the_first_job_of_a_deployment_brings_its_agent_in(there: Account) -> None:
    del there.s3.buckets["yard-home"].objects[AGENT]
    start(LEAST)
    assert ("assets/agent.zip", AGENT, "COPY") in copied(there)
    job = there.job("job-1")
    assert job is not None
    assert job.agent == ADMISSION.agent


def test_an_agent_that_stands_is_not_copied_again(there: Account) -> None:
    start(LEAST)
    assert [key for _, key, _ in copied(there)] == [keys.JobPrefix("job-1").code("code.tar.gz")]


def test_an_agent_of_long_ago_is_renewed_from_itself_so_that_no_right_on_the_deploys_archive_is_needed(
    there: Account,
) -> None:
    there.clock.run((agents.FRESH_DAYS + 1) * DAY_S)
    start(LEAST)
    assert (f"yard-home/{AGENT}", AGENT, "REPLACE") in copied(there)


def test_a_refused_request_brings_no_agent_in(there: Account) -> None:
    del there.s3.buckets["yard-home"].objects[AGENT]
    with pytest.raises(Exception, match="nodes"):
        start({**LEAST, "nodes": 1000})
    assert copied(there) == []


@pytest.mark.parametrize(
    ("age_days", "wanted"),
    [
        (None, CopyAction.COPY),
        (0, CopyAction.NOTHING),
        (agents.FRESH_DAYS, CopyAction.NOTHING),
        (agents.FRESH_DAYS + 0.1, CopyAction.RENEW),
    ],
)
def test_what_an_agent_needs_depends_on_its_age(age_days: float | None, wanted: CopyAction) -> None:
    assert choose_copy_action(None if age_days is None else age_days * DAY_S) is wanted


def test_no_agent_goes_before_the_longest_job_that_was_admitted_with_it_is_over() -> None:
    """S3 rounds up to the next midnight, which is later still."""
    assert agents.FRESH_DAYS * 24 + LONGEST_TRAINING_H + LONGEST_WAIT_H + 7 * 24 <= agents.KEPT_DAYS * 24


@pytest.fixture
def fake() -> Aws:
    return deployed()


def test_a_launcher_of_a_later_deploy_boots_the_agent_that_the_job_was_admitted_with(fake: Aws) -> None:
    job = admitted(fake, replace(JOB, agent="b" * 64))
    functions = Functions(fake)
    with functions.installed():
        outcome = functions.invoke("launcher", {"job": job.id, "attempt": 1})
    assert outcome.error == ""
    script = decode(Intent, stored(fake, items.launch(job.id, 1, 1)) or b"").user_data
    assert f"TRAINYARD_AGENT=s3://yard-home/{keys.agent('b' * 64)}\n" in script
    assert f"TRAINYARD_AGENT_SHA256={'b' * 64}\n" in script


def test_a_job_that_names_no_agent_is_told_what_to_do(fake: Aws) -> None:
    job = admitted(fake, replace(JOB, agent=""))
    functions = Functions(fake)
    with functions.installed():
        outcome = functions.invoke("launcher", {"job": job.id, "attempt": 1})
    assert outcome.error == "InvalidRequest"
    assert "start it again as a new job" in outcome.cause
