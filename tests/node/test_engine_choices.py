"""How large the parts of a file are, and how many helpers move them: decided on sizes and on the network alone."""

from __future__ import annotations

import re

from agent.engine.helpers import Crowd, choose_crowd
from agent.engine.places import PART
from agent.engine.sending import part_size
from tests.architecture.sources import ROOT
from tests.node.engine_yard import MIB

PAGE = (ROOT / "docs" / "guides" / "checkpoints.md").read_text()


def test_larger_files_have_larger_parts_that_s3_takes() -> None:
    gib = 1024**3
    assert [part_size(size) // MIB for size in (9 * MIB, gib, 4 * gib, 8 * gib, 500 * gib)] == [8, 8, 32, 64, 64]
    assert part_size(5 * 1024 * gib) * 9000 >= 5 * 1024 * gib
    assert part_size(4 * gib + 5) % PART == 0


def test_as_many_helpers_are_started_as_the_network_feeds() -> None:
    gib = 1024**3
    assert choose_crowd(100 * gib, 100, 96, None) == Crowd(32, 6)
    assert choose_crowd(100 * gib, 10, 96, None) == Crowd(4, 5)
    assert choose_crowd(100 * gib, 2.5, 96, None) == Crowd(1, 5)


def test_helpers_leave_the_trainings_processors_alone() -> None:
    assert choose_crowd(100 * 1024**3, 100, 96, 1.0).helpers == 2
    assert choose_crowd(100 * 1024**3, 100, 4, None).helpers == 8


def test_few_bytes_start_no_helper() -> None:
    assert choose_crowd(40 * MIB, 100, 96, None) == Crowd(0, 0)
    assert choose_crowd(0, 100, 96, None) == Crowd(0, 0)
    assert choose_crowd(100 * MIB, 100, 96, None).helpers == 2


def test_the_page_has_the_helpers_that_a_large_network_gets() -> None:
    crowd = choose_crowd(1000 * 1024**3, 100, 96, None)
    assert re.findall(r"that is (\d+) helpers, (\d+) connections", PAGE) == [
        (str(crowd.helpers), str(crowd.helpers * crowd.lines))
    ]
