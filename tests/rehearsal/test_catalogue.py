"""The catalogue on a deployment of its own: what it learns, whose queries it refuses, and that nothing else needs it."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from catalogue_schema.handler import FILES
from contract.catalogue import DATABASE
from localaws.conditions import Conditions
from localaws.iam.permissions import Verdict, granted, judge, needed
from localaws.iam.simulator import Policies
from localaws.testing.waiting import HANG_S, until
from rehearsal import campaign, grid
from rehearsal.account import DeployedAccount
from rehearsal.campaign import Catalogue
from rehearsal.faults import parse_faults
from rehearsal.grid import GridJob
from rehearsal.yard import StartedJob, Yard
from tests.rehearsal.grids import AWAY, ENDLESS, HOME, SMALL, Field, sooner
from tests.rehearsal.jobs import DENIALS, ONE, failed, succeeded, train
from tests.rehearsal.regions import REGIONS

pytestmark = [pytest.mark.rehearsal]
SPEED = 20.0
PAUSE_S = 300.0 / SPEED
"""Without a statement for so long the database sleeps."""
TRAINER = Path(__file__).with_name("trainer")
HEARD, UNHEARD = "digits-0123456789ab", "digits-ba9876543210"
"""Grids of the campaign, as a campaign names them. No event tells of the end of the second one."""
CHEAPEST_FIRST = (
    "select d.region, d.address as data, jsonb_build_object('steps', 3) as hyperparameters from data_sets d "
    "join prices p on p.region = d.region and p.type = 'ml.m5.large' and p.market = 'on-demand' order by p.usd, d.region"
)
ONE_LINE = "select region, address as data, jsonb_build_object('steps', 3) as hyperparameters from data_sets order by region limit 1"
ATTACKS = {
    "drop": (
        "select region from data_sets; drop table trainyard.runs",
        "has a second statement, which begins with drop",
    ),
    "insert": ("insert into trainyard.campaigns (name) values ('x') returning name", "begins with INSERT"),
    "hidden-insert": ("with x as (insert into campaigns (name) values ('x') returning name) table x", "data-modifying"),
    "sleep": ("select pg_sleep(3600)::text as region", "canceling statement due to statement timeout"),
    "program": ("copy trainyard.data_sets to program 'cat > /tmp/taken'", "begins with copy"),
    "other-schema": ("select * from hidden.things", "permission denied for schema hidden"),
    "set-role": ("set role keeper", "begins with set"),
    "become": ("select set_config('role', 'keeper', false) as region", 'permission denied to set role "keeper"'),
    "many-rows": ("select 'eu-central-1' as region from generate_series(1, 10001)", "gives more than 10,000 rows"),
    "wrong-columns": ("select region, 0.1 as lr from data_sets", "gives the column lr, which is unknown"),
    "no-rows": ("select region, address as data from data_sets where false", "gives no row; allowed: 1 to 10,000"),
    "wide-row": ("select repeat('x', 200000) as data", "gives a row of more than 64 KB"),
}
"""Queries of an attacker, each with words of its refusal."""
STATE = (
    "select string_agg(c::text, ' ' order by c.name) from trainyard.campaigns c",
    "select string_agg(d::text, ' ' order by d.region) from trainyard.data_sets d",
    "select string_agg(oid::regclass::text, ' ' order by oid) from pg_class where relkind in ('r', 'v', 'S') and "
    "relnamespace in ('trainyard'::regnamespace, 'team'::regnamespace, 'hidden'::regnamespace)",
    "select string_agg(r::text, ' ' order by r.rolname) from pg_roles r",
)
"""What no query may change: rows, tables and roles."""
ROLES = {"KeeperKeeper": "Keeper", "CatalogueSchema": "CatalogueSchema", "GridPlan": "Plan"}
OF_QUERIES = {"ReadTheCatalogue", "LogIntoTheCatalogue"}
"""Statements of Plan's role that a catalogue adds."""
AFTER_AN_ERROR = {(role, "WriteTheCatalogue", "rds-data:RollbackTransaction") for role in ("Keeper", "CatalogueSchema")}
"""Needed where a statement of theirs fails, which none of a rehearsal does unless the database goes away in a transaction."""
OF_A_DESTROY = {("CatalogueSchema", "LiftProtection", "rds:ModifyDBCluster")}


@pytest.fixture(scope="module")
def catalogued(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    """Two regions, a catalogue, and what grids need."""
    settings = {"regions": REGIONS[:2], "catalogue": True}
    conditions = Conditions(speed=SPEED, faults=parse_faults([f"cleanup-event-lost:job={UNHEARD}"]))
    work = tmp_path_factory.mktemp("catalogued") / "work"
    with Yard(work, conditions, settings=settings, wanted=["catalogue", "grid", "images"]) as yard, sooner(yard):
        yield yard


@pytest.fixture(scope="module")
def field(catalogued: Yard, tmp_path_factory: pytest.TempPathFactory) -> Field:
    return Field.of(catalogued, tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="module")
def catalogue(catalogued: Yard, field: Field) -> Catalogue:
    """With a campaign and its data in two regions, and a schema of a stranger's."""
    found = Catalogue(catalogued)
    found.run("insert into trainyard.campaigns (name, instance_types) values ('digits', '{g5.xlarge,ml.m5.large}')")
    for region, address in field.data.items():
        if region in (HOME, AWAY):
            found.run(
                f"insert into trainyard.data_sets (campaign, name, region, address) values ('digits', 'a', '{region}', '{address}')"
            )
    found.run("create schema hidden")
    found.run("create table hidden.things as select 1 as one")
    campaign.reserve(catalogued, "g5.xlarge", [HOME])
    found.learn()
    return found


def query(catalogued: Yard, name: str, sql: str) -> GridJob:
    return grid.start(catalogued, {"query": sql, "defaults": SMALL}, name)


@pytest.fixture(scope="module")
def state(catalogue: Catalogue) -> list[Any]:
    """What people wrote, before anybody attacks it."""
    return [catalogue.run(one) for one in STATE]


@pytest.fixture(scope="module")
def attacks(catalogued: Yard, state: list[Any]) -> dict[str, GridJob]:
    """All at once, beside the grids."""
    assert state
    return {name: query(catalogued, f"attack-{name}", sql) for name, (sql, _) in ATTACKS.items()}


@pytest.fixture(scope="module")
def grids(catalogued: Yard, attacks: dict[str, GridJob]) -> dict[str, GridJob]:
    assert attacks
    return {name: query(catalogued, name, CHEAPEST_FIRST) for name in (HEARD, UNHEARD)}


@pytest.fixture(scope="module")
def job(catalogued: Yard, attacks: dict[str, GridJob]) -> StartedJob:
    """A job beside the grids."""
    assert attacks
    code = catalogued.upload(TRAINER, "trainer")
    return catalogued.start({**ONE, "code": code, "command": train(1, 0.1)}, "counted")


def rows(catalogue: Catalogue, name: str) -> list[dict[str, Any]]:
    return catalogue.run(
        "select name, kind, campaign, region, type, outcome, metrics->>'loss' as loss, cost_usd > 0 as paid, seconds > 0 as ran "
        f"from trainyard.runs where name = '{name}' or name like '{name}/%' order by name"
    )


def invoke(catalogued: Yard, payload: dict[str, Any]) -> str:
    """Has the keeper work; returns its error, empty for none. A call of its may be throttled too often: then it fails."""
    answer = catalogued.client("lambda").invoke(
        FunctionName=catalogued.output("CatalogueKeeper"), Payload=json.dumps(payload).encode()
    )
    return answer["Payload"].read().decode() if "FunctionError" in answer else ""


# What is deployed


def test_every_file_of_the_schema_is_applied_once(catalogue: Catalogue) -> None:
    found = catalogue.run("select number, name from trainyard.applied order by number")
    assert [one["name"] for one in found] == sorted(one.name for one in FILES.glob("*.sql"))


def test_the_readers_secret_opens_a_role_that_reads_and_writes_nothing(catalogued: Yard, catalogue: Catalogue) -> None:
    assert catalogue
    data = catalogued.client("rds-data")
    reader = {
        "resourceArn": catalogued.output("Catalogue"),
        "secretArn": catalogued.output("CatalogueReaderSecret"),
        "database": DATABASE,
    }
    found = data.execute_statement(**reader, sql="select current_user, count(*) from data_sets")["records"]
    assert found == [[{"stringValue": "reader"}, {"longValue": 2}]]
    with pytest.raises(data.exceptions.ClientError, match="read-only transaction"):
        data.execute_statement(**reader, sql="insert into campaigns (name) values ('x')")


def test_no_template_and_no_function_has_a_password(catalogued: Yard) -> None:
    secrets = catalogued.client("secretsmanager")
    words = [
        json.loads(secrets.get_secret_value(SecretId=catalogued.output(one))["SecretString"])["password"]
        for one in ("CatalogueKeeperSecret", "CatalogueReaderSecret")
    ]
    shown = [
        catalogued.client("cloudformation").get_template(StackName=f"trainyard-{stack}")["TemplateBody"]
        for stack in ("catalogue", "grid")
    ]
    shown.append(catalogued.client("lambda").list_functions()["Functions"])
    assert len(set(words)) == len(words)
    assert not any(word in json.dumps(one, default=str) for word in words for one in shown)


def test_the_keeper_writes_prices_and_capacity_of_the_types_that_a_campaign_names(catalogue: Catalogue) -> None:
    found = catalogue.run(
        "select region, type, market from trainyard.prices where usd > 0 order by region, type, market"
    )
    assert [tuple(one.values()) for one in found] == [
        (region, kind, market)
        for region in (HOME, AWAY)
        for kind, market in (("g5.xlarge", "on-demand"), ("g5.xlarge", "spot"), ("ml.m5.large", "on-demand"))
    ]
    assert catalogue.run("select region, type, kind, free from trainyard.capacity") == [
        {"region": HOME, "type": "g5.xlarge", "kind": "reservation", "free": campaign.RESERVED}
    ]


# A query is a manifest, and its lines become rows


def test_the_rows_of_a_query_train_in_the_order_that_the_catalogue_gives_them(
    catalogue: Catalogue, grids: dict[str, GridJob]
) -> None:
    succeeded(grids[HEARD])
    prices = catalogue.run("select region from trainyard.prices where type = 'ml.m5.large' order by usd, region")
    assert [one.region for one in grids[HEARD].lines()] == [one["region"] for one in prices]
    lines = [json.loads(one) for one in (grids[HEARD].read(grids[HEARD].prefix.manifest) or b"").splitlines()]
    assert [one["hyperparameters"] for one in lines] == [{"steps": 3}] * 2


def test_each_line_of_a_grid_is_a_row_soon_after_its_end(catalogue: Catalogue, grids: dict[str, GridJob]) -> None:
    succeeded(grids[HEARD])
    campaign.wait_for_runs(catalogue, HEARD, 2, HANG_S)
    regions = [one.region for one in grids[HEARD].lines()]
    for place, found in enumerate(rows(catalogue, HEARD)):
        loss = found.pop("loss")
        assert float(loss) == pytest.approx(1 / 3, abs=0.001)
        assert found == {
            "name": f"{HEARD}/{place}",
            "kind": "line",
            "campaign": "digits",
            "region": regions[place],
            "type": "ml.m5.large",
            "outcome": "Completed",
            "paid": True,
            "ran": True,
        }


def test_a_job_is_a_row_too(catalogue: Catalogue, job: StartedJob) -> None:
    succeeded(job)
    (found,) = until(lambda: rows(catalogue, job.name))
    assert (found["kind"], found["campaign"], found["region"], found["type"]) == ("job", "", HOME, "t3.large")
    assert (found["outcome"], found["paid"]) == ("Completed", True)


def test_an_end_that_is_told_again_changes_no_row(
    catalogued: Yard, catalogue: Catalogue, grids: dict[str, GridJob]
) -> None:
    campaign.wait_for_runs(catalogue, HEARD, 2, HANG_S)
    whole = "select name, r::text as row from trainyard.runs r order by name"
    before = [one for one in catalogue.run(whole) if one["name"].startswith(HEARD)]
    detail = {"stateMachineArn": grid.machine(catalogued), "executionArn": grids[HEARD].arn}
    record = {"messageId": "again", "receiptHandle": "none", "body": json.dumps({"detail": detail})}
    assert invoke(catalogued, {"Records": [record, record]}) == ""
    assert [one for one in catalogue.run(whole) if one["name"].startswith(HEARD)] == before


def test_an_end_of_which_no_event_tells_is_found_by_the_hourly_pass(
    catalogued: Yard, catalogue: Catalogue, grids: dict[str, GridJob]
) -> None:
    succeeded(grids[UNHEARD])
    assert until(lambda: invoke(catalogued, {}) == "" and len(rows(catalogue, UNHEARD)) == 2)


# An attacker's queries


@pytest.mark.parametrize("name", ATTACKS)
def test_what_an_attacker_asks_is_refused_by_name(attacks: dict[str, GridJob], name: str) -> None:
    cause = failed(attacks[name], "InvalidRequest")
    assert "query: " in cause
    assert ATTACKS[name][1] in cause
    assert "allowed: " in cause


def test_no_attack_started_or_changed_anything(
    catalogue: Catalogue, attacks: dict[str, GridJob], state: list[Any]
) -> None:
    for one in attacks.values():
        failed(one, "InvalidRequest")
        assert (one.plan(), one.read(one.prefix.manifest), one.trainings(), one.children()) == (None, None, [], [])
    assert [catalogue.run(one) for one in STATE] == state


# A database that is asleep, away or gone


def quiet(catalogued: Yard) -> bool:
    """Whether the database had no call for so long that it sleeps."""
    calls = [call.at for call in list(catalogued.aws.recorder.calls) if call.service == "rds-data"]
    return time.time() > max(calls) + 1.1 * PAUSE_S


def errors_of_plan(catalogued: Yard, begins: int) -> set[str]:
    calls = list(catalogued.aws.recorder.calls)[begins:]
    return {call.error for call in calls if call.service == "rds-data" and "PlanRole" in call.role and call.error}


def test_a_query_wakes_a_database_that_sleeps_and_trains(catalogued: Yard, grids: dict[str, GridJob]) -> None:
    for one in grids.values():
        succeeded(one)
    until(lambda: quiet(catalogued))
    before = len(catalogued.aws.recorder.calls)
    job = query(catalogued, "waking", ONE_LINE)
    succeeded(job)
    assert "DatabaseResumingException" in errors_of_plan(catalogued, before)
    assert [one.outcome for one in job.results()] == ["Completed"]


@pytest.fixture(scope="module")
def letters(catalogued: Yard) -> str:
    """Address of the queue that ends come to which the keeper cannot write, soon and not after half an hour."""
    mappings = catalogued.client("lambda").list_event_source_mappings(FunctionName=catalogued.output("CatalogueKeeper"))
    (source,) = (one["EventSourceArn"] for one in mappings["EventSourceMappings"])
    sqs, found = catalogued.client("sqs"), catalogued.output("CatalogueLetters")
    queue = sqs.get_queue_url(QueueName=source.rpartition(":")[2])["QueueUrl"]
    target = sqs.get_queue_attributes(QueueUrl=found, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    policy = json.dumps({"deadLetterTargetArn": target, "maxReceiveCount": 1})
    sqs.set_queue_attributes(QueueUrl=queue, Attributes={"RedrivePolicy": policy})
    return str(found)


def hurry(catalogued: Yard) -> None:
    """Lets messages come back now that the keeper sent back for five minutes, as nobody needs to wait for."""
    for call in catalogued.aws.recorder.of(name="sqs:ChangeMessageVisibility"):
        if "KeeperRole" in call.role and call.session:
            given = call.parameters
            with suppress(catalogued.client("sqs").exceptions.ClientError):  # it has come back, or is a letter already
                catalogued.client("sqs").change_message_visibility(
                    QueueUrl=given["QueueUrl"], ReceiptHandle=given["ReceiptHandle"], VisibilityTimeout=0
                )


def has_letter(catalogued: Yard, letters: str, words: str) -> bool:
    """Whether the keeper gave the message up, which then tells of no error of a delivery."""
    hurry(catalogued)
    found = catalogued.client("sqs").receive_message(
        QueueUrl=letters, MaxNumberOfMessages=10, VisibilityTimeout=0, MessageAttributeNames=["All"]
    )
    return any(words in one["Body"] and "MessageAttributes" not in one for one in found.get("Messages", []))


def test_while_the_database_is_away_a_manifest_trains_a_query_waits_and_an_end_is_a_letter(
    catalogued: Yard, field: Field, catalogue: Catalogue, letters: str
) -> None:
    with catalogued.faults(parse_faults(["database-away"])):
        waiting = query(catalogued, "patient", ONE_LINE)
        beside = field.start("beside", field.line(HOME, hyperparameters={"steps": 3}))
        succeeded(beside)
        assert [one.outcome for one in beside.results()] == ["Completed"]
        until(lambda: has_letter(catalogued, letters, beside.arn))
        until(lambda: any(one["type"] == "TaskFailed" for one in waiting.history()))
        assert invoke(catalogued, {"action": "read"}) != ""
        assert (waiting.runs(), waiting.plan()) == (True, None)
    succeeded(waiting)
    assert until(lambda: invoke(catalogued, {}) == "" and rows(catalogue, "beside"))


def test_a_readers_secret_that_is_gone_refuses_a_query_and_nothing_else(catalogued: Yard, field: Field) -> None:
    secrets, secret = catalogued.client("secretsmanager"), catalogued.output("CatalogueReaderSecret")
    secrets.delete_secret(SecretId=secret, RecoveryWindowInDays=7)
    try:
        refused = query(catalogued, "locked-out", ONE_LINE)
        beside = field.start("unlocked", field.line(HOME, hyperparameters={"steps": 3}))
        cause = failed(refused, "InvalidRequest")
        succeeded(beside)
    finally:
        secrets.restore_secret(SecretId=secret)
    assert "query: the catalogue does not let Plan in" in cause
    assert "the password of its secret" in cause
    assert refused.plan() is None


# Rights


@pytest.fixture(scope="module")
def account(catalogued: Yard) -> DeployedAccount:
    return catalogued.account()


@pytest.fixture(scope="module")
def policies(account: DeployedAccount) -> dict[str, Policies]:
    """Those of the functions that use the catalogue."""
    return {role: of for role, of in account.policies().items() if short(role)}


@pytest.fixture(scope="module")
def verdicts(catalogued: Yard, account: DeployedAccount, policies: dict[str, Policies]) -> list[Verdict]:
    calls = list(catalogued.aws.recorder.calls)
    return judge([one for one in calls if one.role in policies and one.error not in DENIALS], policies, account)


def short(role: str) -> str:
    found = re.search(r"-([A-Za-z]+)Role[0-9A-F]{8}-", role)
    return ROLES.get(found[1], "") if found else ""


def test_no_call_to_the_catalogue_would_be_denied(verdicts: list[Verdict], policies: dict[str, Policies]) -> None:
    assert {short(one.request.principal) for one in verdicts} == {short(one) for one in policies} == {*ROLES.values()}
    assert [(one.call.name, one.request, one.answer.error) for one in verdicts if not one.answer.allowed] == []


def test_no_right_to_the_catalogue_is_spare(verdicts: list[Verdict], policies: dict[str, Policies]) -> None:
    spare = granted(policies) - needed(verdicts, policies)
    found = {
        (short(one.principal), one.statement, one.action)
        for one in spare
        if not one.statement.startswith("(") and (short(one.principal) != "Plan" or one.statement in OF_QUERIES)
    }
    assert found - AFTER_AN_ERROR == OF_A_DESTROY


def test_a_destroy_ends_what_runs_although_the_database_is_away_and_its_writer_gone(
    catalogued: Yard, field: Field, account: DeployedAccount, policies: dict[str, Policies]
) -> None:
    doomed = field.start("doomed", field.line(HOME, hyperparameters=ENDLESS))
    until(lambda: doomed.progress() == {"Training": 1})
    rds = catalogued.client("rds")
    (writer,) = rds.describe_db_instances()["DBInstances"]
    rds.delete_db_instance(DBInstanceIdentifier=writer["DBInstanceIdentifier"], SkipFinalSnapshot=True)
    assert "does not let Plan in" in failed(query(catalogued, "too-late", ONE_LINE), "InvalidRequest")
    with catalogued.faults(parse_faults(["database-away"])):
        catalogued.cdk.destroy(catalogued.assembly)
    assert doomed.trainings_left() == doomed.children_left() == []
    assert rds.describe_db_clusters()["DBClusters"] == []
    left = catalogued.client("cloudformation").describe_stacks()["Stacks"]
    assert [one["StackName"] for one in left if one["StackName"] != "CDKToolkit"] == []
    lifts = [one for one in catalogued.aws.recorder.of(name="rds:ModifyDBCluster") if one.role in policies]
    assert {one.answer.allowed for one in judge(lifts, policies, account)} == {True}
