"""Jobs that wait for capacity, in the table of state, and the turn of whoever tries for them."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, replace

from aws.errors import Raced
from aws.table import Item, Table
from contract import items
from contract.codec import compact, decode
from contract.waits import CapacityWait, Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldWait:
    """A waiting job with the item whose next version replaces it."""

    wait: CapacityWait
    item: Item


class CapacityWaits(Table):
    """The table, as far as jobs wait for capacity."""

    def keep(self, wait: CapacityWait) -> None:
        """Keeps the wait until its token is used up; whatever was known of the same token begins anew."""
        digest = hashlib.sha256(wait.token.encode()).hexdigest()
        self.put(items.awaited(wait.job, wait.attempt, digest), compact(wait), expires=_expiry())

    def all(self) -> list[HeldWait]:
        """Every job that waits, in the order of their names."""
        return [HeldWait(wait=decode(CapacityWait, one.document), item=one) for one in self.query(items.CAPACITY)]

    def change(self, waiting: HeldWait, wait: CapacityWait) -> HeldWait:
        """Raises Raced where another writer has changed or deleted it."""
        return HeldWait(wait=wait, item=self.replace(waiting.item, compact(wait), expires=_expiry()))

    def forget(self, waiting: HeldWait) -> None:
        """Deletes the wait; one that is gone counts as deleted."""
        self.delete(waiting.item.key)

    def take_turn(self, holder: str, until: float) -> Item | None:
        """Makes `holder` the one that tries for all, until then; None where another one does."""
        found, mine = self.get(items.LAUNCH_TURN), Turn(held_by=holder, held_until=until)
        try:
            if found is None:
                return self.create(items.LAUNCH_TURN, compact(mine))
            turn = decode(Turn, found.document)
            if turn.held_by != holder and turn.held_until > time.time():
                return None
            return self.replace(found, compact(mine))
        except Raced:
            return None

    def end_turn(self, turn: Item) -> None:
        """Lets the next one begin before the turn's time is over."""
        try:
            self.replace(turn, compact(replace(decode(Turn, turn.document), held_until=0.0)))
        except Raced:
            return


def _expiry() -> float:
    return time.time() + items.LONGEST_S
