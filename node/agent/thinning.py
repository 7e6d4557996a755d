"""Removes one rank's parts of old sets, and the objects that none of its parts lists any more."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress

from agent.commits import Folder
from agent.retention import History, leftover, stale
from agent.store import Missing, Store
from contract.codec import Garbled, decode
from contract.commits import Commit
from contract.keys import BytesPrefix


class Thinning:
    """What one rank remembers of its objects in one bucket. Not for use by two threads at once."""

    def __init__(
        self,
        store: Store,
        folder: Folder,
        *,
        job: str,
        rank: int,
        now: Callable[[], float],
        note: Callable[[str], None],
    ) -> None:
        """`now` is AWS's time, UTC epoch seconds."""
        self._store, self._folder, self._keys, self._rank = store, folder, BytesPrefix(job), rank
        self._now, self._note = now, note
        self._documents: dict[str, Commit] = {}
        self._sent: dict[str, float] = {}

    def add(self, key: str, commit: Commit) -> None:
        """Takes note of a part that was just written."""
        self._documents[key] = commit

    def sent(self, keys: Iterable[str]) -> None:
        """Takes note of objects that were just sent, also where no document will ever list them."""
        self._sent |= dict.fromkeys(keys, self._now())

    def thin(self, known: History, newest: Commit | None) -> None:
        """Removes this rank's parts of sets before the newest three, then the files that none of its parts lists any more. `newest` is
        this rank's newest commit. Never raises: the next set tries again."""
        old = stale(known, self._rank)
        if not old.parts and not old.closing:
            return
        try:
            sent = dict(self._once_listed(old.parts)) | self._sent
            for keys in (old.closing, old.parts):
                self._store.delete(keys)
            kept = [key for key in known.files_of(self._rank) if key not in old.parts]
            listed = {file.key for key in kept for file in self._document(key).files}
            own = list(self._store.objects(self._keys.checkpoints(self._rank)))
            unlisted = leftover(own, listed=listed, sent=sent, now=self._now())
            left = {one.key: one.size for one in own if one.key in listed}
            # First, because they may be gone although the answer says nothing of it, or says that others stay.
            self._folder.deleted(unlisted, left, newest.files if newest else ())
            self._store.delete(unlisted)
            for key in unlisted:
                self._sent.pop(key, None)
        except Exception as problem:
            self._note(f"old checkpoints stay for now: {problem}")
        else:
            self._note(f"thinned: {len(old.parts)} documents and {len(unlisted)} objects of older checkpoints")

    def _once_listed(self, documents: Iterable[str]) -> Iterable[tuple[str, float]]:
        """Keys in documents that are about to be deleted, with the documents' times; of one that cannot be read, nothing is known."""
        for document in sorted(documents):
            with suppress(Garbled, Missing):
                commit = self._document(document)
                yield from ((file.key, commit.created_at) for file in commit.files)
            self._documents.pop(document, None)

    def _document(self, key: str) -> Commit:
        if key not in self._documents:
            self._documents[key] = decode(Commit, self._store.get(key))
        return self._documents[key]
