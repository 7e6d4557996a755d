"""Instance metadata is refused without a token, and shows what the instance was launched with and nothing more."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import replace

import pytest

from localaws.machines.imds import TTL_HEADER, Imds, Metadata
from localaws.testing.waiting import HANG_S
from localaws.tests.metadata import ADDRESS, METADATA


@pytest.fixture
def imds() -> Iterator[Imds]:
    server = Imds(METADATA, ADDRESS)
    yield server
    server.stop()


def ask(metadata: Metadata, path: str) -> str | None:
    body = metadata.answer(f"meta-data/{path}")
    return None if body is None else body.decode()


def fetch(imds: Imds, path: str, *, method: str = "GET", **headers: str) -> tuple[int, bytes]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(f"{imds.endpoint}/latest/{path}", headers=named, method=method)
    try:
        with urllib.request.urlopen(request, timeout=HANG_S) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read()


def test_there_is_no_metadata_without_a_token(imds: Imds) -> None:
    assert fetch(imds, "meta-data/instance-id")[0] == 401


def test_there_is_no_metadata_for_a_made_up_token(imds: Imds) -> None:
    assert fetch(imds, "meta-data/instance-id", X_aws_ec2_metadata_token="made-up")[0] == 401


@pytest.mark.parametrize("seconds", ["", "0", "21601", "-5", "soon"])
def test_a_token_needs_a_lifetime(imds: Imds, seconds: str) -> None:
    assert fetch(imds, "api/token", method="PUT", X_aws_ec2_metadata_token_ttl_seconds=seconds)[0] == 400


def test_a_token_is_refused_to_what_came_through_a_proxy(imds: Imds) -> None:
    headers = {"X_aws_ec2_metadata_token_ttl_seconds": "60", "X_Forwarded_For": "10.0.0.1"}
    assert fetch(imds, "api/token", method="PUT", **headers)[0] == 403


def test_a_token_opens_metadata_and_user_data(imds: Imds) -> None:
    status, token = fetch(imds, "api/token", method="PUT", X_aws_ec2_metadata_token_ttl_seconds="60")
    assert status == 200
    text = token.decode()
    assert fetch(imds, "meta-data/instance-id", X_aws_ec2_metadata_token=text) == (200, b"i-0123456789abcdef0")
    quoted = "meta-data/tags/instance/yard%3Ajob"
    assert fetch(imds, quoted, x_AWS_ec2_metadata_TOKEN=text) == (200, b"digits")
    assert fetch(imds, "user-data", X_aws_ec2_metadata_token=text) == (200, b"#!/bin/bash\n\xff")
    assert fetch(imds, "meta-data/nothing", X_aws_ec2_metadata_token=text)[0] == 404


def test_an_expired_token_is_refused(imds: Imds, monkeypatch: pytest.MonkeyPatch) -> None:
    _, token, _ = imds.put("/latest/api/token", {"x-aws-ec2-metadata-token-ttl-seconds": "1"})
    headers = {"x-aws-ec2-metadata-token": token.decode()}
    assert imds.get("/latest/meta-data/ami-launch-index", headers)[:2] == (200, b"3")
    monkeypatch.setattr("localaws.machines.imds.time.monotonic", lambda: float("inf"))
    assert imds.get("/latest/meta-data/ami-launch-index", headers)[0] == 401


@pytest.mark.parametrize(
    "path", ["spot/instance-action", "tags/instance/absent", "placement/group-name", "public-ipv4"]
)
def test_what_the_instance_does_not_have_is_not_found(path: str) -> None:
    assert ask(METADATA, path) is None


def test_tags_are_hidden_unless_the_launch_asked_for_them() -> None:
    hidden = replace(METADATA, tags=lambda: None)
    assert ask(hidden, "tags/instance/") is None
    assert ask(hidden, "tags/instance/Name") is None
    assert "tags/" not in str(ask(hidden, "")).splitlines()


def test_without_a_profile_there_are_no_credentials() -> None:
    nobody = replace(METADATA, role=lambda: "")
    assert ask(nobody, "iam/security-credentials/") is None
    assert ask(nobody, "iam/security-credentials/node") is None


def test_folders_list_what_is_in_them() -> None:
    assert ask(METADATA, "tags/instance/") == "Name\nyard:job"
    assert ask(METADATA, "placement") == "availability-zone\nregion"
    assert "placement/" in str(ask(METADATA, "")).splitlines()


def test_credentials_and_the_spot_notice_have_the_shape_that_the_sdks_read() -> None:
    assert ask(METADATA, "iam/security-credentials/") == "node"
    found = json.loads(str(ask(METADATA, "iam/security-credentials/node")))
    assert (found["Code"], found["AccessKeyId"], found["Token"]) == ("Success", "ASIAEXAMPLE", "session")
    action = {"action": "terminate", "time": "2026-11-21T05:00:00Z"}
    noticed = replace(METADATA, spot_action=lambda: action)
    assert json.loads(str(ask(noticed, "spot/instance-action"))) == action


def test_a_rebalance_recommendation_has_its_documented_shape_and_is_absent_before() -> None:
    """https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/rebalance-recommendations.html"""
    assert ask(METADATA, "events/recommendations/rebalance") is None
    told = {"noticeTime": "2026-11-21T05:00:00Z"}
    warned = replace(METADATA, rebalance=lambda: told)
    assert json.loads(str(ask(warned, "events/recommendations/rebalance"))) == told


def test_a_request_that_is_lost_gets_no_answer_and_the_next_one_does() -> None:
    lost = iter([True, False])
    server = Imds(replace(METADATA, lost=lambda: next(lost)), ADDRESS)
    try:
        with pytest.raises(OSError, match="closed connection"):
            fetch(server, "api/token", method="PUT", **{TTL_HEADER: "60"})
        assert fetch(server, "api/token", method="PUT", **{TTL_HEADER: "60"})[0] == 200
    finally:
        server.stop()
