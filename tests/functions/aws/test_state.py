"""The table of state as the functions use it: conditional writes, long documents, and items that nodes may write as they like."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from aws import pieces
from aws.errors import Raced
from aws.facts import Given
from aws.state import AT_ONCE, COPIES_S, State, Token
from aws.table import AGAIN_S, BATCH, BATCH_ALONE, CONFLICT, HELD_UP, HeldUp
from contract import items
from contract.codec import Garbled, encode
from contract.items import ItemKey
from contract.orders import Order, OrderKind
from contract.reports import NodeReport, Phase
from localaws.model import Refused
from tests.builders import INTENT, JOB, NODE_ROLE, NOW
from tests.fakes.aws import Aws
from tests.fakes.faults import Kind
from tests.fakes.state import TABLE, kept, report, store, stored, stored_item

ORDER = Order(kind=OrderKind.STOP, error="Interrupted", reason="A spot notice came.", by=1, author="rank 1")
REPORT = NodeReport(job=JOB.id, attempt=1, rank=0, instance="i-0", phase=Phase.TRAINING, sent_at=0.0)
KEY = ItemKey("marks", "eu-west-1")


def test_only_the_first_creation_wins(fake: Aws, state: State) -> None:
    state.create(KEY, b"1")
    with pytest.raises(Raced):
        state.create(KEY, b"2")
    assert stored(fake, KEY) == b"1"


@pytest.mark.parametrize("kind", [Kind.LOST, Kind.THROTTLED])
def test_a_creation_that_meets_itself_is_not_a_race(fake: Aws, state: State, kind: Kind) -> None:
    fake.faults.add(kind, "dynamodb:PutItem")
    assert state.create(KEY, b"1").version == 1
    assert state.create(KEY, b"1").version == 1
    assert len(kept(fake)) == 1


def test_a_replacement_of_what_was_replaced_is_a_race(fake: Aws, state: State) -> None:
    first = state.create(KEY, b"1")
    second = state.replace(first, b"2")
    with pytest.raises(Raced):
        state.replace(first, b"3")
    state.replace(second, b"4")
    assert stored(fake, KEY) == b"4"


def test_a_replacement_whose_answer_is_lost_meets_itself(fake: Aws, state: State) -> None:
    first = state.create(KEY, b"1")
    fake.faults.add(Kind.LOST, "dynamodb:PutItem")
    assert state.replace(first, b"2").version == 2


def test_a_replacement_of_what_was_deleted_is_a_race(state: State) -> None:
    first = state.create(KEY, b"1")
    state.delete(KEY)
    with pytest.raises(Raced):
        state.replace(first, b"2")


def test_a_write_that_meets_a_transaction_is_sent_again(fake: Aws, state: State) -> None:
    fake.table.knobs.conflicts = 2
    first = state.create(KEY, b"1")
    fake.table.knobs.conflicts = 2
    assert state.replace(first, b"2").version == 2
    assert stored(fake, KEY) == b"2"


@pytest.mark.parametrize("length", [0, 1, 1024, 1025, 200_000])
def test_a_document_comes_back_as_it_was_written(state: State, length: int) -> None:
    document = json.dumps("x" * length).encode()
    state.create(KEY, document)
    found = state.get(KEY)
    assert found is not None
    assert found.document == document


def test_what_is_not_there_is_not_invented(state: State) -> None:
    assert state.job("job-1") is None
    assert state.launch("job-1", 1) is None
    assert state.order("job-1", 1, now=NOW) is None
    assert state.last_attempt("job-1") == 0
    assert not state.closed("job-1", 1)
    assert state.tokens() == []
    assert state.last_pass() is None
    assert state.admission_closed() is None


def test_a_table_that_does_not_exist_is_told_from_one_that_cannot_be_asked(fake: Aws) -> None:
    assert State(TABLE).exists()
    assert not State("nobody-state").exists()
    fake.faults.add(Kind.DENIED, "dynamodb:GetItem", times=9)
    with pytest.raises(ClientError):
        State(TABLE).exists()


def test_the_walks_of_an_attempt_are_its_own_and_in_their_order(state: State) -> None:
    for attempt, walk in ((1, 1), (2, 2), (2, 1), (2, 10), (12, 1)):
        state.create_intent(JOB, replace(INTENT, attempt=attempt, walk=walk))
    assert [held.intent.walk for held in state.intents(JOB.id, 2)] == [1, 2, 10]
    assert state.last_attempt(JOB.id) == 12
    assert state.intents("job-10", 1) == []


def test_a_closed_attempt_is_no_launch(state: State) -> None:
    state.create_intent(JOB, replace(INTENT, attempt=1))
    state.close(JOB.id, 2)
    assert (state.closed(JOB.id, 2), state.closed(JOB.id, 1), state.last_attempt(JOB.id)) == (True, False, 1)


def test_an_attempt_has_one_order_with_its_age(fake: Aws, state: State) -> None:
    state.create_order(JOB, 1, ORDER)
    with pytest.raises(Raced):
        state.create_order(JOB, 1, replace(ORDER, author="attendant"))
    fake.clock.run(7.0)
    given = state.order(JOB.id, 1, now=fake.clock.now)
    assert given is not None
    assert given == Given(order=ORDER, age_s=pytest.approx(7.0, abs=0.2))  # type: ignore[arg-type]


def test_an_order_is_given_to_each_node_under_its_own_key(fake: Aws, state: State) -> None:
    state.give_order(JOB, NODE_ROLE, ["i-0", "i-1"], ORDER)
    assert [stored(fake, items.node_order(NODE_ROLE, one)) for one in ("i-0", "i-1")] == [encode(ORDER)] * 2


def test_reports_are_read_by_the_keys_of_instances_with_their_age_by_awss_clock(fake: Aws, state: State) -> None:
    for one in ("i-0", "i-1", "i-stranger"):
        report(fake, replace(REPORT, instance=one))
    fake.clock.run(30.0)
    found = state.reports(NODE_ROLE, ["i-0", "i-1", "i-missing"])[0]
    assert {one.instance for one in found} == {"i-0", "i-1"}
    assert [one.age_s for one in found] == pytest.approx(
        [30.0, 30.0], abs=1.5
    )  # the Date of an answer has whole seconds


def test_more_reports_than_a_batch_takes_are_all_read_though_dynamodb_leaves_keys_out(fake: Aws, state: State) -> None:
    ids = [f"i-{number}" for number in range(2 * BATCH_ALONE + 1)]
    for one in ids:
        report(fake, replace(REPORT, instance=one))
    fake.table.knobs.unprocessed = 0.5
    assert {one.instance for one in state.reports(NODE_ROLE, ids)[0]} == set(ids)


def count_keys(fake: Aws) -> list[int]:
    """How many keys each BatchGetItem asked for."""
    found = [call.params["RequestItems"] for call in fake.calls if call.operation == "BatchGetItem"]
    return [len(one[TABLE]["Keys"]) for one in found]


def test_one_long_read_at_a_time_has_long_answers(fake: Aws, state: State) -> None:
    """Nodes decide how long their items are, and all reads of a process share its memory."""
    keys = [items.node_report(NODE_ROLE, f"i-{number}") for number in range(BATCH_ALONE)]
    for key in keys:
        store(fake, key, b"{}")
    fake.table.knobs.unprocessed = 0.0
    first = state.batch(keys, most=100)
    next(first)
    list(state.batch(keys[: BATCH + 1], most=100))
    assert count_keys(fake) == [BATCH_ALONE, BATCH, 1]
    first.close()  # nobody wants the rest
    list(state.batch(keys, most=100))
    assert count_keys(fake)[3:] == [BATCH_ALONE]


def test_a_long_read_that_fails_leaves_the_next_one_its_turn(fake: Aws, state: State) -> None:
    keys = [items.node_report(NODE_ROLE, f"i-{number}") for number in range(BATCH_ALONE)]
    fake.table.knobs.unprocessed = 0.0
    fake.faults.add(Kind.DENIED, "dynamodb:BatchGetItem")
    with pytest.raises(ClientError):
        list(state.batch(keys, most=100))
    list(state.batch(keys, most=100))
    assert count_keys(fake) == [BATCH_ALONE]


def test_keys_that_dynamodb_never_answers_are_an_error_and_not_missing_reports(fake: Aws, state: State) -> None:
    report(fake, REPORT)
    answer = fake.table.answer

    def unanswered(operation: str, params: Any) -> dict[str, Any]:
        if operation == "BatchGetItem":
            return {"Responses": {}, "UnprocessedKeys": params["RequestItems"]}
        return answer(operation, params)

    fake.table.answer = unanswered  # type: ignore[method-assign]
    with pytest.raises(HeldUp, match="1 keys"):
        state.reports(NODE_ROLE, ["i-0"])


def test_hundreds_of_nodes_that_delay_the_writing_of_their_copies_hold_up_a_look_for_seconds(
    fake: Aws, state: State
) -> None:
    """Transactions of a node on its own items do: each such write takes up to seven seconds, and a look has a minute."""
    answer, tries = fake.table.answer, Counter[str]()

    def conflicting(operation: str, params: dict[str, Any]) -> dict[str, Any]:
        node = params["Item"][items.PARTITION]["S"]
        tries[node] += 1
        if tries[node] <= len(AGAIN_S):
            raise Refused("TransactionConflictException", "Transaction is ongoing for the item")
        return answer(operation, params)

    fake.table.answer = conflicting  # type: ignore[method-assign]
    began = fake.clock.now
    with pytest.raises(HeldUp, match="copies for 512 nodes took longer"):
        state.give_order(JOB, NODE_ROLE, [f"i-{rank}" for rank in range(512)], ORDER)
    assert fake.clock.now - began < COPIES_S + 2 * sum(AGAIN_S)


def refusing_writes_of(fake: Aws, instance: str, code: str) -> None:
    answer = fake.table.answer

    def refusing(operation: str, params: dict[str, Any]) -> dict[str, Any]:
        if operation == "PutItem" and params["Item"][items.PARTITION]["S"].endswith(f":{instance}"):
            raise Refused(code, "as the node has it")
        return answer(operation, params)

    fake.table.answer = refusing  # type: ignore[method-assign]


@pytest.mark.parametrize("code", sorted(HELD_UP))
def test_a_copy_that_its_node_holds_up_is_told_from_errors_of_our_own(fake: Aws, state: State, code: str) -> None:
    refusing_writes_of(fake, "i-0", code)
    with pytest.raises(HeldUp, match="i-0: "):
        state.give_order(JOB, NODE_ROLE, ["i-0"], ORDER)


def test_a_node_that_holds_up_its_own_copy_keeps_no_other_node_from_its(fake: Aws, state: State) -> None:
    refusing_writes_of(fake, "i-0", CONFLICT)
    others = [f"i-{rank}" for rank in range(1, 3 * AT_ONCE)]
    with pytest.raises(HeldUp, match="i-0: "):
        state.give_order(JOB, NODE_ROLE, ["i-0", *others], ORDER)
    assert [one for one in others if stored(fake, items.node_order(NODE_ROLE, one)) != encode(ORDER)] == []


def test_a_copy_that_nobody_may_write_is_an_error_of_the_function(fake: Aws, state: State) -> None:
    fake.faults.add(Kind.DENIED, "dynamodb:PutItem")
    with pytest.raises(ClientError, match="AccessDenied"):
        state.give_order(JOB, NODE_ROLE, ["i-0"], ORDER)


@pytest.mark.parametrize("as_text", [True, False])
def test_a_report_that_is_longer_than_it_may_be_cannot_be_read_however_it_is_stored(
    fake: Aws, state: State, as_text: bool
) -> None:
    ids = [f"i-{rank}" for rank in range(512)]
    long = encode(replace(REPORT, note="x" * items.most_report(len(ids))))
    store(fake, items.node_report(NODE_ROLE, "i-0"), long, as_text=as_text)
    ((seen,), _) = state.reports(NODE_ROLE, ids)
    assert seen.report is None


@pytest.mark.parametrize("document", [b"", b"[" * 100_000, b"{}", b"null", encode(replace(REPORT, attempt=-1))[:-5]])
def test_a_report_that_cannot_be_read_is_told_as_such(fake: Aws, state: State, document: bytes) -> None:
    store(fake, items.node_report(NODE_ROLE, "i-0"), document)
    ((seen,), _) = state.reports(NODE_ROLE, ["i-0"])
    assert seen.report is None


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {items.DOCUMENT: {"N": "1"}},
        {items.DOCUMENT: {"B": b"not zlib"}},
        {items.DOCUMENT: {"B": zlib.compress(b" " * 100_000_000)}},
        {items.DOCUMENT: {"S": "{}"}, items.VERSION: {"S": "x"}, items.WRITTEN_AT: {"BOOL": True}},
        {items.VERSION: {"N": "1e100"}, items.WRITTEN_AT: {"N": "-1e100"}},
    ],
)
def test_an_item_that_a_hostile_node_wrote_ends_no_look(fake: Aws, state: State, attributes: dict[str, Any]) -> None:
    key = {"pk": {"S": items.userid(NODE_ROLE, "i-0")}, "sk": {"S": "report"}}
    fake.table.answer("PutItem", {"TableName": TABLE, "Item": {**key, **attributes}})
    report(fake, replace(REPORT, rank=1, instance="i-1"))
    found = {one.instance: one for one in state.reports(NODE_ROLE, ["i-0", "i-1"])[0]}
    assert found["i-0"].report is None
    assert found["i-1"].report is not None


def test_an_order_that_cannot_be_read_is_an_error_because_only_the_attendant_writes_it(fake: Aws, state: State) -> None:
    store(fake, items.order(JOB.id, 1), b"{}")
    with pytest.raises(Garbled):
        state.order(JOB.id, 1, now=fake.clock.now)


def test_a_dead_token_is_deleted_without_touching_the_one_that_took_its_place(state: State) -> None:
    old, new = (
        Token(job=JOB.id, attempt=1, token=word, key=items.waiting(JOB.id, 1, digest))
        for word, digest in (("old", "a" * 64), ("new", "b" * 64))
    )
    state.keep_token(old)
    state.keep_token(new)
    state.delete(old.key)
    state.delete(old.key)
    assert state.tokens(JOB.id) == [new]


def test_the_tokens_of_a_job_are_not_those_of_one_whose_name_begins_alike(state: State) -> None:
    for job in ("job-1", "job-10", "job-1.a", "job-1-"):
        state.keep_token(Token(job=job, attempt=1, token=job, key=items.waiting(job, 1, "a" * 64)))
    assert [one.job for one in state.tokens("job-1")] == ["job-1"]
    assert len(state.tokens()) == 4


def test_tokens_are_read_from_the_first_of_a_slice_to_the_last(state: State) -> None:
    tokens = [Token(job=f"job-{n}", attempt=1, token="t", key=items.waiting(f"job-{n}", 1, "a" * 64)) for n in range(9)]
    for one in tokens:
        state.keep_token(one)
    assert state.tokens_between(tokens[3].key.sort, tokens[5].key.sort) == tokens[3:6]


@pytest.mark.parametrize("document", [b"", b"[]", b'{"gaps_s": 3}', b'{"gaps_s": ["x"]}'])
def test_a_pass_that_cannot_be_read_is_unknown(fake: Aws, state: State, document: bytes) -> None:
    store(fake, items.LAST_PASS, document)
    assert state.last_pass() is None


def test_items_of_a_job_expire_long_after_its_deadline_and_marks_and_regions_never(fake: Aws, state: State) -> None:
    state.keep_job(JOB)
    state.create_intent(JOB, INTENT)
    state.create_order(JOB, 1, ORDER)
    state.close(JOB.id, 1)
    state.note_region("eu-west-1")
    pieces.write(state, KEY, None, b"{}", writer="a")
    expiry = {one["pk"]["S"].partition("#")[0]: float(one.get(items.EXPIRES, {"N": "inf"})["N"]) for one in kept(fake)}
    assert all(expiry[kind] >= JOB.deadline + items.KEPT_S for kind in ("job", "launch", "order"))
    assert expiry["closed"] >= NOW + items.LONGEST_S
    assert expiry["regions"] == expiry["marks"] == float("inf")


def test_an_urgent_report_is_marked_for_the_stream_and_a_usual_one_is_not(fake: Aws) -> None:
    key = items.node_report(NODE_ROLE, "i-0")
    report(fake, REPORT, urgent=True)
    assert items.URGENT in (stored_item(fake, key) or {})
    report(fake, REPORT)
    assert items.URGENT not in (stored_item(fake, key) or {})
