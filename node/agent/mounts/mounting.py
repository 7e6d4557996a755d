"""Mounts the job's file systems before anything of the job runs, renews their credentials, and unmounts them once everything is saved."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from agent.failures import MachineTrouble
from agent.mounts import failing, profile
from agent.mounts.options import command, helper
from agent.programs import Said, ask
from contract.jobs import Job
from contract.mounts import JobMount
from contract.sessions import SessionCredentials

AGAIN_S = 10.0
KEYS_EVERY_S = 300.0
"""How often the helpers get the newest credentials; they are renewed half an hour before they expire."""
UNMOUNT_S = 30.0
"""How long an unmount may take, which writes what is not written yet; after that it is left to the kernel."""
LAZY_S = 5.0
NOT_MOUNTED = "not mounted"
"""What umount says where a mount was ended before it had mounted anything."""
CREDENTIALS = "root/.aws/credentials"
SYSTEM_PATH = "/usr/sbin:/sbin"
"""Where mount looks for its helpers, whatever the agent's own path is."""
FOLDER = "mounts"
BEGUN = "begun"
"""Ends the name of a file that says, to another run of the agent, that what is mounted at a path of the request is the job's."""


class Mounts:
    """The file systems of one node."""

    def __init__(
        self,
        job: Job,
        *,
        root: Path,
        work: Path,
        variables: Mapping[str, str],
        credentials: Callable[[], SessionCredentials],
        pause: Callable[[float], None],
        note: Callable[[str], None],
        tell: Callable[[str], None],
        ask: Callable[[Sequence[str], float, Callable[[float], None]], Said] = ask,
    ) -> None:
        """`credentials` raises CredentialsExpired, and `pause` raises Ordered where an order comes. `tell` says in the node's report what
        the agent waits for."""
        self._job, self._root, self._work, self._variables = job, root, work, variables
        self._credentials, self._pause, self._note, self._tell, self._ask = credentials, pause, note, tell, ask
        self._partition = job.execution.split(":")[1]
        self._mounted = list[Path]()
        self._closed = threading.Event()

    def place(self, number: int, mount: JobMount) -> Path:
        """Where the machine has it: at the path of the request, or, for a container, in a folder that is mounted there."""
        if self._job.container is not None:
            return self._work / FOLDER / str(number)
        return self._root / mount.at.lstrip("/")

    @property
    def places(self) -> list[tuple[Path, JobMount]]:
        """Every file system, where the machine has it."""
        return [(self.place(number, one), one) for number, one in enumerate(self._job.mounted)]

    def begin(self) -> None:
        """Mounts everything. Raises CannotStart where every node would fail, and MachineTrouble where another may not."""
        if any(one.file_system.kind.service for one in self._job.mounted):
            self._renew()
            threading.Thread(target=self._keep_credentials, name="mount-keys", daemon=True).start()
        for number, (place, one) in enumerate(self.places):
            if place in self._mounted:
                continue
            self._tell(f"mounts {one.file_system.address}")
            self._mount(place, one, self._work / FOLDER / f"{number}.{BEGUN}")
            self._note(f"mounted {one.file_system.address} at {one.at}{', read only' if one.read_only else ''}")
        if self._job.mounted:
            self._tell("")

    def close(self) -> None:
        """Unmounts everything, the last one first. One that is busy, or does not answer, is detached from the folders at once."""
        self._closed.set()
        for place in reversed(self._mounted):
            said = self._run(["umount", str(place)], UNMOUNT_S)
            if said.code != 0 and NOT_MOUNTED not in said.text:
                said = self._run(["umount", "--lazy", str(place)], LAZY_S)
                if said.code != 0:
                    self._note(
                        f"{place} is still mounted: {said.text.strip()[-failing.WORDS :] or 'umount said nothing'}"
                    )
        self._mounted.clear()

    def _mount(self, place: Path, mount: JobMount, begun: Path) -> None:
        program = helper(mount.file_system.kind)
        if shutil.which(program, path=f"{self._variables.get('PATH', os.defpath)}:{SYSTEM_PATH}") is None:
            raise failing.lacks(mount, program)
        if place.is_mount():
            if not begun.exists():
                raise failing.occupied(mount, "a file system")
            self._mounted.append(place)
            return
        if place.is_dir() and any(place.iterdir()):
            raise failing.occupied(mount, "files")
        try:
            place.mkdir(parents=True, exist_ok=True)
            begun.parent.mkdir(parents=True, exist_ok=True)
            begun.touch()
        except OSError as problem:
            raise MachineTrouble(
                f"there is no folder {mount.at} for {mount.file_system.address}: {problem}"
            ) from problem
        words = command(mount, place, self._partition)
        for number in range(failing.TRIES):
            if number:
                self._pause(AGAIN_S)
            self._mounted.append(place)  # one that is ended half way may have mounted it, or may yet
            said = self._run(words, failing.MOST_S, self._pause)
            if said.code == 0:
                return
            if said.code is not None:
                self._mounted.pop()
            if said.code is None or failing.why(said.text) is not failing.MountFailure.PASSING:
                break
            self._note(f"{mount.file_system.address} is not mounted yet: {said.text.strip()[-failing.WORDS :]}")
        raise failing.failure(mount, said.text, code=said.code)

    def _run(self, words: Sequence[str], most_s: float, pause: Callable[[float], None] = lambda _: None) -> Said:
        try:
            return self._ask(words, most_s, pause)
        except OSError as problem:
            return Said(1, str(problem))

    def _renew(self) -> None:
        profile.write(self._root / CREDENTIALS, self._credentials())

    def _keep_credentials(self) -> None:
        """The helpers sign anew before their certificates end. Expired credentials, or a full disk, are another try's."""
        while not self._closed.wait(KEYS_EVERY_S):
            with suppress(OSError):
                self._renew()
