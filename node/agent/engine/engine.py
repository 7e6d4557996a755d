"""Sends files to a bucket and fetches them: the one way for bytes of checkpoints and artifacts."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from agent.engine.fetching import Fetching
from agent.engine.helpers import Crowd, Helpers, choose_crowd, count_processors
from agent.engine.moving import Mover, prepare
from agent.engine.pace import Pace
from agent.engine.places import SMALL, Memory
from agent.engine.sending import Sending
from agent.engine.tree import Tree
from agent.engine.wanted import check
from agent.snapshot import FileState
from agent.store import Store
from contract.commits import CommittedFile

ALONE = 5
"""Threads, where no helper moves the bytes."""


class Engine:
    """Of one bucket. Not for use by two threads at once.

    Calls raise what boto3 raises after its retries, except where their docstring says otherwise. Their threads and helpers are as nice
    as the thread that calls (`machine.give_way`).
    """

    def __init__(
        self,
        store: Store,
        *,
        sleep: Callable[[float], None] = time.sleep,
        choose: Callable[[int, float, int, float | None], Crowd] = choose_crowd,
        note: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`note` hears why bytes moved slower than they could, once for each reason."""
        self._store, self._sleep, self._choose = store, sleep, choose
        self._note, self._noted = note, set[str]()
        prepare(store.client)

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
        pace, failed = Pace(cores), threading.Event()
        with self._helped((seen.size for seen in files if seen not in memory.digests), cores, pace) as helpers:
            sending = Sending(
                self._store,
                self._mover(helpers, failed),
                memory,
                pace,
                failed=failed,
                pack_key=pack_key,
                file_key=file_key,
            )
            return sending.run(folder, files, helpers.lines or ALONE, when_open)

    def fetch(self, files: Sequence[CommittedFile], staging: Path) -> None:
        """Fetches files into `staging`, each with its mode; none of them may be there. What was fetched stays there on an error.

        Raises wanted.Unusable where a commit cannot be true: an object or a part of it is missing, a digest is another one, a path leaves
        the folder; OSError where the disk is full.
        """
        check(files)
        tree, failed = Tree(staging), threading.Event()
        try:
            with self._helped((file.size for file in files), None, Pace(None)) as helpers:
                Fetching(self._mover(helpers, failed), tree, failed).run(files, helpers.lines or ALONE)
        finally:
            tree.close()

    @contextmanager
    def _helped(self, sizes: Iterable[int], cores: float | None, pace: Pace) -> Iterator[Helpers]:
        """Helpers for the large ones of these files. Small ones keep this process busy with their names and digests, and boto3 needs less
        for the few packs that they fill than helpers for their start."""
        from botocore.httpsession import get_cert_path

        authorities = self._store.authorities or get_cert_path(True) or ""
        crowd = self._choose(sum(size for size in sizes if size > SMALL), self._store.gbps, count_processors(), cores)
        with Helpers(crowd, authorities, use=pace.count) as helpers:
            yield helpers
        if helpers.problem and helpers.problem not in self._noted:
            self._noted.add(helpers.problem)
            self._note(f"the agent moves large files by itself, which is slower: {helpers.problem}")

    def _mover(self, helpers: Helpers, failed: threading.Event) -> Mover:
        return Mover(self._store, helpers, failed=failed.is_set, sleep=self._sleep)
