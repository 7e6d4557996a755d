"""A worker of a function: what it takes by the processor is held against its time-out."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from localaws.runtime_api import Invocation, Worker

# A runtime client: it computes for so long before it asks for its first event, and then answers each at once.
CLIENT = """
import http.client, os, time
while time.process_time() < {init_s}:
    pass
while True:
    api = http.client.HTTPConnection(os.environ["AWS_LAMBDA_RUNTIME_API"])
    api.request("GET", "/2018-06-01/runtime/invocation/next")
    event = api.getresponse()
    event.read()
    began = time.process_time()
    while time.process_time() < began + {works_s}:
        pass
    api.request("POST", f"/2018-06-01/runtime/invocation/{{event.headers['Lambda-Runtime-Aws-Request-Id']}}/response", b"1")
    api.getresponse().read()
"""


@contextmanager
def working(folder: Path, *, share: float, init_s: float = 0.0, works_s: float = 0.0) -> Iterator[Worker]:
    code = CLIENT.format(init_s=init_s, works_s=works_s)
    worker = Worker([sys.executable, "-c", code], {}, folder, lambda _: None, share=share)
    try:
        yield worker
    finally:
        worker.stop()


def within(timeout_s: float) -> Invocation:
    return Invocation(
        request="request-1", arn="arn:aws:lambda:eu-central-1:1:function:f", payload=b"{}", timeout_s=timeout_s
    )


def test_a_function_answers_within_its_time(tmp_path: Path) -> None:
    with working(tmp_path, share=1.0) as worker:
        assert worker.invoke(within(60.0)).payload == b"1"


def test_a_quick_function_of_little_memory_is_given_up_when_its_share_would_take_too_long(tmp_path: Path) -> None:
    with working(tmp_path, share=0.001, works_s=0.2) as worker:
        assert b"Task timed out after 60.00 seconds" in worker.invoke(within(60.0)).payload
        assert not worker.alive


@pytest.mark.parametrize(("timeout_s", "answer"), [(60.0, b"Task timed out"), (3600.0, b"1")])
def test_an_init_that_lambda_would_break_off_is_begun_anew_in_the_first_invocation(
    tmp_path: Path, timeout_s: float, answer: bytes
) -> None:
    with working(tmp_path, share=0.001, init_s=0.2) as worker:
        assert answer in worker.invoke(within(timeout_s)).payload


def test_an_init_that_was_begun_anew_counts_once(tmp_path: Path) -> None:
    with working(tmp_path, share=0.001, init_s=1.0) as worker:
        assert worker.invoke(within(36_000.0)).payload == b"1"
        assert worker.invoke(within(900.0)).payload == b"1"


def test_an_init_in_time_is_not_held_against_the_invocation(tmp_path: Path) -> None:
    with working(tmp_path, share=1.0, init_s=0.5) as worker:
        assert worker.invoke(within(60.0)).payload == b"1"
