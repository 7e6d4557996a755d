"""Rights of the function that writes pages: it reads what jobs, grids and searches are, and writes their pages alone."""

from __future__ import annotations

from contract import keys
from contract.grid import ANY_GRID, GridPrefix
from contract.search import ANY_SEARCH, SearchPrefix
from stacks.parts import item_rights
from stacks.parts.right import Right
from stacks.parts.search_rights import SearchRights

PAGES = (keys.ANY_PAGE, GridPrefix("*").page, SearchPrefix("*").page)


def write_pages(searches: SearchRights, node_role: str, queue_arn: str) -> list[Right]:
    """Starts nothing, ends nothing, and changes nothing that anything but a person reads. `node_role` is the id of the nodes' role."""
    grids = searches.grid
    rights = grids.rights
    read = (keys.ANY_DESCRIPTION, keys.ANY_RESULT, keys.ANY_WAIT, keys.ANY_PAGE, ANY_GRID, ANY_SEARCH)
    return [
        *rights.see_ends(),
        grids.list_grids(),
        grids.grid_executions("DescribeGrids", "states:DescribeExecution"),
        searches.list_searches(),
        searches.executions("DescribeSearches", "states:DescribeExecution"),
        *item_rights.show_jobs(rights, node_role),
        rights.list_home(),
        rights.home("ReadWhatIsShown", ["s3:GetObject"], *read),
        rights.home("WritePages", ["s3:PutObject"], *PAGES),
        rights.list_bytes(),
        rights.bytes("ReadClosedSets", ["s3:GetObject"], keys.ANY_CLOSED),
        rights.work_through(queue_arn),
    ]
