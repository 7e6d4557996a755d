"""ECR: an image's digest is its manifest's, so the same image has the same digest in every region; also AWS's own registries.

moto keeps the caller's images, but computes digests from the names of the layers, or draws one of a hundred, and treats every registry
as the caller's. So the model answers the calls that read images.
"""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timezone
from functools import partial
from typing import TYPE_CHECKING, Any

from moto.ecr import models

from localaws.api import Service
from localaws.recorder import Answer
from localaws.services.cloudformation_repairs import around_creation
from localaws.services.ecr_model import LOOKS, Ecr, Image, Wanted, described, digest_of

if TYPE_CHECKING:
    from localaws.recorder import Call, Environ
    from localaws.server import LocalAws

CONTAINER = re.compile(r"\d+\.\d+\.\d+-(cpu|gpu)-py3\d+(-cu\d+)?-[a-z0-9.]+-(ec2|sagemaker)(-v[\d.]+)?(-soci)?")
"""Tags of AWS's Deep Learning Containers."""
CONTAINERS = re.compile(r"(pytorch|tensorflow|huggingface-pytorch)-(training|inference)")
LISTED = tuple(
    f"{version}-{device}{system}-{place}"
    for place in ("ec2", "ec2-soci", "sagemaker", "sagemaker-soci")
    for version, systems in {
        "2.9.0": {"cpu-py312": "-ubuntu22.04", "gpu-py312": "-cu130-ubuntu22.04"},
        "2.10.0": {"cpu-py313": "-ubuntu22.04", "gpu-py313": "-cu130-ubuntu22.04"},
    }.items()
    for device, system in systems.items()
)
"""Those that a list of a repository has: tags of AWS's containers for PyTorch (github.com/aws/deep-learning-containers, releases)."""
PUSHED_AT = datetime(2026, 4, 16, tzinfo=timezone.utc).timestamp()
LOGIN_S = 12 * 3600.0
NOT_SHOWN = "AWS's registries of Deep Learning Containers: they hold whatever is called as such a container would be"


def install(aws: LocalAws) -> None:
    def create_digest(self: Any) -> None:
        self._image_digest = _digest(self.image_manifest)

    def delete(self: Any, account_id: str, region_name: str) -> None:
        models.ecr_backends[account_id][region_name].delete_repository(self.name, force=self.empties)

    aws.patch(models.Repository, "empties", False)
    aws.patch(models.Repository, "delete", delete)
    around_creation(aws, models.Repository, _apply_empty_on_delete)
    aws.patch(models.Image, "_create_digest", create_digest)

    def region(name: str) -> Ecr:
        return Ecr(aws.account, partial(_stored, aws.account, name), blobs)

    def blobs(digest: str) -> bytes | None:
        """What a build has made, or what a container of AWS's says of itself."""
        file = aws.work / "images/blobs" / digest.removeprefix("sha256:")
        return file.read_bytes() if file.is_file() else _SAID.get(digest)

    Service(aws, "ecr", region, invalid="InvalidParameterException", only=LOOKS)
    aws.recorder.interceptors.append(partial(_login, aws))


def _login(aws: LocalAws, call: Call, _: Environ) -> Answer | None:
    """The password of the registries is made of keys of its own, with the rights of whoever asks, as a pull is judged by these on AWS."""
    if call.name != "ecr:GetAuthorizationToken":
        return None
    until = time.time() + LOGIN_S
    keys = aws.hand_out(replace(call.by, until=until), f"{call.role} {call.session} {until}")
    password = f"{keys.access_key}{keys.secret}{keys.token}"
    token = base64.b64encode(f"AWS:{password}".encode()).decode()
    proxy = f"https://{aws.account}.dkr.ecr.{call.region}.amazonaws.com"
    said = {"authorizationToken": token, "expiresAt": until, "proxyEndpoint": proxy}
    body = json.dumps({"authorizationData": [said]}).encode()
    return Answer(200, body, {"Content-Type": "application/x-amz-json-1.1"})


def _apply_empty_on_delete(_client: Any, repository: Any, properties: Mapping[str, Any]) -> None:
    """Applies EmptyOnDelete of CloudFormation, which moto does not know."""
    repository.empties = properties.get("EmptyOnDelete") in (True, "true")


def _stored(caller: str, region: str, account: str, name: str, wanted: list[Wanted]) -> list[Image] | None:
    """Returns what moto keeps for the caller; AWS's own registries contain every requested container."""
    if account == caller:
        kept = models.ecr_backends[caller][region].repositories.get(name)
        images = kept.images if kept else []
        own = [Image(one.get_image_digest(), tuple(one.image_tags), one.image_manifest) for one in images]
        return own if kept else None
    if not CONTAINERS.fullmatch(name):
        return None
    asked = [one.get("imageTag", "") for one in wanted] if wanted else LISTED
    tags = [one for one in asked if CONTAINER.fullmatch(one)]
    return [_container(name, tag) for tag in tags] + [
        _GIVEN[one["imageDigest"]] for one in wanted if one.get("imageDigest") in _GIVEN
    ]


_GIVEN, _SAID = dict[str, Image](), dict[str, bytes]()
"""AWS's containers that somebody has asked for, by digest; what each says of itself, by the digest of that."""


def _container(name: str, tag: str) -> Image:
    manifest, config = described("amd64", (), ("/bin/bash",), size=6 * 1024**2, name=f"{name}:{tag}")
    # AWS makes an image with an index for lazy loading of the one without it, and later.
    image = Image(digest_of(manifest.encode()), (tag,), manifest, PUSHED_AT + 600.0 * tag.endswith("-soci"))
    _GIVEN[image.digest], _SAID[digest_of(config)] = image, config
    return image


def _digest(manifest: str) -> str:
    return digest_of(manifest.encode())
