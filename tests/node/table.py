"""The table of state as a node meets it: the local AWS's model of DynamoDB behind the two calls of the agent."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from email.utils import formatdate
from typing import Any, cast

from botocore.exceptions import ClientError

from contract.items import DOCUMENT, PARTITION, SORT, ItemKey, packed
from localaws.model import Refused
from localaws.services import dynamodb_expressions
from localaws.services.dynamodb_model import DynamoDb
from localaws.services.dynamodb_state import Knobs
from localaws.services.dynamodb_table import Schema
from tests.node.fakes import Fault

NAME, ROLE = "yard-state", "AROA0123456789ABCDEFG"
SCHEMA = Schema(
    name=NAME,
    arn=f"arn:aws:dynamodb:eu-central-1:123456789012:table/{NAME}",
    ttl="expires",
    view="NEW_IMAGE",
    stream="",
)


class AwsClock:
    """AWS's own clock; the real one unless a test sets `now`."""

    def __init__(self) -> None:
        self.now: Callable[[], float] = time.time

    def time(self) -> float:
        return self.now()


class NodeTable(DynamoDb):
    """`fault(call, sort key)` may give an exception to raise before a call is done; `lost`, after it. Answers are dated in whole
    seconds, refusals too. A read that is not consistent shows what was there `knobs.lag_s` ago."""

    def __init__(self) -> None:
        self.aws = AwsClock()
        super().__init__("eu-central-1", self.aws, random.Random(0), dynamodb_expressions, Knobs.plain())
        self.calls: list[tuple[str, str]] = []
        self.written: list[dict[str, Any]] = []
        """Every item that was written by a call, in order."""
        self.fault: Fault = lambda _call, _sort: None
        self.lost: Fault = lambda _call, _sort: None

    def schema(self, name: str) -> Schema | None:
        return SCHEMA if name == NAME else None

    def tell(self, schema: Schema, record: dict[str, Any]) -> None:
        """Nobody reads the stream."""

    def expires(self, when: float) -> None:
        """Nothing of a node's lives that long."""

    def sight(self, consistent: bool) -> float:
        return self.aws.time() - (0.0 if consistent else self.knobs.lag_s)

    def get_item(self, **request: Any) -> dict[str, Any]:
        return self._call("get", "GetItem", request, request["Key"])

    def put_item(self, **request: Any) -> dict[str, Any]:
        return self._call("put", "PutItem", request, request["Item"])

    def _call(self, call: str, operation: str, request: dict[str, Any], key: dict[str, Any]) -> dict[str, Any]:
        sort = key["sk"]["S"]
        self.calls.append((call, sort))
        told: dict[str, Any] = {
            "ResponseMetadata": {"HTTPHeaders": {"date": formatdate(int(self.aws.time()), usegmt=True)}}
        }
        try:
            if problem := self.fault(call, sort):
                raise problem
            answer = self.answer(operation, request)
            if call == "put":
                self.written.append(request["Item"])
            if problem := self.lost(call, sort):
                raise problem
        except Refused as refused:
            told |= {"Error": {"Code": refused.code, "Message": refused.message}}
            raise ClientError(cast(Any, told), operation) from None
        except ClientError as problem:
            problem.response.update(told)  # type: ignore[typeddict-item]
            raise
        return {name: value for name, value in answer.items() if value is not None} | told

    def give(self, key: ItemKey, document: bytes) -> None:
        """Writes an item as a function does."""
        made = {PARTITION: {"S": key.partition}, SORT: {"S": key.sort}, DOCUMENT: packed(document)}
        self.answer("PutItem", {"TableName": NAME, "Item": made})

    def list_calls(self, call: str) -> list[str]:
        """The sort keys of all such calls."""
        return [sort for made, sort in self.calls if made == call]
