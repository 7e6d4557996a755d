"""Parameters without values to choose from, and parameters that the sampler or the template cannot have."""

from __future__ import annotations

from searches.request import PARAMETER
from tools.refusals.searches.row import EMPTY, NO_CONDITION, Row
from tools.refusals.searches.yard import template

ROWS = (
    Row("no parameter", "search: is empty", given={"search": {}}),
    Row("parameters as a list", "search: a list is not an object", given={"search": ["lr"]}),
    Row(
        "31 parameters",
        "search: has 31 entries",
        given={"search": {f"h{number}": {"int": [0, 9]} for number in range(31)}},
        shown="31 parameters",
    ),
    Row(
        "empty ranges",
        f"search.a.float: [1.0, 1.0] is an empty range; {EMPTY}",
        f"search.b.int: [3, 2] is an empty range; {EMPTY}",
        "search.c.float: has 1 number; allowed: two, the lowest and the highest",
        "search.d.choice: has 1 value; allowed: 2 to 1,000",
        given={
            "search": {"a": {"float": [1, 1]}, "b": {"int": [3, 2]}, "c": {"float": [1]}, "d": {"choice": ["relu"]}}
        },
    ),
    Row(
        "log with 0",
        "search.a: has log, and begins at 0.0; allowed: log for ranges above 0",
        "search.b: has log, and begins at -3; allowed: log for ranges above 0",
        given={"search": {"a": {"float": [0, 1], "log": True}, "b": {"int": [-3, 5], "log": True}}},
    ),
    Row(
        "log or steps where they mean nothing",
        "search.a: has log or step beside choice; allowed: choice alone",
        "search.b: has log and step; allowed: one of them",
        given={"search": {"a": {"choice": [1, 2], "log": True}, "b": {"float": [1, 2], "log": True, "step": 0.1}}},
    ),
    Row(
        "numbers too close for floats",
        "search.a: has a step of 1e-09, too small beside its numbers; allowed: at least 1e-06 of the largest",
        "search.b: [0.1, 0.1000000000000001] is a range too narrow for floats; allowed: a wider one, or choice",
        given={"search": {"a": {"float": [0, 1], "step": 1e-9}, "b": {"float": [0.1, 0.1000000000000001]}}},
    ),
    Row(
        "too many choices",
        "search: has 1,200 choices in all; allowed: up to 1,000 of all hyperparameters together",
        given={"search": {"a": {"choice": list(range(600))}, "b": {"choice": list(range(600))}}},
    ),
    Row(
        "steps that do not fit",
        "search.a: has a step of 2, which is longer than the range; allowed: a shorter one",
        "search.b: has a step of 1.5 between whole numbers; allowed: a whole step",
        "search.c: has a step of 2, too small for the range; allowed: up to 1,000,000 steps",
        f"search.d.step: 0 is too small; allowed: {PARAMETER}",
        given={
            "search": {
                "a": {"float": [0, 1], "step": 2},
                "b": {"int": [0, 4], "step": 1.5},
                "c": {"int": [0, 10_000_000], "step": 2},
                "d": {"float": [0, 1], "step": 0},
            }
        },
    ),
    Row(
        "none and several kinds of values",
        f"search.a: names none or several of float, int and choice; allowed: {PARAMETER}",
        f"search.b: names none or several of float, int and choice; allowed: {PARAMETER}",
        given={"search": {"a": {}, "b": {"float": [0, 1], "int": [0, 1]}}},
    ),
    Row(
        "numbers of the wrong kind",
        f'search.a.float.0: "0" is not a number (numbers have no quotes); allowed: {PARAMETER}',
        f"search.b.int.1: 1.5 is not a whole number; allowed: {PARAMETER}",
        f"search.c.float.1: 1e+301 is too large; allowed: {PARAMETER}",
        f"search.d.log: 1 is neither true nor false; allowed: {PARAMETER}",
        given={
            "search": {
                "a": {"float": ["0", 1]},
                "b": {"int": [0, 1.5]},
                "c": {"float": [0, 1e301]},
                "d": {"float": [1, 2], "log": 1},
            }
        },
    ),
    Row(
        "choices that are no values",
        'search.a.choice: has "relu" twice; allowed: different values',
        "search.b.choice: has true twice; allowed: different values",
        "search.c.choice.0: a list is no value of its own; allowed: texts, numbers, true and false",
        "search.c.choice.1: null is no value of its own; allowed: texts, numbers, true and false",
        given={
            "search": {
                "a": {"choice": ["relu", "relu"]},
                "b": {"choice": [1, True]},
                "c": {"choice": [[1, 2], None]},
            }
        },
    ),
    Row(
        "choices that no training takes",
        "search.a.choice.1: has 2,501 characters; allowed: up to 2,500",
        "search.c.choice.1: holds a NUL character; allowed: all others",
        f"search.d.choice.1: 1{'0' * 79}... is beyond numbers; allowed: from -1e+300 to 1e+300",
        f'search.b.choice.0: "\\ud800" is not valid Unicode (it holds half of a surrogate pair); allowed: {PARAMETER}',
        given={
            "search": {
                "a": {"choice": ["x", "x" * 2501]},
                "b": {"choice": ["\ud800", "x"]},
                "c": {"choice": ["x", "\0"]},
                "d": {"choice": [1, 10**400]},
            }
        },
        shown="texts of 2,501 characters, with half of a pair and with a NUL character, and a number of 401 digits",
    ),
    Row(
        "a parameter under a condition",
        f"search.depth.if: {NO_CONDITION}",
        given={"search": {"kind": {"choice": ["tree", "net"]}, "depth": {"int": [2, 8], "if": {"kind": "tree"}}}},
    ),
    Row(
        "values in the words of Optuna, Ray Tune, SageMaker, Katib and sweeps of W&B",
        f'search.optuna.suggest_float: there is no such field (did you mean {{"float": [low, high]}}?); allowed: {PARAMETER}',
        f"search.optuna.low: there is no such field (did you mean the two numbers of float or int?); allowed: {PARAMETER}",
        'search.ray: "tune.loguniform(1e-4, 1e-1)" is not an object (did you mean {"float": [low, high], "log": true}?); '
        f"allowed: {PARAMETER}",
        f"search.sagemaker.MinValue: there is no such field (did you mean the two numbers of float or int?); allowed: {PARAMETER}",
        f'search.sagemaker.ScalingType: there is no such field (did you mean "log": true?); allowed: {PARAMETER}',
        f'search.katib.parameterType: there is no such field (did you mean {{"float": [low, high]}}?); allowed: {PARAMETER}',
        f"search.katib.feasibleSpace: there is no such field (did you mean the two numbers of float or int?); allowed: {PARAMETER}",
        f'search.sweep.values: there is no such field (did you mean {{"choice": [values]}}?); allowed: {PARAMETER}',
        given={
            "search": {
                "optuna": {"suggest_float": [0, 1], "low": 0},
                "ray": "tune.loguniform(1e-4, 1e-1)",
                "sagemaker": {"MinValue": "0.1", "ScalingType": "Logarithmic"},
                "katib": {"parameterType": "double", "feasibleSpace": {"min": "0", "max": "1"}},
                "sweep": {"values": [1, 2]},
            }
        },
    ),
    Row(
        "misspelt and unknown words of a parameter",
        f'search.a.choise: there is no such field (did you mean {{"choice": [values]}}?); allowed: {PARAMETER}',
        f"search.b.wibble: there is no such field; allowed: {PARAMETER}",
        f'search.c: a list is not an object (did you mean {{"choice": [values]}}?); allowed: {PARAMETER}',
        f"search.d: 0.1 is not an object (one value belongs in template.hyperparameters); allowed: {PARAMETER}",
        given={"search": {"a": {"choise": [1, 2]}, "b": {"wibble": 1}, "c": [0.1, 0.01], "d": 0.1}},
    ),
    Row(
        "choices with parameters of their own",
        "search.kind.choice.0: an object is no value of its own: every trial has all parameters, whatever the others are (no conditional "
        "spaces); allowed: texts, numbers, true and false",
        given={"search": {"kind": {"choice": [{"tree": {"depth": 3}}, "net"]}}},
    ),
    Row(
        "a parameter that the template sets too",
        "search.lr: template.hyperparameters sets it too; allowed: one of them",
        given={"template": template(hyperparameters={"lr": 0.1, "epochs": 3})},
    ),
    Row(
        "a wrong parameter that the template sets too",
        f"search.lr.float: [1.0, 0.0] is an empty range; {EMPTY}",
        "search.lr: template.hyperparameters sets it too; allowed: one of them",
        given={"template": template(hyperparameters={"lr": 0.1}), "search": {"lr": {"float": [1, 0]}}},
    ),
    Row(
        "hyperparameters as a list",
        "template.hyperparameters: a list is not an object; allowed: an object of names and values",
        given={"template": template(hyperparameters=["lr"])},
    ),
    Row(
        "a sampler that tries every value of a range without steps",
        "search.lr: has no steps, and the sampler grid tries every value; allowed: step, int or choice",
        given={"sampler": "grid"},
    ),
    Row(
        "101 hyperparameters, that of the search included",
        "template.hyperparameters: has 101 entries",
        given={"template": template(hyperparameters={f"h{number}": 1 for number in range(100)})},
        shown="a template of 100 hyperparameters",
    ),
    Row(
        "first trials out of range",
        "begin_with.0.lr: 1 is not one of its values; allowed: a value that search.lr has",
        "begin_with.0.depth: is no parameter of search; allowed: lr",
        'begin_with.1.lr: "0.01" is not one of its values; allowed: a value that search.lr has',
        "begin_with.2.lr: true is not one of its values; allowed: a value that search.lr has",
        given={"begin_with": [{"lr": 1, "depth": 2}, {"lr": "0.01"}, {"lr": True}]},
    ),
    Row(
        "first trials beside steps and choices",
        "begin_with.0.depth: 3 is not one of its values; allowed: a value that search.depth has",
        "begin_with.1.depth: 2.5 is not one of its values; allowed: a value that search.depth has",
        "begin_with.2.act: 1 is not one of its values; allowed: a value that search.act has",
        given={
            "search": {"depth": {"int": [2, 8], "step": 2}, "act": {"choice": ["relu", True]}},
            "begin_with": [{"depth": 3}, {"depth": 2.5}, {"act": 1}],
        },
    ),
    Row(
        "first trials that are no objects of values",
        "begin_with.0: 3 is not an object",
        "begin_with.1.lr: null is no value of its own; allowed: texts, numbers, true and false",
        given={"begin_with": [3, {"lr": None}]},
    ),
    Row(
        "more first trials than trials",
        "begin_with: has 9 entries; allowed: up to trials, 8",
        given={"begin_with": [{"lr": 0.01}] * 9},
        shown="nine objects in begin_with",
    ),
    Row(
        "the same first trial twice, where every combination is tried once",
        "begin_with.1: is the same as begin_with.0; allowed: each once with the sampler grid",
        given={
            "search": {"lr": {"float": [0, 1], "step": 0.1}},
            "sampler": "grid",
            "begin_with": [{"lr": 1}, {"lr": 1.0}],
        },
    ),
)
