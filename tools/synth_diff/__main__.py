"""`make synth-diff BASE=COMMIT`: synthesizes that commit and the working tree, and prints what differs, as CloudFormation sees it.

Exits with 0 whether or not something differs, and with 1 if there is no such commit. A configuration that a tree refuses is reported.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

os.environ.setdefault("CDK_VALIDATION", "false")

from rehearsal.checkout import NoCommit, check_out
from tools.configurations import CONFIGURATIONS
from tools.synth_diff.page import format_page, to_document
from tools.synth_diff.trees import compare_pins, compare_trees
from tools.synthesis import ROOT


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tools.synth_diff", description="What a change of code changes of the templates."
    )
    parser.add_argument("base", nargs="?", default="HEAD", help="a commit; HEAD without one")
    parser.add_argument("--json", action="store_true", help="everything that is known, for scripts")
    parser.add_argument(
        "--only",
        action="append",
        choices=CONFIGURATIONS,
        metavar="NAME",
        help=f"one of {', '.join(CONFIGURATIONS)}; may be repeated",
    )
    chosen = parser.parse_args(arguments)
    configurations = {name: one for name, one in CONFIGURATIONS.items() if name in (chosen.only or CONFIGURATIONS)}
    with tempfile.TemporaryDirectory(prefix="synth-diff-") as folder:
        work = Path(folder)
        try:
            before = check_out(chosen.base, work / "base")
        except NoCommit as problem:
            sys.exit(str(problem))
        found = compare_trees(before, ROOT, configurations, work)
        pins = compare_pins(before, ROOT)
    title = f"{chosen.base} and the working tree"
    if chosen.json:
        print(json.dumps(to_document(title, pins, found), indent=2))
    else:
        print(format_page(title, pins, found))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
