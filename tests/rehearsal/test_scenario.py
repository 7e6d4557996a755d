"""A scenario as a person writes it: a mistake is a line that names the fault and what is allowed, told before anything starts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rehearsal.deployment import ROOT
from rehearsal.director import Sight, is_due
from rehearsal.job_command import arguments
from rehearsal.scenario import BadScenario, ScenarioMoment, load, parsed

FOLDER = ROOT / "rehearsal" / "scenarios"
GOOD: dict[str, Any] = {"fault": "s3-slow", "keys": {"each": 5}, "begins": {"step": 3}}


def refused(*faults: object) -> list[str]:
    with pytest.raises(BadScenario) as problem:
        parsed({"faults": list(faults)}, "--scenario x.json")
    return str(problem.value).splitlines()


WRONG: list[tuple[object, str]] = [
    (3, "3 is not an object; allowed: one of fault, keys, name, begins, ends"),
    ({}, "fault is null; allowed: the name of a fault"),
    ({"fault": "s3-slwo"}, "s3-slwo: there is no such fault (did you mean s3-slow?)"),
    (
        {"fault": "s3-slow", "key": {}},
        "there is no key 'key' (did you mean keys?); there are fault, keys, name, begins, ends",
    ),
    (
        {"fault": "s3-slow", "keys": {"every": 5}},
        "s3-slow: it has no key 'every'; there are after, each, job, rate, seconds, who",
    ),
    ({"fault": "s3-slow", "keys": {"each": -1}}, "s3-slow: each is '-1'; allowed: seconds, 0 or more"),
    ({"fault": "s3-slow", "keys": {"each": True}}, 'keys is {"each": true}; allowed: an object of strings and numbers'),
    ({"fault": "s3-slow", "keys": ["each"]}, 'keys is ["each"]; allowed: an object of strings and numbers'),
    ({"fault": "s3-failing", "keys": {"share": 0}}, "s3-failing: share is '0'; allowed: a number above 0, at most 1"),
    ({"fault": "s3-failing", "keys": {"share": 2}}, "s3-failing: share is '2'"),
    (
        {"fault": "s3-failing", "keys": {"as": "gone"}},
        "s3-failing: as is 'gone'; allowed: slow-down or internal-error or denied",
    ),
    ({"fault": "s3-slow", "name": 3}, "name is 3; allowed: a string"),
    (
        {"fault": "s3-slow", "begins": 3},
        "begins is 3; allowed: an object of attempt, phase, step, closed, after, seconds",
    ),
    ({"fault": "s3-slow", "begins": {"steps": 3}}, "begins: there is no key 'steps' (did you mean step?)"),
    ({"fault": "s3-slow", "begins": {"attempt": 0}}, "begins: attempt is 0; allowed: a whole number from 1"),
    ({"fault": "s3-slow", "begins": {"attempt": True}}, "begins: attempt is true; allowed: a whole number from 1"),
    ({"fault": "s3-slow", "begins": {"step": 1.5}}, "begins: step is 1.5; allowed: a whole number from 0"),
    (
        {"fault": "s3-slow", "begins": {"phase": "boot"}},
        'begins: phase is "boot"; allowed: one of preparing, waiting, checking, training, saving',
    ),
    ({"fault": "s3-slow", "begins": {"seconds": -1}}, "begins: seconds is -1; allowed: a number from 0"),
    ({"fault": "s3-slow", "begins": {"seconds": "5"}}, 'begins: seconds is "5"; allowed: a number from 0'),
    ({"fault": "s3-slow", "begins": {"seconds": float("inf")}}, "begins: seconds is Infinity"),
    ({"fault": "s3-slow", "begins": {"after": "it"}}, 'begins: after is "it"; allowed: a name of another entry (lost)'),
    ({"fault": "s3-slow", "begins": {"closed": -1}}, "begins: closed is -1; allowed: a whole number from 0"),
    ({"fault": "s3-slow", "ends": 3}, "ends is 3; allowed: an object of attempt, phase, step, closed, after, seconds"),
    ({"fault": "s3-slow", "ends": {}}, "ends is {}; allowed: at least one of attempt, phase"),
    ({"fault": "s3-slow", "ends": {"attempts": 2}}, "ends: there is no key 'attempts' (did you mean attempt?)"),
    ({"fault": "s3-slow", "ends": {"attempt": 0}}, "ends: attempt is 0; allowed: a whole number from 1"),
    ({"fault": "s3-slow", "name": "mine", "begins": {"after": "mine"}}, 'begins: after is "mine"'),
    ({"fault": "s3-slow", "begins": {"after": ["lost"]}}, 'begins: after is ["lost"]'),
]


@pytest.mark.parametrize(("wrong", "why"), WRONG, ids=[why for _, why in WRONG])
def test_a_mistake_names_the_fault_and_what_is_allowed(wrong: object, why: str) -> None:
    (line,) = refused({"name": "lost", "fault": "node-lost"}, wrong)
    assert line.startswith("--scenario x.json: fault 2: ")
    assert why in line


@pytest.mark.parametrize("whole", [None, [], {}, {"faults": []}, {"faults": {}}, {"faults": [GOOD], "seed": 3}, "x", 3])
def test_what_is_no_list_of_faults_is_refused(whole: object) -> None:
    with pytest.raises(BadScenario, match=r'allowed: \{"faults": \[\.\.\.\]\} with at least one fault'):
        parsed(whole, "--scenario x.json")


def test_every_mistake_is_told_at_once() -> None:
    told = refused({"fault": "x", "name": "a"}, {"fault": "s3-slow", "name": "a", "begins": {"step": -1, "phase": "x"}})
    assert [line.split(": ")[1] for line in told] == ["fault 1", "fault 1", "fault 2", "fault 2", "fault 2"]


def test_faults_that_wait_for_each_other_are_refused() -> None:
    told = refused(
        *({"fault": "s3-slow", "name": one, "begins": {"after": other}} for one, other in ("ab", "bc", "cb")),
        {"fault": "s3-slow", "name": "free"},
    )
    assert told == ["--scenario x.json: a, b, c wait for each other; allowed: entries that do not wait in a circle"]


def test_a_scenario_is_what_it_says() -> None:
    lost, slow = parsed(
        {"faults": [{"name": "lost", "fault": "node-lost"}, GOOD | {"begins": {"after": "lost", "seconds": 9}}]}, "x"
    )
    assert (lost.begin, lost.fault.text("attempts")) == (ScenarioMoment(), "1")
    assert (slow.name, slow.begin) == ("2", ScenarioMoment(after="lost", seconds=9))
    assert slow.fault.seconds("each") == 5


@pytest.mark.parametrize(("keys", "last"), [({}, "2"), ({"attempts": 5}, "5")])
def test_what_begins_with_an_attempt_strikes_there(keys: dict[str, int], last: str) -> None:
    (entry,) = parsed({"faults": [{"fault": "node-lost", "keys": keys, "begins": {"attempt": 2}}]}, "x")
    assert entry.fault.text("attempts") == last


def test_a_fault_ends_with_what_its_entry_says_or_by_its_own_keys() -> None:
    ends, lasts = parsed({"faults": [GOOD | {"ends": {"attempt": 2}}, GOOD]}, "x")
    assert (ends.end, lasts.end) == (ScenarioMoment(attempt=2), None)


def test_the_shipped_one_is_right() -> None:
    assert [one.name for one in load(FOLDER / "twice_lost.json")] == ["interrupted", "slow", "killed"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "is not JSON"),
        ('{"faults": [{"fault": "x"}]}', "fault 1: x: there is no such fault"),
        (None, "there is no such file"),
    ],
)
def test_the_command_line_says_it_before_anything_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None, why: str
) -> None:
    file = tmp_path / "scenario.json"
    if text is not None:
        file.write_text(text)
    job = tmp_path / "job.json"
    job.write_text(json.dumps({"command": ["true"]}))
    with pytest.raises(SystemExit) as ended:
        arguments(["--job", str(job), "--code", str(tmp_path), "--scenario", str(file)])
    told = capsys.readouterr().err
    assert ended.value.code == 2
    assert why in told
    assert str(file) in told


def test_without_one_there_is_none(tmp_path: Path) -> None:
    job = tmp_path / "job.json"
    job.write_text(json.dumps({"command": ["true"], "instance_types": ["t3.large"]}))
    assert arguments(["--job", str(job), "--code", str(tmp_path)]).entries == ()


# When a fault is due

SEEN = Sight(attempt=2, phase="training", step=30, closed=20)


@pytest.mark.parametrize(
    ("moment", "due"),
    [
        (ScenarioMoment(), True),
        (ScenarioMoment(attempt=2), True),
        (ScenarioMoment(attempt=3), False),
        (ScenarioMoment(phase="waiting"), True),
        (ScenarioMoment(phase="training"), True),
        (ScenarioMoment(phase="saving"), False),
        (ScenarioMoment(step=30), True),
        (ScenarioMoment(step=31), False),
        (ScenarioMoment(closed=20), True),
        (ScenarioMoment(closed=21), False),
        (ScenarioMoment(after="lost"), True),
        (ScenarioMoment(after="slow"), False),
        (ScenarioMoment(attempt=2, phase="training", step=30, after="lost"), True),
        (ScenarioMoment(attempt=2, phase="training", step=30, after="slow"), False),
    ],
)
def test_all_that_is_asked_for_has_to_be_so(moment: ScenarioMoment, due: bool) -> None:
    assert is_due(moment, SEEN, {"lost"}) is due


@pytest.mark.parametrize("moment", [ScenarioMoment(), ScenarioMoment(phase="preparing"), ScenarioMoment(step=0)])
def test_before_an_instance_nothing_begins(moment: ScenarioMoment) -> None:
    assert not is_due(moment, Sight(attempt=0), set())


@pytest.mark.parametrize("moment", [ScenarioMoment(phase="preparing"), ScenarioMoment(step=0)])
def test_before_a_report_no_phase_and_no_step_has_come(moment: ScenarioMoment) -> None:
    assert not is_due(moment, Sight(attempt=1), set())
