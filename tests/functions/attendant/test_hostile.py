"""What the code of one job may write as its node's report, at any time, and what that must not do to the looks at all jobs."""

from __future__ import annotations

import base64
import json
import math
import random
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from attendant.noise import LOOKS
from attendant.passes import AT_ONCE
from attendant.records import Hint, read_hint
from aws.table import BATCH, LONGEST_ANSWER
from contract import items
from contract.codec import encode
from contract.orders import Order, OrderKind
from contract.reports import Exit, NodeReport, Phase
from tests.builders import NODE_ROLE, NOW
from tests.fakes import state
from tests.fakes.faults import Kind, Mishap
from tests.fakes.fleet import WORKING, Fleet
from tests.fakes.functions import Outcome

MIB = 1 << 20
ORDER = Order(
    kind=OrderKind.CHECKPOINT_AND_STOP, error="Interrupted", reason="a notice", by=int(NOW) + 120, author="rank 0"
)


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    made = Fleet([2] * 3, now=NOW)
    with made.functions.installed():
        yield made


def report_of(fleet: Fleet, job: str, **facts: Any) -> NodeReport:
    """Of the job's first node."""
    return replace(WORKING, job=job, instance=fleet.instances[job][0], **facts)


def written(fleet: Fleet, instance: str, document: bytes, *, as_text: bool = False) -> dict[str, Any]:
    """The instance writes this as its report; the stream's record of it."""
    key, doc = items.node_report(NODE_ROLE, instance), items.packed(document)
    state.store(fleet.aws, key, document, urgent=True, as_text=as_text)
    packed = doc.get("B")
    told = {"B": base64.b64encode(packed).decode()} if isinstance(packed, bytes) else doc
    keys = {items.PARTITION: {"S": key.partition}, items.SORT: {"S": key.sort}}
    return {"dynamodb": {"Keys": keys, "NewImage": {**keys, items.DOCUMENT: told, items.URGENT: {"N": "1"}}}}


def looked(fleet: Fleet, *records: dict[str, Any]) -> Outcome:
    """Because of these records; where there are none, because of the clock."""
    return fleet.functions.invoke("attendant", {"Records": list(records)} if records else {"source": "aws.events"})


@pytest.mark.parametrize("by_stream", [True, False], ids=["stream", "clock"])
def test_a_report_of_a_few_kilobytes_that_unpacks_to_16_mb_takes_little_memory(fleet: Fleet, by_stream: bool) -> None:
    """In Python, 16 MB of empty lists are 400 MB; the function has 512."""
    many = b'"x": [' + b"[]," * (items.MOST_READ // 3 - MIB // 8) + b"[]]}"
    record = written(fleet, "i-job-0000-0", encode(report_of(fleet, "job-0000"))[:-1] + b"," + many)
    tracemalloc.start()
    try:
        outcome = looked(fleet, record) if by_stream else looked(fleet)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert outcome.error == ""
    assert most < 128 * MIB  # of which botocore, for a new client, takes 40


AS_LONG_AS = {"they may be": (800, False), "an item may be": (57_000, False), "an item may be, as text": (57_000, True)}


@pytest.mark.parametrize(
    ("lines", "as_text"),
    [
        pytest.param(*how, id=name, marks=pytest.mark.at_length if name != "they may be" else ())
        for name, how in AS_LONG_AS.items()
    ],
)
def test_long_reports_of_hundreds_of_nodes_take_little_memory(lines: int, as_text: bool) -> None:
    """64 of 400 KB are 25 MB, and fifteen times that in Python; seven other looks run beside this one, in 512 MB."""
    fleet, chance = Fleet([512], now=NOW), random.Random(0)
    tail = [chance.randbytes(2).hex() for _ in range(lines)]
    for rank, instance in list(enumerate(fleet.instances["job-0000"]))[::8]:
        report = replace(WORKING, job="job-0000", rank=rank, instance=instance)
        told = {**json.loads(encode(report)), "outcome": {"code": 1, "tail": tail}}
        written(fleet, instance, json.dumps(told, separators=(",", ":")).encode(), as_text=as_text)
    tracemalloc.start()
    try:
        with fleet.functions.installed():
            outcome = looked(fleet)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert outcome.error == ""
    assert most < 96 * MIB  # of which botocore, for new clients, takes 40


@pytest.mark.parametrize("nodes", [1, 8, 64, 512])
def test_the_reports_of_as_many_looks_as_are_made_at_once_fit_into_512_mb(nodes: int) -> None:
    """Short strings of JSON take fifteen times their length in Python, and an answer about a batch of items five times theirs."""
    assert AT_ONCE * 15 * nodes * items.most_report(nodes) < 512 * MIB
    one, others = min(LONGEST_ANSWER, nodes * items.MOST_REPORT), min(nodes, BATCH) * items.MOST_REPORT
    assert 5 * (one + (AT_ONCE - 1) * others) < 512 * MIB


def test_of_the_longest_reports_in_the_stream_nothing_but_the_job_and_the_instance_is_kept(fleet: Fleet) -> None:
    """One node writes a hundred in a second. Packed they are small, so Lambda hands over all of them at once; in Python each is 5 MB."""
    lines = {"outcome": {"code": 1, "tail": [f"{number % 1000:04}" for number in range(57_000)]}}
    report = json.dumps({**json.loads(encode(report_of(fleet, "job-0000"))), **lines}, separators=(",", ":")).encode()
    record = written(fleet, "i-job-0000-0", report)
    tracemalloc.start()
    try:
        hints = [read_hint(record) for _ in range(3)]
        kept = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert hints == [Hint(job="job-0000", instance="i-job-0000-0")] * 3
    assert kept < MIB


IMPOSSIBLE = {"long": "x" * 5000, "no text": "\ud800", "empty": "", "more than a name": "job-0000#0001"}


@pytest.mark.parametrize("name", IMPOSSIBLE.values(), ids=IMPOSSIBLE.keys())
def test_a_name_that_no_job_can_have_keeps_no_urgent_report_waiting(fleet: Fleet, name: str) -> None:
    bad = json.dumps({**json.loads(encode(report_of(fleet, "job-0000"))), "job": name}).encode()
    good = report_of(fleet, "job-0001")
    outcome = looked(fleet, written(fleet, "i-job-0000-0", bad), written(fleet, good.instance, encode(good)))
    assert (outcome.error, outcome.value) == ("", {"heartbeat": 1})


def test_a_node_that_names_job_after_job_wakes_one_look_at_a_time(fleet: Fleet) -> None:
    """Each look takes time for which the urgent reports behind it wait."""
    named = [encode(replace(report_of(fleet, "job-0000"), job=job)) for job in sorted(fleet.instances) * 5]
    outcome = looked(fleet, *(written(fleet, "i-job-0000-0", told) for told in named))
    assert (outcome.error, outcome.value) == ("", {"heartbeat": 1})


def test_a_report_under_another_instances_name_wakes_nobody(fleet: Fleet) -> None:
    assert looked(fleet, written(fleet, "i-job-0000-0", encode(report_of(fleet, "job-0001")))).value == {}


UNWRITABLE = {"half of a pair": {"reason": "\ud800"}, "400 digits": {"by": 10**400}}


@pytest.mark.parametrize("wrong", UNWRITABLE.values(), ids=UNWRITABLE.keys())
def test_an_order_that_nobody_can_write_or_reckon_with_fails_no_look(fleet: Fleet, wrong: dict[str, Any]) -> None:
    told = json.loads(encode(report_of(fleet, "job-0000", order=ORDER)))
    told["order"] |= wrong
    written(fleet, "i-job-0000-0", json.dumps(told).encode())
    outcome = looked(fleet)
    assert (outcome.error, outcome.value) == ("", {"heartbeat": 3})


def asks(fleet: Fleet) -> None:
    """A node of job-0000 asks for an order."""
    written(fleet, "i-job-0000-0", encode(report_of(fleet, "job-0000", order=ORDER)))


def beats(fleet: Fleet) -> list[str]:
    return [call.params["taskToken"] for call in fleet.aws.calls if call.operation == "SendTaskHeartbeat"]


def test_a_copy_of_an_order_that_cannot_be_written_keeps_no_heartbeat_back(fleet: Fleet) -> None:
    """The code of a job can keep the copy from being written: by transactions on the item, or so many writes that DynamoDB throttles."""
    looked(fleet)  # so that every node has its keys
    fleet.aws.calls.clear()
    asks(fleet)
    refused = Mishap(
        "dynamodb:PutItem", nth=3, times=math.inf, fault=Kind.DENIED
    )  # after the pass and the order itself
    outcome = fleet.functions.invoke("attendant", {"source": "aws.events"}, [refused])
    assert "1 of 3 looks failed: job-0000/1" in outcome.cause
    assert sorted(beats(fleet)) == sorted(fleet.tokens.values())


@pytest.mark.parametrize("by_stream", [True, False], ids=["stream", "clock"])
def test_a_node_whose_items_hold_up_every_look_at_its_job_rings_no_alarm(fleet: Fleet, by_stream: bool) -> None:
    """The function's errors ring `attendant-errors`, and urgent reports that fail again and again `attendant-letters`."""
    looked(fleet)
    node = report_of(fleet, "job-0000", order=ORDER)
    record = written(fleet, node.instance, encode(node))
    fleet.aws.table.knobs.contested.add(items.node_order(NODE_ROLE, node.instance).partition.encode())
    outcome = looked(fleet, record) if by_stream else looked(fleet)
    assert (outcome.error, outcome.value) == ("", {} if by_stream else {"heartbeat": 2})


def test_a_copy_of_an_order_that_cannot_be_written_keeps_no_verdict_back(fleet: Fleet) -> None:
    asks(fleet)
    looked(fleet)
    lost = fleet.aws.ec2[fleet.regions["job-0000"]].machines[fleet.instances["job-0000"][1]]
    fleet.aws.ec2[fleet.regions["job-0000"]].end(lost, "Server.SpotInstanceTermination", "a notice")
    fleet.clock.run(5)
    refused = Mishap("dynamodb:PutItem", nth=2, times=math.inf, fault=Kind.DENIED)
    outcome = fleet.functions.invoke("attendant", {"source": "aws.events"}, [refused])
    assert "1 of 3 looks failed: job-0000/1" in outcome.cause
    error = fleet.aws.states.waits[fleet.tokens["job-0000"]].error
    assert error is not None
    assert error[0] == "Interrupted"


def test_a_pass_of_which_no_note_can_be_made_looks_at_all(fleet: Fleet) -> None:
    refused = Mishap("dynamodb:PutItem", times=math.inf, fault=Kind.DENIED)
    fleet.functions.invoke("attendant", {"source": "aws.events"}, [refused])
    assert sorted(beats(fleet)) == sorted(fleet.tokens.values())


def test_urgent_reports_for_which_no_time_is_left_are_handed_over_in_the_order_of_their_keys(fleet: Fleet) -> None:
    """They come in any order, and DynamoDB refuses a range whose end is before its beginning."""
    jobs = ["job-0002", "job-0001", "job-0000"]
    records = [written(fleet, f"i-{job}-0", encode(report_of(fleet, job))) for job in jobs]
    fleet.aws.later["attendant"] = lambda _: None
    slow = Mishap("stepfunctions:SendTaskHeartbeat", meanwhile=lambda: fleet.clock.spend(45.0))
    assert fleet.functions.invoke("attendant", {"Records": records}, [slow]).value == {"heartbeat": 1}
    (told,) = [json.loads(call.params["Payload"]) for call in fleet.aws.calls if call.name == "lambda:Invoke"]
    assert fleet.functions.invoke("attendant", told).value == {"heartbeat": 2}


def awaited(fleet: Fleet) -> list[str]:
    """The jobs for which an invocation was started that waits."""
    payloads = [json.loads(call.params["Payload"]) for call in fleet.aws.calls if call.name == "lambda:Invoke"]
    return [told["job"] for told in payloads if told["action"] == "await"]


def test_an_error_that_is_told_again_and_again_has_one_invocation_that_waits(fleet: Fleet) -> None:
    """Each waits for most of a minute, and an account may run ten functions at once."""
    fleet.aws.later["attendant"] = lambda _: None
    failed = report_of(fleet, "job-0000", phase=Phase.SAVING, outcome=Exit(code=1, error="TrainingFailed"))
    for _ in range(LOOKS):
        assert looked(fleet, written(fleet, failed.instance, encode(failed))).value == {"await": 1}
    assert awaited(fleet) == ["job-0000"]
    fleet.clock.spend(60.0)
    assert looked(fleet, written(fleet, failed.instance, encode(failed))).value == {"await": 1}
    assert awaited(fleet) == ["job-0000"] * 2


def test_errors_of_many_jobs_keep_few_invocations_waiting() -> None:
    """The clock explains those of the others."""
    fleet = Fleet([2] * 8, now=NOW)
    with fleet.functions.installed():
        fleet.aws.later["attendant"] = lambda _: None
        failures = [
            report_of(fleet, job, phase=Phase.SAVING, outcome=Exit(code=1, error="TrainingFailed"))
            for job in sorted(fleet.instances)
        ]
        looked(fleet, *(written(fleet, one.instance, encode(one)) for one in failures))
        assert awaited(fleet) == ["job-0000", "job-0001", "job-0002"]
        fleet.clock.spend(60.0)
        looked(fleet, written(fleet, failures[7].instance, encode(failures[7])))
        assert awaited(fleet) == ["job-0000", "job-0001", "job-0002", "job-0007"]
