"""Answers of an API server that are none, and what is made of them: whatever comes, it is not known whether a call took effect."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest

from contract.kubernetes_api import ClusterProblem, KubernetesApi
from tests.fakes.kubernetes import authority


def answer(status: int, body: bytes, *, length: int | None = None, more: str = "") -> bytes:
    size = len(body) if length is None else length
    return f"HTTP/1.1 {status} X\r\nContent-Length: {size}\r\n{more}\r\n".encode() + body


def serve(reply: bytes) -> tuple[str, list[bytes]]:
    """Answers one call with these bytes. Returns the address, and what comes there."""
    listener, heard = socket.create_server(("127.0.0.1", 0)), list[bytes]()

    def run() -> None:
        with listener:
            connection, _ = listener.accept()
            with connection:
                heard.append(connection.recv(65536))
                connection.sendall(reply)

    threading.Thread(target=run, daemon=True).start()
    return f"http://127.0.0.1:{listener.getsockname()[1]}", heard


def create(api: KubernetesApi) -> Any:
    return api.create({"metadata": {"name": "j"}})


def find(api: KubernetesApi) -> Any:
    return api.find("j")


def list_jobs(api: KubernetesApi) -> Any:
    return list(api.list_jobs("a=b"))


def count_pods(api: KubernetesApi) -> Any:
    return api.count_pods("machines")


def close(api: KubernetesApi) -> Any:
    return api.close({"metadata": {"name": "j"}})


def call(act: Callable[[KubernetesApi], Any], address: str) -> ClusterProblem:
    with pytest.raises(ClusterProblem) as problem:
        act(KubernetesApi(address, authority(), "y-lines", lambda: "TOKEN"))
    return problem.value


@pytest.mark.parametrize(
    ("act", "reply", "status"),
    [
        (create, answer(201, b'{"metadata"', length=500), 0),
        (create, answer(201, b"{}"), 0),
        (create, answer(201, b'{"metadata": null}'), 0),
        (create, answer(500, b'{"mess', length=500), 500),
        (find, b"garbage\r\n\r\n", 0),
        (find, b"", 0),
        (find, answer(200, b"[" * 200_000), 0),
        (find, answer(200, b"\xff"), 0),
        (find, answer(200, b"[]"), 0),
        (create, answer(201, b'{"metadata": [1]}'), 0),
        (list_jobs, answer(200, b'{"items": [1]}'), 0),
        (list_jobs, answer(200, b'{"items": 1}'), 0),
        (count_pods, answer(200, b'{"status": {"used": {"pods": "many"}}}'), 0),
        (count_pods, answer(403, b'{"message": "forbidden"}'), 403),
    ],
)
def test_an_answer_that_is_none_is_a_problem_of_the_cluster(
    act: Callable[[KubernetesApi], Any], reply: bytes, status: int
) -> None:
    address, _ = serve(reply)
    assert call(act, address).status == status


@pytest.mark.parametrize("act", [create, find])
def test_a_token_does_not_follow_an_answer_to_another_host(act: Callable[[KubernetesApi], Any]) -> None:
    other, heard = serve(answer(200, b'{"metadata": {"uid": "u"}}'))
    address, _ = serve(answer(302, b"", more=f"Location: {other}/x\r\n"))
    assert call(act, address).status == 302
    assert heard == []


@pytest.mark.parametrize("act", [create, close])
def test_a_field_that_the_cluster_does_not_know_is_not_to_be_dropped_in_silence(
    act: Callable[[KubernetesApi], Any],
) -> None:
    address, heard = serve(answer(400, b'{"message": "strict decoding error: unknown field"}'))
    assert call(act, address).status == 400
    assert heard[0].partition(b" HTTP/")[0].endswith(b"?fieldValidation=Strict")


@pytest.mark.parametrize(
    "cluster",
    [
        {"status": "CREATING"},
        {"status": "CREATING", "certificateAuthority": {}},
        {"status": "CREATING", "endpoint": "https://a"},
    ],
)
def test_a_cluster_that_is_being_made_has_no_address_and_that_is_said(cluster: dict[str, Any]) -> None:
    with pytest.raises(ClusterProblem, match=r"has no address: it is CREATING") as problem:
        KubernetesApi.of(cluster, "y-lines", lambda: "TOKEN")
    assert problem.value.status == 0
