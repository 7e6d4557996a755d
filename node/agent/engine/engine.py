"""Sends files to a bucket and fetches them: the one way for bytes of checkpoints and artifacts."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from agent.engine.bodies import hash_once
from agent.engine.fetching import Fetching
from agent.engine.pace import Pace
from agent.engine.places import Memory
from agent.engine.sending import Sending
from agent.engine.tree import Tree
from agent.snapshot import FileState
from agent.store import Store
from contract.commits import CommittedFile


class Engine:
    """Of one bucket. Not for use by two threads at once.

    Calls raise what boto3 raises after its retries, except where their docstring says otherwise. Their threads are as nice as the
    thread that calls (`machine.give_way`).
    """

    def __init__(self, store: Store, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self._store, self._sleep = store, sleep
        hash_once(store.client)

    def send(
        self,
        folder: Path,
        files: Sequence[FileState],
        memory: Memory,
        *,
        pack_key: Callable[[str], str] | None,
        file_key: Callable[[str, str], str],
        cores: float | None = None,
        when_open: Callable[[], None] = lambda: None,
    ) -> dict[str, CommittedFile]:
        """Sends what is not in the bucket yet, and returns where every file is, by path.

        `pack_key` makes the key of a pack of its digest; None for files that each need an object of their own. `file_key` makes the
        key of another file of a name that no other content has, and its path. `cores`: how many processors it may use on average; None
        for all. `when_open` is called once the files are open, and before one is read.

        Raises snapshot.Changed where a file is not what was seen any more.
        """
        sending = Sending(
            self._store.client,
            self._store.bucket,
            memory,
            Pace(cores),
            pack_key=pack_key,
            file_key=file_key,
        )
        return sending.run(folder, files, when_open)

    def fetch(self, files: Sequence[CommittedFile], staging: Path) -> None:
        """Fetches files into `staging`, each with its mode; none of them may be there. What was fetched stays there on an error.

        Raises wanted.Unusable where a commit cannot be true: an object or a part of it is missing, a digest is another one, a path leaves
        the folder; OSError where the disk is full.
        """
        tree = Tree(staging)
        try:
            Fetching(self._store, tree, sleep=self._sleep).run(files)
        finally:
            tree.close()
