"""The keeper over a fake AWS and a real PostgreSQL: what ended becomes rows, and an hour without news wakes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from aws.data_api import DataApi, StatementRefused
from contract import keys
from contract.catalogue import KEEPER, REMEMBERED
from contract.catalogue_environments import KeeperEnvironment
from contract.codec import decode, encode
from contract.errors import DatabaseAway
from contract.execution_facts import MARK, REPORTED_S
from contract.grid import GridPrefix, LineOutcome, Record
from contract.search import STARTED_BY, SearchPrefix
from keeper import handler, passes
from keeper.ends import NotReported
from keeper.market import KEPT_S, CapacityRow, KeptTables, MarketFacts
from keeper.passes import Keeper
from tests.builders import JOB
from tests.fakes.aws import Aws
from tests.fakes.catalogue import DataApiOver
from tests.fakes.executions import GRID_MACHINE, MACHINE, SEARCH_MACHINE, Execution
from tests.fakes.grid_yard import grid_of, job_line_of, line_of
from tests.fakes.s3 import Bucket
from tests.fakes.yard import admitted, deployed

ABROAD = "eu-west-1"
ENV = KeeperEnvironment(
    deployment="yard",
    bucket=JOB.home_bucket,
    regions=(JOB.home_region, ABROAD),
    training=(JOB.home_region,),
    machine=MACHINE,
    grid_machine=GRID_MACHINE,
    messages="https://sqs/yard-keeper",
    access=DataApiOver.access(KEEPER),
    cluster_id="cluster-1",
)
SILENT = MarketFacts(on_demand={}, spot={}, capacity={})
REPORT = {"launches": [{"region": "eu-central-1", "instance_type": "g5.xlarge", "instances": ["i-1"]}]}
OUTPUT = {"region": "eu-central-1", "progress": {"metric": 0.25}, "cost": {"usd_at_most": 0.5, "billed_s": 9.0}}


class Yard:
    """A deployment, its catalogue, and what AWS says of prices."""

    def __init__(self, aws: Aws, calls: DataApiOver) -> None:
        self.aws, self.calls = aws, calls
        self.market = SILENT
        self.env = ENV
        self.priced: list[Sequence[str]] = []
        self.database = DataApi(calls.access(KEEPER), calls, sleep=aws.clock.sleep, clock=aws.clock.time)

    @property
    def keeper(self) -> Keeper:
        return Keeper(self.env, self.database, self.ask, self.aws.clock.time)

    def ask(self, types: Sequence[str]) -> MarketFacts:
        self.priced.append(types)
        return self.market

    def put(self, key: str, body: bytes) -> None:
        self.aws.s3.write(ENV.bucket, key, body)

    def rows(self, *columns: str) -> list[tuple[Any, ...]]:
        return sorted(self.database.run(f"select {', '.join(columns)} from trainyard.runs").rows)

    @property
    def prices(self) -> dict[str, float]:
        found = self.database.run("select region || ' ' || type || ' ' || market, usd from trainyard.prices").rows
        return dict(found)

    @property
    def remembered(self) -> KeptTables:
        return decode(KeptTables, self.aws.s3.read(ENV.bucket, REMEMBERED) or b"{}")

    def job(self, name: str, status: str = "SUCCEEDED", **changes: Any) -> Execution:
        """A job that was admitted, ran, and ended a minute later."""
        execution = self.aws.states.executions.begin(name)
        admitted(self.aws, replace(JOB, id=name, execution=execution.arn, **changes))
        self.aws.clock.sleep(60)
        execution.output = json.dumps(OUTPUT)
        self.put(keys.JobPrefix(name).result, json.dumps(REPORT).encode())
        self.aws.states.executions.end(execution, status, *(("Lost", "gone") if status == "FAILED" else ()))
        return execution

    def line(self, name: str, grid: str) -> Execution:
        execution = self.job(name)
        execution.input = json.dumps({MARK: {"execution": grid, "index": 1}})
        return execution

    def grid(self, name: str = "sweep", given: str = "{}", *, reported: bool = True) -> Execution:
        """A grid of two lines, one in SageMaker and one on a cluster of ours, that ended."""
        execution = self.aws.states.executions.begin(name, GRID_MACHINE)
        execution.input, prefix = given, GridPrefix(name)
        lines = [line_of(0), job_line_of(1)]
        self.put(prefix.lines(0), b"\n".join(map(encode, lines)))
        self.put(prefix.description, encode(replace(grid_of(2, ["eu-central-1"]), id=name, execution=execution.arn)))
        for line, outcome in zip(lines, (LineOutcome.COMPLETED, LineOutcome.REFUSED), strict=True):
            record = Record(
                index=line.index, line=line.line, region=line.region, training=line.training, outcome=outcome, reason=""
            )
            self.put(prefix.record(line.index), encode(record))
        if reported:
            self.put(prefix.report, b"{}")
        self.aws.clock.sleep(60)
        self.aws.states.executions.end(execution, "SUCCEEDED")
        return execution


@pytest.fixture
def yard(calls: DataApiOver) -> Iterator[Yard]:
    aws = deployed()
    aws.s3.buckets.setdefault(ENV.bucket, Bucket(region=JOB.home_region))
    with aws.connected():
        yield Yard(aws, calls)


# Ends


def test_a_job_that_ended_becomes_a_row_of_its_campaign(yard: Yard) -> None:
    yard.database.run("insert into trainyard.campaigns (name) values ('digits')")
    arn = yard.job("digits-0123456789ab").arn
    assert yard.keeper.write_end(arn) == 1
    assert yard.rows("name", "kind", "campaign", "region", "type", "outcome", "seconds", "cost_usd") == [
        ("digits-0123456789ab", "job", "digits", "eu-central-1", "g5.xlarge", "Completed", 60.0, 0.5)
    ]


def test_the_same_event_twice_is_one_row(yard: Yard) -> None:
    arn = yard.job("once").arn
    assert [yard.keeper.write_end(arn), yard.keeper.write_end(arn)] == [1, 1]
    assert yard.rows("name", "campaign") == [("once", "")]


def test_a_job_that_runs_again_is_not_written_whatever_the_event_said(yard: Yard) -> None:
    execution = yard.job("redriven", "FAILED")
    yard.aws.states.executions.redrive(execution)
    assert yard.keeper.write_end(execution.arn) == 0


def test_a_failed_job_waits_for_its_report_and_not_for_ever(yard: Yard) -> None:
    execution = yard.job("failed", "FAILED")
    with pytest.raises(NotReported):
        yard.keeper.write_end(execution.arn)
    assert yard.rows("name") == []
    yard.aws.clock.sleep(REPORTED_S)
    assert yard.keeper.write_end(execution.arn) == 1
    assert yard.rows("outcome", "cost_usd") == [("Failed", None)]


def test_what_was_never_admitted_leaves_no_row_and_wakes_nothing(yard: Yard) -> None:
    execution = yard.aws.states.executions.begin("refused")
    yard.aws.states.executions.end(execution, "FAILED", "InvalidRequest", "no")
    assert yard.keeper.write_end(execution.arn) == 0
    assert yard.calls.statements == []


def test_a_job_of_an_earlier_execution_of_that_name_is_not_this_ones(yard: Yard) -> None:
    admitted(yard.aws, replace(JOB, id="again", execution="arn:other"))
    execution = yard.aws.states.executions.begin("again")
    yard.aws.states.executions.end(execution, "SUCCEEDED")
    assert yard.keeper.write_end(execution.arn) == 0


def test_lines_of_a_grid_become_rows_and_their_executions_do_not(yard: Yard) -> None:
    arn = yard.grid().arn
    line = yard.line(job_line_of(1).training, arn)
    assert [yard.keeper.write_end(arn), yard.keeper.write_end(line.arn)] == [2, 0]
    assert yard.rows("name", "kind", "type", "image", "outcome") == [
        ("sweep/0", "line", "ml.g5.xlarge", "123456789012.dkr.ecr/yard/images:1", "Completed"),
        ("sweep/1", "line", "g5.xlarge", "images:1", "Refused"),
    ]


def test_rounds_of_a_search_that_a_campaign_started_are_its_trials(yard: Yard) -> None:
    yard.database.run("insert into trainyard.campaigns (name) values ('digits')")
    search = "digits-0123456789ab"
    starter = f"{SEARCH_MACHINE.replace(':stateMachine:', ':execution:')}:{search}"
    given = {STARTED_BY: starter, "manifest": f"s3://b/{SearchPrefix(search).questions(1)}"}
    yard.keeper.write_end(yard.grid(f"{search}-r1", json.dumps(given)).arn)
    assert set(yard.rows("kind", "campaign")) == {("trial", "digits")}


LIKE_A_LINE = "yard-x-202611271200-1"


def test_a_persons_job_with_the_name_of_a_line_is_written_by_its_event_and_by_the_hour(yard: Yard) -> None:
    assert yard.keeper.write_end(yard.job(LIKE_A_LINE).arn) == 1
    yard.job(f"{LIKE_A_LINE[:-1]}2")
    yard.aws.clock.sleep(10)
    yard.keeper.work()
    assert len(yard.rows("name")) == 2


def test_the_hour_leaves_lines_to_their_grid_and_asks_for_one_of_each(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [yard.line(f"yard-x-0123456789ab-{index}", "arn:grid").arn for index in range(5)]
    yard.aws.clock.sleep(10)
    described, known = list[str](), passes.Ends.is_line
    monkeypatch.setattr(passes.Ends, "is_line", lambda ends, arn: described.append(arn) or known(ends, arn))
    yard.keeper.work()
    assert yard.rows("name") == []
    assert (len(described), set(described) <= set(lines)) == (1, True)


def test_a_grid_without_a_report_is_asked_again(yard: Yard) -> None:
    with pytest.raises(NotReported):
        yard.keeper.write_end(yard.grid(reported=False).arn)


# The hour


def test_an_hour_in_which_nothing_changed_sends_no_statement(yard: Yard) -> None:
    yard.keeper.work()  # of a new database nothing is known
    yard.calls.statements.clear()
    for _ in range(24):
        yard.keeper.work()
        yard.aws.clock.sleep(3600)
    assert yard.calls.statements == []


def test_a_database_that_replaces_another_gets_what_has_not_changed_since(yard: Yard) -> None:
    yard.keeper.write_end(yard.job("one").arn)
    yard.market = replace(SILENT, on_demand={("eu-central-1", "g5.xlarge"): 1.25})
    yard.keeper.work()
    yard.env = replace(ENV, cluster_id="cluster-2")
    yard.database.run("delete from trainyard.runs")
    yard.database.run("delete from trainyard.prices")
    yard.aws.clock.sleep(3600)
    for _ in range(2):
        yard.keeper.work()
    assert yard.rows("name") == [("one",)]
    assert yard.database.run("select type, usd from trainyard.prices").rows == (("g5.xlarge", 1.25),)


def test_types_of_a_restored_database_are_read_without_an_end(yard: Yard) -> None:
    yard.keeper.work()
    yard.database.run("insert into trainyard.campaigns (name, instance_types) values ('c', '{p5.48xlarge}')")
    yard.env = replace(ENV, cluster_id="cluster-2")
    yard.keeper.work()
    assert yard.priced == [(), ("p5.48xlarge",)]


def test_ends_without_an_event_are_found_once_and_then_left(yard: Yard) -> None:
    yard.job("lost")
    yard.grid()
    yard.aws.clock.sleep(10)
    yard.keeper.work()
    assert [name for (name,) in yard.rows("name")] == ["lost", "sweep/0", "sweep/1"]
    yard.calls.statements.clear()
    yard.keeper.work()
    assert yard.calls.statements == []


def test_an_end_that_an_event_told_is_not_written_by_the_hour(yard: Yard) -> None:
    yard.keeper.write_end(yard.job("told").arn)
    yard.aws.clock.sleep(10)
    yard.calls.statements.clear()
    yard.keeper.work()
    assert yard.calls.statements == []


def test_ends_are_forgotten_after_a_day(yard: Yard) -> None:
    yard.keeper.write_end(yard.job("first").arn)
    yard.aws.clock.sleep(KEPT_S)
    second = yard.job("second").arn
    yard.keeper.write_end(second)
    assert list(yard.remembered.ends) == [second]


def test_types_of_runs_are_priced_from_the_next_hour_on(yard: Yard) -> None:
    yard.keeper.write_end(yard.job("one").arn)
    yard.market = replace(SILENT, on_demand={("eu-central-1", "g5.xlarge"): 1.25})
    yard.keeper.work()
    assert yard.priced == [("g5.xlarge",)]
    assert yard.database.run("select region, type, market, usd from trainyard.prices").rows == (
        ("eu-central-1", "g5.xlarge", "on-demand", 1.25),
    )


def test_a_person_has_the_types_of_a_new_campaign_read(yard: Yard) -> None:
    yard.keeper.work()
    yard.database.run("insert into trainyard.campaigns (name, instance_types) values ('c', '{p5.48xlarge}')")
    yard.keeper.work()
    yard.keeper.read_now()
    assert yard.priced == [(), (), ("p5.48xlarge",)]


def test_two_passes_at_once_remember_what_the_table_has(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second asked before, and of fewer types; it writes while the first has yet to remember."""
    yard.keeper.work()
    yard.database.run("insert into trainyard.campaigns (name, instance_types) values ('c', '{g5.xlarge,p5.48xlarge}')")
    later = {("eu-central-1", "g5.xlarge"): 1.0, ("eu-central-1", "p5.48xlarge"): 98.0}
    yard.market = replace(SILENT, on_demand=later)
    earlier = replace(SILENT, on_demand={("eu-central-1", "g5.xlarge"): 2.0})
    second, real = Keeper(ENV, yard.database, lambda _: earlier, yard.aws.clock.time), passes.remember_market

    def remember_last(*given: Any) -> KeptTables:
        monkeypatch.setattr(passes, "remember_market", real)
        second.work()
        return real(yard.remembered, *given[1:])

    monkeypatch.setattr(passes, "remember_market", remember_last)
    yard.keeper.read_now()
    assert yard.remembered.prices == yard.prices
    yard.keeper.work()
    assert sorted(yard.prices.values()) == [1.0, 98.0]


def test_a_pass_that_ended_before_it_remembered_is_made_up_by_the_next(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    yard.keeper.write_end(yard.job("one").arn)
    for usd in (1.0, 2.0):
        yard.market = replace(SILENT, on_demand={("eu-central-1", "g5.xlarge"): usd})
        with monkeypatch.context() as lost:
            if usd == 2.0:
                lost.setattr(passes, "remember_market", lambda one, *_: one)
            yard.keeper.work()
    yard.market = replace(SILENT, on_demand={("eu-central-1", "g5.xlarge"): 1.0})
    yard.keeper.work()
    assert list(yard.prices.values()) == [1.0]


def test_capacity_is_written_when_it_changes_and_only_then(yard: Yard) -> None:
    row = CapacityRow(region="eu-central-1", type="p5.48xlarge", kind="reservation", free=2, begins=None, ends=None)
    yard.market = replace(SILENT, capacity={"eu-central-1": {"cr-1": row}})
    yard.keeper.work()
    assert yard.database.run("select reservation, free from trainyard.capacity").rows == (("cr-1", 2),)
    yard.calls.statements.clear()
    yard.keeper.work()
    yard.market = SILENT
    yard.keeper.work()
    assert yard.calls.statements == []


def test_a_document_that_cannot_be_read_is_written_anew(yard: Yard) -> None:
    yard.put(REMEMBERED, b"{")
    yard.keeper.write_end(yard.job("one").arn)
    assert yard.remembered.types == ("g5.xlarge",)


# Faults


def test_a_database_that_is_away_is_tried_again_and_nothing_is_remembered(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    arn = yard.job("one").arn
    with monkeypatch.context() as away:
        away.setattr(yard.calls, "away", True)
        with pytest.raises(DatabaseAway):
            yard.keeper.write_end(arn)
    assert yard.aws.s3.read(ENV.bucket, REMEMBERED) is None
    assert yard.keeper.write_end(arn) == 1


def test_a_database_that_takes_no_row_is_tried_again_and_nothing_is_remembered(yard: Yard) -> None:
    """One that is full takes none, and neither does one that may only be read; both answer what they are asked."""
    arn = yard.job("one").arn
    yard.database.run("alter role keeper set default_transaction_read_only = on")
    try:
        with pytest.raises(StatementRefused, match="read-only"):
            yard.keeper.write_end(arn)
    finally:
        with yard.calls.connect(KEEPER) as connection:
            connection.execute("set transaction read write")
            connection.execute("alter role keeper reset default_transaction_read_only")
    assert yard.aws.s3.read(ENV.bucket, REMEMBERED) is None
    assert yard.keeper.write_end(arn) == 1


@pytest.mark.parametrize("machine", [SEARCH_MACHINE, "arn:aws:states:eu-central-1:123456789012:stateMachine:other"])
def test_an_event_of_another_machine_is_dropped(yard: Yard, machine: str) -> None:
    body = {"detail": {"stateMachineArn": machine, "executionArn": f"{machine.replace('stateMachine', 'execution')}:x"}}
    handler.write_end(yard.keeper, ENV, json.dumps(body))
    assert yard.calls.statements == []


def test_an_event_of_a_job_is_written(yard: Yard) -> None:
    detail = yard.aws.states.executions.detail(yard.job("one"))
    handler.write_end(yard.keeper, ENV, json.dumps({"detail": detail}))
    assert yard.rows("name") == [("one",)]
