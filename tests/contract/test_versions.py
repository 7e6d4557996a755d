"""A deploy and a rollback happen under running jobs: each version reads what those before and after it write."""

from __future__ import annotations

import dataclasses
import importlib
import json
import pkgutil
import types
import typing
from collections.abc import Iterator
from enum import Enum
from typing import Any

import pytest

import contract
from aws.facts import Seen
from aws.heard import heard
from contract.codec import Garbled, decode, encode
from contract.intents import Intent, LaunchOutcome
from contract.jobs import Job, Market
from contract.orders import Order, OrderKind
from contract.reports import NodeReport, Phase
from tests.builders import INTENT, JOB
from tests.contract.versions import KINDS, ORDER, REPORT, read_kept, write_documents

KEPT = read_kept()
EVERY = [(version, name) for version, documents in KEPT.items() for name in documents]
LATER = "of-a-later-version"


@pytest.mark.parametrize(("version", "name"), EVERY)
def test_a_document_of_an_earlier_version_is_read(version: str, name: str) -> None:
    text = KEPT[version][name]
    value = decode(KINDS[name.partition(" ")[0]], text)
    for field, written in json.loads(text).items():  # nothing that both versions know got another meaning
        if isinstance(written, str | int | bool) and hasattr(value, field):
            assert getattr(value, field) == written


def test_versions_before_this_one_were_kept() -> None:
    assert len(KEPT) >= 5
    assert {name.partition(" ")[0] for documents in KEPT.values() for name in documents} == KINDS.keys()


def test_the_documents_of_this_version_are_kept() -> None:
    assert KEPT[max(KEPT)] == write_documents(), "make documents keeps them"


def enums(kind: Any) -> Iterator[type[Enum]]:
    """Every Enum in the fields of a type."""
    if typing.get_args(kind):
        for inner in typing.get_args(kind):
            yield from enums(inner)
    elif isinstance(kind, type) and issubclass(kind, Enum):
        yield kind


def of_documents() -> set[type[Enum]]:
    found = set[type[Enum]]()
    for module in pkgutil.iter_modules(contract.__path__):
        for one in vars(importlib.import_module(f"contract.{module.name}")).values():
            if dataclasses.is_dataclass(one) and isinstance(one, type) and not isinstance(one, types.GenericAlias):
                for hint in typing.get_type_hints(one).values():
                    found |= set(enums(hint))
    return found


def test_an_unknown_word_of_every_enum_in_a_document_becomes_something_safe() -> None:
    known = of_documents()
    assert {Phase, OrderKind, Market, LaunchOutcome} <= known
    for kind in known:
        assert kind.of_later_version() in kind, kind  # type: ignore[attr-defined]


def test_a_node_whose_phase_is_not_known_is_heard_and_no_phase_of_it_is_judged() -> None:
    report = decode(NodeReport, encode(REPORT).replace(b'"training"', f'"{LATER}"'.encode()))
    assert report.phase is Phase.TRAINING
    nodes = heard([Seen(instance="i-0", report=report, age_s=1.0)], job="job-1", attempt=1, ids=("i-0",))
    assert nodes.keys() == {0}


def test_an_order_of_a_kind_that_is_not_known_saves_and_stops() -> None:
    order = decode(Order, encode(ORDER).replace(b'"stop"', f'"{LATER}"'.encode()))
    assert order.kind is OrderKind.CHECKPOINT_AND_STOP


def test_a_launch_whose_outcome_is_not_known_is_in_doubt_and_asked_for_with_the_same_bytes() -> None:
    document = json.loads(encode(INTENT))
    document["steps"][0]["answer"] = {"outcome": LATER, "at": 1.0}
    intent = decode(Intent, json.dumps(document))
    assert intent.steps[0].is_in_doubt
    assert (intent.launched, intent.next_place) == (None, 0)


def test_a_job_with_words_that_are_not_known_can_be_looked_at_and_ended() -> None:
    document = json.loads(encode(JOB)) | {"checkpoint_scope": LATER, "health": LATER, "notify": [LATER]}
    document["ladder"][0]["market"] = LATER
    job = decode(Job, json.dumps(document))
    assert (job.id, job.nodes, job.deadline) == (JOB.id, JOB.nodes, JOB.deadline)


@pytest.mark.parametrize("word", [7, None, ["training"], {"training": 1}, "\ud800"])
def test_what_is_no_word_at_all_is_garbled(word: object) -> None:
    with pytest.raises(Garbled):
        decode(NodeReport, json.dumps({**json.loads(encode(REPORT)), "phase": word}))
