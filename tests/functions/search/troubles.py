"""What has to be in the account for some refusals of searches."""

from __future__ import annotations

from collections.abc import Callable

from contract.codec import encode
from contract.search import Search, SearchPrefix
from tests.functions.grid_plan import troubles
from tests.functions.search.account import SEARCH, Searches
from tools.refusals.grids.yard import ACCOUNT, BUCKET
from tools.refusals.searches.yard import LEAST, execution


def take(there: Searches) -> None:
    """The name belongs to a search of three months ago."""
    old = Search(
        id="tune-7",
        deployment="yard",
        execution=execution()["arn"],
        started_at="2026-08-01T10:00:00.000Z",
        given=LEAST,
    )
    there.aws.s3.write(BUCKET, SearchPrefix("tune-7").description, encode(old))


def run(there: Searches) -> None:
    """A search has trained two trials, and goes on."""
    there.train(there.settle("earlier"), [0.5, 0.6])


def end(there: Searches) -> None:
    """A search has trained two trials, and was stopped."""
    run(there)
    there.end("earlier", machine=SEARCH)


def end_late(there: Searches) -> None:
    """A search was stopped, and its second round's grid a moment later."""
    end(there)
    there.ask(there.store.search("earlier") or there.settle("earlier"), [{"lr": 0.05}], 2, 2)


def lack_image(there: Searches) -> None:
    there.aws.ecr["us-east-1"].repositories[ACCOUNT, "yard/images"].clear()


THERE: dict[str, Callable[[Searches], None]] = {
    "a name that a search has": take,
    "a deployment whose admission is closed": lambda there: troubles.close(there.aws),
    "a missing image of the children": lambda there: troubles.no_child(there.aws),
    "an image that one place lacks": lack_image,
    "an earlier search with another objective": run,
    "an earlier search none of whose trials fit": run,
    "a resumed search that runs": run,
    "a resumed search whose last round runs": end_late,
    "a resumed search with other fields": end,
}
"""By the refusal's `what`."""
