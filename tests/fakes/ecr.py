"""ECR: repositories of one region with tags, asked as the functions ask."""

from __future__ import annotations

from localaws.model import Refused
from localaws.services.ecr_model import Ecr, Image, Wanted


class FakeEcr(Ecr):
    """One region. Other accounts' repositories are under `(account, name)`, the caller's under its own account."""

    def __init__(self, account: str, repositories: dict[tuple[str, str], dict[str, str]]) -> None:
        super().__init__(account, self._kept)
        self.repositories = repositories
        """To tag and digest."""
        self.closed: frozenset[str] = frozenset()
        """Accounts whose registries say no."""

    def _kept(self, account: str, name: str, _: list[Wanted]) -> list[Image] | None:
        if account in self.closed:
            raise Refused("AccessDeniedException", "User is not authorized to perform this on the resource")
        tags = self.repositories.get((account, name))
        return None if tags is None else [Image(digest, (tag,)) for tag, digest in tags.items()]
