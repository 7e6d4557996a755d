"""What the command lines of both rehearsals have in common: of one job, and of one grid."""

from __future__ import annotations

import argparse

LAST_LAYER_S = 1500.0
"""From an execution's end until the reaper, the last of all that end what runs, has ended what was left: its grace period of ten
minutes, two passes of five, and a margin. In real-world seconds."""


def add_conditions(parser: argparse.ArgumentParser, *, speed: float) -> None:
    """`speed` holds where nobody says."""
    parser.add_argument(
        "--fault", action="append", default=[], metavar="NAME[:key=value,...]", help="may be given again"
    )
    parser.add_argument(
        "--speed", type=float, default=speed, metavar="K", help=f"divides all durations (default {speed:g})"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the delays and losses (default 0)")
    parser.add_argument(
        "--limit", type=float, default=900.0, metavar="S", help="give up after so many seconds (default 900)"
    )
