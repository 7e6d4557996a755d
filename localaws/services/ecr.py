"""ECR: an image's digest is its manifest's, so that the same image has the same digest in every region; and AWS's own registries.

moto computes digests from the names of the layers, or draws one of a hundred; and to it every registry is the caller's.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from moto.ecr import models

from localaws.services.cloudformation_repairs import after_creation

if TYPE_CHECKING:
    from localaws.server import LocalAws

CONTAINER = re.compile(r"\d+\.\d+\.\d+-(cpu|gpu)-py3\d+(-cu\d+)?-[a-z0-9.]+-(ec2|sagemaker)(-v[\d.]+)?")
"""Tags of AWS's Deep Learning Containers."""
CONTAINERS = re.compile(r"(pytorch|tensorflow|huggingface-pytorch)-(training|inference)")
NOT_SHOWN = "AWS's registries of Deep Learning Containers: they hold whatever is called as such a container would be"


def install(aws: LocalAws) -> None:
    def create_digest(self: Any) -> None:
        self._image_digest = f"sha256:{hashlib.sha256(self.image_manifest.encode()).hexdigest()}"

    own = models.ECRBackend.batch_get_image

    def batch_get_image(
        self: Any, repository_name: str, registry_id: str | None = None, image_ids: list[dict[str, str]] | None = None
    ) -> Any:
        if registry_id in (None, aws.account) or repository_name in self.repositories:
            return own(self, repository_name, registry_id, image_ids)
        return _of_aws(repository_name, str(registry_id), image_ids or [])

    def delete(self: Any, account_id: str, region_name: str) -> None:
        models.ecr_backends[account_id][region_name].delete_repository(self.name, force=self.empties)

    aws.patch(models.Repository, "empties", False)
    aws.patch(models.Repository, "delete", delete)
    after_creation(aws, models.Repository, _empties)
    aws.patch(models.Image, "_create_digest", create_digest)
    aws.patch(models.ECRBackend, "batch_get_image", batch_get_image)


def _empties(_client: Any, repository: Any, properties: Mapping[str, Any]) -> None:
    """Of EmptyOnDelete, as CloudFormation has it, moto knows nothing."""
    repository.empties = properties.get("EmptyOnDelete") in (True, "true")


def _of_aws(repository: str, registry: str, wanted: list[dict[str, str]]) -> dict[str, Any]:
    if not CONTAINERS.fullmatch(repository):
        raise models.RepositoryNotFoundException(repository, registry)
    images, failures = [], []
    for one in wanted:
        if CONTAINER.fullmatch(tag := one.get("imageTag", "")):
            manifest = json.dumps({"schemaVersion": 2, "name": f"{repository}:{tag}"})
            digest = f"sha256:{hashlib.sha256(manifest.encode()).hexdigest()}"
            found = {"registryId": registry, "repositoryName": repository, "imageManifest": manifest}
            images.append({**found, "imageId": {"imageTag": tag, "imageDigest": digest}})
        else:
            failures.append(
                {"imageId": one, "failureCode": "ImageNotFound", "failureReason": "Requested image not found"}
            )
    return {"images": images, "failures": failures}
