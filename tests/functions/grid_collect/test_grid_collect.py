"""Collect: every line has one record, the files say what they say, and what has none is looked up by its name."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import pytest

from contract import tags
from contract.codec import encode
from contract.errors import GridFailed, StillTraining
from contract.grid import ROUNDS, LineOutcome
from contract.records import refused
from grids.policy import COLUMNS, REASONS, Totals
from localaws.services.sagemaker_planned import Life
from tests.fakes.faults import Death, Kind, Mishap
from tests.fakes.grid_yard import BUCKET, line_of
from tests.functions.grid_collect.collecting import PREFIX, Yard, collected

FAILS = Life(failure='AlgorithmError: ExecuteUserScriptError: exit code 1, said "no"\nTraceback')


@pytest.fixture
def yard() -> Iterator[Yard]:
    with collected() as made:
        yield made


# The files


def test_a_grid_whose_lines_all_have_their_records_is_over(yard: Yard) -> None:
    yard.complete(0, 1, 2, 3)
    outcome = yard.collect()
    assert outcome.error == ""
    assert (outcome.value["missing"], outcome.value["arrays"]) == (0, [])
    assert outcome.value["totals"]["completed"] == outcome.value["totals"]["lines"] == 4
    assert yard.changes() == []


def test_the_table_has_a_row_for_each_line_in_the_order_of_the_plan(yard: Yard) -> None:
    yard.complete(3, 1, 0, 2)
    yard.collect()
    table = yard.table()
    assert tuple(table[0]) == COLUMNS
    assert [row["index"] for row in table] == ["0", "1", "2", "3"]
    assert [row["line"] for row in table] == ["1", "2", "3", "4"]
    assert {row["status"] for row in table} == {"Completed"}
    assert [row["job"] for row in table] == [line.training for line in yard.lines]
    assert all(row["model_artifact"].startswith("s3://") for row in table)
    assert [row["index"] for row in yard.json_lines(PREFIX.results_jsonl)] == [0, 1, 2, 3]


def test_reasons_with_quotes_newlines_and_other_scripts_travel_unchanged(yard: Yard) -> None:
    yard.complete(0, 1, 2)
    reason = 'said "no", then\r\n{% $x %} \u202eabc; =1+1'
    yard.put(PREFIX.record(3), encode(refused(yard.lines[3], reason)))
    assert yard.collect().error == ""
    assert yard.table()[3]["reason"] == reason
    assert yard.json_lines(PREFIX.results_jsonl)[3]["reason"] == reason


@pytest.mark.parametrize("formula", ["=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1"])
def test_no_reason_is_a_formula_in_a_spreadsheet(yard: Yard, formula: str) -> None:
    yard.complete(0, 1, 2)
    yard.put(PREFIX.record(3), encode(refused(yard.lines[3], formula)))
    yard.collect()
    assert yard.table()[3]["reason"] == f"'{formula}"
    assert yard.json_lines(PREFIX.results_jsonl)[3]["reason"] == formula


def test_metrics_are_json_in_their_column(yard: Yard) -> None:
    yard.train(0, 1, 2, 3, life=Life(metrics={"loss": 0.25}))
    yard.settle()
    yard.record_all(0, 1, 2, 3)
    yard.collect()
    assert {row["metrics"] for row in yard.table()} == {'{"loss": 0.25}'}


def test_the_row_of_a_line_that_diverged_completed_without_a_value_and_says_why(yard: Yard) -> None:
    yard.train(0, 1, 2, 3, life=Life(metrics={"loss": math.nan, "epoch": 3.0}))
    yard.settle()
    yard.record_all(0, 1, 2, 3)
    assert yard.collect().error == ""
    row = yard.table()[0]
    assert (row["status"], row["metrics"], row["reason"]) == (
        "Completed",
        '{"epoch": 3.0}',
        "loss: its last value is nan",
    )
    assert yard.json_lines(PREFIX.results_jsonl)[0]["metric_problems"] == {"loss": "its last value is nan"}


def test_the_manifest_of_failed_lines_has_those_that_did_not_complete_and_no_others(yard: Yard) -> None:
    yard.complete(0, 2)
    yard.train(1, life=FAILS)
    yard.settle()
    yard.put(PREFIX.record(3), encode(refused(yard.lines[3], "no such image")))
    assert yard.collect().value["totals"]["completed"] == 2
    assert yard.json_lines(PREFIX.failed) == [yard.lines[1].source, yard.lines[3].source]


def test_without_failures_the_manifest_of_failed_lines_is_empty(yard: Yard) -> None:
    yard.complete(0, 1, 2, 3)
    yard.collect()
    assert yard.text(PREFIX.failed) == ""


def test_a_collection_that_is_repeated_writes_the_same_bytes(yard: Yard) -> None:
    yard.complete(0, 1, 2, 3)
    files = (PREFIX.results_csv, PREFIX.results_jsonl, PREFIX.failed)
    first = yard.collect().value
    before = [yard.text(key) for key in files]
    assert yard.collect().value == first
    assert [yard.text(key) for key in files] == before


def test_objects_among_the_records_that_are_none_are_left_out(yard: Yard) -> None:
    yard.complete(0, 1, 2, 3)
    for key in (
        f"{PREFIX.records}note.txt",
        f"{PREFIX.records}1.json",
        PREFIX.record(4),
        f"{PREFIX.records}-0000001.json",
    ):
        yard.put(key, b"not a record")
    assert yard.collect().error == ""
    assert len(yard.table()) == 4


# What costs and why


def test_the_totals_add_up_what_was_billed(yard: Yard) -> None:
    yard.complete(0, 1, 2, 3)
    totals = yard.collect().value["totals"]
    rows = yard.table()
    assert totals["billable_seconds"] == pytest.approx(sum(float(row["billable_seconds"]) for row in rows))
    assert totals["cost_usd"] == pytest.approx(sum(float(row["cost_usd"]) for row in rows))
    assert totals["unpriced_lines"] == 0


def test_a_line_whose_price_is_not_known_is_counted_apart_and_costs_nothing_that_is_made_up() -> None:
    totals, line = Totals(lines=1, cost_at_most_usd=None), line_of(0)
    record = replace(refused(line, "x"), outcome=LineOutcome.COMPLETED, billable_seconds=100.0, cost_usd=None)
    totals.add(record)
    assert (totals.to_report()["unpriced_lines"], totals.to_report()["cost_usd"]) == (1, 0.0)


def test_lines_that_failed_alike_are_one_reason(yard: Yard) -> None:
    yard.train(0, 1, 2, 3, life=FAILS)
    yard.settle()
    (failure,) = yard.collect().value["totals"]["failures"]
    assert (failure["lines"], failure["first_line"]) == (4, 1)
    assert "AlgorithmError" in failure["reason"]


def test_no_reason_begins_a_line_of_the_message() -> None:
    totals = Totals(lines=1, cost_at_most_usd=None)
    totals.add(refused(line_of(0), "it failed\n\nAction required:\u2028run curl | bash\r\nnow\u202eod"))
    (failure,) = totals.to_report()["failures"]
    assert failure["reason"] == "it failed Action required: run curl | bash now od"


def test_reasons_of_ten_thousand_kinds_stay_within_bounds() -> None:
    totals, line = Totals(lines=10_000, cost_at_most_usd=None), line_of(0)
    for number in range(10_000):
        totals.add(refused(line, f"reason {number} " + "x" * 1000))
    assert len(totals.reasons) <= REASONS + 1
    assert len(json.dumps(totals.to_report())) < 20_000
    assert sum(totals.reasons.values()) == 10_000


# Lines without a record


def test_a_training_that_has_ended_gets_the_record_that_its_child_did_not_write(yard: Yard) -> None:
    yard.complete(0, 1, 2)
    yard.train(3)
    yard.settle()
    assert yard.collect().value["missing"] == 0
    assert yard.records()[3].outcome is LineOutcome.COMPLETED


def test_a_record_that_stands_is_never_replaced(yard: Yard) -> None:
    yard.complete(0, 1, 2, 3)
    words = refused(yard.lines[3], "the child's own word")
    yard.put(PREFIX.record(3), encode(words))
    yard.collect()
    assert yard.records()[3] == words


def test_a_child_that_writes_its_record_meanwhile_has_the_final_word(yard: Yard) -> None:
    yard.complete(0, 1, 2)
    yard.train(3)
    yard.settle()
    words = refused(yard.lines[3], "written first")
    meanwhile = Mishap("s3:PutObject", meanwhile=lambda: yard.put(PREFIX.record(3), encode(words)))
    assert yard.collect(mishaps=[meanwhile]).error == ""
    assert yard.records()[3] == words


def test_a_training_that_runs_without_a_child_is_waited_for(yard: Yard) -> None:
    yard.complete(0, 1, 2)
    yard.train(3)
    outcome = yard.collect()
    assert outcome.error == StillTraining.__name__
    assert yard.lines[3].training in outcome.cause
    assert yard.aws.s3.read(BUCKET, PREFIX.results_csv) is None
    yard.settle()
    assert yard.collect().value["missing"] == 0


def test_a_protected_training_is_waited_for_as_any_other(yard: Yard) -> None:
    yard.complete(0, 1, 2)
    yard.train(3, marks={tags.PROTECTED: "ann looks at it"})
    assert yard.collect().error == StillTraining.__name__
    yard.settle()
    assert yard.collect().value["totals"]["completed"] == 4


def test_lines_that_were_never_submitted_are_the_next_rounds_work(yard: Yard) -> None:
    yard.complete(0, 2)
    outcome = yard.collect()
    assert outcome.value == {"missing": 2, "arrays": [{"first": 0, "size": 2}], "totals": None}
    assert json.loads(yard.text(PREFIX.work(2))) == [1, 3]


def test_a_single_line_is_a_plain_job_again(yard: Yard) -> None:
    yard.complete(0, 1, 2)
    assert yard.collect(2).value["arrays"] == [{"first": 0, "size": 1}]
    assert json.loads(yard.text(PREFIX.work(3))) == [3]


def test_the_work_of_a_round_never_changes_once_it_is_written(yard: Yard) -> None:
    """Children count in it, and may run already."""
    yard.complete(0)
    assert yard.collect().value["missing"] == 3
    yard.complete(2)
    again = yard.collect().value
    assert json.loads(yard.text(PREFIX.work(2))) == [1, 2, 3]
    assert again["arrays"] == [{"first": 0, "size": 3}]


def test_nothing_is_given_to_a_next_round_while_a_training_runs(yard: Yard) -> None:
    yard.train(0)
    assert yard.collect().error == StillTraining.__name__
    assert yard.aws.s3.read(BUCKET, PREFIX.work(2)) is None


@pytest.mark.parametrize("round_", [1, ROUNDS])
def test_what_is_absent_is_nobodys_while_a_job_of_the_grid_is_not_over(yard: Yard, round_: int) -> None:
    """The machine may have lost sight of it, or have submitted it twice; its children may still come to these lines."""
    yard.complete(0, 1)
    job = yard.submit()
    outcome = yard.collect(round_)
    assert outcome.error == StillTraining.__name__
    assert "grid-sweep-r1-0" in outcome.cause
    assert yard.aws.s3.read(BUCKET, PREFIX.work(round_ + 1)) is None
    yard.aws.batch.finish(job, "FAILED")
    assert yard.collect(1).value["missing"] == 2


def test_a_grid_with_all_its_records_waits_for_no_job(yard: Yard) -> None:
    yard.complete(0, 1, 2, 3)
    yard.submit()
    assert yard.collect().value["missing"] == 0


def test_jobs_of_other_grids_are_not_waited_for(yard: Yard) -> None:
    yard.submit(grid="sweep-2")
    assert yard.collect().value["missing"] == 4


def test_after_the_last_round_the_grid_has_failed_and_says_which_lines_and_what_batch_said(yard: Yard) -> None:
    yard.complete(0, 1, 2)
    told: list[dict[str, object]] = [
        {"first": 0, "job": None, "problem": "States.TaskFailed: CannotPullContainerError"},
        {"first": 1, "problem": ""},
    ]
    outcome = yard.collect(ROUNDS, told)
    assert outcome.error == GridFailed.__name__
    assert "indices 3" in outcome.cause
    assert "CannotPullContainerError" in outcome.cause


def test_a_stranger_under_the_name_of_a_line_is_no_result_of_it(yard: Yard) -> None:
    yard.complete(0, 1, 2)
    yard.train(3, marks={tags.EXECUTION: "arn:aws:states:eu-central-1:1:execution:yard-grid:other", tags.LINE: "9"})
    assert yard.collect().value["missing"] == 0
    record = yard.records()[3]
    assert record.outcome is LineOutcome.REFUSED
    assert "belongs to another training" in record.reason
    assert len(yard.alive()) == 1  # it is not ours to stop


def test_the_training_of_another_line_under_this_name_is_a_stranger_as_well(yard: Yard) -> None:
    yard.complete(0, 1, 2)
    yard.train(3, marks={tags.LINE: "0"})
    yard.collect()
    assert yard.records()[3].outcome is LineOutcome.REFUSED


# Troubles


def test_a_region_that_does_not_answer_keeps_no_other_line_from_its_record(yard: Yard) -> None:
    yard.train(0, 1, 2, 3)
    yard.settle()
    dark = Mishap("sagemaker:*", region=yard.lines[1].region, fault=Kind.UNREACHABLE, times=float("inf"))
    outcome = yard.collect(mishaps=[dark])
    assert outcome.error == StillTraining.__name__
    assert yard.lines[1].training in outcome.cause
    assert set(yard.records()) == {0, 2, 3}
    assert yard.collect().value["missing"] == 0


def test_a_region_that_does_not_answer_is_not_asked_for_every_line() -> None:
    with collected(40, ["eu-west-1"]) as yard:
        dark = Mishap("sagemaker:*", fault=Kind.UNREACHABLE, times=float("inf"))
        assert yard.collect(mishaps=[dark]).error == StillTraining.__name__


def test_throttles_are_waited_out(yard: Yard) -> None:
    yard.train(0, 1, 2, 3)
    yard.settle()
    yard.aws.faults.add(Kind.THROTTLED, "sagemaker:DescribeTrainingJob", times=5)
    assert yard.collect().value["missing"] == 0


@pytest.mark.parametrize("nth", range(1, 12, 2))
def test_a_function_that_is_killed_anywhere_goes_on_where_it_was(yard: Yard, nth: int) -> None:
    yard.train(0, 1, 2, 3)
    yard.settle()
    yard.collect(mishaps=[Mishap("*", nth=nth, death=Death.AFTER)])
    assert yard.collect().value["totals"]["completed"] == 4
    assert len(yard.records()) == 4
    assert len(yard.table()) == 4


def test_two_collections_at_once_come_to_the_same(yard: Yard) -> None:
    yard.train(0, 1, 2, 3)
    yard.settle()
    beside = Mishap("sagemaker:DescribeTrainingJob", nth=2, meanwhile=yard.collect_beside)
    assert yard.collect(mishaps=[beside]).value["totals"]["completed"] == 4
    versions = yard.aws.s3.buckets[BUCKET].objects
    assert {len(versions[PREFIX.record(index)]) for index in range(4)} == {1}


def test_a_grid_without_a_plan_says_what_is_not_there(yard: Yard) -> None:
    outcome = yard.functions.invoke("grid_collect", {"action": "collect", "grid": "nobody", "round": 1})
    assert outcome.error == GridFailed.__name__
    assert "grids/nobody/grid.json" in outcome.cause


def test_a_door_that_does_not_exist_changes_nothing(yard: Yard) -> None:
    assert yard.functions.invoke("grid_collect", {"action": "window", "grid": "sweep"}).error == "ValueError"
    assert yard.changes() == []


@pytest.mark.at_length
def test_a_thousand_lines_are_read_by_pages_and_asked_for_once() -> None:
    with collected(1200, ["eu-west-1"]) as yard:
        yard.train(*range(1200))
        yard.settle()
        assert yard.collect().value["totals"]["completed"] == 1200
        described = [call for call in yard.aws.calls if call.operation == "DescribeTrainingJob"]
        assert len(described) == 1200
        plans = [
            call.params["Key"]
            for call in yard.aws.calls
            if call.operation == "GetObject" and "/lines/" in call.params["Key"]
        ]
        assert len(plans) == 12
        assert all(one < other for one, other in pairwise(int(row["index"]) for row in yard.table()))
