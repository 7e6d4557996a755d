"""The table of mutants fits the files that it names; and a run tells those that a test notices from those that none does."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest

from tools.mutants.__main__ import choose, show
from tools.mutants.run import MutantCopy, MutantFate, MutantRun, judge
from tools.mutants.table import Mutant, StaleMutant, read_mutants
from tools.summary import Part

ROOT = Path(__file__).parents[2]
MUTANTS = read_mutants()
LEAST = 60


def problems(mutant: Mutant) -> list[str]:
    """What is wrong with a mutant's row."""
    try:
        mutated = mutant.mutate((ROOT / mutant.file).read_text())
    except (OSError, StaleMutant) as problem:
        return [str(problem)]
    if mutant.file.endswith(".py"):
        ast.parse(mutated)
    found = [f"{mutant.name}: there is no {test}" for test in mutant.tests if not (ROOT / test).is_file()]
    found += [f"{mutant.name}: changes nothing"] if mutant.text == mutant.becomes else []
    found += [] if mutant.harm.endswith(".") and mutant.tests else [f"{mutant.name}: has no harm or no test"]
    return found


def test_every_mutant_has_its_line_once_and_tests_that_exist() -> None:
    assert [problem for mutant in MUTANTS for problem in problems(mutant)] == []


def test_there_are_enough_mutants_and_each_has_a_name_of_its_own() -> None:
    names = [mutant.name for mutant in MUTANTS]
    assert len(names) == len(set(names)) >= LEAST


def test_a_line_that_moved_or_came_twice_names_its_mutant() -> None:
    mutant = replace(MUTANTS[0], text="answer = 42")
    for source in ("answer = 41", "answer = 42\nanswer = 42\n"):
        with pytest.raises(StaleMutant, match=mutant.name):
            mutant.mutate(source)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, MutantRun]:
    """Mutants of a small project, by name."""
    root = tmp_path_factory.mktemp("project")
    (root / "tests").mkdir()
    (root / "answers.py").write_text("def answer():\n    return 42\n\ndef other():\n    return 1\n")
    (root / "tests" / "test_answers.py").write_text(
        "import answers\ndef test_answer(): assert answers.answer() == 42\n"
    )
    (root / "tests" / "test_red.py").write_text("def test_red(): assert False\n")
    noticed = Mutant(
        name="noticed", file="answers.py", text="    return 42", becomes="    return 43",
        tests=("tests/test_answers.py",), harm="Wrong answers.",
    )  # fmt: skip
    mutants = [
        noticed,
        replace(noticed, name="unnoticed", text="    return 1", becomes="    return 2"),
        replace(noticed, name="moved", text="    return 44"),
        replace(noticed, name="untested", tests=("tests/test_nothing.py",)),
        replace(noticed, name="red before", tests=("tests/test_red.py",)),
    ]
    (root / "build").mkdir()
    before = {file: file.read_bytes() for file in root.rglob("*.py")}
    found = {run.mutant.name: run for run in MutantCopy(root, root.parent / "copy").run(mutants)}
    assert {file: file.read_bytes() for file in root.rglob("*") if file.is_file()} == before
    return found


@pytest.mark.parametrize(
    ("name", "fate", "why"),
    [
        ("noticed", MutantFate.KILLED, "tests/test_answers.py::test_answer"),
        ("unnoticed", MutantFate.SURVIVED, "no test fails"),
        ("moved", MutantFate.STALE, "has its text 0 times"),
        ("untested", MutantFate.BROKEN, "there is no tests/test_nothing.py"),
        (
            "red before",
            MutantFate.BROKEN,
            "without a change tests/test_red.py::test_red fails",
        ),
    ],
)
def test_a_mutant_is_killed_only_by_a_test_that_passes_without_it(
    runs: dict[str, MutantRun], name: str, fate: MutantFate, why: str
) -> None:
    assert runs[name].fate is fate
    assert why in runs[name].why


def test_tests_that_cannot_be_run_have_killed_nothing() -> None:
    assert judge(Part("tests", 2))[0] is MutantFate.BROKEN
    assert judge(Part("tests", 0, passed=3)) == (MutantFate.SURVIVED, "no test fails")
    assert judge(Part("tests", 1, failed=("tests/test_a.py::test_b",))) == (
        MutantFate.KILLED,
        "tests/test_a.py::test_b",
    )


def test_a_pattern_chooses_mutants_and_one_that_fits_none_is_an_error() -> None:
    first = MUTANTS[0].name
    assert [one.name for one in choose(MUTANTS, [first])] == [first]
    assert choose(MUTANTS, []) == MUTANTS
    with pytest.raises(SystemExit, match="no-such-mutant: no mutant is called so"):
        choose(MUTANTS, ["no-such-mutant"])


def test_a_survivor_shows_what_it_would_do() -> None:
    survived = MutantRun(mutant=MUTANTS[0], fate=MutantFate.SURVIVED, why="no test fails")
    assert MUTANTS[0].harm in show(survived, 20)
    assert MUTANTS[0].harm not in show(replace(survived, fate=MutantFate.KILLED), 20)
