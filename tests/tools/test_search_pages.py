"""What pages about searches promise: fields that there are, inputs that are accepted, and Optuna alone asking what a search asks."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from contract.search import Trial
from searches import study
from searches.request import SearchRequest, read
from tests.architecture.sources import ROOT

GUIDE = (ROOT / "docs" / "guides" / "search.md").read_text()
EXAMPLE = ROOT / "examples" / "search"
INPUTS = [text for text in re.findall(r"```json\n(.*?)```", GUIDE, re.DOTALL) if '"template"' in text]
TRIALS, PARALLEL = 20, 4


def score(act: str, depth: int, lr: float) -> float:
    return lr + depth - len(act)


def questions(seed: int) -> list[dict[str, Any]]:
    """What a search asks with the example's input."""
    wanted, _, problems = read({**json.loads((EXAMPLE / "search.json").read_text()), "seed": seed})
    assert problems == []
    trials = list[Trial]()
    while len(trials) < TRIALS:
        begun = len(trials)
        for place, one in enumerate(study.ask(wanted, trials, (), number=begun, count=PARALLEL)):
            trials.append(
                Trial(
                    number=begun + place,
                    parameters=one,
                    value=score(**one),
                    outcome="Completed",
                    reason="",
                    grid="g",
                    index=place,
                )
            )
    return [one.parameters for one in trials]


def alone(seed: int) -> list[dict[str, Any]]:
    """What the README's own lines ask."""
    (lines,) = re.findall(r"```python\n(.*?)```", (EXAMPLE / "README.md").read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(lines, "README.md", "exec"), names)
    search: Callable[..., Any] = names["search"]
    found = list[dict[str, Any]]()

    def train(**parameters: Any) -> float:
        found.append(parameters)
        return score(**parameters)

    search(train, seed=seed, trials=TRIALS, parallel=PARALLEL)
    return found


@pytest.mark.parametrize("seed", [0, 1])
def test_the_lines_of_the_readme_ask_what_a_search_asks(seed: int) -> None:
    assert alone(seed) == questions(seed)


def test_another_seed_would_be_seen() -> None:
    assert alone(0) != questions(1)


def test_every_input_of_the_guide_is_accepted() -> None:
    assert len(INPUTS) == 2
    assert [read(json.loads(text))[2] for text in INPUTS] == [[], []]


def test_the_guide_has_every_field_and_no_other() -> None:
    section = GUIDE.partition("\n## The input\n")[2].partition("\n### ")[0]
    fields = re.findall(r"^\| `([a-z_]+)` \|", section, re.MULTILINE)
    assert sorted(fields) == sorted(SearchRequest.model_fields)
