"""ECR: repositories of one region with tags, asked as the functions ask."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.fakes.wire import Call, Refused


@dataclass
class Ecr:
    """One region. Other accounts' repositories are under `(account, name)`, the caller's under its own account."""

    account: str
    repositories: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    """To tag and digest."""
    closed: frozenset[str] = frozenset()
    """Accounts whose registries say no."""

    def answer(self, call: Call) -> dict[str, Any]:
        params = call.params
        account, name = params.get("registryId", self.account), params["repositoryName"]
        if account in self.closed:
            raise Refused("AccessDeniedException", f"User is not authorized to perform: ecr:{call.operation}")
        if (account, name) not in self.repositories:
            raise Refused("RepositoryNotFoundException", f"The repository with name '{name}' does not exist")
        images = self.repositories[account, name]
        found = [_named(one, images) for one in params["imageIds"]]
        match call.operation:
            case "DescribeImages":
                if None in found:
                    raise Refused("ImageNotFoundException", "The image requested does not exist")
                return {"imageDetails": [{"repositoryName": name, "imageDigest": one} for one in found]}
            case "BatchGetImage":
                return {"images": [{"repositoryName": name, "imageId": {"imageDigest": one}} for one in found if one]}
        raise Refused("InvalidParameterException", f"The fake has no {call.name}")


def _named(identity: dict[str, str], images: dict[str, str]) -> str | None:
    if digest := identity.get("imageDigest"):
        return digest if digest in images.values() else None
    return images.get(identity["imageTag"])
