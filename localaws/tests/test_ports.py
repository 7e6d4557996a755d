"""Ports of rehearsals that share a computer: each has its own, and one that is taken is passed over."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from localaws import ports
from localaws.ports import Port

FIRST = 21_700
"""Not where rehearsals begin: one may run beside this test."""
OTHER = f"from localaws.ports import Port; port = Port({FIRST}); print(port.number, flush=True); input()"


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


def test_where_no_port_is_free_that_is_said(first: Port, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "MANY", 1)
    with pytest.raises(OSError, match=f"no port from {first.number} to {first.number} is free"):
        Port(first.number)
