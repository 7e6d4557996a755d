"""Every call of the RDS Data API: SQL over HTTPS, for the catalogue's database.

A statement that was sent is never sent again where AWS may have run it, because a page of a cursor would be lost; only what AWS says it
did not run is repeated.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date, datetime, timezone
from decimal import Decimal
from types import MappingProxyType
from typing import Any, TypeVar

from botocore.exceptions import ClientError, HTTPClientError
from botocore.exceptions import ConnectionError as NoConnection

from aws.clients import ONE_ATTEMPT, client
from contract.aws_errors import code_of
from contract.catalogue import DATABASE, CatalogueAccess
from contract.errors import DatabaseAway

T = TypeVar("T")
WAKES_S = 120.0
"""How long a sleeping database is asked again. It wakes in about 15 s, and in 30 s or more after a day's sleep (Aurora's user guide,
"Scaling to Zero ACUs with automatic pause and resume")."""
AWAY_S = 10.0
"""How long a throttle, or a database without a writer, is asked again."""
PAUSE_S = 3.0
NO_STATE = ""
"""The SQLSTATE of an error that the Data API itself has with a statement."""
CANCELLED = "57014"
"""PostgreSQL's SQLSTATE of a statement that ran into its time-out."""
LONGEST = range(-(2**63), 2**63)
"""Whole numbers that a longValue holds."""

_ASLEEP = frozenset({"DatabaseResumingException"})
_THROTTLED = frozenset({"ThrottlingException", "Throttling", "TooManyRequestsException"})
_NOT_RUN = _THROTTLED | {"DatabaseUnavailableException"}
"""Answers after which the call may be sent again: nothing was run."""
_UNKNOWN = frozenset(
    {"ServiceUnavailableError", "InternalServerErrorException", "InternalServerError", "InternalFailure"}
)
_ENDED = frozenset({"TransactionNotFoundException"})
"""The transaction ended without us: the writer changed, or it was idle for three minutes."""
_OF_STATEMENT = frozenset(
    {"DatabaseErrorException", "BadRequestException", "UnsupportedResultException", "ValidationException"}
)
_STATE = re.compile(r";?\s*SQLState: ([0-9A-Z]{5})\s*$")
_TOO_LARGE = ("response size limit", "Packet for query is too large")
"""What the Data API says of an answer of more than 1 MiB, and of a row of more than 64 KB (user guide, "Troubleshooting Data API")."""
_SESSION_ENDED = re.compile("08(?!P01)...|53300|57P0[1-5]")
"""PostgreSQL's SQLSTATEs of a lost connection, of too many, and of a server that stops or starts. 08P01 blames the statement: its
parameters have no values."""
_LOGIN_REFUSED = re.compile("28...|3D000")
"""PostgreSQL's SQLSTATEs of a wrong name or password, and of a database that does not exist."""


class NoDatabase(Exception):
    """There is no such database or secret, or it does not let us in: only a person can change that."""


class AnswerTooLarge(Exception):
    """The rows have more than 1 MiB together, or one has more than 64 KB."""


class StatementRefused(Exception):
    """PostgreSQL refuses the statement, or the Data API does."""

    def __init__(self, text: str, state: str) -> None:
        super().__init__(f"{text} (SQLSTATE {state})" if state else text)
        self.text = text
        """In the database's words, with the place in the statement where it names one."""
        self.state = state
        """SQLSTATE, as in 42601 for a syntax error; NO_STATE where the Data API itself refuses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of an answer."""

    name: str
    type: str
    """PostgreSQL's name of its type, as in `jsonb`, `numeric` and, for an array, `_text`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementAnswer:
    """What a statement gave."""

    columns: tuple[Column, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    """bool, int, float, text, bytes, None or a list of them; `numeric`, JSON, times and all other types are text."""
    updated: int = 0
    """Rows that it wrote."""


class _Statements:
    """Runs statements, each in the transaction that has this id, or in its own."""

    def __init__(self, access: CatalogueAccess, calls: Any, transaction: str = "") -> None:
        self._calls = calls
        self._where = {"resourceArn": access.cluster, "secretArn": access.secret}
        self._transaction = {"transactionId": transaction} if transaction else {}

    def send(self, sql: str, parameters: Mapping[str, Any]) -> StatementAnswer:
        """Sends one statement once."""
        found = self._calls.execute_statement(
            **self._where,
            **(self._transaction or {"database": DATABASE}),
            sql=sql,
            parameters=[_parameter(name, value) for name, value in parameters.items()],
            includeResultMetadata=True,
        )
        return StatementAnswer(
            columns=tuple(
                Column(name=one.get("label") or one.get("name", ""), type=one.get("typeName", ""))
                for one in found.get("columnMetadata", ())
            ),
            rows=tuple(tuple(_value(field) for field in row) for row in found.get("records", ())),
            updated=found.get("numberOfRecordsUpdated", 0),
        )


class Transaction:
    """A transaction that is open."""

    def __init__(
        self, statements: _Statements, again: Callable[[Callable[[], StatementAnswer]], StatementAnswer]
    ) -> None:
        """`again` makes a call, and makes it again where AWS throttled it: a page that was fetched twice would be a page lost."""
        self._statements, self._again = statements, again

    def run(self, sql: str, parameters: Mapping[str, Any] = MappingProxyType({})) -> StatementAnswer:
        """Runs one statement. Raises StatementRefused and AnswerTooLarge, after which the transaction only can be rolled back, as after
        DatabaseAway and NoDatabase."""
        return self._again(lambda: self._statements.send(sql, parameters))


class DataApi:
    """The catalogue's database, as one of its roles."""

    def __init__(
        self,
        access: CatalogueAccess,
        calls: Any = None,
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._access = access
        self._calls = calls or client("rds-data", None, ONE_ATTEMPT)
        self._sleep, self._clock = sleep, clock

    def run(self, sql: str, parameters: Mapping[str, Any] = MappingProxyType({})) -> StatementAnswer:
        """Runs one statement in a transaction of its own, with `:name` for a parameter, and waits for a database that sleeps.

        Raises StatementRefused, AnswerTooLarge, NoDatabase, and DatabaseAway: then the statement may have run.
        """
        alone = _Statements(self._access, self._calls)
        return self._awake(lambda: alone.send(sql, parameters))

    @contextmanager
    def transaction(self, *, commits: bool = True) -> Iterator[Transaction]:
        """Opens a transaction, and waits for a database that sleeps. It is committed where the block ends well, and else rolled back;
        without `commits` it is always rolled back, which undoes a session's settings too. Raises as `run` does."""
        where = {"resourceArn": self._access.cluster, "secretArn": self._access.secret}
        begun = self._awake(lambda: self._calls.begin_transaction(**where, database=DATABASE)["transactionId"])
        ended = {**where, "transactionId": begun}
        try:
            yield Transaction(_Statements(self._access, self._calls, begun), self._unthrottled)
        except BaseException:
            self._roll_back(ended)
            raise
        if not commits:
            self._roll_back(ended)
            return
        self._unthrottled(lambda: self._calls.commit_transaction(**ended))

    def _roll_back(self, transaction: Mapping[str, str]) -> None:
        """Where this fails the Data API rolls back by itself: it ends a transaction that is idle for three minutes."""
        with suppress(ClientError, HTTPClientError, NoConnection):
            self._calls.rollback_transaction(**transaction)

    def _unthrottled(self, call: Callable[[], T]) -> T:
        """Makes the call, again where AWS throttled it, as it does before it runs anything."""
        return self._awake(call, of=_THROTTLED)

    def _awake(self, call: Callable[[], T], *, of: Collection[str] = _ASLEEP | _NOT_RUN) -> T:
        """Makes the call, again while the database sleeps, and shortly where AWS did not run it: after the codes `of`."""
        began = self._clock()
        while True:
            try:
                with _own_errors():
                    return call()
            except _Again as problem:
                if problem.code not in of or self._clock() - began + PAUSE_S > problem.seconds:
                    raise DatabaseAway(str(problem)) from None
                self._sleep(PAUSE_S)


class _Again(DatabaseAway):
    """AWS did not run the call: it may be sent again until `seconds` are over."""

    def __init__(self, text: str, code: str, seconds: float) -> None:
        super().__init__(text)
        self.code, self.seconds = code, seconds


@contextmanager
def _own_errors() -> Iterator[None]:
    """Turns what AWS answers, or that it does not, into an error of this module."""
    try:
        yield
    except ClientError as problem:
        raise _translate(code_of(problem), str(problem.response.get("Error", {}).get("Message", ""))) from None
    except (HTTPClientError, NoConnection) as problem:
        raise DatabaseAway(f"the Data API gave no answer ({type(problem).__name__})") from None


def _translate(code: str, message: str) -> Exception:
    words = f"{message} ({code})" if message else code
    if code in _ASLEEP:
        return _Again(words, code, WAKES_S)
    if code in _NOT_RUN:
        return _Again(words, code, AWAY_S)
    if code in _UNKNOWN | _ENDED:
        return DatabaseAway(words)
    if any(words_of in message for words_of in _TOO_LARGE):
        return AnswerTooLarge(message)
    if code == "StatementTimeoutException":
        return StatementRefused(message or "the statement ran into the Data API's time-out of 45 s", CANCELLED)
    if code not in _OF_STATEMENT:
        return NoDatabase(words)
    found = _STATE.search(message)
    state = found[1] if found else NO_STATE
    text = message[: found.start()] if found else message
    if _SESSION_ENDED.fullmatch(state):
        return DatabaseAway(text, state)
    return NoDatabase(text) if _LOGIN_REFUSED.fullmatch(state) else StatementRefused(text, state)


def _value(field: Mapping[str, Any]) -> Any:
    """The value of a Field: a union, of which one member is set."""
    ((kind, value),) = field.items()
    if kind == "isNull":
        return None
    return _array(value) if kind == "arrayValue" else value


def _array(union: Mapping[str, Any]) -> list[Any]:
    """The values of an ArrayValue: a union too, which is empty for an array without entries."""
    for kind, values in union.items():
        return [_array(one) for one in values] if kind == "arrayValues" else list(values)
    return []


def _parameter(name: str, value: object) -> dict[str, Any]:
    """A parameter. Lists and objects go as JSON: the Data API takes no arrays ("Array parameters are not supported")."""
    field, hint = _field(value)
    return {"name": name, "value": field} | ({"typeHint": hint} if hint else {})


def _field(value: object) -> tuple[dict[str, Any], str]:
    """The Field of a value, and the hint that tells the Data API the type of a text; empty for none."""
    if value is None:
        return {"isNull": True}, ""
    if isinstance(value, bool):
        return {"booleanValue": value}, ""
    if isinstance(value, int) and value in LONGEST:
        return {"longValue": value}, ""
    if isinstance(value, float):
        return {"doubleValue": value}, ""
    if isinstance(value, int | Decimal):
        return {"stringValue": str(value)}, "DECIMAL"
    if isinstance(value, datetime):
        return {"stringValue": _utc(value)}, "TIMESTAMP"
    if isinstance(value, date):
        return {"stringValue": value.isoformat()}, "DATE"
    if isinstance(value, bytes):
        return {"blobValue": value}, ""
    if isinstance(value, str):
        return {"stringValue": value}, ""
    if isinstance(value, (list, tuple, dict)):
        return {"stringValue": json.dumps(value, ensure_ascii=False, allow_nan=False)}, "JSON"
    raise TypeError(f"no parameter of a statement is a {type(value).__name__}")


def _utc(moment: datetime) -> str:
    """A time in UTC, which the database's sessions are in, to the millisecond that the Data API takes."""
    if moment.tzinfo is None:
        raise ValueError(f"{moment} has no time zone")
    return moment.astimezone(timezone.utc).replace(tzinfo=None).isoformat(" ", "milliseconds")
