"""A machine's /sys, /proc and tools for tests of its disks: what the tools do shows up in the files, as on a real one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from agent.disk.devices import INSTANCE_STORE, TOOLS, Done
from agent.disk.place import WorkPlace, settle

GIB = 1024**3
EBS = "Amazon Elastic Block Store"
WORK = "var/lib/trainyard"


class FakeMachine:
    """Has the root volume nvme0n1 and nothing else, until a test adds more."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.tools = frozenset(TOOLS)
        self.ran: list[tuple[str, ...]] = []
        self.fails: dict[str, Done] = {}
        """Tool to how it ends, without having done anything."""
        self.content: dict[str, str] = {}
        """Device to what blkid exports of it."""
        self.root_free, self.store_free = 140 * GIB, 200 * GIB
        self.units: list[str] = []
        """What systemctl says of the image's own service, one word a call; the last one stays."""
        self.slept, self.time = 0.0, 0.0
        self.takes: dict[str, float] = {}
        """Tool to the seconds that it takes."""
        self.bound_from = ""
        """The device whose folder is bound."""
        self.numbers: dict[str, str] = {}
        (root / "proc/self").mkdir(parents=True)
        (root / "dev").mkdir()
        self.disk("nvme0n1", EBS, 200 * GIB, partitions=("nvme0n1p1",))
        self.mounted("nvme0n1p1", "/")

    def disk(
        self,
        name: str,
        model: str = INSTANCE_STORE,
        size: int = 250 * 10**9,
        *,
        partitions: Sequence[str] = (),
        members: Sequence[str] = (),
        **files: str,
    ) -> None:
        """Adds a device as /sys/block shows it; `files` are further files of its folder."""
        folder = self.root / "sys/block" / name
        (folder / "device").mkdir(parents=True)
        (folder / "holders").mkdir()
        if model:
            (folder / "device/model").write_text(f"{model:40}\n")
        for file, text in {"size": str(size // 512), "ro": "0", **files}.items():
            (folder / file).write_text(f"{text}\n")
        self._number(name, folder)
        (self.root / "dev" / name).touch()
        for one in partitions:
            (folder / one).mkdir()
            (folder / one / "partition").write_text("1\n")
            self._number(one, folder / one)
        for one in members:
            (folder / "slaves" / one).mkdir(parents=True)
            for above in (self.root / "sys/block").glob(f"**/{one}"):
                if above.parent.name != "slaves":
                    (above / "holders" / name).mkdir(parents=True)

    def _number(self, name: str, folder: Path) -> None:
        self.numbers[name] = f"259:{len(self.numbers)}"
        (folder / "dev").write_text(f"{self.numbers[name]}\n")

    def mounted(self, device: str, folder: str, kind: str = "xfs", options: str = "rw,noatime") -> None:
        number = self.numbers.get(device, "0:40")
        with (self.root / "proc/self/mountinfo").open("a") as file:
            file.write(f"36 35 {number} / {folder} {options} shared:1 - {kind} /dev/{device} {options}\n")

    def run(self, command: Sequence[str]) -> Done:
        """The tools: what they make is there afterwards."""
        self.ran.append(tuple(one.replace(str(self.root), "") for one in command))
        tool, last = command[0], command[-1].replace(str(self.root), "")
        self.time += self.takes.get(tool, 0.0)
        if tool in self.fails:
            return self.fails[tool]
        if tool == "blkid":
            found = self.content.get(last.removeprefix("/dev/"), "")
            return Done(0, found) if found else Done(2)
        if tool == "systemctl":
            return Done(3, self.units.pop(0) if len(self.units) > 1 else self.units[0])
        if tool == "mkdir":
            for one in command[2:]:
                Path(one).mkdir(parents=True, exist_ok=True)
        if tool == "mdadm":
            self.disk("md127", "", members=[one.rpartition("/")[2] for one in command if "/nvme" in one])
        if tool == "lvcreate":
            used = next(one for one in self.ran if one[0] == "vgcreate")
            self.disk("dm-0", "", members=[one.rpartition("/")[2] for one in used if "/nvme" in one])
        if tool == "mount":
            self._mount(command)
        if tool == "umount":
            lines = (self.root / "proc/self/mountinfo").read_text().splitlines(keepends=True)
            (self.root / "proc/self/mountinfo").write_text("".join(one for one in lines if f" {last} " not in one))
        return Done(0)

    def _mount(self, command: Sequence[str]) -> None:
        what, where = (one.replace(str(self.root), "") for one in command[-2:])
        device = {"/dev/md/trainyard": "md127", "/dev/trainyard/work": "dm-0"}.get(what, what.removeprefix("/dev/"))
        if "bind,noatime" in command:
            device = self.bound_from
        self.mounted(device, where, command[2] if command[1] == "-t" else "ext4")

    def free(self, folder: Path) -> int:
        """Bytes free where the longest mount point above `folder` is."""
        inside = "/" + str(folder).removeprefix(str(self.root)).lstrip("/")
        lines = [one.split(" ") for one in (self.root / "proc/self/mountinfo").read_text().splitlines()]
        best = max(
            (one for one in lines if f"{inside}/".startswith(f"{one[4].rstrip('/')}/")), key=lambda one: len(one[4])
        )
        return self.root_free if best[4] == "/" else self.store_free

    def sleep(self, seconds: float) -> None:
        self.slept += seconds

    def settle(self) -> WorkPlace:
        return settle(
            self.root,
            WORK,
            run=self.run,
            tools=lambda: self.tools,
            free=self.free,
            sleep=self.sleep,
            monotonic=lambda: self.time,
        )

    @property
    def changes(self) -> list[tuple[str, ...]]:
        """The commands that change something."""
        return [one for one in self.ran if one[0] not in ("blkid", "systemctl")]
