"""ECR: repositories of one region with tags, asked as the functions ask."""

from __future__ import annotations

import json
from typing import Any

from localaws.model import Refused
from localaws.services.ecr_model import Ecr, Image, Wanted, described, digest_of

INDEX = "application/vnd.oci.image.index.v1+json"


class FakeEcr(Ecr):
    """One region. Other accounts' repositories are under `(account, name)`, the caller's under its own account."""

    def __init__(self, account: str, repositories: dict[tuple[str, str], dict[str, str]]) -> None:
        self.manifests, self.blobs = dict[str, str](), dict[str, bytes]()
        super().__init__(account, self._kept, self.blobs.get)
        self.repositories = repositories
        """To tag and digest."""
        self.closed: frozenset[str] = frozenset()
        """Accounts whose registries say no."""
        self.pushed = dict[str, float]()
        """When the image of a digest was pushed, where that matters."""

    def _kept(self, account: str, name: str, _: list[Wanted]) -> list[Image] | None:
        if account in self.closed:
            raise Refused("AccessDeniedException", "User is not authorized to perform this on the resource")
        tags = self.repositories.get((account, name))
        if tags is None:
            return None
        kept = [
            Image(digest, (tag,), self.manifests.get(digest, ""), self.pushed.get(digest, 0.0))
            for tag, digest in tags.items()
        ]
        return [*kept, *(Image(digest, (), manifest) for digest, manifest in self.manifests.items())]

    def push(self, account: str, name: str, tag: str, architecture: str = "amd64", **said: Any) -> str:
        """Keeps an image of one platform that says so of itself (`described`); returns its digest."""
        manifest, config = described(architecture, name=f"{name}:{tag}", **said)
        digest = digest_of(manifest.encode())
        self.manifests[digest], self.blobs[digest_of(config)] = manifest, config
        self.repositories.setdefault((account, name), {})[tag] = digest
        return digest

    def push_index(self, account: str, name: str, tag: str, *images: tuple[str, str, str], beside: str = "") -> str:
        """Keeps an index of images (system, architecture, digest) under a tag; returns its digest. `beside` is the digest of one that is
        no image, but an index for lazy loading, as SOCI puts it there with the platform of its image."""
        many: list[dict[str, Any]] = [
            {"digest": one, "platform": {"os": system, "architecture": kind}} for system, kind, one in images
        ]
        for one in many:
            if one["digest"] == beside:
                one["artifactType"] = "application/vnd.amazon.soci.index.v2+json"
        index = json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": many})
        digest = digest_of(index.encode())
        self.manifests[digest] = index
        self.repositories.setdefault((account, name), {})[tag] = digest
        return digest
