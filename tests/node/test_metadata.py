"""Whatever comes instead of an answer of the metadata service, its callers see an OSError: the threads that look there must not die."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from agent.metadata import AGAIN_S, TRIES, Metadata
from agent.table import NodeItems
from tests.builders import JOB
from tests.node.fakes import imds
from tests.node.table import NAME, ROLE, NodeTable
from tests.node.watching import watch

BROKEN = {
    "cut off": b'HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{"action"',
    "no status": b"\r\n",
    "another protocol": b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
    "a length that is no number": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "no text": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n\xff\xfe",
    "nothing": b"",
    "a header without end": b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70_000,
}
SAID = "cannot be read|closed connection|reset by peer"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\ntoken"


@contextmanager
def served(*answers: bytes) -> Iterator[Metadata]:
    """A service that gives these answers, one a connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            for answer in answers:
                connection, _ = server.accept()
                with connection:
                    connection.recv(65536)
                    connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield Metadata(f"http://127.0.0.1:{server.getsockname()[1]}", timeout_s=2.0)
        thread.join(5)


@pytest.mark.parametrize("kind", list(BROKEN))
def test_a_broken_answer_is_an_os_error(kind: str) -> None:
    with served(ANSWER, BROKEN[kind]) as metadata, pytest.raises(OSError, match=SAID):
        metadata.spot_notice()


@pytest.mark.parametrize("kind", list(BROKEN))
def test_a_broken_token_is_an_os_error(kind: str) -> None:
    with served(BROKEN[kind]) as metadata, pytest.raises(OSError, match=SAID):
        metadata.spot_notice()


def test_the_watch_sees_the_deadline_although_the_metadata_service_is_broken() -> None:
    items = NodeItems(NodeTable(), NAME, ROLE, "i-1")
    with served(ANSWER, BROKEN["cut off"]) as metadata:
        order = watch(items, metadata, now=JOB.deadline - 60.0).read_order()
    assert order is not None
    assert order.error == "DeadlineReached"


@pytest.mark.parametrize("lost", [0, 1, TRIES - 1])
def test_a_patient_question_has_its_answer_although_some_get_none(lost: int) -> None:
    with imds({"instance-type": "g5.xlarge"}) as service:
        service.lost["instance-type"], pauses = lost, list[float]()
        assert service.metadata.patient("instance-type", pauses.append) == "g5.xlarge"
        assert pauses == [AGAIN_S] * lost


def test_a_patient_question_ends_and_says_that_nobody_answers() -> None:
    with imds({"instance-type": "g5.xlarge"}) as service:
        service.lost["instance-type"] = TRIES
        with pytest.raises(OSError, match="cannot be read"):
            service.metadata.patient("instance-type", lambda _: None)
        assert service.asked == ["instance-type"] * TRIES


def test_what_is_not_there_is_asked_for_once() -> None:
    with imds({}) as service:
        assert service.metadata.patient("instance-type", lambda _: None) == ""
        assert service.asked == ["instance-type"]


def test_a_pause_may_end_a_patient_question() -> None:
    def ordered(_: float) -> None:
        raise KeyError

    with imds({"instance-type": "g5.xlarge"}) as service:
        service.lost["instance-type"] = TRIES
        with pytest.raises(KeyError):
            service.metadata.patient("instance-type", ordered)
