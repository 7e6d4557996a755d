"""ECR: an image's digest is its manifest's, so that the same image has the same digest in every region.

moto computes it from the names of the layers, or draws one of a hundred.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from moto.ecr import models

if TYPE_CHECKING:
    from rehearsal.server import LocalAws


def install(aws: LocalAws) -> None:
    def create_digest(self: Any) -> None:
        self._image_digest = f"sha256:{hashlib.sha256(self.image_manifest.encode()).hexdigest()}"

    aws.patch(models.Image, "_create_digest", create_digest)
