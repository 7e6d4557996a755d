"""Makes the node agent one archive whose digest is known at synth: a job names the digest, and a node runs no other bytes."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import jsii
from aws_cdk import aws_s3_assets as assets
from constructs import Construct

from stacks.parts.assembled import AGENT_LIBRARIES, CONTRACT, NODE, existing, files, set_modes

CONTENTS = {"agent": NODE / "agent", "contract": CONTRACT, ".": AGENT_LIBRARIES}
EPOCH = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a ZIP archive can hold."""
READABLE = 0o644 << 16


class Agent(Construct):
    """`digest` is the archive's SHA-256; `bucket` and `key` say where a deploy puts it: under a name that only CDK knows, and that
    the next version of the stack does not know any more."""

    def __init__(self, scope: Construct, name: str) -> None:
        super().__init__(scope, name)
        archive = archived(CONTENTS)
        self.digest = hashlib.sha256(archive).hexdigest()
        asset = assets.Asset(
            self,
            "Archive",
            path=str(NODE / "agent"),
            asset_hash=self.digest,
            bundling=cdk.BundlingOptions(
                image=cdk.DockerImage.from_registry("never-pulled"),
                local=_Written(archive),
                output_type=cdk.BundlingOutput.ARCHIVED,
            ),
        )
        self.bucket, self.key = asset.s3_bucket_name, asset.s3_object_key
        self.arn = asset.bucket.arn_for_objects(asset.s3_object_key)


@jsii.implements(cdk.ILocalBundling)
class _Written:
    """Gives CDK an archive that exists already."""

    def __init__(self, archive: bytes) -> None:
        self._archive = archive

    def try_bundle(self, output_dir: str, *, image: cdk.DockerImage, **_options: Any) -> bool:  # noqa: ARG002
        Path(output_dir, "agent.zip").write_bytes(self._archive)
        set_modes(Path(output_dir))
        return True


def archived(contents: Mapping[str, Path]) -> bytes:
    """Makes equal bytes of equal files on every machine: no times, no modes, no compression (zlib versions compress differently)."""
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w", zipfile.ZIP_STORED) as archive:
        for place, folder in sorted(contents.items()):
            for file in files(existing(folder)):
                path = Path(place, file.relative_to(folder)).as_posix()
                entry = zipfile.ZipInfo(path, EPOCH)
                entry.external_attr, entry.create_system = READABLE, 3
                archive.writestr(entry, file.read_bytes())
    return body.getvalue()
