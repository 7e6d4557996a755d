"""What has to be in the account for some refusals."""

from __future__ import annotations

from collections.abc import Callable

from contract import items
from contract.codec import encode
from contract.grid import Grid, GridPrefix, Manifest
from tests.archives import packed, tarred
from tests.fakes.state import store
from tests.functions.grid_plan.account import Account
from tools.refusals.grids.yard import ACCOUNT, BUCKET, HOME, REGIONS, execution


def close(account: Account) -> None:
    store(account, items.ADMISSION_CLOSED, b'{"reason": "a destroy"}')


def take(account: Account) -> None:
    """The name belongs to a grid of three months ago."""
    grid = Grid(
        id="sweep-7",
        deployment="yard",
        execution=execution()["arn"],
        started_at="2026-08-01T10:00:00.000Z",
        owner="",
        planned_at=0.0,
        manifest=Manifest(bucket=BUCKET, key="m", version="v", etag="e"),
        lines=1,
        regions={HOME: 1},
        pace=1.0,
        cost_at_most_usd=None,
    )
    account.s3.write(BUCKET, GridPrefix("sweep-7").description, encode(grid))


def no_child(account: Account) -> None:
    account.ecr[HOME].repositories[ACCOUNT, "yard/platform"].clear()


def no_platform(account: Account) -> None:
    del account.ecr[HOME].repositories[ACCOUNT, "yard/platform"]


def only_home(account: Account) -> None:
    for region in REGIONS[1:]:
        account.ecr[region].repositories[ACCOUNT, "yard/images"].clear()


def closed_registry(account: Account) -> None:
    account.ecr[HOME].closed = frozenset({"999988887777"})


def huge(account: Account) -> None:
    account.pretend(BUCKET, "uploads/manifest", 3 * 1024**3)


def code(body: bytes) -> Callable[[Account], None]:
    def upload(account: Account) -> None:
        account.s3.write(BUCKET, "uploads/code.tar.gz", body)

    return upload


def huge_code(account: Account) -> None:
    account.pretend(BUCKET, "uploads/code.tar.gz", 6 * 1024**3)


WHOLE = packed("train.py")
THERE: dict[str, Callable[[Account], None]] = {
    "a manifest of 3 GB": huge,
    "code of 6 GB": huge_code,
    "code that is not an archive": code(b"#!/bin/sh\n"),
    "code that is cut off": code(WHOLE[:60]),
    "code that climbs out of its folder": code(packed("../train.py")),
    "code without the program": code(WHOLE),
    "a program that was saved with the line ends of Windows": code(
        tarred(("run.sh", "#!/bin/bash\r\npython train.py\r\n"))
    ),
    "an entry point that is not executable": code(tarred(("run.sh", "#!/bin/bash\n"))),
    "code whose requirements conda wrote": code(
        tarred(("train.py", "x"), ("requirements.txt", "numpy=1.26.4=py311_0\n"))
    ),
    "code with a wrong program, the only reason shown": code(WHOLE),
    "code with a command as a text, the only reason shown": code(WHOLE),
    "code with more words than fit behind its unpacking": code(WHOLE),
    "code without what the words of the line run": code(WHOLE),
    "a name that a grid has": take,
    "a deployment whose admission is closed": close,
    "a missing image of the children": no_child,
    "a deployment without a platform repository": no_platform,
    "an image that only home has": only_home,
    "an image of a registry that denies access": closed_registry,
}
"""By the refusal's `what`."""
