"""Rehearses one job, one grid, one campaign, or searches, on the local AWS: `python -m rehearsal --help`."""

from __future__ import annotations

import sys

from rehearsal.readiness import describe_unready

if __name__ == "__main__":
    if problem := describe_unready():
        print(problem, file=sys.stderr)
        sys.exit(2)
    from rehearsal.command import run_command

    sys.exit(run_command(sys.argv[1:]))
