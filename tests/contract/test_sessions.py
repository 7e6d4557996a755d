"""What a session of the job role is called, and what its own policy adds to the role's."""

from __future__ import annotations

import json

import pytest

from contract import sessions
from contract.sessions import SessionCredentials

ARN = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:trainyard/yard/"


def allowed(policy: str) -> list[object]:
    return [one["Resource"] for one in json.loads(policy)["Statement"] if "Action" in one]


def test_a_job_without_secrets_reads_none() -> None:
    (statement,) = json.loads(sessions.policy([]))["Statement"]
    assert "secretsmanager:GetSecretValue" in statement["NotAction"]


def test_a_job_without_an_image_reaches_no_registry() -> None:
    (statement,) = json.loads(sessions.policy([]))["Statement"]
    assert "ecr:*" in statement["NotAction"]


def test_a_job_pulls_from_the_repositories_of_its_image_and_from_no_other() -> None:
    ours = "arn:aws:ecr:*:123456789012:repository/yard/images"
    assert allowed(sessions.policy([], [ours, ours])) == ["*", [ours]]
    assert "GetAuthorizationToken" in sessions.policy([], [ours])


def test_a_job_reads_the_secrets_that_it_names_and_no_pattern_of_them() -> None:
    assert allowed(sessions.policy([f"{ARN}b-AbCdEf", f"{ARN}a-AbCdEf", f"{ARN}a-AbCdEf"])) == [
        [f"{ARN}a-AbCdEf", f"{ARN}b-AbCdEf"]
    ]


def test_an_arn_without_its_last_six_characters_names_one_secret() -> None:
    assert allowed(sessions.policy([f"{ARN}wandb"])) == [[f"{ARN}wandb-??????"]]


@pytest.mark.parametrize(("job", "name"), [("a", "a.12"), ("a" * 80, "a" * 61 + ".12")])
def test_the_name_of_a_session_fits_and_ends_with_the_attempt(job: str, name: str) -> None:
    assert sessions.name(job, 12) == name
    assert len(name) <= 64


def test_keys_are_not_shown_where_they_are_printed() -> None:
    shown = repr(SessionCredentials(access_key="ASIA", secret_key="hush", token="hush", expires=1.0))
    assert "hush" not in shown
