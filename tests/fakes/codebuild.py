"""CodeBuild: builds that ended as a test says."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.fakes.wire import Call, Refused


@dataclass
class CodeBuild:
    """Builds by their ids, as BatchGetBuilds has them."""

    builds: dict[str, dict[str, Any]] = field(default_factory=dict)

    def answer(self, call: Call) -> dict[str, Any]:
        if call.operation != "BatchGetBuilds":
            raise Refused("InvalidInputException", f"The fake has no {call.name}")
        asked = call.params["ids"]
        return {
            "builds": [self.builds[one] for one in asked if one in self.builds],
            "buildsNotFound": [one for one in asked if one not in self.builds] or None,
        }
