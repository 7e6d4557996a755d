"""EC2's words for an instance that ended as it started say nothing of keys; ours do, and of every other end they are EC2's own."""

from __future__ import annotations

import pytest

from aws.state_reasons import word_reason


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("Client.InternalError", "Client.InternalError: Client error on launch"),
        ("Client.InvalidKMSKey.InvalidState", "The KMS key provided is in an incorrect state"),
        ("Client.InvalidKmsKey.NotFound", ""),
    ],
)
def test_an_end_for_want_of_a_key_says_who_may_not_use_it(code: str, message: str) -> None:
    said = word_reason({"Code": code, "Message": message})
    assert said.startswith(message or code)
    assert "AWSServiceRoleForEC2Spot, may not use the key of its disks" in said
    assert "docs/guides/landing-zones.md" in said


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("Client.UserInitiatedShutdown", "Client.UserInitiatedShutdown: User initiated shutdown"),
        ("Client.InstanceInitiatedShutdown", "Client.InstanceInitiatedShutdown: Instance initiated shutdown"),
        ("Server.InternalError", "Server.InternalError: Internal error on launch"),
        ("Server.SpotInstanceTermination", "Server.SpotInstanceTermination: Spot instance termination"),
        ("Client.VolumeLimitExceeded", "Client.VolumeLimitExceeded: Volume limit exceeded"),
        ("", ""),
    ],
)
def test_any_other_end_has_ec2s_own_words(code: str, message: str) -> None:
    assert word_reason({"Code": code, "Message": message} if code else {}) == message
