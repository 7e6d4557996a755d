"""ECR of one region, as far as reading images goes: by tag or digest, in the caller's registry or in another one.

The caller supplies the store of images: a test's own table, or moto.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from localaws.model import Refused

LOOKS = ("BatchGetImage", "DescribeImages", "GetDownloadUrlForLayer")
MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
PAGE = 3
"""Images of a page of a list, 100 on AWS unless the caller asks for another number."""
Wanted = Mapping[str, str]
"""An image's tag, its digest, or both."""


@dataclass(frozen=True, slots=True)
class Image:
    """An image in a repository."""

    digest: str
    tags: tuple[str, ...]
    manifest: str = ""
    pushed_at: float = 0.0
    """UTC epoch seconds."""

    def fits(self, wanted: Wanted) -> bool:
        """Whether everything that is named fits."""
        return wanted.get("imageDigest", self.digest) == self.digest and wanted.get("imageTag") in (None, *self.tags)


def described(
    architecture: str = "amd64",
    entry_point: Sequence[str] = (),
    command: Sequence[str] = (),
    *,
    size: int = 0,
    name: str = "",
    system: str = "linux",
) -> tuple[str, bytes]:
    """Returns the manifest and the configuration of an image of one layer; `name` makes an image differ from another."""
    runs = {"Entrypoint": list(entry_point) or None, "Cmd": list(command) or None, "Labels": {"name": name}}
    config = json.dumps({"architecture": architecture, "os": system, "config": runs}).encode()
    layer = {"digest": digest_of(name.encode()), "size": size}
    named = {"digest": digest_of(config), "size": len(config)}
    return json.dumps({"schemaVersion": 2, "mediaType": MANIFEST, "config": named, "layers": [layer]}), config


def digest_of(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


Stored = Callable[[str, str, list[Wanted]], "Iterable[Image] | None"]
"""Returns the images of an account's repository, including all wanted ones; None if there is no such repository. Raises Refused."""


Blobs = Callable[[str], "bytes | None"]
"""Returns what has a digest, None where nothing has."""


class Ecr:
    """ECR of one region, for callers of `account`."""

    def __init__(self, account: str, stored: Stored, blobs: Blobs = lambda _: None) -> None:
        self._account, self._stored, self._blobs = account, stored, blobs

    def answer(self, operation: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Answers a call. Raises Refused."""
        if operation not in LOOKS:
            raise Refused("InvalidParameterException", f"The local ECR has no {operation}")
        account, name = params.get("registryId", self._account), params["repositoryName"]
        wanted, where = params.get("imageIds") or [], {"registryId": account, "repositoryName": name}
        stored = self._stored(account, name, wanted)
        repository, registry = f"repository with name '{name}'", f"in the registry with id '{account}'"
        if stored is None:
            raise Refused("RepositoryNotFoundException", f"The {repository} does not exist {registry}")
        if operation == "GetDownloadUrlForLayer":
            return self._link(params["layerDigest"], where)
        images = list(stored)
        found = [(one, next((image for image in images if image.fits(one)), None)) for one in wanted]
        missing = [one for one, image in found if image is None]
        if operation == "BatchGetImage":
            absent = {"failureCode": "ImageNotFound", "failureReason": "Requested image not found"}
            return {
                "images": [where | _pulled(one, image) for one, image in found if image is not None],
                "failures": [{"imageId": dict(one)} | absent for one in missing],
            }
        if missing:
            message = f"The image with imageId {dict(missing[0])} does not exist within the {repository} {registry}"
            raise Refused("ImageNotFoundException", message)
        if wanted:
            return {
                "imageDetails": [where | _detail(one) for one in dict.fromkeys(image for _, image in found if image)]
            }
        tagged = params.get("filter", {}).get("tagStatus") == "TAGGED"
        return self._page([where | _detail(one) for one in images if one.tags or not tagged], params)

    @staticmethod
    def _page(details: list[dict[str, Any]], params: Mapping[str, Any]) -> dict[str, Any]:
        """Pages are short: who reads one alone finds half of the images."""
        begin = int(params.get("nextToken") or 0)
        end = begin + min(PAGE, params.get("maxResults") or PAGE)
        more = {"nextToken": str(end)} if end < len(details) else {}
        return {"imageDetails": details[begin:end], **more}

    def _link(self, digest: str, where: Mapping[str, str]) -> dict[str, Any]:
        """A link of the registry's, which is one to S3 on AWS; here it holds the content itself."""
        blob = self._blobs(digest)
        if blob is None:
            raise Refused(
                "LayersNotFoundException", f"The layer with digest '{digest}' does not exist within {dict(where)}"
            )
        link = f"data:application/octet-stream;base64,{base64.b64encode(blob).decode()}"
        return {"downloadUrl": link, "layerDigest": digest}


def _pulled(wanted: Wanted, image: Image) -> dict[str, Any]:
    return {"imageId": {**wanted, "imageDigest": image.digest}, "imageManifest": image.manifest}


def _detail(image: Image) -> dict[str, Any]:
    tags = {"imageTags": list(image.tags)} if image.tags else {}
    return {"imageDigest": image.digest, "imagePushedAt": image.pushed_at, **tags}
