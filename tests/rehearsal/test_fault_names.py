"""The faults of a rehearsal as a person names them: what there is not is refused, with what there is."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from contract import tags
from contract.environments import VARIABLE_PREFIX
from localaws.conditions import Conditions
from localaws.faults import KEYS
from rehearsal.faults import FAULTS, Fault, UnknownFault, parse_faults, table
from rehearsal.job_command import arguments
from tools.faults import PAGE, page

REFUSED = [
    ("slow-boat", "there is no such fault (did you mean slow-boot?)"),
    ("", "there is no such fault"),
    ("slow-boot:second=3", "no key 'second' (did you mean seconds?); there are job, rank, seconds"),
    ("response-lost:rank=1", "no key 'rank'; there are job"),
    ("slow-boot:seconds", "seconds has no value; allowed: key=value"),
    ("slow-boot:seconds=1,seconds=2", "seconds is given twice"),
    ("slow-boot:seconds=ten", "seconds is 'ten'; allowed: seconds, 0 or more"),
    ("slow-boot:seconds=-1", "seconds is '-1'"),
    ("slow-boot:seconds=inf", "seconds is 'inf'"),
    ("slow-boot:seconds=nan", "seconds is 'nan'"),
    ("slow-boot:seconds=", "seconds is ''"),
    ("slow-boot:rank=first", "rank is 'first'; allowed: a whole number or all"),
    ("no-capacity:rungs=0", "rungs is '0'; allowed: a whole number from 1"),
    ("agent-crash:at=boot", "at is 'boot'; allowed: agent, preparing, waiting, checking, training, saving or a step"),
    ("agent-crash:closed=first", "closed is 'first'; allowed: a step"),
    ("slow-boot:closed=1", "no key 'closed'"),
    ("slow-link:closed=1", "no key 'closed'"),
    ("disk-full:at=boot,closed=1", "closed is for a later moment than at=boot"),
    ("no-network:closed=1", "closed is for a later moment than at=boot"),
    ("agent-crash:at=-5", "at is '-5'"),
    ("agent-crash:attempts=0", "attempts is '0'"),
    ("bad-gpu:how=slowly", "how is 'slowly'; allowed: fewer or memory or xid or lost or hangs"),
    ("bad-gpu:at=never", "at is 'never'"),
    ("attendant-dead:how=slowly", "how is 'slowly'; allowed: fails or hangs"),
    ("abort-in-state:state=Decide", "state is 'Decide'; allowed: Admit or Launch or Train or Sync or Terminate"),
    ("abort-in-state:rank=1", "no key 'rank'; there are after, job, state"),
    ("capacity-away:as=gone", "as is 'gone'; allowed: capacity or quota or iops or profile or throttled"),
    ("spot-price-moves:factor=0", "factor is '0'; allowed: a number more than 0"),
    ("spot-price-moves:factor=twice", "factor is 'twice'"),
    ("spot-price-moves:job=a", "no key 'job'; there are after, factor, region, seconds, type, zone"),
    ("spot-kill:times=0", "times is '0'; allowed: a whole number from 1"),
    ("spot-notice:attempt=first", "attempt is 'first'; allowed: a whole number"),
    ("spot-notice:notice=no", "no key 'notice'; there are attempt, closed, job, rank, step, times"),
    ("node-interrupted", "there is no such fault"),
    ("reaper-dead", "there is no such fault"),
    ("reaper-down:how=slowly", "how is 'slowly'; allowed: silent or fails or hangs"),
    ("terminate-refused:seconds=never", "seconds is 'never'"),
    ("timer-off:rank=first", "rank is 'first'"),
    ("user-data-fails:line=1", "line is '1'; allowed: a whole number from 2"),
    ("clock-skew:seconds=soon", "seconds is 'soon'; allowed: seconds"),
]


@pytest.mark.parametrize(("text", "why"), REFUSED, ids=[text for text, _ in REFUSED])
def test_a_fault_that_there_is_not_is_refused_with_what_there_is(text: str, why: str) -> None:
    with pytest.raises(UnknownFault) as refused:
        parse_faults([text])
    assert str(refused.value).startswith(f"--fault {text.partition(':')[0]}: ")
    assert why in str(refused.value)


def test_the_command_line_says_it_before_anything_starts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = tmp_path / "job.json"
    job.write_text(json.dumps({"nodes": 1}))
    with pytest.raises(SystemExit) as ended:
        arguments(["--job", str(job), "--code", str(tmp_path), "--fault", "slow-boot:seconds=ten"])
    assert ended.value.code == 2
    assert "--fault slow-boot: seconds is 'ten'" in capsys.readouterr().err


def test_keys_that_are_not_given_have_their_defaults() -> None:
    (fault,) = parse_faults(["user-data-fails:how=killed"])
    assert (fault.number("line"), fault.text("how"), fault.number("attempts")) == (2, "killed", 1)


def test_a_clock_may_be_behind() -> None:
    assert Fault("clock-skew", {"seconds": "-300"}).seconds("seconds") == -300


def test_one_fault_may_be_asked_for_twice_for_two_jobs() -> None:
    conditions = Conditions(faults=parse_faults(["slow-boot:seconds=1,job=a", "slow-boot:seconds=2,job=b"]))
    found = conditions.fault("slow-boot", {tags.JOB: "b"})
    assert found is not None
    assert found.seconds("seconds") == 2
    assert conditions.fault("slow-boot", {tags.JOB: "c"}) is None


@pytest.mark.parametrize(("rank", "attempt", "meets"), [(1, 1, True), (0, 1, False), (1, 2, True), (1, 3, False)])
def test_a_fault_is_for_its_rank_and_its_first_attempts(rank: int, attempt: int, meets: bool) -> None:
    (fault,) = parse_faults(["agent-crash:rank=1,attempts=2"])
    assert fault.meets({tags.JOB: "any", "rank": str(rank), tags.ATTEMPT: str(attempt)}) is meets


def test_a_line_of_a_script_is_no_line_of_a_grid() -> None:
    (fault,) = parse_faults(["user-data-fails:line=2,job=a"])
    assert fault.meets({tags.JOB: "a", "rank": "0"})


@pytest.mark.parametrize(("marks", "meets"), [({tags.LINE: "3"}, True), ({tags.LINE: "2"}, False)])
def test_a_fault_of_a_line_is_for_the_training_of_that_line(marks: dict[str, str], meets: bool) -> None:
    (fault,) = parse_faults(["spot-interrupted:line=3,job=g"])
    assert fault.meets({tags.GRID: "g", **marks}) is meets


@pytest.mark.parametrize(("index", "meets"), [("1", True), ("0", False)])
def test_a_fault_of_a_line_is_for_the_child_in_its_place(index: str, meets: bool) -> None:
    (fault,) = parse_faults(["child-killed:line=3,job=g"])
    marks = {f"{VARIABLE_PREFIX}GRID": "g", f"{VARIABLE_PREFIX}FIRST": "2", "AWS_BATCH_JOB_ARRAY_INDEX": index}
    assert fault.meets(marks) is meets


@pytest.mark.parametrize(("age_s", "on"), [(0.5, False), (1.5, True), (4.5, False)])
def test_a_fault_that_lasts_begins_and_ends_by_the_rehearsals_speed(age_s: float, on: bool) -> None:
    faults = parse_faults(["attendant-dead:after=10,seconds=30"])
    conditions = Conditions(speed=10.0, faults=faults, faults_since=time.monotonic() - age_s)
    assert (conditions.now_under("attendant-dead") is not None) is on


@pytest.mark.parametrize("name", ["cleanup-dead", "reaper-down", "terminate-refused", "terminator-dead"])
def test_a_layer_is_switched_off_for_ever_unless_somebody_says_how_long(name: str) -> None:
    assert Conditions(faults=parse_faults([name]), faults_since=0.0).now_under(name)
    assert not Conditions(faults=parse_faults([f"{name}:seconds=5"]), faults_since=0.0).now_under(name)


def test_dropped_events_are_dropped_for_ever_unless_somebody_says_how_long() -> None:
    faults = parse_faults(["events-dropped"])
    assert Conditions(speed=10.0, faults=faults, faults_since=0.0).now_under("events-dropped")


def test_the_help_and_the_page_name_every_fault_and_key() -> None:
    for name, kind in FAULTS.items():
        for text in (table(), page()):
            assert name in text
            assert all(f"{key}={one.default}" in text for key, one in kind.keys.items())


def test_the_page_in_the_docs_is_the_table_of_today() -> None:
    assert PAGE.read_text() == page()


@pytest.mark.parametrize("name", [name for name in KEYS if name != "function-dead"])
def test_a_fault_of_the_local_aws_has_the_same_keys_and_defaults_here(name: str) -> None:
    here = FAULTS[name].keys
    assert KEYS[name].keys() <= here.keys()
    assert [key for key, default in KEYS[name].items() if here[key].default not in {default, ""} and default] == []
