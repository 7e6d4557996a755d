"""What has to be in the account for some refusals."""

from __future__ import annotations

from collections.abc import Callable

from tests.archives import link, tarred, with_method, zipped
from tests.functions.image_build.account import Account
from tools.refusals.images import DIGEST, OTHER_DIGEST, REGIONS

DOCKERFILE = ("Dockerfile", "FROM scratch\n")


def _object(name: str, body: bytes, size: int | None = None) -> Callable[[Account], None]:
    return lambda account: account.put(f"uploads/{name}", body, size=size)


THERE: dict[str, Callable[[Account], None]] = {
    "a context of 5 GB": _object("large.zip", b"x", 5 * 1024**3),
    "an empty context": _object("empty.zip", b""),
    "no Dockerfile": _object("none.tgz", tarred(("a", "1"), ("b", "2"))),
    "a folder packed with its name": _object("folder.tgz", tarred(("app/Dockerfile", "x"))),
    "a Dockerfile that is a link": _object("linked.tgz", tarred(("docker/gpu", "x"), link("Dockerfile", "docker/gpu"))),
    "a Dockerfile with an ending": _object("text.tgz", tarred(("Dockerfile.txt", "FROM scratch\n"))),
    "a context packed with Deflate64": _object("deflate64.zip", with_method(zipped("Dockerfile"), 9)),
    "an absolute name": _object("abs.tgz", tarred(DOCKERFILE, ("/etc/passwd", "x"))),
    "a name that climbs": _object("up.tgz", tarred(DOCKERFILE, ("../up", "x"))),
    "a link that leaves": _object("link.tgz", tarred(DOCKERFILE, link("etc", "/etc"))),
    "something below a link": _object("below.tgz", tarred(DOCKERFILE, link("a", "b"), ("a/x", "1"))),
    "no archive by its bytes": _object("bytes.tgz", b"no archive"),
    "a tag that is taken everywhere": lambda account: account.stand("v1", dict.fromkeys(REGIONS, DIGEST)),
    "a tag that is two images": lambda account: account.stand(
        "v1", {"eu-central-1": DIGEST, "us-east-1": OTHER_DIGEST}
    ),
}
"""By the refusal's `what`."""
