"""Empties buckets of everything that was ever in them, where the settings do not keep data."""

from __future__ import annotations

from collections.abc import Callable

from aws.s3 import Bucket

RESERVE_S = 30.0
"""Part of the function's time that is kept for what follows a page of a thousand deletes."""


def empty_bucket(bucket: Bucket, *, left: Callable[[], float]) -> list[str]:
    """Deletes every version of every object, as long as `left` seconds allow. Returns what is left, which is empty only
    after a whole listing that found nothing to delete. A bucket that does not exist is empty."""
    if not bucket.exists():
        return []
    deleted, stayed = 0, dict[str, str]()
    for page in bucket.versions():
        stayed |= bucket.delete_versions(page)
        deleted += len(page)
        if left() < RESERVE_S:
            break
    lines = [f"- bucket {bucket.name}: {key} could not be deleted: {code}" for key, code in stayed.items()]
    if deleted:
        lines.append(f"- bucket {bucket.name} is being emptied: {deleted - len(stayed)} versions were deleted just now")
    return lines
