"""Reads S3 addresses as people write them."""

from __future__ import annotations

from dataclasses import dataclass

from contract.names import BUCKET_PATTERN
from refusals.wording import plain

SCHEME = "s3://"
FORM = f"{SCHEME}bucket/key"
MOST_BYTES = 1024
"""The most bytes of a key."""


@dataclass(frozen=True, slots=True)
class Address:
    """`s3://bucket/key`."""

    bucket: str
    key: str

    @classmethod
    def parse(cls, text: str) -> Address:
        """Raises ValueError that says what is wrong and what is allowed."""
        scheme, mark, rest = text.partition("://")
        bucket, _, key = rest.partition("/")
        if scheme != "s3" or not mark:
            raise ValueError(f"{plain(text)} is not an S3 address; allowed: {FORM}")
        if not BUCKET_PATTERN.fullmatch(bucket) or ".." in bucket:
            what = f"{plain(text)} has no bucket" if not bucket else f"{plain(bucket)} is not a bucket name"
            raise ValueError(f"{what}; allowed: {FORM}")
        if ".." in key.split("/"):
            raise ValueError(f"{plain(text)} has a part '..'; allowed: the plain key")
        if any(ord(letter) < 32 for letter in key):
            raise ValueError(f"{plain(text)} has control characters; allowed: {FORM} without them")
        if (size := len(key.encode())) > MOST_BYTES:
            raise ValueError(f"{plain(text)} has a key of {size:,} bytes; allowed: up to {MOST_BYTES:,} bytes")
        return cls(bucket, key)

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.key}"
