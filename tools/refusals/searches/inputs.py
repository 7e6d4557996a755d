"""Inputs that the machine cannot use: their fields, the earlier searches that they name, and deployments that cannot search."""

from __future__ import annotations

from contract.metric_values import write_expression
from searches.request import PRUNER
from tools.refusals.grids.yard import CHILD
from tools.refusals.searches.row import FIELDS, Row
from tools.refusals.searches.yard import LEAST, execution, template

ROWS = (
    Row(
        "nothing",
        "template: is missing",
        "search: is missing",
        "objective: is missing",
        "trials: is missing",
        given={},
        whole=True,
    ),
    Row(
        "no object",
        f"request: a list is not an object; allowed: an object of the fields {FIELDS}",
        given=[],
        whole=True,
    ),
    Row(
        "an unknown field",
        f"trial: there is no such field (did you mean trials?); allowed: {FIELDS}",
        given={"trial": 9},
    ),
    Row(
        "wrong types",
        'template: "images:v1" is not an object',
        "places: an object is not a list",
        'trials: "8" is not a whole number (numbers have no quotes)',
        "parallel: 1.5 is not a whole number",
        "max_cost_usd: true is not a number",
        'sampler: "bayes" is not one of them',
        "seed: -1 is too small",
        "begin_with: an object is not a list",
        "patience: 0 is too small",
        'owner: "<b>" does not have the right form',
        given={
            "template": "images:v1",
            "places": {"region": "eu-central-1"},
            "trials": "8",
            "parallel": 1.5,
            "max_cost_usd": True,
            "sampler": "bayes",
            "seed": -1,
            "begin_with": {"lr": 1},
            "patience": 0,
            "owner": "<b>",
        },
    ),
    Row(
        "an objective without a name or a direction",
        "objective.metric: is empty",
        'objective.direction: "up" is not one of them',
        "objective.goal: there is no such field",
        given={"objective": {"metric": "", "direction": "up", "goal": 1}},
    ),
    Row("more than 5,000 trials", "trials: 5001 is too large", given={"trials": 5001}),
    Row("no trial", "trials: 0 is too small", "parallel: 0 is too small", given={"trials": 0, "parallel": 0}),
    Row(
        "too many rounds",
        "parallel: 4 makes 1,250 rounds of 5,000 trials; allowed: at least 5, which makes no more than 1,000 (an execution's history "
        "holds no more)",
        given={"trials": 5000},
    ),
    Row(
        "more trials at once than a grid may have",
        "parallel: 1,001 is too large; allowed: a whole number from 1 to 1,000 (grid.limits.max_lines and max_concurrent in cdk.json)",
        given={"trials": 5000, "parallel": 1001},
    ),
    Row("a pruner", PRUNER, given={"pruner": "median"}),
    Row("a cap of nothing", "max_cost_usd: 0 is too small", given={"max_cost_usd": 0}),
    Row(
        "everything at once",
        "search.lr: has log, and begins at 0.0; allowed: log for ranges above 0",
        f"trial: there is no such field (did you mean trials?); allowed: {FIELDS}",
        "begin_with: has 9 entries; allowed: up to trials, 8",
        "objective.metric: loss is not defined by template.metrics, which define accuracy; allowed: one of them, or its regular "
        f'expression in template.metrics, as in {{"loss": "{write_expression("loss")}"}}',
        "template.image: images:v9 does not exist in eu-central-1; allowed: an image that was built or copied there "
        "(docs/guides/images.md)",
        given={
            "trial": 9,
            "template": template(image="images:v9"),
            "search": {"lr": {"float": [0, 1], "log": True}},
            "objective": {"metric": "loss", "direction": "minimize"},
            "begin_with": [{}] * 9,
        },
    ),
    Row(
        "a name with a dot",
        "name: the execution is called a.b; allowed: 1 to 74 letters, digits, _ and -",
        name="a.b",
    ),
    Row(
        "a name of 75 characters",
        f"name: the execution is called {'x' * 75}; allowed: 1 to 74 letters, digits, _ and -",
        name="x" * 75,
    ),
    Row(
        "a name that a search has",
        f"name: tune-7 is the name of a search of another execution ({execution()['arn']}, started 2026-08-01T10:00:00.000Z); "
        "allowed: a name that no search has had",
    ),
    Row(
        "a deployment whose admission is closed",
        "request: admission is closed: a destroy; allowed: any request, after a person has deleted "
        "the item admission/closed of the table yard-state, or after a destroy has ended and a deploy has created "
        "the stacks again",
    ),
    Row(
        "a missing image of the children",
        f"deployment: yard/platform:{CHILD} does not exist in eu-central-1, so no line could start; "
        "allowed: deploy again, which builds it (docs/guides/images.md)",
    ),
    Row(
        "an earlier search that there is none of",
        "warm_start: old is no search of this deployment; allowed: the name of one that has begun",
        given={"warm_start": "old"},
    ),
    Row(
        "names that no search has",
        'warm_start: "a b" does not have the right form',
        'resume: "../x" does not have the right form',
        given={"warm_start": "a b", "resume": "../x"},
    ),
    Row(
        "an earlier search with another objective",
        "warm_start: earlier had the objective maximize accuracy; allowed: a search with the same objective",
        given={"warm_start": "earlier", "objective": {"metric": "accuracy", "direction": "minimize"}},
    ),
    Row(
        "an earlier search none of whose trials fit",
        "warm_start: none of the 2 trials of earlier with a value has the parameters of this search; allowed: one with the same names "
        "of parameters, and values that this one has too",
        given={"warm_start": "earlier", "search": {"depth": {"int": [1, 9]}}},
    ),
    Row(
        "a resumed search that there is none of",
        "resume: old is no search of this deployment; allowed: the name of one that has begun",
        given={"resume": "old"},
        whole=True,
    ),
    Row(
        "a resumed search that runs",
        "resume: earlier still runs; allowed: a search that has ended, or was stopped",
        given={"resume": "earlier"},
        whole=True,
    ),
    Row(
        "a resumed search whose last round runs",
        "resume: the last round of earlier is still being ended; allowed: the same, some minutes later",
        given={"resume": "earlier"},
        whole=True,
    ),
    Row(
        "a resumed search with other fields",
        "seed: cannot change in a search that goes on; allowed: left out beside resume",
        "template: cannot change in a search that goes on; allowed: left out beside resume",
        "warm_start: cannot change in a search that goes on; allowed: left out beside resume",
        given={"resume": "earlier", "trials": 20, "seed": 3, "template": LEAST["template"], "warm_start": "old"},
        whole=True,
    ),
)
