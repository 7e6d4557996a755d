"""JSON of the contract: what is written is read, and what does not fit is named."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from contract.codec import Garbled, decode, encode
from contract.environments import AdmissionEnvironment, GridEnvironment
from contract.intents import Intent
from contract.jobs import Job, Launcher
from contract.workbench import Workbench
from tests.builders import ADMISSION, INTENT, JOB, LAUNCHED
from tests.functions.grid_plan.account import ENVIRONMENT


def changed(**fields: Any) -> bytes:
    return json.dumps({**json.loads(encode(JOB)), **fields}).encode()


def test_a_job_survives_the_journey() -> None:
    assert decode(Job, encode(JOB)) == JOB


def test_an_intent_with_answers_survives_the_journey() -> None:
    answered = replace(INTENT, steps=(replace(INTENT.steps[0], answer=LAUNCHED), *INTENT.steps[1:]))
    assert decode(Intent, encode(answered)) == answered
    assert decode(Intent, encode(answered)).launched is not None


def test_a_functions_environment_survives_the_journey() -> None:
    assert AdmissionEnvironment.read(ADMISSION.write()) == ADMISSION


def test_equal_values_are_equal_bytes() -> None:
    assert encode(JOB) == encode(decode(Job, encode(JOB)))


def test_a_field_that_no_document_had_before_is_written_only_where_it_says_something() -> None:
    assert not {"launcher", "processes_per_node", "workbench"} & json.loads(encode(JOB)).keys()
    started = replace(JOB, launcher=Launcher.MPI)
    assert json.loads(encode(started)).keys() - json.loads(encode(JOB)).keys() == {"launcher"}
    assert decode(Job, encode(started)) == started
    bench = replace(JOB, workbench=Workbench(idle_minutes=60, install=True))
    assert json.loads(encode(bench)).keys() - json.loads(encode(JOB)).keys() == {"workbench"}
    assert decode(Job, encode(bench)) == bench


def test_other_defaults_are_written() -> None:
    assert json.loads(encode(JOB))["left_out"] == []


def test_fields_of_a_newer_writer_are_passed_over() -> None:
    assert decode(Job, changed(something_new=1)) == JOB


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (b"{", "not JSON"),
        (b"[]", "Job is list, wanted dict"),
        (changed(nodes="2"), "Job.nodes is str, wanted int"),
        (changed(nodes=True), "Job.nodes is bool, wanted int"),
        (changed(command="python"), "Job.command is str, wanted list"),
        (changed(ladder=[{}]), r"Job.ladder\[0\].region is missing"),
        (changed(ladder=[{**json.loads(encode(JOB))["ladder"][0], "market": 7}]), "market is int, wanted str"),
        (b"{}", "Job.id is missing"),
        (b"[" * 200_000, "not JSON"),
        (changed(deadline=float("nan")), "NaN is not a finite number"),
        (changed(deadline=float("-inf")), "-Infinity is not a finite number"),
        (changed(max_hours="HUGE").replace(b'"HUGE"', b"1e999"), "1e999 is not a finite number"),
        (changed(max_hours=10**400), "Job.max_hours has 401 digits, wanted float"),
        (changed(deadline=10**400), "Job.deadline has 401 digits, wanted at most 19"),
        (changed(id="\ud800"), "Job.id has half of a surrogate pair, wanted Unicode text"),
        (changed(command=["a", "\udfff"]), r"Job.command\[1\] has half of a surrogate pair"),
    ],
)
def test_a_garbled_document_names_the_field(document: bytes, words: str) -> None:
    with pytest.raises(Garbled, match=words):
        decode(Job, document)


def test_lists_in_lists_in_place_of_a_word_are_garbled_however_deep_they_are() -> None:
    """Some can be read and not be quoted: both take one level of the stack each, from different depths."""
    market = json.dumps({**json.loads(encode(JOB))["ladder"][0], "market": "HERE"})
    for depth in range(900, 1100):
        nested = market.replace('"HERE"', "[" * depth + "]" * depth)
        with pytest.raises(Garbled):
            decode(Job, changed(ladder=["HERE"]).replace(b'"HERE"', nested.encode()))


def test_a_missing_variable_is_named() -> None:
    variables = ADMISSION.write()
    del variables["TRAINYARD_BUCKET"]
    with pytest.raises(KeyError, match="TRAINYARD_BUCKET"):
        AdmissionEnvironment.read(variables)


def test_a_field_with_its_default_is_no_variable_and_comes_back_as_the_default() -> None:
    variables = ENVIRONMENT.write()
    assert "TRAINYARD_OUTPUT_KEY" not in variables
    assert GridEnvironment.read(variables).output_key == ""
    keyed = replace(ENVIRONMENT, output_key="alias/yard-region")
    assert GridEnvironment.read(keyed.write()).output_key == "alias/yard-region"
