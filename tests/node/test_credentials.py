"""The credentials of a node's role: late, unanswered, or never there."""

from __future__ import annotations

import itertools
import json
import threading
import time
from pathlib import Path

import pytest

from agent.aws import METADATA_ATTEMPTS, Aws
from agent.credentials import JobCredentials
from agent.identity import Patience, Unknown
from agent.metadata import ENDPOINT
from contract import items
from contract.sessions import SessionCredentials
from tests.node.fakes import FakeImds, imds
from tests.node.table import ROLE as TABLE_ROLE
from tests.node.world import KEYS, REGION, Site

ROLE = "iam/security-credentials/"


@pytest.fixture
def nothing_else(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """Credentials come from metadata, and from nowhere else."""
    for name in (
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AWS_PROFILE",
        "AWS_EC2_METADATA_DISABLED",
    ):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    return monkeypatch


def give(service: FakeImds) -> None:
    keys = {"AccessKeyId": "AKIANODE", "SecretAccessKey": "s", "Token": "t", "Expiration": "2099-01-01T00:00:00Z"}
    service.values |= {ROLE: "node", f"{ROLE}node": json.dumps({"Code": "Success", **keys})}


def of(aws: Aws, service: str) -> str:
    """The access key with which the service is called."""
    return str(aws.client(service, REGION)._request_signer._credentials.get_frozen_credentials().access_key)


def test_a_client_that_waited_for_late_credentials_has_them(nothing_else: pytest.MonkeyPatch) -> None:
    with imds({}) as service:
        nothing_else.setenv(ENDPOINT, service.endpoint)
        aws, pauses = Aws(), list[float]()

        def sleep(seconds: float) -> None:
            pauses.append(seconds)
            if len(pauses) == 3:
                give(service)

        patience = Patience(most_s=60, now=lambda: sum(pauses), sleep=sleep)
        patience.wait_for("credentials", lambda: aws.has_credentials() or None)
        assert len(pauses) == 3
        assert of(aws, "dynamodb") == "AKIANODE"


def test_credentials_whose_requests_got_no_answer_are_asked_for_again(nothing_else: pytest.MonkeyPatch) -> None:
    with imds({}) as service:
        nothing_else.setenv(ENDPOINT, service.endpoint)
        give(service)
        service.unanswered = METADATA_ATTEMPTS - 1
        assert Aws().has_credentials()


def test_a_service_that_never_answers_gives_none(nothing_else: pytest.MonkeyPatch) -> None:
    nothing_else.setenv(ENDPOINT, "http://127.0.0.1:9")
    assert not Aws().has_credentials()


def test_credentials_that_never_come_are_named_when_the_time_is_over() -> None:
    pauses: list[float] = []
    patience = Patience(most_s=10, now=lambda: sum(pauses), sleep=pauses.append)
    with pytest.raises(Unknown, match="the credentials of its role did not come within 10 s"):
        patience.wait_for("the credentials of its role", lambda: None)


def test_a_node_trains_though_its_credentials_are_late(site: Site) -> None:
    site.offer("print('trained')")
    site.aws.without_credentials = 2
    assert site.run().code == 0
    assert site.aws.without_credentials < 0


# The credentials of a job


def gone() -> SessionCredentials:
    raise LookupError("the job's credentials are gone from the table")


def test_the_nodes_items_are_reached_as_the_instance_and_all_else_with_the_keys_of_the_job(
    nothing_else: pytest.MonkeyPatch,
) -> None:
    with imds({}) as service:
        nothing_else.setenv(ENDPOINT, service.endpoint)
        give(service)
        aws = Aws()
        aws.use(JobCredentials(KEYS, gone, now=time.time))
        keys = {name: of(aws, name) for name in ("dynamodb", "s3", "logs", "secretsmanager")}
    assert keys.pop("dynamodb") == "AKIANODE"
    assert set(keys.values()) == {"ASIAJOB"}


def test_a_node_that_gets_no_keys_says_so_and_ends_as_lost(site: Site) -> None:
    site.offer("")
    site.gets_keys = False
    site.now, site.sleep = itertools.count(time.time(), 300.0).__next__, lambda _: None
    ending = site.run()
    assert ending.error == "NodeLost"
    assert "the credentials of its job did not come within" in site.report().exit.reason  # type: ignore[union-attr]


def test_keys_that_come_late_are_waited_for(site: Site) -> None:
    site.offer("open('started', 'w')")
    site.gets_keys = False
    threading.Timer(0.5, site.give_credentials).start()
    assert site.run().error == ""
    assert site.aws.used == [KEYS]


def test_garbled_keys_end_the_node_as_lost(site: Site) -> None:
    site.offer("")
    site.gets_keys = False
    site.aws.table.give(items.node_credentials(TABLE_ROLE, site.instance), b"{}")
    assert site.run().error == "NodeLost"
