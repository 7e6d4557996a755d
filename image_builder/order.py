"""Prints parts of a build's order for build.sh, one value after the other, each ended by a NUL: `python3 order.py regions`.

Values from people (arguments, keys) reach the shell as elements of an array and never become part of its text.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from contract.images import BASE, PRIVATE_REGISTRY, BuildOrder, ContainerImage, Context


def fetch(order: BuildOrder) -> list[str]:
    """Returns the arguments of `aws s3api get-object`; the version and the ETag are those that were checked."""
    place = _context(order)
    version = ["--version-id", place.version] if place.version else []
    return ["--bucket", place.bucket, "--key", place.key, "--if-match", place.etag, *version]


def build(order: BuildOrder) -> list[str]:
    """Returns the arguments of `docker buildx build`, without the folder.

    Layers come from the image that the last build pushed (inline cache: only the image itself is kept, and Docker's own builder
    supports it, while another builder would first be pulled from Docker Hub). Without attestations an image is one
    manifest, which SageMaker and older runtimes need; own.py says what the platform's own images are made of.
    """
    base = pinned(order.base, order.base_digest) if order.base_digest else order.base
    arguments = {**order.arguments, **({BASE: base} if base else {})}
    given = [part for name, value in arguments.items() for part in ("--build-arg", f"{name}={value}")]
    return [
        *("--platform", order.platform, "--provenance=false", "--sbom=false", "--progress=plain"),
        *("--cache-from", f"type=registry,ref={order.built}", "--cache-to", "type=inline"),
        *("--tag", str(order.built), "--push"),
        *given,
    ]


def logins(order: BuildOrder) -> list[str]:
    """Returns region and registry of each private registry that the build reads from."""
    found = ((registry, PRIVATE_REGISTRY.fullmatch(registry)) for registry in order.readable)
    return [part for registry, match in found if match for part in (match["region"], registry)]


def targets(order: BuildOrder) -> list[str]:
    """Returns region, registry and full address of every image that the build must push."""
    each = ((region, order.target(region)) for region in order.regions)
    return [part for region, image in each for part in (region, image.registry, str(image))]


def _context(order: BuildOrder) -> Context:
    if order.context is None:
        raise SystemExit("The order names neither an image to copy nor a context to build.")
    return order.context


def digest(text: str) -> str:
    """Returns the digest of a pushed image from the output of `docker buildx build --metadata-file` or `imagetools inspect`."""
    found = json.loads(text)
    value = found.get("containerimage.digest") or found.get("digest")
    if not value:
        raise SystemExit(f"The image tool named no digest: {text[:500]}")
    return str(value)


def pinned(address: str, digest: str) -> str:
    """Returns the same image by its digest, which no later push can change."""
    image = ContainerImage.parse(address)
    return str(ContainerImage(image.registry, image.repository, digest=digest))


def unfixed(order: BuildOrder) -> list[str]:
    """Returns the address of the base image if nothing says yet which image it is."""
    return [order.base if order.base and not order.base_digest else ""]


QUESTIONS: dict[str, Callable[[BuildOrder], Sequence[str]]] = {
    "source": lambda order: [order.source],
    "built": lambda order: [str(order.built)],
    "repository": lambda order: [order.repository],
    "tag": lambda order: [order.tag],
    "records": lambda order: [order.records],
    "unfixed": unfixed,
    "archive": lambda order: [f"context{Path(_context(order).key).suffix}"],
    "fetch": fetch,
    "build": build,
    "logins": logins,
    "targets": targets,
}


def main(question: str, *values: str) -> None:
    if question == "digest":
        answers: Sequence[str] = [digest(sys.stdin.read())]
    elif question == "pinned":
        answers = [pinned(*values)]
    else:
        answers = QUESTIONS[question](BuildOrder.given())
    sys.stdout.write("".join(f"{answer}\0" for answer in answers))


if __name__ == "__main__":
    main(*sys.argv[1:])
