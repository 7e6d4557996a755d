"""The table at which agents meet: whoever comes late, dies, repeats itself or is a stranger."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from agent.links import meeting
from agent.links.meeting import MOST_BYTES, Apart, MeetingTable, Seat
from localaws.testing.waiting import HANG_S

HOST = "127.0.0.1"


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meeting, "AGAIN_S", 0.05)
    monkeypatch.setattr(meeting, "LOOK_S", 0.02)


@pytest.fixture
def port() -> int:
    with closing(socket.create_server((HOST, 0))) as made:
        number: int = made.getsockname()[1]
        return number


@contextmanager
def table(port: int, nodes: int, late_s: float = HANG_S) -> Iterator[MeetingTable]:
    with closing(MeetingTable(HOST, port, name="job/1", nodes=nodes, late_s=late_s)) as made:
        yield made


def seat(port: int, rank: int, nodes: int, *, name: str = "job/1", pause: Callable[[float], None] = time.sleep) -> Seat:
    return Seat(HOST, port, name=name, rank=rank, nodes=nodes, pause=pause)


def together(*acts: Callable[[], Any]) -> list[Any]:
    """What each gives, or raises."""
    given: list[Any] = [None] * len(acts)

    def do(place: int) -> None:
        try:
            given[place] = acts[place]()
        except Exception as problem:
            given[place] = problem

    threads = [threading.Thread(target=do, args=(place,)) for place in range(len(acts))]
    for one in threads:
        one.start()
    for one in threads:
        one.join(HANG_S)
        assert not one.is_alive()
    return given


def says(one: Seat, *words: dict[str, Any], most_s: float = HANG_S) -> Callable[[], list[Any]]:
    return lambda: [one.exchange(word, most_s) for word in words]


def test_all_hear_what_all_have_said_round_by_round(port: int) -> None:
    with table(port, 3):
        heard = together(*(says(seat(port, rank, 3), {"a": rank}, {"b": rank}) for rank in range(3)))
    assert heard == [[[{"a": 0}, {"a": 1}, {"a": 2}], [{"b": 0}, {"b": 1}, {"b": 2}]]] * 3


def test_who_comes_before_the_table_waits_for_it(port: int) -> None:
    early = seat(port, 1, 2)

    def later() -> list[Any]:
        time.sleep(0.5)
        with table(port, 2):
            return says(seat(port, 0, 2), {})()

    assert together(says(early, {}), later) == [[[{}, {}]]] * 2


def test_a_table_that_is_lost_before_all_have_come_is_found_again(port: int) -> None:
    one = seat(port, 1, 2)

    def twice() -> list[Any]:
        with table(port, 2):
            time.sleep(0.5)
        with table(port, 2):
            return says(seat(port, 0, 2), {})()

    assert together(says(one, {}), twice) == [[[{}, {}]]] * 2


def test_a_peer_that_never_comes_ends_the_wait_and_blames_nobody(port: int) -> None:
    with table(port, 2), pytest.raises(Apart, match="not all nodes answered in time"):
        seat(port, 0, 2).exchange({}, 0.3)


def test_where_nobody_listens_the_wait_ends(port: int) -> None:
    with pytest.raises(Apart, match="refused"):
        seat(port, 1, 2).exchange({}, 0.3)


def test_a_peer_that_dies_between_two_rounds_is_heard_as_none_at_once(port: int) -> None:
    first, second = seat(port, 0, 3), seat(port, 1, 3)

    def dies() -> list[Any]:
        one = seat(port, 2, 3)
        heard = one.exchange({}, HANG_S)
        one.close()
        return heard

    with table(port, 3):
        heard, _, _ = together(says(first, {}, {"b": 0}), says(second, {}, {"b": 1}), dies)
    assert heard[1] == [{"b": 0}, {"b": 1}, None]


def test_a_peer_that_stays_and_says_nothing_is_heard_as_none_in_time(port: int) -> None:
    silent = seat(port, 1, 2)
    with table(port, 2, late_s=0.5):
        heard, _ = together(says(seat(port, 0, 2), {}, {"b": 0}), says(silent, {}))
    assert heard[1] == [{"b": 0}, None]


def test_who_speaks_too_late_hears_the_answer_all_the_same(port: int) -> None:
    late, over = seat(port, 1, 2), threading.Event()

    def hears_without_it() -> None:
        says(seat(port, 0, 2), {}, {"b": 0})()
        over.set()

    def speaks_late() -> list[Any]:
        first = late.exchange({}, HANG_S)
        assert over.wait(HANG_S)
        return [first, late.exchange({"b": 1}, HANG_S)]

    with table(port, 2, late_s=0.3):
        _, heard = together(hears_without_it, speaks_late)
    assert heard[1] == [{"b": 0}, None]


def test_without_its_master_a_node_is_apart(port: int) -> None:
    one = seat(port, 1, 2)

    def leaves() -> list[Any]:
        with table(port, 2):
            return says(seat(port, 0, 2), {})()

    assert together(says(one, {}), leaves) == [[[{}, {}]]] * 2
    with pytest.raises(Apart):
        one.exchange({}, 5)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\xff" * 10_000,
        b"[" * 3000 + b"\n",
        json.dumps({"name": "job/1", "rank": 1, "x": "y" * MOST_BYTES}).encode() + b"\n",
        *(
            json.dumps(one).encode() + b"\n"
            for one in (
                {"name": "job/2", "rank": 1},
                {"name": "job/1", "rank": 2},
                {"name": "job/1", "rank": -1},
                {"name": "job/1", "rank": "1"},
                {"rank": 1},
                [],
            )
        ),
    ],
)
def test_a_stranger_is_nobody(port: int, line: bytes) -> None:
    with table(port, 2):
        stranger = socket.create_connection((HOST, port))
        stranger.sendall(line + b'{"round": 0, "said": {"planted": 1}}\n')
        heard = together(*(says(seat(port, rank, 2), {"a": rank}) for rank in range(2)))
        stranger.close()
    assert heard == [[[{"a": 0}, {"a": 1}]]] * 2


def test_a_crowd_of_strangers_is_sent_away_and_lets_the_nodes_in_once_it_is_gone(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meeting, "HELLO_S", 0.5)
    with table(port, 2):
        crowd = [socket.create_connection((HOST, port)) for _ in range(100)]
        assert together(*(says(seat(port, rank, 2), {}) for rank in range(2))) == [[[{}, {}]]] * 2
        for one in crowd:
            one.close()


@pytest.mark.parametrize(
    "answer", [b"no\n", b"[]\n", b'{"round": 7, "said": [{}, {}]}\n', b'{"round": 0, "said": [{}]}\n', b"x" * 200_000]
)
def test_something_else_on_the_port_is_no_table(port: int, answer: bytes) -> None:
    server = socket.create_server((HOST, port))

    def answers() -> None:
        server.settimeout(5)
        connection, _ = server.accept()
        connection.sendall(answer)
        time.sleep(0.5)
        connection.close()
        server.close()

    given = together(says(seat(port, 1, 2), {}, most_s=0.2), answers)
    assert isinstance(given[0], Apart)


def test_what_ends_the_wait_is_not_held_up(port: int) -> None:
    class OrderedError(Exception):
        pass

    def ordered(_: float) -> None:
        raise OrderedError

    with table(port, 2), pytest.raises(OrderedError):
        seat(port, 0, 2, pause=ordered).exchange({}, 60)


def test_a_port_that_is_taken_is_said_at_once(port: int) -> None:
    with table(port, 2), pytest.raises(OSError, match="in use"):
        MeetingTable(HOST, port, name="job/1", nodes=2, late_s=1)


def test_a_port_is_free_again_once_the_table_is_closed(port: int) -> None:
    for _ in range(3):
        with table(port, 2):
            together(*(says(seat(port, rank, 2), {}) for rank in range(2)))


@pytest.mark.parametrize("number", [-1, 10**6, "1", None])
def test_a_node_that_speaks_of_a_round_that_cannot_be_is_sent_away(port: int, number: object) -> None:
    with table(port, 2), socket.create_connection((HOST, port)) as strange:
        strange.sendall(json.dumps({"name": "job/1", "rank": 1}).encode() + b"\n")
        strange.sendall(json.dumps({"round": number, "said": {}}).encode() + b"\n")
        strange.settimeout(5)
        assert strange.recv(100) == b""
        assert together(*(says(seat(port, rank, 2), {}) for rank in range(2))) == [[[{}, {}]]] * 2
