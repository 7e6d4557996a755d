"""Sessions of roles: STS on the fake's clock, as rude about its limits as the real one."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from localaws.model import Refused
from tests.fakes.clock import Clock
from tests.fakes.wire import Call

LONGEST_S = 3600
"""Of a role that another role assumes."""
MOST_POLICY = 2048


@dataclass
class Sts:
    clock: Clock
    sessions: list[dict[str, Any]] = field(default_factory=list)
    """What was asked for each session, in order."""
    lasts_s: float = float("inf")
    """No session lasts longer, whatever is asked."""
    refuses: dict[str, str] = field(default_factory=dict)
    """ARN of a role to the code with which its sessions are refused."""
    words: str = "User: me is not authorized to perform: sts:AssumeRole on {role}"
    """What it says then."""

    def answer(self, call: Call) -> dict[str, Any]:
        assert call.operation == "AssumeRole"
        given = call.params
        if given["DurationSeconds"] > LONGEST_S:
            raise Refused("ValidationError", "The requested DurationSeconds exceeds the 1 hour session limit", 400)
        if code := self.refuses.get(given["RoleArn"]):
            raise Refused(code, self.words.format(role=given["RoleArn"]), 403)
        policy = given.get("Policy")
        if policy is not None and (len(policy) > MOST_POLICY or not json.loads(policy)["Statement"]):
            raise Refused("MalformedPolicyDocument", "The policy is too long, or is none", 400)
        self.sessions.append(given)
        number = len(self.sessions)
        until = datetime.fromtimestamp(self.clock.now + min(given["DurationSeconds"], self.lasts_s), tz=timezone.utc)
        keys = {"AccessKeyId": f"ASIA{number:016d}", "SecretAccessKey": f"secret-{number}", "SessionToken": "t"}
        return {"Credentials": {**keys, "Expiration": until}}

    def session(self, access_key: str) -> dict[str, Any]:
        """What was asked for the session that has the key."""
        return self.sessions[int(access_key.removeprefix("ASIA")) - 1]
