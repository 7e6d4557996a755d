"""Plans that end half made, meet a change of their manifest, or run twice at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import pytest

from contract import keys
from contract.errors import InvalidRequest
from contract.grid import GridPrefix, Line
from grid_plan.planning import write
from planner import handler
from tests.fakes.wire import Call
from tests.functions.grid_plan.account import INPUT, Account, plan
from tools.refusals.grids.yard import BUCKET

TWO = "eu-central-1,s3://data-eu/train/\nus-east-1,s3://data-us/train/\n"


def test_a_plan_that_lacks_a_line_never_stands(there: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    def write_one(lines: Iterator[Line], prefix: GridPrefix, put: Callable[[str, bytes], None]) -> int:
        return write(islice(lines, 1), prefix, put)

    monkeypatch.setattr(handler, "write", write_one)
    there.upload(TWO)
    with pytest.raises(RuntimeError, match="2 lines were checked, and 1 written"):
        plan(INPUT)
    assert there.s3.read(BUCKET, GridPrefix("sweep-7").description) is None


def test_a_manifest_that_changes_while_it_is_read_is_refused(there: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    there.upload(TWO)
    honest = there.s3.answer

    def swapped(call: Call) -> dict[str, Any]:
        if call.operation == "GetObject" and call.params["Key"].startswith(keys.UPLOADS):
            there.s3.buckets[BUCKET].objects.clear()
            there.upload(TWO * 2)
        return honest(call)

    monkeypatch.setattr(there.s3, "answer", swapped)
    with pytest.raises(InvalidRequest, match="manifest: changed while it was read"):
        plan(INPUT)
    assert there.changes == []


def test_of_two_runs_at_once_both_plan_what_the_first_one_checked(
    there: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix, objects = GridPrefix("sweep-7"), there.s3.buckets[BUCKET].objects
    there.upload(TWO)
    plan(INPUT)
    facts = there.s3.read(BUCKET, prefix.facts)
    assert facts is not None
    for key in (prefix.facts, prefix.description, prefix.lines(0)):
        del objects[key]
    there.upload(TWO.split("\n")[0])
    honest = there.s3.answer

    def after_another(call: Call) -> dict[str, Any]:
        if (call.operation, call.params.get("Key")) == ("PutObject", prefix.facts):
            there.s3.write(BUCKET, prefix.facts, facts)
        return honest(call)

    monkeypatch.setattr(there.s3, "answer", after_another)
    assert plan(INPUT)["lines"] == len(there.lines()) == 2
