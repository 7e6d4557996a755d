"""Refusals of how often a command is run again."""

from __future__ import annotations

from tools.refusals.jobs.table import Row, Section

RETRIES = Section(
    "retries",
    "an object of times (a whole number from 1 to 100) and, optionally, exit_codes (a list of different whole numbers from 1 to "
    "255)",
    taken={"times": 2, "exit_codes": [75, 137]},
    left_out={"times": 0, "exit_codes": []},
    rows=(
        ("null", None, "null is not an object"),
        ("a number alone", 3, "3 is not an object"),
        ("a list", [75], "a list is not an object"),
        ("nothing in it", {}, "times is missing"),
        ("exit codes alone", {"exit_codes": [75]}, "times is missing"),
        ("another field", {"times": 1, "errors": ["NodeLost"]}, "has the unknown field errors"),
        ("no retry", {"times": 0}, "times: 0 is too small"),
        ("negative", {"times": -1}, "times: -1 is too small"),
        ("more than a hundred", {"times": 101}, "times: 101 is too large"),
        ("a half", {"times": 1.5}, "times: 1.5 is not a whole number"),
        ("true", {"times": True}, "times: true is not a whole number"),
        ("a number as text", {"times": "2"}, 'times: "2" is not a whole number (numbers have no quotes)'),
        ("no exit code", {"times": 1, "exit_codes": []}, "exit_codes is empty (without it every exit code counts)"),
        ("null in place of exit codes", {"times": 1, "exit_codes": None}, "exit_codes: null is not a list"),
        ("one exit code, not in a list", {"times": 1, "exit_codes": 75}, "exit_codes: 75 is not a list"),
        ("success", {"times": 1, "exit_codes": [0]}, "exit_codes: 0 is too small"),
        ("a signal as Python writes it", {"times": 1, "exit_codes": [-9]}, "exit_codes: -9 is too small"),
        ("more than a byte holds", {"times": 1, "exit_codes": [256]}, "exit_codes: 256 is too large"),
        (
            "a signal's name",
            {"times": 1, "exit_codes": ["SIGKILL"]},
            'exit_codes: "SIGKILL" is not a whole number (numbers have no quotes)',
        ),
        ("a code twice", {"times": 1, "exit_codes": [75, 75]}, "exit_codes: 75 is named more than once"),
        Row(
            "wrong beside another wrong field",
            {"retries": {"times": 0}, "nodes": 0},
            "nodes: 0 is too small; allowed: a whole number from 1 to 16 (limits.max_nodes in cdk.json)",
            "retries: times: 0 is too small",
        ),
    ),
)
