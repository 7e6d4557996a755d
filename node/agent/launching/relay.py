"""Brings the commands of rank 0's mpirun to the other nodes, and their ends back, in the place of ssh.

A command can only come from the job's own nodes, whose code runs there anyway: sessions of other jobs neither read nor write the prefix.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from agent.failures import CannotStart, MachineTrouble
from agent.launching import shared
from agent.store import Missing, Store
from contract.codec import Garbled, compact, decode
from contract.keys import BytesPrefix
from contract.remote import MOST, RemoteCommand, RemoteEnd

COMMANDS, ENDS = "commands", "ends"
LOOK_S = 0.5
"""How often rank 0 looks for new commands of its mpirun, which are files of its own."""
ENDS_S = 5.0
"""How often it asks S3 for ends; in the first minute once in a second, because a daemon that does not start ends early."""
EARLY_S = 60.0
ASK_S = 1.0
"""How often another node asks S3 for its command: some requests in the seconds between the starts of the nodes."""


@dataclass(frozen=True, kw_only=True)
class Meeting:
    """Where the nodes of an attempt find each other's documents."""

    store: Store
    job: str
    attempt: int
    nodes: int

    def command(self, rank: int) -> str:
        return BytesPrefix(self.job).remote_command(self.attempt, rank)

    def end(self, rank: int) -> str:
        return BytesPrefix(self.job).remote_end(self.attempt, rank)


class CommandRelay:
    """Rank 0's side: a thread that hands on each command, and notes each end where the script in the place of ssh waits for it."""

    def __init__(
        self,
        meeting: Meeting,
        folder: Path,
        *,
        note: Callable[[str], None],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._meeting, self._folder, self._note, self._monotonic = meeting, folder, note, monotonic
        self._running, self._began, self._ask_at, self._trouble = set[int](), monotonic(), 0.0, ""
        self._handed = set[int]()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="relay", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._closed.set()

    def _run(self) -> None:
        while not self._closed.wait(LOOK_S):
            self.exchange()

    def exchange(self) -> None:
        """Hands on what is new. Trouble is noted, and the next look tries again."""
        try:
            self._hand_on()
            self._bring_back()
            self._trouble = ""
        except Exception as problem:  # S3 may be away for a while; the next look is half a second ahead
            if (words := f"the nodes' daemons of MPI: {problem}") != self._trouble:
                self._trouble = words
                self._note(words)

    def _hand_on(self) -> None:
        for rank in range(1, self._meeting.nodes):
            found = None if rank in self._handed else shared.read(self._folder, f"{COMMANDS}/{rank}", MOST + 1)
            if found is None:
                continue
            command = found.content.decode(errors="replace")
            if len(command) > MOST // 2:
                raise ValueError(f"the command for rank {rank} has more than {MOST // 2:,} bytes")
            self._meeting.store.put(self._meeting.command(rank), compact(RemoteCommand(command=command)))
            self._handed.add(rank)
            self._running.add(rank)

    def _bring_back(self) -> None:
        now = self._monotonic()
        if not self._running or now < self._ask_at:
            return
        self._ask_at = now + (ASK_S if now < self._began + EARLY_S else ENDS_S)
        meeting = self._meeting
        there = set(meeting.store.keys(BytesPrefix(meeting.job).remote(meeting.attempt)))
        for rank in sorted(one for one in self._running if meeting.end(one) in there):
            with suppress(Garbled, Missing):
                end = decode(RemoteEnd, meeting.store.get(meeting.end(rank), most=MOST))
                shared.write(self._folder, ENDS, str(rank), f"{end.code & 0xFF}\n")
                self._running.discard(rank)


def wait_for_command(
    meeting: Meeting,
    rank: int,
    *,
    most_s: float,
    pause: Callable[[float], None],
    note: Callable[[str], None],
    monotonic: Callable[[], float] = time.monotonic,
) -> str:
    """Returns what rank 0's mpirun wants this node to run. Raises MachineTrouble where it does not come in time, CannotStart where it
    cannot be read, and what `pause` raises."""
    until, trouble = monotonic() + most_s, ""
    while monotonic() < until:
        try:
            return decode(RemoteCommand, meeting.store.get(meeting.command(rank), most=MOST)).command
        except Missing:
            pass
        except Garbled as problem:
            raise CannotStart(f"what mpirun wants this node to run cannot be read: {problem}") from None
        except Exception as problem:  # S3 may be away, or the keys of the job have expired
            if str(problem) != trouble:
                trouble = str(problem)
                note(f"the agent cannot ask for the command of rank 0's mpirun: {trouble}")
        pause(ASK_S)
    raise MachineTrouble(f"rank 0's mpirun did not ask for this node within {most_s:.0f} s. {trouble}".strip())


def tell_end(meeting: Meeting, rank: int, code: int, note: Callable[[str], None]) -> bool:
    """Says to rank 0 how its command ended here. Returns whether that was possible: without it Hydra's mpirun does not end."""
    try:
        meeting.store.put(meeting.end(rank), compact(RemoteEnd(code=code)))
    except Exception as problem:  # S3 may be away, or the keys of the job have expired
        note(f"rank 0 was not told of the end: {problem}")
        return False
    return True
