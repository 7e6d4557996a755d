"""What tests of the engine share: the sink as S3, a folder of a trainer, an engine with a client as the agent has it."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from agent.engine.engine import Engine
from agent.engine.helpers import Crowd, choose_crowd
from agent.engine.places import Memory
from agent.snapshot import FileState, list_files
from agent.store import Store
from contract.commits import CommittedFile
from localaws.sink.objects import Bucket
from localaws.sink.server import Sink

BUCKET = "bytes"
MIB = 1024 * 1024
SESSION = boto3.session.Session(aws_access_key_id="AKIAFIRST", aws_secret_access_key="secret")
"""One for all, because each reads the models of S3 for itself."""


def client(sink: Sink, *, trusted: Any = None, attempts: int = 3, read_s: float = 10, **more: Any) -> Any:
    """As the agent makes it, but for shorter patience."""
    return SESSION.client(
        "s3",
        region_name="eu-central-1",
        endpoint_url=sink.endpoint,
        verify=str(sink.authority) if trusted is None else trusted,
        config=Config(
            retries={"mode": "standard", "total_max_attempts": attempts}, read_timeout=read_s, connect_timeout=5, **more
        ),
    )


def content(size: int, seed: object) -> bytes:
    return random.Random(str(seed)).randbytes(size)


@dataclass
class Yard:
    """A trainer's folder, a bucket, and an engine between them."""

    sink: Sink
    folder: Path
    staging: Path
    store: Store
    engine: Engine
    notes: list[str]
    """What the node's log has of it."""
    memory: Memory = field(default_factory=Memory)

    @property
    def client(self) -> Any:
        return self.store.client

    @property
    def bucket(self) -> Bucket:
        return self.sink.buckets[BUCKET]

    def write(self, files: Mapping[str, bytes]) -> None:
        for path, told in files.items():
            target = self.folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(told)

    def seen(self) -> list[FileState]:
        return list(list_files(self.folder, print).values())

    def send(self, *, packed: bool = True, **more: Any) -> dict[str, CommittedFile]:
        """Everything that is in the folder now."""
        return self.send_only(self.seen(), packed=packed, **more)

    def send_only(self, seen: list[FileState], *, packed: bool = True, **more: Any) -> dict[str, CommittedFile]:
        return self.engine.send(
            self.folder,
            seen,
            self.memory,
            pack_key=(lambda digest: f"packs/{digest}") if packed else None,
            file_key=(lambda name, path: f"files/{name}/{path}") if packed else (lambda _, path: f"own/{path}"),
            **more,
        )

    def restored(self) -> dict[str, bytes]:
        return {
            str(file.relative_to(self.staging)): file.read_bytes() for file in self.staging.rglob("*") if file.is_file()
        }


ONE = Crowd(1, 4)


@contextmanager
def yard(folder: Path, *, crowd: Crowd | None = None, **settings: Any) -> Iterator[Yard]:
    """`crowd`: the helpers that move the bytes, however few these are."""
    sink = Sink(folder / "sink")
    try:
        (folder / "checkpoints").mkdir()
        store = Store(client(sink, **settings), BUCKET, authorities=str(sink.authority))
        notes = list[str]()
        chosen = choose_crowd if crowd is None else lambda *_: crowd
        engine = Engine(store, sleep=lambda _: None, choose=chosen, note=notes.append)
        yield Yard(sink, folder / "checkpoints", folder / "staging", store, engine, notes)
    finally:
        sink.close()
