"""Without a network set-up says so, and does not hide it behind what pip did not find."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from tools.offline import PYPI, SHOWN, describe_silence, explain, find_index


class Refuses(BaseHTTPRequestHandler):
    """An index that has nothing."""

    def do_GET(self) -> None:
        self.send_error(404)

    def log_message(self, format: str, *args: object) -> None:
        """Logs nothing."""


@pytest.fixture
def index() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Refuses)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/simple"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def closed() -> Iterator[str]:
    """The address of a port at which nothing listens for as long as the test runs."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{held.getsockname()[1]}"


def test_an_index_that_answers_is_not_the_network_s_fault(index: str) -> None:
    assert describe_silence(index) == ""


def test_an_index_that_does_not_answer_is_one_line_with_its_host_and_no_password(closed: str) -> None:
    line = describe_silence(f"http://me:hunter2@{closed}/simple")
    assert line.startswith(f"No network: the package index at {closed} could not be reached (")
    assert "HTTPS_PROXY" in line
    assert "hunter2" not in line
    assert "\n" not in line


@pytest.mark.parametrize("index", ["", "nonsense", "http://", "file:///nowhere"])
def test_what_is_no_address_is_a_line_too(index: str) -> None:
    assert describe_silence(index).startswith("No network: ")


def test_the_index_is_the_one_that_pip_asks() -> None:
    assert find_index({"PIP_INDEX_URL": "http://mine/simple"}) == "http://mine/simple"
    assert find_index({"PIP_CONFIG_FILE": "/dev/null", "HOME": "/nonexistent"}) == PYPI


def test_where_the_network_is_there_pip_s_last_words_are_shown() -> None:
    log = "\n".join(f"line {number}" for number in range(100))
    assert explain(log, "") == "\n".join(log.splitlines()[-SHOWN:])
    assert explain(log, "No network") == "No network"
