"""Checks and records builds of the platform's own images: `python3 own.py verify folder`, `python3 own.py provenance folder digest`.

Docker's own attestations need another builder and a scanner, two images from Docker Hub that nothing pins, beside the rights to push.
The documents here are made of what is pinned already: the context, the base image's digest and requirements.txt with its hashes.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from contract import keys, names
from contract.codec import encode
from contract.images import Base, BuildOrder, content_digest

REQUIRED = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)==([^ ;\\\n]+)", re.MULTILINE)
"""A pinned package of requirements.txt."""
BUILD_TYPE = "urn:trainyard-image-builder:1"
"""The meaning of `externalParameters` in the provenance."""


def verify(order: BuildOrder, folder: Path) -> None:
    """Exits unless the context is the one that the tag names."""
    found = names.child_image_tag(content_digest(_files(folder), order.base))
    if found != order.tag:
        raise SystemExit(f"The context is not the one of {order.tag}: its files and the base image make {found}.")


def base(order: BuildOrder, _folder: Path, _digest: str) -> bytes:
    """Which image the base's address is from now on."""
    return encode(Base(address=order.base, digest=order.base_digest))


def provenance(order: BuildOrder, folder: Path, digest: str) -> bytes:
    """An in-toto statement with SLSA's provenance: what was built of what, by which build. Not signed: the role of these builds alone
    can write it where it lies."""
    assert order.context is not None
    context, build = order.context, os.environ.get("CODEBUILD_BUILD_ARN", "")
    address = f"s3://{context.bucket}/{context.key}"
    statement = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": order.repository, "digest": _sha256(digest)}],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": {"tag": order.tag, "base": order.base, "context": address},
                "internalParameters": {"version": context.version, "etag": context.etag},
                "resolvedDependencies": [
                    {"uri": order.base, "digest": _sha256(order.base_digest)},
                    {"uri": address, "digest": {"sha256": content_digest(_files(folder), order.base)}},
                ],
            },
            "runDetails": {
                "builder": {"id": build.rpartition(":")[0]},
                "metadata": {"invocationId": build},
            },
        },
    }
    return json.dumps(statement, indent=1).encode()


def parts(order: BuildOrder, folder: Path, digest: str) -> bytes:
    """A CycloneDX list of parts (SBOM): the base image, pinned packages and files. What is in the base image, its own list says."""
    listed = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {"type": "container", "name": order.repository, "version": digest}},
        "components": [
            {"type": "container", "name": order.base, "version": order.base_digest},
            *(
                {"type": "library", "name": name, "version": version, "purl": f"pkg:pypi/{name.lower()}@{version}"}
                for name, version in _packages(folder)
            ),
            *(
                {"type": "file", "name": path, "hashes": [{"alg": "SHA-256", "content": content}]}
                for path, content in sorted(_files(folder).items())
            ),
        ],
    }
    return json.dumps(listed, indent=1).encode()


def place(order: BuildOrder, document: str, digest: str) -> str:
    """Returns the arguments of `aws s3api put-object` that say where a document lies, each ended by a NUL."""
    key = {
        "base": keys.own_base(order.base),
        "provenance": keys.own_provenance(order.tag, digest),
        "parts": keys.own_parts(order.tag, digest),
    }[document]
    return "".join(f"{word}\0" for word in ("--bucket", order.records, "--key", key))


def _files(folder: Path) -> dict[str, str]:
    """SHA-256 of each file by its path in the context."""
    every = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in every}


def _packages(folder: Path) -> Iterator[tuple[str, str]]:
    for file in sorted(folder.rglob("requirements.txt")):
        yield from REQUIRED.findall(file.read_text())


def _sha256(digest: str) -> dict[str, Any]:
    return {"sha256": digest.removeprefix("sha256:")}


DOCUMENTS: dict[str, Callable[[BuildOrder, Path, str], bytes]] = {
    "base": base,
    "provenance": provenance,
    "parts": parts,
}


def main(question: str, *values: str) -> None:
    if question == "verify":
        verify(BuildOrder.given(), Path(values[0]))
    elif question == "place":
        sys.stdout.write(place(BuildOrder.given(), *values))
    else:
        folder, digest = values
        sys.stdout.buffer.write(DOCUMENTS[question](BuildOrder.given(), Path(folder), digest))


if __name__ == "__main__":
    main(*sys.argv[1:])
