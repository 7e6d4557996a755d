"""Every S3 call of a child: reads and writes the plan, marks and records of its grid in the home bucket."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from contract.aws_errors import code_of
from grid_child.clients import client
from grid_child.retry import Retry
from grid_child.trouble import trouble_of

ABSENT = frozenset({"NoSuchKey", "404"})
EXISTS = frozenset({"PreconditionFailed", "412"})


class Home:
    """The home bucket. Repeats calls after Trouble, and raises it when that takes too long; raises Unfit where a permission is missing."""

    def __init__(self, bucket: str, region: str, retry: Retry) -> None:
        self.bucket, self.region, self._retry = bucket, region, retry

    @cached_property
    def _client(self) -> Any:
        return client("s3", self.region)

    def beside(self, bucket: str, region: str) -> Home:
        """Returns another bucket, with the same patience."""
        return Home(bucket, region, self._retry)

    def read(self, key: str) -> bytes | None:
        found = self.read_dated(key)
        return found[0] if found else None

    def read_begin(self, key: str, most: int) -> bytes | None:
        """The body, of which at most so many bytes; None where there is no such object."""
        found = self._retry(lambda: self._get(key, most))
        return found[0] if found else None

    def read_dated(self, key: str) -> tuple[bytes, float] | None:
        """The body and the time at which S3 stored it (UTC epoch seconds); None where there is no such object."""
        return self._retry(lambda: self._get(key))

    def exists(self, key: str) -> bool:
        """Whether the object exists. Uses GET, because S3 does not say why a HEAD fails."""
        return self.read(key) is not None

    def create(self, key: str, body: bytes) -> bool:
        """Creates the object. False where it exists already, perhaps by an earlier try of this call whose answer was lost."""
        return self._retry(lambda: self._create(key, body))

    def _get(self, key: str, most: int | None = None) -> tuple[bytes, float] | None:
        try:
            answer = self._client.get_object(Bucket=self.bucket, Key=key)
            return answer["Body"].read(most), answer["LastModified"].timestamp()
        except (ClientError, BotoCoreError) as problem:
            if isinstance(problem, ClientError) and code_of(problem) in ABSENT:
                return None
            raise trouble_of(problem, f"s3:GetObject of {key} in {self.bucket}") from problem

    def _create(self, key: str, body: bytes) -> bool:
        try:
            self._client.put_object(
                Bucket=self.bucket, Key=key, Body=body, ContentType="application/json", IfNoneMatch="*"
            )
        except (ClientError, BotoCoreError) as problem:
            if isinstance(problem, ClientError) and code_of(problem) in EXISTS:
                return False
            raise trouble_of(problem, f"s3:PutObject of {key} in {self.bucket}") from problem
        return True
