"""`make grid-load`: 10,000 lines over four regions, with everything that may happen to their children, and a table of what came of it."""

from __future__ import annotations

import argparse
import sys

from tests.properties.grid_world import GridWorld, driven

LEAST_RATE = 0.97


def broken(world: GridWorld) -> list[str]:
    """What must hold and does not, in words."""
    promises = {}
    promises["every line has its record"] = not world.missing()
    promises["no line had two trainings alive at once"] = world.alive_at_once() <= 1
    promises["no training and no job runs"] = not world.still_alive()
    promises["every record says what became of its training"] = not world.wrong_records()
    promises["every child ended as it should"] = not world.problems
    promises[f"{LEAST_RATE:.0%} of the submission rate was held"] = world.rate_held() >= LEAST_RATE
    return [promise for promise, kept in promises.items() if not kept]


def run() -> int:
    """0 where everything held."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=10_000)
    parser.add_argument("--pace", type=float, default=2.0, help="submissions a second and region")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--jobs", type=float, default=0.5, help="the share of the lines that run on clusters of our own"
    )
    given = parser.parse_args()
    world, seconds = driven(given.lines, given.seed, pace=given.pace, jobs=given.jobs)
    for name, value in world.table(seconds):
        print(f"{name:46} {value:>24}")
    found = broken(world)
    print("\n".join(f"NOT HELD: {one}" for one in found) or "Everything held.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(run())
