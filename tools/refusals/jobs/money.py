"""Refusals of what a job may cost, of a plan, and of spot without checkpoints."""

from __future__ import annotations

from tools.refusals.jobs.reservation import OURS
from tools.refusals.jobs.table import Row, Section

MONEY = (
    Section(
        "max_cost_usd",
        "a number of US dollars above 0, as in 100",
        taken=500,
        rows=(
            ("zero", 0, "0 is too small"),
            ("negative", -5, "-5 is too small"),
            ("an infinite cap", float("inf"), "Infinity is not a finite number"),
            ("NaN", float("nan"), "NaN is not a finite number"),
            ("true", True, "true is not a number"),
            ("a number as text", "500", '"500" is not a number (numbers have no quotes)'),
            (
                "a budget that cannot buy one node-hour",
                0.01,
                "$0.01 pays for 0.5 min of 1 node of g5.xlarge ($1.26 an hour); allowed: $1.27 or more, which pays for 1 h",
            ),
            Row(
                "a budget that buys one node an hour, and not the job's four",
                {"max_cost_usd": 2, "nodes": 4},
                "max_cost_usd: $2 pays for 23.8 min of 4 nodes of g5.xlarge ($5.04 an hour); allowed: $5.05 or more, which pays for 1 h",
            ),
            Row(
                "a type whose price is not known",
                {"max_cost_usd": 500, "instance_types": ["g5.12xlarge"]},
                "max_cost_usd: the price of g5.12xlarge in eu-central-1 is not known"
                "; allowed: types that have a price in the Price List",
            ),
            Row(
                "beside a reservation",
                {"max_cost_usd": 500, "reservation": OURS},
                "max_cost_usd: AWS bills a reservation whether or not the job runs, so that a cap saves nothing"
                "; allowed: no cap beside a reservation",
            ),
        ),
    ),
    Section(
        "dry_run",
        "true or false",
        rows=(
            ("a text", "true", '"true" is neither true nor false'),
            ("a number", 1, "1 is neither true nor false"),
            ("null", None, "null is neither true nor false"),
        ),
    ),
)
