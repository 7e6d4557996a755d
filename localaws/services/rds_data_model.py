"""The Data API of Aurora PostgreSQL: one statement a call over the extended protocol, as the user of a secret, in transactions that expire.

Where the documents leave something open, the stricter reading is taken; only an account shows what AWS does:
which of its codes a too large result has, how long a resume takes, and which database is meant where none is named.
"""

from __future__ import annotations

import math
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

import psycopg
from psycopg.generators import fetch, send
from psycopg.pq import DiagnosticField, ExecStatus, TransactionStatus

from localaws.model import Clock, Refused
from localaws.services import rds_data_values as values

# docs.aws.amazon.com/AmazonRDS/latest/AuroraUserGuide/data-api.limitations.html and data-api.troubleshooting.html
RESULT_BYTES = 1024**2
ROW_BYTES = 64 * 1024
AROUND_FIELD = len('{"stringValue":""},')
"""Whether the limit counts the database's bytes or the answer's is not said; this counts the more."""
# docs.aws.amazon.com/rdsdataservice/latest/APIReference/API_ExecuteStatement.html and API_BeginTransaction.html
STATEMENT_S = 45.0
"""Real seconds at any speed: the statement runs on a real database."""
IDLE_S = 180.0
LEAST_IDLE_S = 20.0
"""Real seconds for which a transaction lives at any speed: its caller's statements are real too."""
# docs.aws.amazon.com/AmazonRDS/latest/AuroraUserGuide/aurora-serverless-v2-auto-pause.html: "approximately 15 seconds"
RESUME_S = 15.0
WITH_ROWS = (ExecStatus.SINGLE_TUPLE, ExecStatus.TUPLES_OK)
ENDED_BY_TIMER = "57014"


@dataclass(frozen=True, slots=True)
class Cluster:
    """What the Data API knows of a cluster."""

    arn: str
    opened: bool = True
    """Whether its HTTP endpoint is enabled."""
    served: bool = True
    """Whether it has an instance."""
    pause_s: float = math.inf
    """Seconds without a statement after which it sleeps."""


class Databases(Protocol):
    """What a region has of clusters, servers and secrets."""

    def find(self, arn: str, /) -> Cluster | None:
        """Returns the cluster with this ARN. Raises Refused while it is away."""

    def dsn(self, arn: str, database: str, user: str, password: str, /) -> str:
        """Returns what to connect with to the cluster's server."""

    def credentials(self, secret: str, /) -> tuple[str, str]:
        """Returns user and password of a secret, by ARN or name. Raises Refused."""


@dataclass
class Transaction:
    """A connection with a transaction, which one call at a time may use."""

    arn: str
    connection: psycopg.Connection[Any]
    used_at: float
    busy: threading.Lock = field(default_factory=threading.Lock)


@dataclass
class Outcome:
    """What a statement gave: columns by name and type, rows as Python has them, and the count of changed rows."""

    columns: list[tuple[str, int]] = field(default_factory=list)
    rows: list[list[Any]] = field(default_factory=list)
    changed: int = 0


class DataApi:
    """Answers the calls to one region."""

    def __init__(self, databases: Databases, clock: Clock, speed: float = 1.0) -> None:
        self._databases, self._clock, self._speed = databases, clock, speed
        self._transactions: dict[str, Transaction] = {}
        self._used: dict[str, float] = {}
        self._running: Counter[str] = Counter()
        self._resumes: dict[str, float] = {}
        self._lock = threading.Lock()

    def answer(self, operation: str, params: dict[str, Any]) -> Mapping[str, Any]:
        served: dict[str, Callable[[dict[str, Any]], Mapping[str, Any]]] = {
            "ExecuteStatement": self._execute,
            "BatchExecuteStatement": self._execute_batch,
            "BeginTransaction": self._begin,
            "CommitTransaction": self._commit,
            "RollbackTransaction": self._roll_back,
        }
        if operation not in served:
            raise Refused("BadRequestException", f"{operation} is deprecated and not available.")
        if params.get("schema"):
            raise Refused("BadRequestException", "The schema parameter isn't supported.")
        self._expire()
        self._enter(params["resourceArn"])
        try:
            return served[operation](params)
        finally:
            with self._lock:
                self._running[params["resourceArn"]] -= 1
                self._used[params["resourceArn"]] = self._clock.time()

    def close(self) -> None:
        """Ends every transaction."""
        for identity in list(self._transactions):
            self._end(identity)

    def _enter(self, arn: str) -> None:
        """Lets a call through to a cluster that is there and awake; a call to one that sleeps wakes it."""
        cluster, now = self._databases.find(arn), self._clock.time()
        if cluster is None or not cluster.opened:
            raise Refused("HttpEndpointNotEnabledException", f"HttpEndpoint is not enabled for cluster {arn}")
        if not cluster.served:
            raise Refused("DatabaseNotFoundException", f"DB cluster {arn} has no DB instance.", 404)
        with self._lock:
            used = self._used.setdefault(arn, now)
            in_use = self._running[arn] or any(one.arn == arn for one in self._transactions.values())
            if arn not in self._resumes and not in_use and now - used >= cluster.pause_s / self._speed:
                self._resumes[arn] = now + RESUME_S / self._speed
            if now < self._resumes.get(arn, 0.0):
                raise Refused(
                    "DatabaseResumingException",
                    f"The Aurora DB instance of {arn} is resuming after being auto-paused. "
                    "Please wait a few seconds and try again.",
                )
            self._resumes.pop(arn, None)
            self._running[arn] += 1

    def _execute(self, params: dict[str, Any]) -> Mapping[str, Any]:
        if params.get("continueAfterTimeout"):
            raise Refused("BadRequestException", "The model of the Data API ends every statement at its time limit.")
        options = params.get("resultSetOptions") or {}
        with self._connection(params) as connection:
            outcome = _run(connection, params["sql"], params.get("parameters") or [])
        if not outcome.columns:
            return {"numberOfRecordsUpdated": outcome.changed, "generatedFields": []}
        found: dict[str, Any] = {"numberOfRecordsUpdated": outcome.changed}
        names = [name for name, _ in outcome.columns]
        if params.get("formatRecordsAs") == "JSON":
            return found | {"formattedRecords": values.format_records(names, outcome.rows)}
        if params.get("includeResultMetadata"):
            found["columnMetadata"] = [values.describe(name, oid) for name, oid in outcome.columns]
        decimals = [oid == values.NUMERIC for _, oid in outcome.columns]
        found["records"] = [
            [
                values.field(values.number(value, options) if decimal else value, options)
                for value, decimal in zip(row, decimals, strict=True)
            ]
            for row in outcome.rows
        ]
        return found

    def _execute_batch(self, params: dict[str, Any]) -> Mapping[str, Any]:
        """Outside a transaction each set is committed by itself: one that fails leaves those before it."""
        with self._connection(params) as connection:
            for one in params.get("parameterSets") or [[]]:
                _run(connection, params["sql"], one)
        return {"updateResults": [{"generatedFields": []} for _ in params.get("parameterSets") or []]}

    def _begin(self, params: dict[str, Any]) -> Mapping[str, Any]:
        connection = self._connect(params)
        connection.execute("BEGIN")
        identity = secrets.token_urlsafe(96)
        with self._lock:
            self._transactions[identity] = Transaction(params["resourceArn"], connection, self._clock.time())
        return {"transactionId": identity}

    def _commit(self, params: dict[str, Any]) -> Mapping[str, Any]:
        with self._connection(params, last=True) as connection:
            _run(connection, "COMMIT", [])
        return {"transactionStatus": "Transaction Committed"}

    def _roll_back(self, params: dict[str, Any]) -> Mapping[str, Any]:
        with self._connection(params, last=True) as connection:
            _run(connection, "ROLLBACK", [])
        return {"transactionStatus": "Rollback Complete"}

    def _connect(self, params: dict[str, Any]) -> psycopg.Connection[Any]:
        user, password = self._databases.credentials(params["secretArn"])
        dsn = self._databases.dsn(params["resourceArn"], params.get("database") or "postgres", user, password)
        try:
            connection = psycopg.connect(dsn, autocommit=True)
        except psycopg.OperationalError as problem:
            said = str(problem).partition("FATAL:")[2].strip() or str(problem)
            raise Refused("DatabaseErrorException", f"FATAL: {said}") from problem
        values.prepare(connection)
        return connection

    @contextmanager
    def _connection(self, params: dict[str, Any], *, last: bool = False) -> Iterator[psycopg.Connection[Any]]:
        """The connection of the call's transaction, or one for this call alone. An error ends the transaction, as on AWS."""
        if not (identity := params.get("transactionId")):
            with closing(self._connect(params)) as connection:
                yield connection
            return
        transaction = self._transactions.get(identity)
        if transaction is None or transaction.arn != params["resourceArn"]:
            raise Refused("TransactionNotFoundException", f"Transaction {identity} is not found", 404)
        if not transaction.busy.acquire(blocking=False):
            raise Refused("DatabaseErrorException", "Transaction is still running a query")
        try:
            yield transaction.connection
            last = last or transaction.connection.info.transaction_status != TransactionStatus.INTRANS
        except BaseException:
            last = True
            raise
        finally:
            transaction.used_at = self._clock.time()
            if last:
                self._end(identity)
            transaction.busy.release()

    def _end(self, identity: str) -> None:
        with self._lock:
            transaction = self._transactions.pop(identity, None)
        if transaction:
            transaction.connection.close()

    def _expire(self) -> None:
        """Rolls back the transactions that no call used for too long."""
        limit = self._clock.time() - max(IDLE_S / self._speed, LEAST_IDLE_S)
        for identity, one in list(self._transactions.items()):
            if one.used_at < limit and one.busy.acquire(blocking=False):
                self._end(identity)
                one.busy.release()


def _run(connection: psycopg.Connection[Any], sql: str, parameters: list[Mapping[str, Any]]) -> Outcome:
    """Runs one statement: PostgreSQL itself refuses a second one, because parameters may be sent with it. Raises Refused."""
    text, given, kinds = values.bind(sql, parameters)
    wire, late = connection.pgconn, threading.Event()

    def cancel() -> None:
        late.set()
        with suppress(psycopg.Error):
            connection.cancel_safe()

    timer = threading.Timer(STATEMENT_S, cancel)
    timer.daemon = True
    timer.start()
    try:
        wire.send_query_params(text.encode(), given, param_types=kinds)
        wire.set_single_row_mode()  # a result beyond the limit never comes here as a whole
        connection.wait(send(wire))
        return _fetch(connection, late)
    except psycopg.Error as problem:  # the server is gone
        raise Refused("DatabaseUnavailableException", str(problem), 504) from problem
    finally:
        timer.cancel()


def _fetch(connection: psycopg.Connection[Any], late: threading.Event) -> Outcome:
    outcome, size, loaders = Outcome(), 0, list[Any]()
    while (result := connection.wait(fetch(connection.pgconn))) is not None:
        if result.status == ExecStatus.FATAL_ERROR:
            raise _refusal(result, late)
        if result.status == ExecStatus.COMMAND_OK:
            outcome.changed = result.command_tuples or 0
        elif result.status == ExecStatus.EMPTY_QUERY:
            continue
        elif result.status not in WITH_ROWS:
            raise Refused("DatabaseErrorException", "ERROR: COPY from or to a client is not supported")
        elif not outcome.columns:
            oids = [result.ftype(number) for number in range(result.nfields)]
            names = [(result.fname(number) or b"").decode() for number in range(result.nfields)]
            outcome.columns = list(zip(names, oids, strict=True))
            loaders = [values.loader(connection, oid) for oid in oids]
        for row in range(result.ntuples):
            raw = [result.get_value(row, column) for column in range(result.nfields)]
            width = sum(len(one) for one in raw if one is not None)
            size += width + AROUND_FIELD * len(raw)
            if width > ROW_BYTES or size > RESULT_BYTES:
                raise Refused("UnsupportedResultException", _too_much(width))
            outcome.rows.append([None if one is None else load(one) for one, load in zip(raw, loaders, strict=True)])
    return outcome


def _too_much(width: int) -> str:
    if width > ROW_BYTES:
        return f"Packet for query is too large: a row has {width} bytes, at most {ROW_BYTES} are allowed"
    return "Database returned more than the allowed response size limit"


def _refusal(result: Any, late: threading.Event) -> Refused:
    """Writes PostgreSQL's error as the Data API does: `ERROR: <text>; Position: <n>; SQLState: <code>`."""

    def part(name: DiagnosticField) -> str:
        return (result.error_field(name) or b"").decode(errors="replace")

    state = part(DiagnosticField.SQLSTATE)
    if state == ENDED_BY_TIMER and late.is_set():
        return Refused("StatementTimeoutException", f"Request timed out after {STATEMENT_S:g} seconds")
    position = part(DiagnosticField.STATEMENT_POSITION)
    said = f"{part(DiagnosticField.SEVERITY)}: {part(DiagnosticField.MESSAGE_PRIMARY)}"
    said += f"; Position: {position}" if position else ""
    return Refused("DatabaseErrorException", f"{said}; SQLState: {state}")
