"""Grids and searches: started, followed, and their results with the reasons below the table."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest

from contract.codec import encode
from contract.grid import GridPrefix, LineOutcome, Record
from contract.search import SearchPrefix
from tests.command_line.account import HOME_BUCKET, YARD, Account, History, run
from tests.fakes.executions import GRID_MACHINE, SEARCH_MACHINE, Execution
from tests.fakes.grid_yard import grid_of
from trainyard.options import Command

SWEEP = GridPrefix("sweep")
LONG = (
    "AlgorithmError: the training's own code or container ended with an error, and says much about it: " + "why " * 60
)


def record(index: int, outcome: LineOutcome = LineOutcome.COMPLETED, reason: str = "") -> Record:
    return Record(
        index=index,
        line=index + 1,
        region="eu-central-1",
        training=f"yard-sweep-{index}",
        outcome=outcome,
        reason=reason,
        cost_usd=0.5,
        billable_seconds=60.0,
        metrics={"accuracy": 0.75},
    )


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    path = tmp_path / "sweep.csv"
    path.write_text("eu-central-1,s3://a-bucket/a/\n")
    return path


def inputs(there: Account) -> dict[str, object]:
    return {one.name: json.loads(one.input) for one in there.states.executions.known.values()}


def list_uploads(there: Account) -> list[str]:
    return [key for key in there.s3.buckets[HOME_BUCKET].objects if key.startswith("uploads/")]


def test_a_manifest_is_uploaded_started_and_its_results_are_shown(
    there: Account, manifest: Path, tmp_path: Path
) -> None:
    def succeed(execution: Execution) -> None:
        there.put(SWEEP.description, encode(grid_of(2, ["eu-central-1"])))
        there.put(SWEEP.results_jsonl, b"".join(encode(record(index)) + b"\n" for index in range(2)))
        there.end(execution, output={})

    there.states.executions.began = succeed
    given = tmp_path / "input.json"
    given.write_text(json.dumps({"defaults": {"image": "images:v1"}}))
    ran = run("grid", "run", manifest, "--input", given, "--name", "sweep", *YARD)
    assert (ran.code, ran.err) == (0, "")
    (key,) = list_uploads(there)
    assert key.startswith("uploads/sweep-")
    assert key.endswith(".csv")
    address = f"s3://{HOME_BUCKET}/{key}"
    assert inputs(there) == {"sweep": {"defaults": {"image": "images:v1"}, "manifest": address}}
    assert there.s3.read(HOME_BUCKET, key) == manifest.read_bytes()
    assert "SUCCEEDED: 0 of 2 lines have ended (2 in eu-central-1)" in ran.out
    assert "2 of 2 lines have ended: 2 Completed; they cost $1.00" in ran.out


def test_reasons_stand_below_the_table_whole_and_grouped(there: Account) -> None:
    there.begin("sweep", GRID_MACHINE)
    there.put(SWEEP.description, encode(grid_of(4, ["eu-central-1"])))
    failed = [record(index, LineOutcome.FAILED, f"{LONG} yard-sweep-{index}") for index in (1, 2)]
    there.put(SWEEP.results_jsonl, b"\n".join(map(encode, [record(0), *failed])))
    ran = run("grid", "results", "sweep", *YARD)
    assert ran.code == 0
    table, reasons = ran.out.partition("2 lines, the first is line 2: ")[::2]
    assert "AlgorithmError" not in table
    assert reasons.startswith("AlgorithmError: the training's own code")
    assert "3 of 4 lines have ended: 1 Completed, 2 Failed" in ran.out
    assert f"all columns: s3://{HOME_BUCKET}/grids/sweep/results.csv" in ran.out


def test_a_grid_that_runs_has_the_records_of_lines_that_ended(there: Account) -> None:
    there.begin("sweep", GRID_MACHINE, History().enter("Plan").enter("Run"))
    there.put(SWEEP.description, encode(grid_of(3, ["eu-central-1", "us-east-1"])))
    there.put(SWEEP.record(1), encode(record(1)))
    assert (
        "RUNNING, Run: 1 of 3 lines have ended (2 in eu-central-1, 1 in us-east-1)"
        in run("grid", "status", "sweep", *YARD).out
    )
    ran = run("grid", "results", "sweep", *YARD)
    assert "1 of 3 lines have ended: 1 Completed" in ran.out
    (one,) = run("grid", "results", "sweep", "--json", *YARD).documents
    assert (one["index"], one["outcome"], one["metrics"]) == (1, "Completed", {"accuracy": 0.75})


def test_of_ten_thousand_lines_a_table_shows_the_first_and_says_where_the_rest_is(there: Account) -> None:
    there.begin("sweep", GRID_MACHINE)
    there.put(SWEEP.results_jsonl, b"\n".join(encode(record(index)) for index in range(10_000)))
    ran = run("grid", "results", "sweep", *YARD)
    assert ran.out.count("\n") < 520
    assert "The table shows the first 500." in ran.out


def test_a_refused_manifest_is_plans_own_words(there: Account, manifest: Path) -> None:
    cause = "The grid was refused; nothing was started.\n- line 1: image: is missing; allowed: an image"
    there.states.executions.began = lambda execution: there.end(
        execution, "FAILED", error="InvalidRequest", cause=cause
    )
    ran = run("grid", "run", manifest, *YARD)
    assert (ran.code, ran.err) == (2, f"InvalidRequest: {cause}\n")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["grid", "run"], "MANIFEST: is missing"),
        (["grid", "run", "none.csv"], "there is no such file"),
        (["grid", "run", "query.sql"], "is SQL; allowed: its text as `query`"),
        (["grid", "run", "--input", "query.sql"], "is SQL; allowed: its text as `query`"),
        (["grid", "run", "--input", "none.json"], "there is no such file"),
        (["search", "run", "none.json"], "there is no such file"),
    ],
    ids=str,
)
def test_what_cannot_be_started_is_one_line_and_calls_nothing(
    there: Account, arguments: list[str], reason: str
) -> None:
    ran = run(*arguments, *YARD)
    assert (ran.code, ran.err.count("\n"), there.calls) == (2, 1, [])
    assert reason in ran.err


def test_an_input_without_lines_starts_nothing(there: Account, tmp_path: Path) -> None:
    given = tmp_path / "input.json"
    given.write_text(json.dumps({"defaults": {}}))
    assert run("grid", "run", "--input", given, *YARD).code == 2
    given.write_text(json.dumps({"query": "select 1"}))
    assert run("grid", "run", "--input", given, "--name", "q", "--no-follow", *YARD).code == 0
    assert inputs(there) == {"q": {"query": "select 1"}}


@pytest.mark.parametrize("name", ["a.b", "x" * 76, ""])
def test_a_name_that_no_grid_may_have_is_refused(there: Account, manifest: Path, name: str) -> None:
    ran = run("grid", "run", manifest, "--name", name, *YARD)
    assert (ran.code, there.calls) == (2, [])


def test_a_grid_without_its_stack_uploads_nothing(there: Account, manifest: Path) -> None:
    del there.outputs["yard-grid"]
    ran = run("grid", "run", manifest, "--name", "sweep", *YARD)
    assert (ran.code, list_uploads(there)) == (2, [])
    assert "yard has no grid machine in eu-central-1; allowed: deploy its stack first" in ran.err


@pytest.mark.usefixtures("there")
@pytest.mark.parametrize("kind", ["grid", "search"])
def test_an_interrupt_before_the_start_names_what_was_not_started(
    manifest: Path, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Command, "open_deployment", interrupt)
    given = tmp_path / "search.json"
    given.write_text("{}")
    ran = run(kind, "run", manifest if kind == "grid" else given, "--name", "sweep", *YARD)
    assert (ran.code, ran.err) == (130, "interrupted; sweep was not started\n")


def test_a_name_that_a_grid_had_leaves_its_manifest(there: Account, manifest: Path) -> None:
    there.begin("sweep", GRID_MACHINE)
    ran = run("grid", "run", manifest, "--name", "sweep", *YARD)
    assert (ran.code, list_uploads(there)) == (2, [])
    assert ran.err.startswith("--name: sweep is the name of an earlier execution")


@pytest.mark.parametrize("plan", [b"{", b"{}", b'{"lines": -1}', b"[]"], ids=str)
def test_a_plan_of_another_version_is_said_to_be_so_beside_what_is_known(there: Account, plan: bytes) -> None:
    there.begin("sweep", GRID_MACHINE, History().enter("Plan").enter("Run"))
    there.put(SWEEP.description, plan)
    ran = run("grid", "status", "sweep", *YARD)
    assert (ran.code, ran.err) == (0, "")
    assert "RUNNING, Run: its plan was written by another version (Grid" in ran.out


@pytest.mark.parametrize("lines", [-1, 10**12])
def test_a_plan_with_no_number_of_lines_that_can_be_is_of_another_version(there: Account, lines: int) -> None:
    there.begin("sweep", GRID_MACHINE)
    there.put(SWEEP.description, encode(replace(grid_of(2, ["eu-central-1"]), lines=lines)))
    assert "its plan was written by another version" in run("grid", "status", "sweep", *YARD).out


def test_records_of_another_version_are_counted_and_the_others_shown(there: Account) -> None:
    there.begin("sweep", GRID_MACHINE)
    there.put(SWEEP.results_jsonl, b"\n".join([encode(record(0)), b"{}", b"{", encode(record(3))]))
    ran = run("grid", "results", "sweep", *YARD)
    assert ran.code == 0
    assert "2 of 2 lines have ended: 2 Completed" in ran.out
    assert ran.err == "2 records written by another version, and not shown: Record.index is missing\n"
    *shown, problem = run("grid", "results", "sweep", "--json", *YARD).documents
    assert ([one["index"] for one in shown], problem["error"]) == ([0, 3], "Garbled")


def test_a_grid_without_results_says_how_to_see_it(there: Account) -> None:
    there.begin("sweep", GRID_MACHINE)
    ran = run("grid", "results", "sweep", *YARD)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "no line of it has ended yet" in ran.err
    assert "yard has no grid called none" in run("grid", "results", "none", *YARD).err


def test_a_grid_that_failed_says_why_where_it_is_looked_at(there: Account) -> None:
    there.end(there.begin("sweep", GRID_MACHINE), "FAILED", error="InvalidRequest", cause="line 1: image: is missing.")
    ran = run("grid", "status", "sweep", *YARD)
    assert (ran.code, ran.err) == (0, "InvalidRequest: line 1: image: is missing.\n")
    assert run("grid", "status", "sweep", "--json", *YARD).documents[-1] == {
        "grid": "sweep",
        "status": "FAILED",
        "error": "InvalidRequest",
        "cause": "line 1: image: is missing.",
    }


@pytest.mark.parametrize(
    ("status", "error", "words"),
    [
        ("FAILED", "NoCapacity", "before any line of it did: FAILED: NoCapacity: none; `trainyard grid status sweep`"),
        ("ABORTED", "", "before any line of it did: ABORTED: "),
        ("SUCCEEDED", "", "sweep: it succeeded, but its results are gone;"),
    ],
)
def test_a_grid_that_ended_without_results_is_not_said_to_run(
    there: Account, status: str, error: str, words: str
) -> None:
    there.end(there.begin("sweep", GRID_MACHINE), status, error=error, cause="none." if error else "")
    ran = run("grid", "results", "sweep", *YARD)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert words in ran.err
    assert "yet" not in ran.err


def test_a_trial_with_more_cells_than_columns_is_counted_and_the_others_shown(there: Account) -> None:
    there.end(there.begin("lr", SEARCH_MACHINE))
    there.put(SearchPrefix("lr").trials, b"trial,value\n0,0.5\n1,0.5,x\n")
    ran = run("search", "status", "lr", *YARD)
    assert "1 trial written by another version, and not shown: more cells than columns in searches/lr/trials" in ran.err
    _, first, problem = run("search", "status", "lr", "--json", *YARD).documents
    assert (first, problem["error"]) == ({"trial": "0", "value": "0.5"}, "Garbled")


def test_a_search_is_started_and_its_trials_are_shown(there: Account, tmp_path: Path) -> None:
    prefix = SearchPrefix("lr")
    columns = "trial,grid,index,status,value,hp.lr,region,job,seconds,cost_usd,reason,model_artifact,log\n"
    trials = f"{columns}0,lr-r1,0,Completed,0.9,0.1,eu-central-1,j,1,0.5,,,\n"

    def succeed(execution: Execution) -> None:
        there.put(prefix.questions(1), b"{}")
        there.put(prefix.trials, (trials + "1,lr-r1,1,Failed,,0.2,eu-central-1,j,1,0.5,out of memory,,\n").encode())
        there.put(prefix.best, json.dumps({"trial": 0, "metric": {"accuracy": 0.9}}).encode())
        there.end(execution, output={})

    there.states.executions.began = succeed
    given = tmp_path / "lr.json"
    given.write_text(json.dumps({"template": {}}))
    ran = run("search", "run", given, "--name", "lr", *YARD)
    assert (ran.code, inputs(there)) == (0, {"lr": {"template": {}}})
    assert "SUCCEEDED: 1 round" in ran.out
    assert "trial 1: out of memory" in ran.out
    assert 'best: {"trial": 0' in ran.out
    assert [one["hp.lr"] for one in run("search", "status", "lr", "-f", "--json", *YARD).documents[1:]] == [
        "0.1",
        "0.2",
    ]
    assert "trial 1: out of memory" in run("search", "status", "lr", *YARD).out


def test_trials_that_are_no_table_are_said_to_be_of_another_version_beside_the_end(there: Account) -> None:
    there.end(there.begin("lr", SEARCH_MACHINE))
    there.put(SearchPrefix("lr").trials, b"trial\n" + b"x" * 200_000)
    limit = csv.field_size_limit(100_000)
    try:
        ran = run("search", "status", "lr", "-f", *YARD)
    finally:
        csv.field_size_limit(limit)
    assert (ran.code, ran.err.count("\n")) == (0, 1)
    assert ran.err.startswith(
        "the trials were written by another version, and are not shown: searches/lr/trials.csv is not CSV: "
    )
    assert "SUCCEEDED" in ran.out


def test_a_search_that_failed_says_why_and_exits_with_1(there: Account) -> None:
    there.end(there.begin("lr", SEARCH_MACHINE), "FAILED", error="SearchFailed", cause="All trials failed.")
    ran = run("search", "status", "lr", "-f", *YARD)
    assert (ran.code, ran.err) == (1, "SearchFailed: All trials failed.\n")


def test_reasons_of_trainings_steer_no_terminal(there: Account) -> None:
    there.begin("sweep", GRID_MACHINE)
    there.put(SWEEP.results_jsonl, encode(record(0, LineOutcome.FAILED, "\x1b[2J\u202eevil")))
    ran = run("grid", "results", "sweep", *YARD)
    assert "evil" in ran.out
    assert not {"\x1b", "\u202e"} & set(ran.out)
