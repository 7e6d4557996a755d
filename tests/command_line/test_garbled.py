"""Whatever documents of other versions, of code of a job and of cut uploads say: every view ends with words, and valid JSON."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from contract import items, keys
from contract.codec import encode
from contract.grid import GridPrefix, LineOutcome, Record
from contract.reports import NodeReport, Phase, Progress
from contract.search import SearchPrefix
from tests.builders import JOB, NODE_ROLE, NOW, PLACE
from tests.command_line.account import BYTES_BUCKET, HOME_BUCKET, LAUNCH, PLAN, YARD, Account, History, account, run
from tests.fakes.executions import GRID_MACHINE, SEARCH_MACHINE
from tests.fakes.grid_yard import grid_of
from tests.fakes.state import store

RECORD = Record(
    index=0,
    line=1,
    region="eu-central-1",
    training="yard-sweep-0",
    outcome=LineOutcome.COMPLETED,
    reason="",
    cost_usd=0.5,
    billable_seconds=60.0,
    metrics={"accuracy": 0.75},
)
LISTED = {"rank": 0, "path": "a/b", "size": 1, "sha256": "", "at": f"s3://{BYTES_BUCKET}/k"}
REPORT = NodeReport(
    job="digits",
    attempt=1,
    rank=0,
    instance="i-0",
    phase=Phase.TRAINING,
    sent_at=NOW,
    progress=Progress(step=3, metric=0.5),
)
DOCUMENTS: Mapping[str, Any] = {
    "plan": {**PLAN, "workbench": {"open": "x"}},
    "launch": LAUNCH,
    "terminate": {"cost": {"usd_at_most": 1.0, "billed_s": 60}, "step": 3},
    "payload": {"job": "digits", "attempt": 1, "problem": {"error": "NodeLost", "cause": "gone"}},
    "output": {"progress": {"step": 3}, "artifacts": {"artifacts": 3}},
    "input": {"command": ["true"]},
    "job": json.loads(encode(replace(JOB, id="digits", places={PLACE.region: PLACE}))),
    "artifacts": {"job": "digits", "artifacts": [LISTED]},
    "result": {"job": "digits", "cost": 1.0},
    "report": json.loads(encode(REPORT)),
    "grid": json.loads(encode(grid_of(2, ["eu-central-1"]))),
    "record": json.loads(encode(RECORD)),
    "results": json.loads(encode(RECORD)),
    "best": {"trial": 0, "metric": {"accuracy": 0.9}},
    "outputs": {"HomeBucket": "yard-home", "NodeRoleId": NODE_ROLE},
}
"""One of each document that a view reads."""
TRIALS = (
    "trial,grid,index,status,value,hp.lr,region,job,seconds,cost_usd,reason\n0,lr-r1,0,Completed,0.9,0.1,x,j,1,0.5,\n"
)
INVOKED = {"resourceType": "lambda", "resource": "invoke", "region": "eu-central-1"}
VIEWS = (
    ["status"],
    ["status", "digits"],
    ["status", "ended", "-f"],
    ["logs", "digits"],
    ["artifacts", "digits"],
    ["artifacts", "digits", "--to", "TO"],
    ["report", "digits", "--no-open"],
    ["open", "digits", "--print"],
    ["grid", "status", "sweep"],
    ["grid", "status", "swept", "-f"],
    ["grid", "results", "sweep"],
    ["grid", "results", "swept"],
    ["search", "status", "lr"],
    ["search", "status", "lr", "-f"],
    ["stop", "digits"],
)
NUMBERS: list[Any] = [0, -1, -0.0, 1e308, float("nan"), float("inf"), 10**30, True]
TEXTS: list[Any] = ["", "x", "../x", "-", "\x1b[2J", "\ud800"]
SHAPES: list[Any] = [None, [], {}, [None], [[]], {"a": 1}, ["x"], [1]]
ODD = st.sampled_from([*NUMBERS, *TEXTS, *SHAPES])


def list_paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where something stands in a document."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, one in inner for found in list_paths(one, (*path, key)))]


def put_at(value: Any, path: tuple[Any, ...], other: Any) -> Any:
    """Returns the document with something else at a place; without it for `...`."""
    if not path:
        return {} if other is ... else other
    if isinstance(value, list):
        found = [put_at(one, path[1:], other) if place == path[0] else one for place, one in enumerate(value)]
        return [one for place, one in enumerate(found) if other is not ... or path[1:] or place != path[0]]
    if other is ... and len(path) == 1:
        return {key: one for key, one in value.items() if key != path[0]}
    return {key: put_at(one, path[1:], other) if key == path[0] else one for key, one in value.items()}


@st.composite
def garbled(draw: st.DrawFn) -> tuple[str, str]:
    """The name of a document, and its text with something else in it."""
    name = draw(st.sampled_from(sorted(DOCUMENTS)))
    whole = DOCUMENTS[name]
    text = json.dumps(put_at(whole, draw(st.sampled_from(list_paths(whole))), draw(st.just(...) | ODD)))
    return name, text[: draw(st.sampled_from([len(text), len(text) // 2, 0, len(text), len(text)]))]


def plant(there: Account, texts: Mapping[str, str]) -> None:
    """Writes every document, these with these texts."""
    text = {name: json.dumps(one) for name, one in DOCUMENTS.items()} | dict(texts)

    def leave(history: History, state: str, document: str) -> History:
        return history.add("TaskStateExited", stateExitedEventDetails={"name": state, "output": text[document]})

    def live() -> History:
        return leave(leave(History().enter("Admit"), "Admit", "plan").enter("Launch"), "Launch", "launch").enter(
            "Train"
        )

    ending = live().enter("Terminate")
    scheduled = '{"Payload": ' + text["payload"] + "}"
    ending.add("TaskScheduled", taskScheduledEventDetails={"parameters": scheduled, **INVOKED})
    there.begin(history=live()).input = text["input"]
    ended = there.begin("ended", history=leave(ending, "Terminate", "terminate"))
    there.end(ended)
    ended.output = text["output"]
    there.begin("sweep", GRID_MACHINE, History().enter("Plan"))
    there.end(there.begin("swept", GRID_MACHINE))
    there.end(there.begin("lr", SEARCH_MACHINE))
    digits, sweep, swept, lr = keys.JobPrefix("digits"), GridPrefix("sweep"), GridPrefix("swept"), SearchPrefix("lr")
    objects = {
        digits.description: text["job"],
        digits.artifacts(1): text["artifacts"],
        digits.result: text["result"],
        digits.page: text["result"],
        sweep.description: text["grid"],
        sweep.record(0): text["record"],
        swept.description: text["grid"],
        swept.results_jsonl: text["results"],
        lr.trials: TRIALS,
        lr.best: text["best"],
    }
    for key, body in objects.items():
        there.put(key, body.encode())
    there.s3.write(BYTES_BUCKET, "k", b"1")
    store(there, items.node_report(NODE_ROLE, "i-0"), text["report"].encode())
    there.write_line("digits/1/0", text["report"])


def require_words(code: int, out: str, err: str, *, as_json: bool) -> None:
    """Raises AssertionError for what no person, and no program, can read."""
    assert code in {0, 1, 2}
    assert "Traceback" not in out + err
    assert "a fault of trainyard" not in out + err
    assert not {"\x1b", "\x07", "\u202e"} & set(out + err)
    assert "nan" not in out.split()
    if as_json:
        for line in out.splitlines():
            json.loads(line, parse_constant=pytest.fail)


def rounds(quick: int, length: int) -> Any:
    """Gives a test `quick` examples, and `length` of them in the runs at length."""
    return pytest.mark.parametrize("examples", [quick, pytest.param(length, marks=pytest.mark.at_length)])


def draw(examples: int, test: Any) -> None:
    """Runs the property with so many examples, always the same ones."""
    settings(
        max_examples=examples,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
        derandomize=True,
        database=None,
    )(test)()


@rounds(quick=4, length=25)
def test_no_view_ends_in_a_traceback_whatever_a_document_says(examples: int) -> None:
    @given(document=garbled(), as_json=st.booleans())
    @example(document=("output", '{"progress": NaN}'), as_json=True)
    @example(document=("best", "{"), as_json=False)
    @example(document=("artifacts", '{"artifacts": [{}]}'), as_json=False)
    def read_views(document: tuple[str, str], as_json: bool) -> None:
        with account() as there, tempfile.TemporaryDirectory() as folder:
            plant(there, dict([document]))
            for view in VIEWS:
                words = [folder if word == "TO" else word for word in view]
                ran = run(*words, *["--json"] * as_json, *YARD)
                require_words(ran.code, ran.out, ran.err, as_json=as_json)

    draw(examples, read_views)


@rounds(quick=5, length=15)
def test_no_view_ends_in_a_traceback_whatever_bytes_an_object_has(examples: int) -> None:
    @given(body=st.binary(max_size=60) | st.text(max_size=60).map(str.encode), as_json=st.booleans())
    @example(body=b'"', as_json=False)
    @example(body=b"\0", as_json=False)
    @example(body=b"a\rb\n" + b"x" * 200_000, as_json=False)
    @example(body=b"trial,hp.\n1,2,3,4\n", as_json=True)
    @example(body=b"trial,hp.a\n1\n", as_json=False)
    def read_views(body: bytes, as_json: bool) -> None:
        with account() as there:
            plant(there, {})
            for key in [*there.s3.buckets[HOME_BUCKET].objects]:
                there.put(key, body)
            for view in VIEWS:
                if "TO" not in view:
                    ran = run(*view, *["--json"] * as_json, *YARD)
                    require_words(ran.code, ran.out, ran.err, as_json=as_json)

    draw(examples, read_views)


@pytest.mark.parametrize("missing", ["HomeBucket", "StateTable", "NodeLogGroup", "NotificationTopic", "NodeRoleId"])
def test_no_view_ends_in_a_traceback_whatever_output_a_stack_lacks(missing: str) -> None:
    with account() as there:
        plant(there, {})
        del there.outputs["yard-foundation"][missing]
        for view in VIEWS:
            if "TO" not in view:
                ran = run(*view, *YARD)
                require_words(ran.code, ran.out, ran.err, as_json=False)
                assert missing == "NodeRoleId" or ran.code == 2
