"""Every DynamoDB call of the agent: it writes its report, and reads its order and its keys, the items that belong to its instance."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import Any

from botocore.exceptions import ClientError

from contract import items
from contract.aws_errors import code_of
from contract.codec import decode
from contract.items import DOCUMENT, EXPIRES, PARTITION, SORT, URGENT, VERSION, WRITTEN_AT, ItemKey
from contract.sessions import SessionCredentials

NOT_MET = "ConditionalCheckFailedException"
RECENT = 120
"""Answers whose dates count: those of ten minutes of looks. The longer they count, the more a drift of the machine's clock does."""


class Untold(Exception):
    """No answer of AWS has said yet what time it is."""


class AwsTime:
    """AWS's clock, as the `Date` of its answers tells it.

    The age of a report decides whether its node counts as lost, so no node's own clock dates it: that may be five minutes off.
    DynamoDB does not say when an item was written, and only its answers tell AWS's time. A date is cut to whole seconds, and as old
    as the answer's way took: moved on by the monotonic clock, the latest of several is the nearest, at most a second early, never late.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._ahead = deque[float](maxlen=RECENT)
        """By how much AWS's clock was ahead of the monotonic one, an answer each."""
        self._lock = threading.Lock()

    def hear(self, answer: Mapping[str, Any]) -> None:
        """Learns from an answer, also from one that refuses."""
        came = self._monotonic()
        with suppress(KeyError, TypeError, ValueError):
            date = parsedate_to_datetime(answer["ResponseMetadata"]["HTTPHeaders"]["date"]).timestamp()
            with self._lock:
                self._ahead.append(date - came)

    @property
    def known(self) -> bool:
        return bool(self._ahead)

    def now(self) -> float:
        """UTC epoch seconds. Raises Untold."""
        with self._lock:
            if not self._ahead:
                raise Untold("no answer of DynamoDB has said yet what time it is")
            return max(self._ahead) + self._monotonic()


class NodeItems:
    """The items of this node. Calls raise what boto3 raises after its retries, except where their docstring says otherwise.
    Safe to use from any thread."""

    def __init__(
        self, client: Any, table: str, role: str, instance: str, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._client, self._table = client, table
        self._report, self._order = items.node_report(role, instance), items.node_order(role, instance)
        self._credentials_key = items.node_credentials(role, instance)
        self._time = AwsTime(monotonic)

    def now(self, otherwise: float) -> float:
        """AWS's time, UTC epoch seconds; `otherwise` where no answer has told it yet."""
        return self._time.now() if self._time.known else otherwise

    def put_report(self, document: bytes, *, version: int, urgent: bool, expires: float) -> None:
        """Replaces the report, dated by AWS's clock, unless one of this or of a later version is there."""
        if not self._time.known:
            with suppress(ClientError):  # a refusal has a date too
                self.order()
        item = {
            **_key(self._report),
            DOCUMENT: items.packed(document),
            VERSION: {"N": str(version)},
            WRITTEN_AT: {"N": f"{self._time.now():.3f}"},
            EXPIRES: {"N": str(round(expires))},
            **({URGENT: {"N": "1"}} if urgent else {}),
        }
        try:
            self._call(
                self._client.put_item,
                Item=item,
                ConditionExpression=f"attribute_not_exists({PARTITION}) OR {VERSION} < :v",
                ExpressionAttributeValues={":v": {"N": str(version)}},
            )
        except ClientError as problem:
            # Only this node writes the item, with a new version each time. What is there is this report, whose answer was lost
            # before botocore sent it again, or a later one, which a try that was long on its way must not replace.
            if code_of(problem) != NOT_MET:
                raise

    def order(self, *, certain: bool = False) -> bytes | None:
        """The node's copy of its attempt's order; None where there is none.

        A `certain` read costs twice as much and shows every copy that was written before it; another may miss the one of the last
        second, which the next read shows.
        """
        answer = self._call(self._client.get_item, Key=_key(self._order), ConsistentRead=certain)
        return items.unpacked(answer["Item"]) if "Item" in answer else None

    def read_credentials(self) -> SessionCredentials | None:
        """Reads the newest credentials of the job; None where there are none yet."""
        answer = self._call(self._client.get_item, Key=_key(self._credentials_key), ConsistentRead=True)
        return decode(SessionCredentials, items.unpacked(answer["Item"])) if "Item" in answer else None

    def renewed_credentials(self) -> SessionCredentials:
        """Reads as `read_credentials` does. Raises LookupError where there are none."""
        if (found := self.read_credentials()) is None:
            raise LookupError("the job's credentials are gone from the table")
        return found

    def _call(self, call: Callable[..., Mapping[str, Any]], **arguments: Any) -> Mapping[str, Any]:
        try:
            answer = call(TableName=self._table, **arguments)
        except ClientError as problem:
            self._time.hear(problem.response)
            raise
        self._time.hear(answer)
        return answer


def _key(key: ItemKey) -> dict[str, Any]:
    return {PARTITION: {"S": key.partition}, SORT: {"S": key.sort}}
