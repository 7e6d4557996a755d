"""The home bucket as searches see it: what was settled, the questions of each round, and what their grids' records answer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from aws.grids import AT_ONCE, GridStore
from contract.codec import decode, encode
from contract.errors import SearchFailed
from contract.grid import GridPrefix, Line, Record
from contract.search import Search, SearchPrefix, name_round
from searches.policy import SearchRound

LINES = "application/x-ndjson"


class SearchStore(GridStore):
    """Reads and writes the documents of searches. Raises as GridStore does."""

    def search(self, name: str) -> Search | None:
        """Returns what the first Ask settled; None before that."""
        body = self.get(SearchPrefix(name).description)
        return None if body is None else decode(Search, body)

    def settle(self, search: Search) -> Search:
        """Writes the search once; returns the one that stands there, which may be another writer's."""
        self.ensure(SearchPrefix(search.id).description, encode(search))
        found = self.search(search.id)
        assert found is not None
        return found

    def questions(self, search: str, round_: int) -> list[dict[str, Any]] | None:
        """Returns a round's lines; None where the round was not asked."""
        body = self.get(SearchPrefix(search).questions(round_))
        return None if body is None else [json.loads(line) for line in body.splitlines()]

    def ensure_questions(self, search: str, round_: int, lines: Sequence[Any]) -> None:
        """Writes a round's lines, unless it has some."""
        body = "".join(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n" for line in lines).encode()
        self.ensure(SearchPrefix(search).questions(round_), body, LINES)

    def count_rounds(self, search: str) -> int:
        """Returns the number of the last round that was asked, 0 for none."""
        prefix = SearchPrefix(search).rounds
        names = (key.removeprefix(prefix).removesuffix(".jsonl") for key, _, _ in self.listed(prefix))
        return max((int(one) for one in names if one.isascii() and one.isdecimal()), default=0)

    def rounds(self, search: str, count: int) -> list[SearchRound]:
        """Returns the first `count` rounds. Raises SearchFailed where one of them is not there."""
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return list(pool.map(lambda number: self._round(search, number), range(1, count + 1)))

    def _round(self, search: str, number: int) -> SearchRound:
        grid = name_round(search, number)
        questions = self.questions(search, number)
        if questions is None:
            key = SearchPrefix(search).questions(number)
            raise SearchFailed(f"round {number} of search {search} is gone: s3://{self.name}/{key} is not there")
        answers = self.get(GridPrefix(grid).results_jsonl)
        found = {one.index: one for one in (decode(Record, line) for line in (answers or b"").splitlines())}
        planned = answers is not None or self.head(GridPrefix(grid).description) is not None
        lines: list[Line] = list(self.lines(grid, range(len(questions)))) if planned else []
        return SearchRound(
            number=number,
            grid=grid,
            questions=questions,
            records=[found.get(index) for index in range(len(questions))],
            most_usd=[line.most_usd for line in lines],
        )
