"""Inputs that the machine cannot use, and deployments that cannot plan."""

from __future__ import annotations

from grid_plan import request
from tools.refusals.grids.row import ARN, GOOD, MANIFESTS, Row
from tools.refusals.grids.yard import BUCKET, CHILD, DEFAULTS, execution

ROWS = (
    Row("neither a manifest nor a query", "", request.NO_SOURCE, given={}, whole=True),
    Row("a manifest and a query", GOOD, request.TWO_SOURCES, given={"query": "select 1"}),
    Row(
        "a query in a deployment without a catalogue",
        "",
        "query: this deployment has no catalogue; allowed: manifest, or catalogue true in cdk.json",
        given={"query": "select region, data from team.next_grid", "defaults": DEFAULTS},
        whole=True,
    ),
    Row("an empty query", "", "query: is empty", given={"query": ""}, whole=True),
    Row("a query that is not text", "", "query: a list is not a string", given={"query": ["select 1"]}, whole=True),
    Row(
        "a query with a NUL character",
        "",
        "query: holds a NUL character; allowed: all others",
        given={"query": "select \0"},
        whole=True,
    ),
    Row(
        "a file's name for a query",
        "",
        "query: query.sql names a file; allowed: the SQL that it holds, as in select region, address as data from data_sets where "
        "campaign = 'drive-eu' (jq -Rs '{query: .}' FILE makes an input of a file)",
        given={"query": "query.sql"},
        whole=True,
    ),
    Row(
        "an address for a query",
        "",
        "query: s3://data-eu/lines.csv is an address; allowed: the SQL that it holds, as in select region, address as data from "
        "data_sets where campaign = 'drive-eu' (jq -Rs '{query: .}' FILE makes an input of a file); the address of a manifest "
        "belongs in manifest",
        given={"query": "s3://data-eu/lines.csv"},
        whole=True,
    ),
    Row(
        "a query that writes",
        "",
        "query: begins with DELETE, which writes; allowed: one statement that reads, as in "
        "select region, address as data from data_sets where campaign = 'drive-eu'",
        given={"query": "delete from runs"},
        whole=True,
    ),
    Row(
        "a query of two statements",
        "",
        "query: has a second statement, which begins with drop; allowed: one statement that reads, as in "
        "select region, address as data from data_sets where campaign = 'drive-eu'",
        given={"query": "select 1 as volume_gb; drop table runs"},
        whole=True,
    ),
    Row(
        "a query with a placeholder",
        "",
        "query: has the placeholder {campaign}; allowed: the value itself: only {data} is replaced, in the input of a campaign",
        given={"query": "select region, address as data from data_sets where campaign = {campaign}"},
        whole=True,
    ),
    Row(
        "SQL for a manifest",
        GOOD,
        f"manifest: s3://{BUCKET}/uploads/query.sql names a file of SQL; allowed: s3://bucket/key of a manifest: CSV or JSON Lines, or "
        "query with the SQL itself",
        given={"manifest": f"s3://{BUCKET}/uploads/query.sql"},
    ),
    Row(
        "no object",
        "",
        "request: a list is not an object; allowed: an object of the fields manifest, query, defaults, sweep, "
        "max_cost_usd, owner, allow_duplicates",
        given=[],
        whole=True,
    ),
    Row(
        "an unknown field of the input",
        GOOD,
        "default: there is no such field (did you mean defaults?); allowed: manifest, query, defaults, sweep, "
        "max_cost_usd, owner, allow_duplicates",
        given={"default": {}},
    ),
    Row(
        "wrong defaults",
        GOOD,
        "defaults.image: imags: has a tag or a digest that is not valid",
        "defaults.sweep: is a field of the input itself; allowed: sweep beside defaults",
        given={"defaults": {"image": "imags:", "instance_type": "ml.g5.xlarge", "sweep": {"a": [1]}}},
    ),
    Row(
        "invalid defaults and an invalid sweep",
        GOOD,
        "defaults: a list is not an object",
        "sweep.lr: 1 is not a list",
        (
            "line 1: image: is missing; allowed: repository:tag or repository@sha256:... of the "
            "deployment's repositories, name and tag of a Deep Learning Container of AWS, or the whole "
            "address in a private ECR registry, as a column of the manifest, in the input's defaults or as grid.defaults.image in cdk.json"
        ),
        (
            "line 1: instance_type: is missing; allowed: a type of SageMaker trainings, ml.g5.*, ml.m5.* "
            "(grid.limits.instance_types in cdk.json), as a column of the manifest, in the input's "
            "defaults or as grid.defaults.instance_type in cdk.json"
        ),
        given={"defaults": [], "sweep": {"lr": 1}},
        without=(),
    ),
    Row(
        "a cap of nothing, an owner of brackets",
        GOOD,
        "max_cost_usd: 0 is too small",
        'owner: "<b>" does not have the right form',
        'allow_duplicates: "no" is neither true nor false',
        given={"max_cost_usd": 0, "owner": "<b>", "allow_duplicates": "no"},
    ),
    Row(
        "a manifest that is not there",
        GOOD,
        f"manifest: s3://{BUCKET}/uploads/none.csv does not exist; allowed: a manifest that was uploaded before the start",
        given={"manifest": f"s3://{BUCKET}/uploads/none.csv"},
    ),
    Row(
        "a manifest in a bucket that is not the deployment's",
        GOOD,
        f"manifest: s3://elsewhere/m.csv is not in a place for manifests; allowed: {MANIFESTS}",
        given={"manifest": "s3://elsewhere/m.csv"},
    ),
    Row(
        "a manifest in a bucket that denies access",
        GOOD,
        "manifest: s3://partner/m.csv cannot be checked (S3 answers 403); allowed: an object that the deployment may read",
        given={"manifest": "s3://partner/m.csv"},
    ),
    Row(
        "a folder for a manifest",
        GOOD,
        f"manifest: s3://{BUCKET}/uploads/ names no object",
        given={"manifest": f"s3://{BUCKET}/uploads/"},
    ),
    Row("a manifest of 3 GB", GOOD, f"manifest: s3://{BUCKET}/uploads/manifest has 3.0 GB; allowed: up to 1 GB"),
    Row(
        "a name with a dot",
        GOOD,
        "name: the execution is called a.b; allowed: 1 to 80 letters, digits, _ and -",
        run=execution("a.b"),
    ),
    Row(
        "a name of 81 characters",
        GOOD,
        "name: the execution is called "
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...; allowed: "
        "1 to 80 letters, digits, _ and -",
        run=execution("x" * 81),
    ),
    Row(
        "a name that a grid has",
        GOOD,
        f"name: sweep-7 is the name of a grid of another execution ({ARN}, started "
        "2026-08-01T10:00:00.000Z); allowed: a name that no grid has had",
    ),
    Row(
        "a deployment whose admission is closed",
        GOOD,
        "request: admission is closed: a destroy; allowed: any request, after a person has deleted "
        "the item admission/closed of the table yard-state, or after a destroy has ended and a deploy has created "
        "the stacks again",
    ),
    Row(
        "a missing image of the children",
        GOOD,
        f"deployment: yard/platform:{CHILD} does not exist in eu-central-1, so no line could start; "
        "allowed: deploy again, which builds it (docs/guides/images.md)",
    ),
    Row(
        "a deployment without a platform repository",
        GOOD,
        f"deployment: yard/platform:{CHILD} does not exist in eu-central-1, so no line could start; "
        "allowed: deploy again, which builds it (docs/guides/images.md)",
    ),
)
