"""The Data API over a real PostgreSQL: statements, parameters, fields, limits, transactions, and a cluster that sleeps."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from botocore.exceptions import ClientError, ParamValidationError

from localaws.postgres import Postgres
from localaws.services import rds_data_model
from localaws.services.rds_data_model import Cluster
from localaws.services.rds_data_values import bind
from localaws.testing.data_api import ARN, DataClient
from localaws.testing.waiting import until

pytestmark = pytest.mark.rehearsal
PASSWORDS = {"keeper": "owner's", "reader": "visitor's", "stranger": "wrong"}
OTHER = ARN.replace(":database", ":other")


class Hands:
    """A clock that a test moves."""

    now = 1000.0

    def time(self) -> float:
        return self.now


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    with Postgres(tmp_path_factory.mktemp("server") / "data") as started:
        started.create_master("keeper", PASSWORDS["keeper"], "library")
        with psycopg.connect(started.dsn("library", "keeper", PASSWORDS["keeper"]), autocommit=True) as owner:
            owner.execute("CREATE TABLE books (id int PRIMARY KEY, title text)")
            owner.execute("CREATE ROLE reader LOGIN PASSWORD 'visitor''s'")
            owner.execute("CREATE ROLE stranger LOGIN PASSWORD 'right'")
            owner.execute("GRANT SELECT ON books TO reader")
        yield started


@pytest.fixture
def clock() -> Hands:
    return Hands()


@pytest.fixture
def client(server: Postgres, clock: Hands) -> Iterator[DataClient]:
    client = DataClient(server, PASSWORDS, clock=clock)
    yield client
    client.close()


def run(client: Any, sql: str, user: str = "keeper", **given: Any) -> dict[str, Any]:
    where = {"resourceArn": ARN, "secretArn": f"arn:aws:secretsmanager:eu-central-1:123456789012:secret:{user}"}
    answer: dict[str, Any] = client.execute_statement(**{**where, "database": "library", "sql": sql, **given})
    return answer


def begin(client: Any) -> str:
    return str(
        client.begin_transaction(resourceArn=ARN, secretArn="secret:keeper", database="library")["transactionId"]
    )


def end(client: Any, how: str, transaction: str) -> dict[str, Any]:
    answer: dict[str, Any] = getattr(client, f"{how}_transaction")(
        resourceArn=ARN, secretArn="secret:keeper", transactionId=transaction
    )
    return answer


def refusal(client: Any, sql: str, user: str = "keeper", **given: Any) -> tuple[str, str]:
    with pytest.raises(ClientError) as caught:
        run(client, sql, user, **given)
    return caught.value.response["Error"]["Code"], caught.value.response["Error"]["Message"]


def parameter(name: str, hint: str = "", **value: Any) -> dict[str, Any]:
    return {"name": name, "value": value, **({"typeHint": hint} if hint else {})}


@pytest.mark.parametrize(
    ("sql", "field"),
    [
        ("true", {"booleanValue": True}),
        ("1::int2", {"longValue": 1}),
        ("9223372036854775807", {"longValue": 2**63 - 1}),
        ("1.5::float4", {"doubleValue": 1.5}),
        ("1.50", {"stringValue": "1.50"}),
        ("'é'", {"stringValue": "é"}),
        ("NULL", {"isNull": True}),
        (r"'\x00ff'::bytea", {"blobValue": b"\x00\xff"}),
        ("'2026-01-02 03:04:05.678+02'::timestamptz", {"stringValue": "2026-01-02 01:04:05.678"}),
        ("'2026-01-02'::date", {"stringValue": "2026-01-02"}),
        ("'03:04'::time", {"stringValue": "03:04:00"}),
        ("""'{"a": 1}'::jsonb""", {"stringValue": '{"a": 1}'}),
        ("'11111111-1111-1111-1111-111111111111'::uuid", {"stringValue": "11111111-1111-1111-1111-111111111111"}),
        ("""ARRAY['a', 'b,"c']""", {"arrayValue": {"stringValues": ["a", 'b,"c']}}),
        ("ARRAY[1, 2]", {"arrayValue": {"longValues": [1, 2]}}),
        ("ARRAY[]::text[]", {"arrayValue": {"stringValues": []}}),
    ],
)
def test_a_value_comes_as_the_field_of_its_type(client: DataClient, sql: str, field: dict[str, Any]) -> None:
    assert run(client, f"SELECT {sql}")["records"] == [[field]]


def test_parameters_are_named_typed_and_never_a_part_of_the_text(client: DataClient) -> None:
    sql = "SELECT :n::text || ':n' || $$:n$$ || :n /* :n */, :u::uuid IS NULL, :d + 1, pg_typeof(:d), pg_typeof(:i), :b"
    sql += " -- :n"
    given = [
        parameter("n", stringValue="'; DROP TABLE books; --"),
        parameter("u", isNull=True),
        parameter("d", "DECIMAL", stringValue="1.5"),
        parameter("i", longValue=3),
        parameter("b", blobValue=b"\0\1"),
        parameter("never-used", longValue=1),
    ]
    row = run(client, sql, parameters=given)["records"][0]
    assert row[0]["stringValue"] == "'; DROP TABLE books; --:n:n'; DROP TABLE books; --"
    assert row[1:] == [
        {"booleanValue": True},
        {"stringValue": "2.5"},
        {"stringValue": "numeric"},
        {"stringValue": "bigint"},
        {"blobValue": b"\0\1"},
    ]


def test_a_parameter_that_nobody_gave_and_one_of_another_type_are_refused(client: DataClient) -> None:
    assert refusal(client, "SELECT :missing") == (
        "DatabaseErrorException",
        'ERROR: syntax error at or near ":"; Position: 8; SQLState: 42601',
    )
    uuid = "SELECT pg_typeof(:u) = 'uuid'::regtype"
    text = parameter("u", stringValue="11111111-1111-1111-1111-111111111111")
    assert run(client, uuid, parameters=[text])["records"] == [[{"booleanValue": False}]]
    assert run(client, uuid, parameters=[text | {"typeHint": "UUID"}])["records"] == [[{"booleanValue": True}]]
    code, _ = refusal(client, "SELECT :u", parameters=[parameter("u", "UUID", stringValue="no uuid")])
    assert code == "DatabaseErrorException"
    array = parameter("a", arrayValue={"longValues": [1]})
    assert refusal(client, "SELECT :a", parameters=[array])[0] == "BadRequestException"


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        (r"SELECT E'\':n', :n", r"SELECT E'\':n', $1"),
        ("SELECT 'it''s :n', \":n\"", "SELECT 'it''s :n', \":n\""),
        ("SELECT $a$ :n $$ :n $a$ || :n", "SELECT $a$ :n $$ :n $a$ || $1"),
        ("SELECT 1::n, :n", "SELECT 1::n, $1"),
    ],
)
def test_a_colon_within_a_text_a_name_or_a_cast_is_no_parameter(sql: str, text: str) -> None:
    assert bind(sql, [parameter("n", stringValue="x")])[0] == text


@pytest.mark.parametrize("sql", ["SELECT 1; SELECT 2", "SELECT 1; DROP TABLE books", "COMMIT; DROP TABLE books"])
def test_two_statements_in_one_text_are_refused_by_the_protocol(client: DataClient, sql: str) -> None:
    code, message = refusal(client, sql)
    assert (code, "cannot insert multiple commands into a prepared statement; SQLState: 42601" in message) == (
        "DatabaseErrorException",
        True,
    )
    assert run(client, "SELECT count(*) FROM books")["records"]


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO books VALUES (1, 'mine')",
        "DROP TABLE books",
        "SELECT set_config('role', 'keeper', false)",
        "SET ROLE keeper",
        "SET SESSION AUTHORIZATION keeper",
        "COPY books TO PROGRAM 'true'",
        "SELECT * FROM pg_authid",
    ],
)
def test_a_reader_has_its_own_rights_alone(client: DataClient, sql: str) -> None:
    code, message = refusal(client, sql, "reader")
    assert (code, message[-5:]) == ("DatabaseErrorException", "42501")


def test_a_wrong_password_an_unknown_secret_and_another_database_are_refused(client: DataClient) -> None:
    code, message = refusal(client, "SELECT 1", "stranger")
    assert (code, "password authentication failed" in message) == ("DatabaseErrorException", True)
    assert refusal(client, "SELECT 1", "nobody")[0] == "SecretsErrorException"
    code, message = refusal(client, "SELECT 1", database="elsewhere")
    assert (code, 'database "elsewhere" does not exist' in message) == ("DatabaseErrorException", True)
    assert "books" in refusal(client, "SELECT * FROM books", database="postgres")[1], "no database is guessed"


def test_what_no_call_may_say_never_reaches_the_database(client: DataClient) -> None:
    with pytest.raises(ParamValidationError):
        run(client, "SELECT 1", database=1)
    assert refusal(client, "SELECT " + "1" * 65536)[0] == "BadRequestException"
    assert refusal(client, "SELECT 1", schema="public")[0] == "BadRequestException"
    assert refusal(client, "SELECT 1", continueAfterTimeout=True)[0] == "BadRequestException"
    assert refusal(client, "SELECT 1", resourceArn=OTHER)[0] == "HttpEndpointNotEnabledException"


@pytest.mark.parametrize(
    ("cluster", "code"),
    [
        (Cluster(ARN, opened=False), "HttpEndpointNotEnabledException"),
        (Cluster(ARN, served=False), "DatabaseNotFoundException"),
    ],
)
def test_a_cluster_without_an_endpoint_or_an_instance_answers_nothing(
    server: Postgres, cluster: Cluster, code: str
) -> None:
    assert refusal(DataClient(server, PASSWORDS, cluster=cluster), "SELECT 1")[0] == code


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT repeat('x', 65537)", "a row has 65537 bytes"),
        ("SELECT repeat('x', 60000) FROM generate_series(1, 18)", "more than the allowed response size limit"),
        ("SELECT 1 FROM generate_series(1, 60000)", "more than the allowed response size limit"),
    ],
)
def test_a_row_or_a_result_that_is_too_large_is_refused(client: DataClient, sql: str, words: str) -> None:
    code, message = refusal(client, sql)
    assert (code, words in message) == ("UnsupportedResultException", True)
    assert len(run(client, "SELECT repeat('x', 65536) FROM generate_series(1, 15)")["records"]) == 15


def test_a_copy_and_a_multidimensional_array_have_no_result_here(client: DataClient) -> None:
    assert refusal(client, "COPY books TO STDOUT")[0] == "DatabaseErrorException"
    assert refusal(client, "SELECT ARRAY[[1, 2], [3, 4]]")[0] == "UnsupportedResultException"


def test_a_statement_beyond_its_time_is_ended_in_the_database_too(
    client: DataClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rds_data_model, "STATEMENT_S", 0.2)
    assert refusal(client, "SELECT pg_sleep(3600)")[0] == "StatementTimeoutException"
    monkeypatch.undo()
    assert run(client, "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(3600)' AND state = 'active'")[
        "records"
    ] == [[{"longValue": 0}]]


def test_a_time_limit_of_the_role_is_postgresqls_own_error(client: DataClient) -> None:
    transaction = begin(client)
    run(client, "SET LOCAL statement_timeout = '50ms'", transactionId=transaction)
    code, message = refusal(client, "SELECT pg_sleep(3600)", transactionId=transaction)
    assert (code, message[-5:]) == ("DatabaseErrorException", "57014")


def test_a_transaction_is_seen_by_others_when_it_is_committed(client: DataClient) -> None:
    transaction = begin(client)
    changed = run(client, "INSERT INTO books VALUES (10, 'a'), (11, 'b')", transactionId=transaction)
    assert changed["numberOfRecordsUpdated"] == 2
    count = "SELECT count(*) FROM books WHERE id IN (10, 11)"
    assert run(client, count)["records"] == [[{"longValue": 0}]]
    assert run(client, count, transactionId=transaction)["records"] == [[{"longValue": 2}]]
    assert end(client, "commit", transaction)["transactionStatus"] == "Transaction Committed"
    assert run(client, count)["records"] == [[{"longValue": 2}]]
    assert refusal(client, "SELECT 1", transactionId=transaction)[0] == "TransactionNotFoundException"


@pytest.mark.parametrize("how", ["rolled back", "after an error", "too large", "ended in words"])
def test_a_transaction_that_ends_otherwise_changes_nothing_and_is_gone(client: DataClient, how: str) -> None:
    transaction = begin(client)
    run(client, "INSERT INTO books VALUES (20, 'lost')", transactionId=transaction)
    if how == "rolled back":
        assert end(client, "rollback", transaction)["transactionStatus"] == "Rollback Complete"
    elif how == "ended in words":
        run(client, "ROLLBACK", transactionId=transaction)
    else:
        refusal(
            client, "SELECT boom" if how == "after an error" else "SELECT repeat('x', 70000)", transactionId=transaction
        )
    assert refusal(client, "SELECT 1", transactionId=transaction)[0] == "TransactionNotFoundException"
    assert run(client, "SELECT count(*) FROM books WHERE id = 20")["records"] == [[{"longValue": 0}]]


def test_a_transaction_that_nobody_uses_expires(client: DataClient, clock: Hands) -> None:
    kept, lost = begin(client), begin(client)
    clock.now += 100
    run(client, "SELECT 1", transactionId=kept)
    clock.now += 100
    assert run(client, "SELECT 1", transactionId=kept)["records"]
    assert refusal(client, "SELECT 1", transactionId=lost)[0] == "TransactionNotFoundException"
    assert refusal(client, "SELECT 1", transactionId="invented")[0] == "TransactionNotFoundException"


def test_two_calls_at_once_in_a_transaction_are_one_too_many(client: DataClient) -> None:
    transaction, problems = begin(client), list[Any]()
    run(client, "SELECT pg_advisory_lock(7)", transactionId=transaction)
    other = begin(client)

    def wait() -> None:
        problems.append(run(client, "SELECT pg_advisory_lock(7)", transactionId=other))

    waiting = threading.Thread(target=wait)
    waiting.start()
    until(lambda: run(client, "SELECT count(*) FROM pg_locks WHERE NOT granted")["records"][0][0]["longValue"])
    assert refusal(client, "SELECT 1", transactionId=other) == (
        "DatabaseErrorException",
        "Transaction is still running a query",
    )
    run(client, "SELECT pg_advisory_unlock(7)", transactionId=transaction)
    waiting.join()
    assert len(problems) == 1, "the statement that ran was not disturbed"


def test_a_batch_runs_the_statement_for_each_set(client: DataClient) -> None:
    def insert(*numbers: int) -> dict[str, Any]:
        sets = [[parameter("id", longValue=number)] for number in numbers]
        answer: dict[str, Any] = client.batch_execute_statement(
            resourceArn=ARN,
            secretArn="secret:keeper",
            database="library",
            sql="INSERT INTO books VALUES (:id, 'one of many')",
            parameterSets=sets,
        )
        return answer

    assert len(insert(30, 31)["updateResults"]) == 2
    with pytest.raises(ClientError, match="23505"):
        insert(32, 30)
    found = run(client, "SELECT id FROM books WHERE id BETWEEN 30 AND 39 ORDER BY id")["records"]
    assert [row[0]["longValue"] for row in found] == [30, 31, 32], "what came before the error stays"


def test_metadata_json_and_options_come_when_they_are_asked_for(client: DataClient) -> None:
    sql = "SELECT 1 AS number, 1.5 AS price, ARRAY['a'] AS words"
    (number, price, words) = run(client, sql, includeResultMetadata=True)["columnMetadata"]
    assert (number["label"], number["typeName"], number["type"], number["isSigned"]) == ("number", "int4", 4, True)
    assert (price["typeName"], words["typeName"], words["type"]) == ("numeric", "_text", 2003)
    assert "columnMetadata" not in run(client, sql)
    answer = run(client, sql, formatRecordsAs="JSON")
    assert json.loads(answer["formattedRecords"]) == [{"number": 1, "price": "1.5", "words": ["a"]}]
    assert "records" not in answer
    options = {"decimalReturnType": "DOUBLE_OR_LONG", "longReturnType": "STRING"}
    assert run(client, sql, resultSetOptions=options)["records"][0][:2] == [{"stringValue": "1"}, {"doubleValue": 1.5}]


def test_a_cluster_with_nothing_to_do_sleeps_and_wakes_a_while_after_a_call(server: Postgres, clock: Hands) -> None:
    client = DataClient(server, PASSWORDS, cluster=Cluster(ARN, pause_s=300.0), clock=clock, speed=10.0)
    assert run(client, "SELECT 1")
    clock.now += 29
    assert run(client, "SELECT 1")
    clock.now += 30
    assert refusal(client, "SELECT 1")[0] == "DatabaseResumingException"
    clock.now += 1.4
    assert refusal(client, "SELECT 1")[0] == "DatabaseResumingException"
    clock.now += 0.1
    assert run(client, "SELECT 1")
    transaction = begin(client)
    clock.now += 19
    run(client, "SELECT 1", transactionId=transaction)
    clock.now += 19
    assert run(client, "SELECT 1", transactionId=transaction), "a transaction keeps it awake"
    client.close()


def test_a_cluster_that_never_pauses_is_awake_after_a_year(client: DataClient, clock: Hands) -> None:
    assert run(client, "SELECT 1")
    clock.now += 365 * 86400
    assert run(client, "SELECT 1")
