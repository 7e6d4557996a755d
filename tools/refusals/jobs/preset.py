"""Refusals of a preset's name."""

from __future__ import annotations

from contract.request_rules import RequestRules
from tools.refusals.jobs.table import CODE, SECRET, Row, Section

RULES = RequestRules(
    workbench=True,
    presets={
        "two-a10g": {
            "instance_types": ["g5.xlarge"],
            "nodes": 2,
            "market": "spot",
            "environment": {"NCCL_DEBUG": "WARN"},
        },
        "short": {"max_hours": 1, "checkpoint_minutes": 2, "tags": {"Stage": "trial"}},
    },
    tags={"CostCenter": "4711"},
)
"""Presets of the deployment that the table speaks of, and the tags of its settings."""
KNOWN = "short, two-a10g (presets in cdk.json)"
PRESET = Section(
    "preset",
    "the name of a preset (presets in cdk.json has them), as in two-a10g",
    taken="two-a10g",
    rows=(
        ("a number", 7, "7 is not a string"),
        ("a list of names", ["two-a10g"], "a list is not a string"),
        ("capital letters", "Two-A10G", f"there is no Two-A10G; allowed: {KNOWN}"),
        ("one that the deployment does not have", "two-h100", f"there is no two-h100; allowed: {KNOWN}"),
        Row(
            "one that it does not have, which might bring all else",
            {"preset": "two-h100"},
            f"preset: there is no two-h100; allowed: {KNOWN}",
            whole=True,
        ),
        Row(
            "one that does not bring all that is missing",
            {"preset": "two-a10g", "command": ["python", "train.py"]},
            f"code: is missing; allowed: {CODE}",
            whole=True,
        ),
        Row(
            "one whose field does not go with the request's",
            {
                "preset": "two-a10g",
                "secrets": {"NCCL_DEBUG": f"{SECRET}token"},
            },
            "secrets.NCCL_DEBUG: environment has it too; allowed: one value for each variable",
        ),
    ),
)
