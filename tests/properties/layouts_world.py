"""Ranks that save in place in the layout of a framework, name nothing, and remove old checkpoints; all may be killed inside any request."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path

from tests.node.fakes import FakeS3
from tests.node.folders import EVERY_S, Clock, Rank
from tests.node.layout_worlds import FOLDERS, LAYOUTS, put, read_bytes, remove
from tests.properties.sets_world import Attempt, Ended, Protocol


class LayoutAttempt(Attempt):
    """One attempt of a job whose trainers use a framework."""

    def __init__(
        self, root: Path, s3: FakeS3, number: int, *, nodes: int, layout: str, chance: random.Random, clock: Clock
    ) -> None:
        self.layout = layout
        super().__init__(root, s3, number, nodes=nodes, protocol=Protocol.EVERY, chance=chance, clock=clock)

    def _save(self) -> None:
        """Each file is torn for a while. A rank of which nothing is waited for may be seconds late."""
        self.step += 10
        when, last, step = self.clock.now, self.clock.now, self.step
        for write in LAYOUTS[self.layout](len(self.ranks), step):
            late = self.layout == "transformers" and write.rank > 0
            begin = when + self.chance.uniform(0.0, 8.0 if late else 1.0)
            end = begin + self.chance.uniform(0.1, 8.0)
            rank, half = self.ranks[write.rank], write.content[: self.chance.randrange(len(write.content))]
            self._at(begin, partial(put, rank, write.path, half))
            self._at(end, partial(put, rank, write.path, write.content))
            last = max(last, end)
            when = when if late else end
        done = last + 0.2
        self._at(done, lambda: self.saves.append((done, step)))
        self._at(done + 0.1, partial(remove, self.layout, self.ranks, step - 20))
        self._at(done + self.every_s, self._save)


def find_wrongs(attempt: LayoutAttempt, before: Ended, closed: list[int], upload_s: float) -> list[str]:
    """What is wrong with what an attempt restored, as its framework would read it: the folder with the highest number."""
    return [wrong for rank in attempt.ranks for wrong in _find_wrongs(rank, attempt, before, closed, upload_s)]


def _find_wrongs(rank: Rank, attempt: LayoutAttempt, before: Ended, closed: list[int], upload_s: float) -> list[str]:
    found, content, pattern = list[str](), read_bytes(rank), FOLDERS[attempt.layout].format("")
    steps = [int(path.split("/")[0].removeprefix(pattern)) for path in content if path.startswith(pattern)]
    steps += [int(one.name.removeprefix(pattern)) for one in rank.path.glob(f"{pattern}*")]
    step = max(steps, default=0)
    wanted = LAYOUTS[attempt.layout](len(attempt.ranks), step) if step else []
    for write in wanted:
        there = content.get(write.path)
        if there != write.content:
            found.append(f"{write.path} is {there!r}")
    if closed and step != max(closed):
        found.append(f"restored {step}, and {max(closed)} is closed")
    old = [one for when, one in before.saves if when < before.at - EVERY_S - attempt.every_s - upload_s]
    if old and step < max(old):
        found.append(f"lost more than an interval and an upload: {max(old)} was saved long before, restored is {step}")
    return found
