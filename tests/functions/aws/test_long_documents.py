"""Documents that are too long for one item lie in pieces: whole, or not there."""

from __future__ import annotations

import json
import random

import pytest

from aws import pieces
from aws.errors import Raced
from aws.state import State, Token
from contract import items
from contract.items import ItemKey
from tests.builders import JOB
from tests.fakes.aws import Aws
from tests.fakes.state import kept, store

KEY = ItemKey("marks", "eu-west-1")


def long_document(length: int) -> bytes:
    chance = random.Random(length)
    return json.dumps({f"i-{chance.getrandbits(68):017x}": n for n in range(length // 27)}).encode()


def test_a_document_too_long_for_an_item_lies_in_pieces_and_comes_back_whole(fake: Aws, state: State) -> None:
    document = long_document(3_000_000)
    head = pieces.write(state, KEY, None, document, writer="one")
    found = pieces.read(state, KEY)
    assert found is not None
    assert (found[0].version, found[1]) == (head.version, document)
    shorter = long_document(1_500_000)
    pieces.write(state, KEY, head, shorter, writer="one")
    again = pieces.read(state, KEY)
    assert again is not None
    assert again[1] == shorter
    assert len(kept(fake)) == 1 + -(-len(shorter) // pieces.PIECE), "the pieces of before are gone"


def test_of_two_writers_of_long_documents_one_wins_whole(state: State) -> None:
    head = pieces.write(state, KEY, None, b"{}", writer="one")
    mine = pieces.write(state, KEY, head, long_document(1_500_000), writer="one")
    with pytest.raises(Raced):
        pieces.write(state, KEY, head, long_document(2_500_000), writer="two")
    found = pieces.read(state, KEY)
    assert found is not None
    assert (found[0].version, found[1]) == (mine.version, long_document(1_500_000))


def test_a_slow_writer_leaves_the_pieces_of_the_next_one_alone(fake: Aws, state: State) -> None:
    head = pieces.write(state, KEY, None, long_document(1_500_000), writer="slow")
    store(fake, ItemKey(KEY.partition, f"{KEY.sort}#next-3#0000"), b"about to be named by its head")
    pieces.write(state, KEY, head, b"{}", writer="slow")
    assert [one["sk"]["S"] for one in kept(fake)] == [KEY.sort, f"{KEY.sort}#next-3#0000"]


def test_a_token_with_a_field_of_a_newer_writer_is_read(fake: Aws, state: State) -> None:
    key = items.waiting(JOB.id, 1, "a" * 64)
    store(fake, key, b'{"job": "job-1", "attempt": 1, "token": "t", "new": true}')
    assert state.tokens() == [Token(job=JOB.id, attempt=1, token="t", key=key)]


def test_a_long_document_that_lost_a_piece_counts_as_empty(fake: Aws, state: State) -> None:
    pieces.write(state, KEY, None, long_document(1_500_000), writer="one")
    lost = next(one for one in kept(fake) if "#" in one["sk"]["S"])
    state.delete(ItemKey(lost["pk"]["S"], lost["sk"]["S"]))
    found = pieces.read(state, KEY)
    assert found is not None
    assert found[1] == b""
