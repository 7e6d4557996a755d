"""A word of another tool in a parameter is answered with ours; only a condition gets the sentence about conditions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from searches.parameter_words import CONDITIONAL, FORMS, MEANT
from searches.request import NOT_HERE, PARAMETER, UNCONDITIONAL, read
from tools.refusals.searches.yard import LEAST

FLOAT, INT, CHOICE = '{"float": [low, high]}', '{"int": [low, high]}', '{"choice": [values]}'
LOGS, ENDS = '{"float": [low, high], "log": true}', "the two numbers of float or int"
ANY = "float, int or choice"
STEP = '{"float": [low, high], "step": step}'
OF_TOOLS: dict[str, list[tuple[Any, str]]] = {
    "Optuna": [
        ({"suggest_float": [0, 1]}, FLOAT), ({"suggest_int": [0, 1]}, INT), ({"suggest_categorical": ["a"]}, CHOICE),
        ({"suggest_loguniform": [1, 2]}, LOGS), ({"suggest_discrete_uniform": [1, 2]}, STEP), ({"low": 0}, ENDS), ({"high": 1}, ENDS),
        ({"choices": ["a", "b"]}, CHOICE), ({"FloatDistribution": [0, 1]}, FLOAT), ({"IntDistribution": [0, 1]}, INT),
        ({"optuna.distributions.CategoricalDistribution": ["a"]}, CHOICE), ({"distribution": "IntDistribution"}, INT),
        ({"name": "FloatDistribution", "attributes": {}}, ""), ("trial.suggest_float(0, 1)", FLOAT),
    ],
    "Ray Tune": [
        ({"uniform": [0, 1]}, FLOAT), ({"loguniform": [1, 2]}, LOGS), ({"quniform": [0, 1]}, STEP), ({"randint": [0, 3]}, INT),
        ({"grid_search": [1, 2]}, CHOICE), ({"tune.choice": [1, 2]}, CHOICE), ({"lower": 1}, ENDS), ({"upper": 1}, ENDS),
        ("tune.uniform(0, 1)", FLOAT), ("tune.randint(0, 9)", INT), ({"randn": [0, 1]}, FLOAT), ({"sample_from": "x"}, CHOICE),
    ],
    "hyperopt": [({"hp.uniform": [0, 1]}, FLOAT), ({"hp.choice": [1, 2]}, CHOICE), ({"hp.loguniform": [0, 1]}, LOGS)],
    "SageMaker": [
        ({"MinValue": "1"}, ENDS), ({"MaxValue": "1"}, ENDS), ({"ScalingType": "Logarithmic"}, '"log": true'),
        ({"ScalingType": "Linear"}, 'a range without "log"'), ({"ScalingType": "Auto"}, 'a range without "log"'),
        ({"IntegerParameter": [1, 2]}, INT), ({"ContinuousParameter": [1, 2]}, FLOAT), ({"CategoricalParameter": ["a"]}, CHOICE),
        ({"CategoricalParameterRanges": []}, CHOICE), ({"Values": ["a"]}, CHOICE), ("ContinuousParameter(0.1, 1)", FLOAT),
        ([{"Name": "lr", "MinValue": "1"}], "an object under the name of each hyperparameter"),
    ],
    "Katib": [
        ({"parameterType": "double"}, FLOAT), ({"parameterType": "int"}, INT), ({"parameterType": "discrete"}, CHOICE),
        ({"parameterType": "categorical"}, CHOICE), ({"feasibleSpace": {"min": "0", "max": "1"}}, ENDS),
        ({"feasibleSpace": {"list": ["a"]}}, CHOICE), ({"min": "0"}, ENDS), ({"max": "0"}, ENDS), ({"list": ["a"]}, CHOICE),
    ],
    "W&B": [
        ({"values": [1, 2]}, CHOICE), ({"value": 1}, "template.hyperparameters"), ({"distribution": "log_uniform_values"}, LOGS),
        ({"distribution": "q_uniform"}, STEP), ({"distribution": "int_uniform"}, INT), ({"distribution": "categorical"}, CHOICE),
        ({"q": 0.1}, '"step": step'), ({"distribution": "wibble"}, "float, int or choice"),
    ],
    "nobody": [
        ({"choise": [1]}, CHOICE), ({"flaot": [0, 1]}, FLOAT), ({"Float": [0, 1]}, FLOAT), ({"INT": [0, 1]}, INT),
        ({"stpe": 1}, '"step": step'), ({"catgorical": ["a"]}, CHOICE), ([0.1, 0.01], CHOICE), ({"type": "float"}, FLOAT),
        ({"scale": "log"}, '"log": true'), ({"_type": "loguniform"}, LOGS), ({"default": 1}, "begin_with"),
        ({"bool": [True, False]}, CHOICE), ({"boolean": True}, CHOICE), ({"str": ["a"]}, CHOICE), ({"string": ["a"]}, CHOICE),
        ({"oneOf": [1, 2]}, CHOICE), ({"one_of": [1, 2]}, CHOICE), ({"oneof": [1]}, CHOICE), ({"anyof": [1]}, CHOICE),
        ({"anyOf": [1]}, CHOICE), ({"selection": [1]}, CHOICE), ({"int_range": [1, 9]}, INT), ({"float_range": [0, 1]}, FLOAT),
        ({"dtype": "int"}, INT), ({"dtype": "wibble"}, ANY), ({"space": "loguniform"}, LOGS), ({"space": [0, 1]}, ANY),
    ],
}  # fmt: skip
"""By tool, what stands there for a parameter, and the word of ours that the first line of the answer has."""


def problems(given: Any) -> list[str]:
    """What is wrong with a parameter."""
    return read(LEAST | {"search": {"lr": json.loads(json.dumps(given))}})[2]


@pytest.mark.parametrize(("given", "ours"), [one for every in OF_TOOLS.values() for one in every], ids=str)
def test_a_word_of_another_tool_is_answered_with_ours(given: Any, ours: str) -> None:
    found = problems(given)
    hint = f" (did you mean {ours}?)" if ours else ""
    kind = "there is no such field" if isinstance(given, dict) else "is not an object"
    assert f"{kind}{hint}; allowed: {PARAMETER}" in found[0]
    assert not [one for one in found if UNCONDITIONAL in one]


@pytest.mark.parametrize(
    "word", ["wibble", "description", "unit", "optional", "weights", "depth", "", "x" * 1000, "\u202eedon", "$", "a.b"]
)
def test_a_word_that_means_nothing_here_has_no_hint(word: str) -> None:
    (found,) = problems({word: 1})
    assert f": there is no such field; allowed: {PARAMETER}" in found


@pytest.mark.parametrize("value", [0.1, "relu", True])
def test_one_value_is_told_where_it_belongs(value: Any) -> None:
    assert "is not an object (one value belongs in template.hyperparameters)" in problems(value)[0]


@pytest.mark.parametrize(
    "word",
    [
        "if",
        "when",
        "condition",
        "conditions",
        "parent",
        "parents",
        "depends_on",
        "dependsOn",
        "activeIf",
        "EqualsCondition",
    ],
)
def test_a_condition_is_told_that_there_are_none(word: str) -> None:
    (found,) = problems({"int": [1, 2], word: {"kind": "tree"}})
    assert found == f"search.lr.{word}: {NOT_HERE}; allowed: {PARAMETER}"


def test_a_choice_between_spaces_is_a_condition() -> None:
    found = problems({"choice": [{"kind": "tree", "depth": {"int": [1, 2]}}, {"kind": "net"}]})
    assert [UNCONDITIONAL in one for one in found] == [True, True]


def test_each_unknown_word_of_a_parameter_has_its_own_line() -> None:
    found = problems({"MinValue": "0.1", "MaxValue": "1", "ScalingType": "Logarithmic"})
    assert [one.partition(":")[0] for one in found] == [
        f"search.lr.{one}" for one in ("MinValue", "MaxValue", "ScalingType")
    ]


def test_no_word_has_two_meanings() -> None:
    every = [word for words in FORMS.values() for word in words.split()]
    assert len(every) == len(MEANT)
    assert not MEANT.keys() & CONDITIONAL
