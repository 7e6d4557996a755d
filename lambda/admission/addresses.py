"""S3 addresses as people write them."""

from __future__ import annotations

import re
from dataclasses import dataclass

BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")


@dataclass(frozen=True, slots=True)
class Address:
    """`s3://bucket/key`."""

    bucket: str
    key: str

    @classmethod
    def parse(cls, text: str) -> Address:
        """Raises ValueError that says what is wrong."""
        scheme, mark, rest = text.partition("://")
        bucket, _, key = rest.partition("/")
        if scheme != "s3" or not mark:
            raise ValueError("is no S3 address; allowed: s3://bucket/key")
        if not BUCKET.fullmatch(bucket) or ".." in bucket:
            raise ValueError(f"has no valid bucket name ({bucket!r}); allowed: s3://bucket/key")
        if ".." in key.split("/") or len(key.encode()) > 1024 or any(ord(letter) < 32 for letter in key):
            raise ValueError(
                "has a key with '..' as a part, control characters or over 1,024 bytes; give the plain key"
            )
        return cls(bucket, key)

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.key}"
