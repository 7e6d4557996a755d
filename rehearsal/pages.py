"""Leaves the page of a run beside everything else that a rehearsal leaves: what a person would open in the console."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from botocore.exceptions import ClientError

from contract.keys import PAGE, WHOLE
from rehearsal.yard import Yard

LIMIT_S = 20.0
"""How long a page is waited for that tells of the end: its function may start anew."""
EVERY_S = 0.2


def leave_page(
    yard: Yard, key: str, out: Path, say: Callable[[str], object], *, limit_s: float = LIMIT_S
) -> Path | None:
    """Downloads the page into `out` once it has everything of the end, or as it is after `limit_s`; says where there is none. Returns its
    file, None where there is no page."""
    client, until = yard.client("s3"), time.monotonic() + limit_s
    while not (is_whole := _is_whole(client, yard.places.home, key)) and time.monotonic() < until:
        time.sleep(EVERY_S)
    if is_whole is None:
        say(f"no page was written: {key}")
        return None
    out.mkdir(parents=True, exist_ok=True)
    file = out / PAGE
    file.write_bytes(client.get_object(Bucket=yard.places.home, Key=key)["Body"].read())
    return file


def _is_whole(client: object, bucket: str, key: str) -> bool | None:
    """Returns None where there is no page."""
    try:
        head = client.head_object(Bucket=bucket, Key=key)  # type: ignore[attr-defined]
    except ClientError:
        return None
    return bool(head["Metadata"].get(WHOLE) == "1")
