"""Refusals of workbenches."""

from __future__ import annotations

from typing import Any

from job_requests.workbench_field import WORKBENCH_MAY_BE
from tools.refusals.jobs.table import Row, Section

PROGRAM = ("code", "command")
"""Fields that a workbench does not need, and of which it may have the first."""
BENCH: dict[str, Any] = {"workbench": {"idle_minutes": 60, "install": True}, "owner": "ada"}
OWN, AGAIN = "which runs JupyterLab", "which a person starts and ends"
AS_THEY_ARE = "whose files are the checkpoint as they are"


def _row(what: str, given: dict[str, Any], *says: str) -> Row:
    return Row(what, {**BENCH, **given}, *says, without=PROGRAM)


def _beside(field: str, value: Any, why: str) -> Row:
    says = f"{field}: the request has a workbench, {why}; allowed: workbench without {field}"
    return _row(f"{field} beside it", {field: value}, says)


WORKBENCH = Section(
    "workbench",
    WORKBENCH_MAY_BE,
    entry=WORKBENCH_MAY_BE,
    taken=BENCH["workbench"],
    beside={"owner": "ada"},
    without=PROGRAM,
    rows=(
        _row("a word", {"workbench": True}, "workbench: true is not an object"),
        _row("too short", {"workbench": {"idle_minutes": 1}}, "workbench.idle_minutes: 1 is too small"),
        _row("too long", {"workbench": {"idle_minutes": 2000}}, "workbench.idle_minutes: 2000 is too large"),
        _row("a word for a switch", {"workbench": {"install": "yes"}}, 'workbench.install: "yes" is neither true nor false'),
        Row("command beside it", BENCH, f"command: the request has a workbench, {OWN}; allowed: workbench without command"),
        _beside("stall", {"minutes": 30, "then": "stop"}, AGAIN),
        _beside("retries", {"times": 1}, AGAIN),
        _beside("checkpoint_scope", "shards", AS_THEY_ARE),
        _beside("checkpoint_layout", "dcp", AS_THEY_ARE),
        _row("two nodes", {"nodes": 2}, "nodes: 2 are too many for a workbench; allowed: 1"),
        _row(
            "a launcher",
            {"launcher": "torchrun"},
            f"launcher: the request has a workbench, {OWN}; allowed: none",
        ),
        _row(
            "no owner",
            {"owner": ""},
            "owner: is missing, and only its owner may open a workbench; allowed: your user name, or the value of your role's tag owner",
        ),
        _row(
            "an owner whom no person can be",
            {"owner": "ada "},
            'owner: "ada " is no name, and only its owner may open a workbench; allowed: without spaces around it',
        ),
        _row(
            "a folder in which nothing can be saved",
            {"mounts": [{"from": "efs:home", "at": "/bench"}]},
            "mounts.0.read_only: nothing could be saved in /bench; allowed: false",
        ),
    ),
)  # fmt: skip
