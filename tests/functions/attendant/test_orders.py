"""An order goes to every node, and last to the one that asked for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from attendant.acting import give_order
from aws.facts import Given
from aws.state import State
from contract.orders import Order
from tests.builders import NODE_ROLE, NOW
from tests.functions.attendant.attempts import FOUR, GIVEN, ORDER


@dataclass
class Letters:
    """Takes note of who is given an order, in place of the table."""

    given: list[list[str]] = field(default_factory=list)

    def create_order(self, *_: Any) -> None: ...

    def order(self, *_: Any, **__: Any) -> Given:
        return GIVEN

    def give_order(self, _job: Any, _role: str, ids: Sequence[str], order: Order) -> None:
        assert order == ORDER
        self.given.append(list(ids))


def test_the_node_that_asked_for_an_order_gets_it_after_all_others() -> None:
    """It obeys at once, and the trainers of its peers would fail before they know why."""
    letters = Letters()
    give_order(cast("State", letters), NODE_ROLE, FOUR, ORDER, clock=lambda: NOW)
    assert [sorted(ids) for ids in letters.given] == [["i-0", "i-2", "i-3"], ["i-1"]]


def test_so_it_is_where_only_some_nodes_lack_the_order() -> None:
    letters = Letters()
    informed = replace(FOUR.nodes[0], report=replace(FOUR.nodes[0].report, order=ORDER))
    facts = replace(FOUR, order=GIVEN, nodes={**FOUR.nodes, 0: informed})
    give_order(cast("State", letters), NODE_ROLE, facts, None, clock=lambda: NOW)
    assert [sorted(ids) for ids in letters.given] == [["i-2", "i-3"], ["i-1"]]
