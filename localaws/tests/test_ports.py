"""Ports of rehearsals that share a computer: each has its own, and one that is taken is passed over."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from localaws import ports
from localaws.ports import APART, Addresses, Port

FIRST = 21_700
"""Not where rehearsals begin: one may run beside this test."""
OTHER = f"from localaws.ports import Port; port = Port({FIRST}); print(port.number, flush=True); input()"
BESIDE = """
from localaws.ports import APART, Addresses, Port
addresses, port = Addresses(), Port({first}, apart=APART)
print(port.number, *(addresses.take() for _ in range(2000)), flush=True)
input()
"""


@pytest.fixture
def first() -> Iterator[Port]:
    port = Port(FIRST)
    yield port
    port.release()


def test_two_rehearsals_never_have_the_same_port(first: Port) -> None:
    second = Port(FIRST)
    assert first.number < second.number
    second.release()


def test_a_rehearsal_in_another_process_is_seen_until_it_is_over_however_it_ends(first: Port) -> None:
    first.release()
    with subprocess.Popen([sys.executable, "-c", OTHER], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        theirs = int(other.stdout.readline())
        beside = Port(theirs)
        other.kill()
    after = Port(theirs)
    assert beside.number > theirs == after.number
    for port in (beside, after):
        port.release()


@pytest.mark.parametrize("address", ["127.0.0.1", "127.16.0.9", "0.0.0.0"])
def test_a_port_on_which_anybody_listens_is_passed_over(first: Port, address: str) -> None:
    first.release()
    with socket.create_server((address, first.number)):
        other = Port(first.number)
    assert other.number > first.number
    other.release()


def test_a_port_that_was_released_is_free_again_at_once(first: Port) -> None:
    first.release()
    first.release()
    again = Port(first.number)
    assert again.number == first.number
    again.release()


def test_where_no_port_is_free_that_is_said(first: Port) -> None:
    with pytest.raises(OSError, match=f"no port from {first.number} to {first.number} is free"):
        Port(first.number, many=1)


def test_rehearsals_in_two_processes_share_no_port_of_a_training_and_no_address_of_a_machine() -> None:
    with ExitStack() as both:
        command = [sys.executable, "-c", BESIDE.format(first=FIRST)]
        others = [
            both.enter_context(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
            for _ in range(2)
        ]
        ports, addresses = list[int](), list[set[str]]()
        for one in others:
            assert one.stdout is not None
            port, *given = one.stdout.readline().split()
            ports.append(int(port))
            addresses.append(set(given))
        for one in others:
            one.kill()
    assert [len(one) for one in addresses] == [2000, 2000]
    assert addresses[0].isdisjoint(addresses[1])
    assert abs(ports[0] - ports[1]) >= APART


def test_the_ports_that_follow_one_of_a_training_belong_to_no_other(first: Port) -> None:
    apart = [Port(FIRST, apart=APART) for _ in range(3)]
    assert [(one.number - FIRST) % APART for one in apart] == [0, 0, 0]
    assert len({one.number for one in apart} | {first.number}) == 4
    for one in apart:
        one.release()


@pytest.fixture
def addresses() -> Iterator[Addresses]:
    found = Addresses()
    yield found
    found.release()


def test_a_process_can_listen_on_every_address_and_none_is_one_of_those_that_aws_keeps(addresses: Addresses) -> None:
    given = [addresses.take() for _ in range(300)]
    assert len(set(given)) == 300
    for one in given:
        socket.create_server((one, 0)).close()
        assert int(one.rpartition(".")[2]) in range(4, 255)


def test_two_local_aws_of_one_process_give_different_addresses_and_what_is_released_comes_again(
    addresses: Addresses,
) -> None:
    other, mine = Addresses(), addresses.take()
    theirs = other.take()
    assert theirs.rpartition(".")[0] != mine.rpartition(".")[0]
    other.release()
    other.release()
    assert other.take() == theirs
    other.release()


def test_where_every_block_of_addresses_is_taken_that_is_said(
    addresses: Addresses, monkeypatch: pytest.MonkeyPatch
) -> None:
    block = int(addresses.take().split(".")[1])
    monkeypatch.setattr(ports, "BLOCKS", range(block, block + 1))
    with pytest.raises(OSError, match="every block of addresses of this computer"):
        Addresses().take()
