"""The Data API's client: what it waits for, what it never sends twice, and how values travel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from aws.data_api import (
    AnswerTooLarge,
    DataApi,
    DatabaseAway,
    NoDatabase,
    StatementRefused,
)
from contract.catalogue import CatalogueAccess

ACCESS = CatalogueAccess(cluster="arn:aws:rds:eu-central-1:123456789012:cluster:one", secret="reader")


class Calls:
    """Answers with what `behind` gives, and keeps what was sent."""

    def __init__(
        self, *troubles: Exception, at: str = "execute_statement", answer: Mapping[str, Any] | None = None
    ) -> None:
        self.troubles, self.at, self.answer = list(troubles), at, dict(answer or {})
        self.sent: list[tuple[str, dict[str, Any]]] = []
        self.now = 0.0

    def __getattr__(self, name: str) -> Callable[..., dict[str, Any]]:
        def call(**params: Any) -> dict[str, Any]:
            self.sent.append((name, params))
            if name == self.at and self.troubles:
                raise self.troubles.pop(0)
            return {"transactionId": "t", **self.answer}

        return call

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.sent]

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def database(calls: Calls) -> DataApi:
    return DataApi(ACCESS, calls, sleep=calls.sleep, clock=lambda: calls.now)


def begin(calls: Calls) -> None:
    with database(calls).transaction():
        pass


def refused(code: str, message: str = "") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, "ExecuteStatement")


def test_a_sleeping_database_is_waited_for() -> None:
    calls = Calls(*[refused("DatabaseResumingException")] * 9)
    database(calls).run("select 1")
    assert len(calls.sent) == 10


@pytest.mark.parametrize(("code", "most"), [("DatabaseResumingException", 120), ("DatabaseUnavailableException", 10)])
@pytest.mark.parametrize("at", ["begin_transaction", "execute_statement"])
def test_no_database_is_waited_for_without_end(code: str, most: float, at: str) -> None:
    calls = Calls(*[refused(code)] * 1000, at=at)
    tries = {"execute_statement": lambda: database(calls).run("select 1"), "begin_transaction": lambda: begin(calls)}
    with pytest.raises(DatabaseAway, match=code):
        tries[at]()
    assert most - 3 < calls.now <= most


@pytest.mark.parametrize("trouble", [refused("InternalServerErrorException"), ReadTimeoutError(endpoint_url="x")])
def test_a_statement_that_may_have_run_is_not_sent_again(trouble: Exception) -> None:
    calls = Calls(trouble)
    with pytest.raises(DatabaseAway):
        database(calls).run("insert")
    assert len(calls.sent) == 1


def test_a_throttled_statement_of_a_transaction_is_sent_again_because_it_was_not_run() -> None:
    calls = Calls(refused("ThrottlingException"))
    with database(calls).transaction() as transaction:
        transaction.run("fetch forward 1 from lines")
    assert calls.names == ["begin_transaction", "execute_statement", "execute_statement", "commit_transaction"]


def test_no_statement_of_a_transaction_is_sent_again_that_may_have_run() -> None:
    calls = Calls(refused("DatabaseUnavailableException"))
    with pytest.raises(DatabaseAway), database(calls).transaction() as transaction:
        transaction.run("fetch forward 1 from lines")
    assert calls.names == ["begin_transaction", "execute_statement", "rollback_transaction"]


def test_a_transaction_is_committed_after_a_good_end_alone() -> None:
    calls = Calls()
    with database(calls).transaction() as transaction:
        transaction.run("insert")
    assert calls.names[-1] == "commit_transaction"
    with pytest.raises(ZeroDivisionError), database(calls).transaction():
        _ = 1 / 0
    assert calls.names[-1] == "rollback_transaction"
    with database(calls).transaction(commits=False):
        pass
    assert calls.names[-1] == "rollback_transaction"


def test_a_rollback_that_fails_hides_no_error() -> None:
    calls = Calls(refused("TransactionNotFoundException"), at="rollback_transaction")
    with pytest.raises(ZeroDivisionError), database(calls).transaction():
        _ = 1 / 0


@pytest.mark.parametrize(
    ("code", "message", "kind"),
    [
        ("DatabaseErrorException", "ERROR: no; Position: 8; SQLState: 42601", StatementRefused),
        ("BadRequestException", "Named parameter is missing", StatementRefused),
        ("StatementTimeoutException", "Request timed out", StatementRefused),
        ("UnsupportedResultException", "Database returned more than the allowed response size limit", AnswerTooLarge),
        ("BadRequestException", "Packet for query is too large: a row", AnswerTooLarge),
        ("DatabaseErrorException", "FATAL: terminating connection; SQLState: 57P01", DatabaseAway),
        ("DatabaseErrorException", "ERROR: bind message supplies 0 parameters; SQLState: 08P01", StatementRefused),
        ("DatabaseErrorException", "FATAL: connection lost; SQLState: 08006", DatabaseAway),
        ("DatabaseErrorException", "FATAL: sorry, too many clients already; SQLState: 53300", DatabaseAway),
        ("DatabaseErrorException", "FATAL: password authentication failed; SQLState: 28P01", NoDatabase),
        ("AccessDeniedException", "no", NoDatabase),
        ("NeverHeardOfException", "no", NoDatabase),
    ],
)
def test_every_answer_blames_whom_it_should(code: str, message: str, kind: type[Exception]) -> None:
    with pytest.raises(kind) as problem:
        database(Calls(refused(code, message))).run("select 1")
    assert type(problem.value) is kind


def test_a_refused_statement_keeps_the_words_and_the_state() -> None:
    with pytest.raises(StatementRefused) as problem:
        database(Calls(refused("DatabaseErrorException", "ERROR: no\n  Position: 8; SQLState: 42601"))).run("x")
    assert (problem.value.text, problem.value.state) == ("ERROR: no\n  Position: 8", "42601")


def test_every_kind_of_field_becomes_a_value() -> None:
    fields = [
        {"isNull": True},
        {"booleanValue": False},
        {"longValue": 7},
        {"doubleValue": 0.5},
        {"stringValue": ""},
        {"arrayValue": {"stringValues": ["a"]}},
        {"arrayValue": {"arrayValues": [{"longValues": [1]}]}},
        {"arrayValue": {}},
    ]
    columns = [{"label": "as", "name": "a", "typeName": "text"}]
    found = database(Calls(answer={"records": [fields], "columnMetadata": columns})).run("select")
    assert found.rows == ((None, False, 7, 0.5, "", ["a"], [[1]], []),)
    assert [(one.name, one.type) for one in found.columns] == [("as", "text")]


@pytest.mark.parametrize(
    ("value", "sent", "hint"),
    [
        (None, {"isNull": True}, None),
        (True, {"booleanValue": True}, None),
        (7, {"longValue": 7}, None),
        (2**63, {"stringValue": str(2**63)}, "DECIMAL"),
        (Decimal("0.10"), {"stringValue": "0.10"}, "DECIMAL"),
        ("x", {"stringValue": "x"}, None),
        ([1, "a"], {"stringValue": '[1, "a"]'}, "JSON"),
        ({"a": None}, {"stringValue": '{"a": null}'}, "JSON"),
        (
            datetime(2026, 1, 2, 3, 0, 0, 5000, tzinfo=timezone(timedelta(hours=1))),
            {"stringValue": "2026-01-02 02:00:00.005"},
            "TIMESTAMP",
        ),
    ],
)
def test_a_parameter_travels_with_its_type(value: object, sent: dict[str, Any], hint: str | None) -> None:
    calls = Calls()
    database(calls).run("select :a", {"a": value})
    (found,) = calls.sent[0][1]["parameters"]
    assert (found["name"], found["value"], found.get("typeHint")) == ("a", sent, hint)


@pytest.mark.parametrize("value", [{1, 2}, [float("nan")], datetime(2026, 1, 1)])  # noqa: DTZ001
def test_a_value_that_no_parameter_holds_is_refused(value: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        database(Calls()).run("select :a", {"a": value})
