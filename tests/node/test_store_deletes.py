"""What the agent deletes: many objects a call, and none of them silently kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.store import NotDeleted, Store
from tests.node.engine_yard import BUCKET, client, yard


def test_objects_go_a_thousand_a_call(tmp_path: Path) -> None:
    with yard(tmp_path) as it:
        keys = [f"k/{number:04d} &<ä>" for number in range(2001)]
        for key in keys:
            it.bucket.put(key, b"")
        it.bucket.put("kept", b"")
        Store(client(it.sink), BUCKET).delete(key for key in [*keys, "absent"])
        assert (list(it.bucket.objects), it.sink.calls) == (["kept"], {"DeleteObjects": 3})


def test_nothing_to_delete_asks_nothing(tmp_path: Path) -> None:
    with yard(tmp_path) as it:
        Store(client(it.sink), BUCKET).delete([])
        assert it.sink.calls == {}


def test_an_object_that_stays_is_an_error() -> None:
    class Locked:
        def delete_objects(self, **_: object) -> dict[str, object]:
            return {"Errors": [{"Key": "a", "Code": "AccessDenied"}]}

    with pytest.raises(NotDeleted, match="1 objects stay, a among them: AccessDenied"):
        Store(Locked(), BUCKET).delete(["a", "b"])
