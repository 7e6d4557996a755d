"""The account of a benchmark as a process of its own: printed port, served until its standard input ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def caller(account: str) -> str:
    """Returns the answer of GetCallerIdentity."""
    return (
        '<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult>'
        f"<Arn>arn:aws:iam::{account}:user/benchmark</Arn><UserId>benchmark</UserId><Account>{account}</Account>"
        "</GetCallerIdentityResult></GetCallerIdentityResponse>"
    )


S3_MISSING = "<Error><Code>NoSuchKey</Code><Message>The specified key does not exist.</Message></Error>"


def serve(server: ThreadingHTTPServer, *facts: object) -> None:
    """Prints the port, and the facts behind it, for `served`."""
    print(server.server_port, *facts, flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()
    server.shutdown()


@dataclass(frozen=True, slots=True)
class Served:
    """The server's process."""

    endpoint: str
    facts: list[str]

    def fetch_json(self, path: str) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self.endpoint}{path}", timeout=30) as answer:
            found: dict[str, Any] = json.load(answer)
            return found


@contextmanager
def served(module: str, *arguments: str) -> Iterator[Served]:
    """Runs the module, which calls `serve`, for as long as the block lasts."""
    command, paths = [sys.executable, "-m", module, *arguments], f"{ROOT}:{ROOT / 'lambda'}"
    variables = os.environ | {"PYTHONPATH": paths}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=variables) as server:
        assert server.stdout
        port, *facts = server.stdout.readline().split()
        yield Served(f"http://127.0.0.1:{port}", facts)
        server.communicate()


def variables(endpoint: str, region: str) -> dict[str, str]:
    """Returns the environment of both competitors: nobody's settings are found."""
    return {
        "PATH": os.environ["PATH"],
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_DEFAULT_REGION": region,
        "AWS_ACCESS_KEY_ID": "benchmark",
        "AWS_SECRET_ACCESS_KEY": "benchmark",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
