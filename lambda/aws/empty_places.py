"""Places without capacity, in the table of state: one item a place, which the next answer replaces."""

from __future__ import annotations

from aws.table import Table
from contract import items
from contract.codec import compact, decode
from contract.empty_places import EmptyPlace

KEPT_S = 3600.0
"""How long an item stays after its last use."""


class EmptyPlaces(Table):
    """The table, as far as places have no capacity."""

    def note(self, place: EmptyPlace) -> None:
        key = items.empty(place.region, place.zone, place.instance_type, place.market)
        self.put(key, compact(place), expires=place.at + KEPT_S)

    def all(self) -> list[EmptyPlace]:
        return [decode(EmptyPlace, one.document) for one in self.query(items.EMPTY)]
