"""Says which stack stands before which: what is needed is deployed first, and destroyed last."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk

from stacks.builds import BuildsStack
from stacks.foundation import FoundationStack
from stacks.grid import GridStack
from stacks.images import ImagesStack
from stacks.reaper import ReaperStack
from stacks.region import RegionStack
from stacks.search import SearchStack
from stacks.workflow import WorkflowStack


def order_stacks(
    foundation: FoundationStack,
    reaper: ReaperStack,
    regions: list[RegionStack],
    builds: BuildsStack,
    workflow: WorkflowStack,
    grid: GridStack,
    search: SearchStack,
    images: ImagesStack,
) -> None:
    """The reaper stands before what it looks after. What depends is destroyed first, and begins with a drain where it starts
    something: then nothing launches into what goes away."""
    reaper.add_stack_dependency(foundation)
    builds.add_stack_dependency(foundation)
    workflow.add_stack_dependency(reaper)
    for needed in (reaper, builds, workflow):
        grid.add_stack_dependency(needed)
    search.add_stack_dependency(grid)
    for region in regions:
        # The reaper too: its drain is the last that a destroy asks, and empties the regions' buckets before their stacks go.
        for user in (reaper, builds, workflow, grid, search):
            user.add_stack_dependency(region)
    # Last of all: a build that fails keeps nothing else from being deployed. Nothing in it runs or holds anything.
    images.add_stack_dependency(search)


def place_before_grid(
    stacks: Sequence[cdk.Stack | None], foundation: FoundationStack, regions: list[RegionStack], grid: GridStack
) -> list[cdk.Stack]:
    """Returns those that there are. What the grid uses stands before it, and goes before the home region's network: the catalogue, and the
    cluster of Kubernetes, of which the grid's drain ends all that runs."""
    found = [one for one in stacks if one is not None]
    for stack in found:
        for needed in (foundation, *regions):
            stack.add_stack_dependency(needed)
        grid.add_stack_dependency(stack)
    return found
