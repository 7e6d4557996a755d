"""The machines of a rehearsal: each instance that has booted is a process group with its own folder, address and metadata."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING
from urllib.parse import urlsplit

from localaws.machines import file_systems, gpus
from localaws.machines.gpus import GpuState
from localaws.machines.imds import Imds, Metadata
from localaws.machines.mischief import Birth
from localaws.machines.separation import can_separate
from localaws.machines.wire import Wire
from localaws.model import ACCOUNT
from localaws.services.ec2_instance import NEVER, Machine
from localaws.services.ec2_machines import Machines
from localaws.services.ec2_moto import gpus_of, role_of
from localaws.services.ec2_spot import recommend
from localaws.surroundings import read_ways

if TYPE_CHECKING:
    from localaws.conditions import Fault
    from localaws.server import LocalAws

STANDINS = Path(__file__).with_name("standins")
INIT = Path(__file__).with_name("init.py")
GRACE_S = 90.0
"""systemd's DefaultTimeoutStopSec: from SIGTERM to SIGKILL at a shutdown, in real-world seconds."""
PATHS = ("etc/systemd/system", "opt", "proc", "root", "run/systemd/system", "tmp", "var/log", "var/lib/cloud/instance")
SCRIPT = "var/lib/cloud/instance/user-data.txt"
CLOCK = STANDINS / "clock"
"""Stand-ins for a node whose clock is wrong."""
LOOK_S = 0.05
"""How often faults check whether their moment has come."""


class Node:
    """One machine while it is on. Raises OSError where its address cannot be bound."""

    def __init__(
        self,
        machine: Machine,
        metadata: Metadata,
        born: Birth,
        folder: Path,
        ami: Path,
        images: Path,
        endpoint: str,
        grace_s: float,
        reached: Iterable[str] = (),
        *,
        place: Path | None = None,
        root_variables: Iterable[str] = (),
    ) -> None:
        """`folder` becomes its disk, which it sees at `place`, and no other's; without `place` it sees it where it is. `images` has what
        builds made, for the machine's docker; `reached` are file systems to which its network leads; `root_variables` have the place of
        its disk, as LOCAL_AWS_ROOT has."""
        self.machine, self.folder, self.struck = machine, folder, set[str]()
        """`struck`: names of the faults that have struck it."""
        self.console = folder.parent.with_name("consoles") / f"{machine.id}.log"
        """A serial console is not on the machine's disk, which it outlives."""
        self.exit_code: int | None = None
        """Exit code of the user data; None while it runs."""
        for path in (self.console.parent, *(folder / one for one in PATHS), *filter(None, [place])):
            path.mkdir(parents=True, exist_ok=True)
        self._fill_disk(ami, born, reached)
        self.imds = Imds(metadata, machine.address)
        to_aws = partial(socket.create_connection, ("localhost", urlsplit(endpoint).port or 80))
        self.wire = Wire(machine.address, to_aws) if born.has_wire else None
        if born.cut:
            self.cut_off()
        root = place or folder
        name = f"local-aws-{machine.id}-{uuid.uuid4().hex[:8]}"
        variables = {
            **_variables(born, root, ami, images),
            **dict.fromkeys(root_variables, str(root)),
            "LOCAL_AWS_INIT": name,
            "AWS_ENDPOINT_URL": self.wire.endpoint if self.wire else endpoint,
            "AWS_EC2_METADATA_SERVICE_ENDPOINT": self.imds.endpoint,
        }
        options = [
            *("--disk", str(folder), "--grace", str(grace_s), "--socket", name, "--standins", str(STANDINS)),
            *(["--place", str(place)] if place else []),
            *("--skew", str(born.skew_s)),
            *(["--full"] if born.full else []),
            *(["--timerless"] if born.timerless else []),
        ]
        with self.console.open("ab") as console:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(INIT), *options, SCRIPT],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=console,
                env=variables,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Process id of the node's process 1."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def watch(self, off: Callable[[], None]) -> None:
        """Reads process 1's messages until it ends, then calls `off`."""
        assert self._process.stdout is not None
        assert self._process.stdin is not None
        with self._process.stdout as told:
            self._read(told)
        self._process.wait()
        with contextlib.suppress(OSError):  # an order may be being written to it
            self._process.stdin.close()
        self.imds.stop()
        if self.wire:
            self.wire.stop()
        off()

    def cut_off(self) -> None:
        """From now on neither AWS nor the metadata service answers; the way to other nodes stays."""
        self.imds.fall_silent()
        if self.wire:
            self.wire.cut()

    def _fill_disk(self, ami: Path, born: Birth, reached: Iterable[str]) -> None:
        """Writes what is on the disk before the first line of user data runs."""
        self._give_python(ami, born)
        if count := gpus_of(self.machine.request["InstanceType"]):
            gpus.install(self.folder, born.gpus or GpuState(gpus=count))
        for line in born.kernel:
            gpus.say(self.folder, line)
        (self.folder / SCRIPT).write_bytes(born.user_data)
        (self.folder / file_systems.REACHED).write_text(json.dumps(list(reached)))

    def _give_python(self, ami: Path, born: Birth) -> None:
        """Gives the node the image's Python, or one with the node's own clock."""
        place = self.folder / "opt/pytorch"
        if not born.skew_s:
            place.symlink_to(ami.absolute(), target_is_directory=True)
            return
        (place / "bin").mkdir(parents=True)
        (place / "bin/python").symlink_to(CLOCK / "python")

    def _read(self, told: IO[bytes]) -> None:
        for line in told:
            what = json.loads(line)
            if what["event"] == "user-data-ended":
                self.exit_code = what["code"]

    def shut_down(self) -> None:
        """Shuts down as an operating system does; returns at once."""
        self._say(b"power-off\n")

    def cut_power(self) -> None:
        """Kills every process of the node before it returns."""
        self._say(b"cut\n")
        self._process.wait()

    def _say(self, order: bytes) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError, ValueError):  # it is off already
            self._process.stdin.write(order)
            self._process.stdin.flush()


def _groups(machine: Machine) -> list[str]:
    """The security groups of its first network interface."""
    return [group for one in machine.request.get("NetworkInterfaces", [])[:1] for group in one.get("Groups") or []]


def _variables(born: Birth, root: Path, ami: Path, images: Path) -> dict[str, str]:
    """Returns a machine's variables, but for its endpoints. Passes nothing of the person's own environment: a real machine has none of
    it, and never the person's credentials."""
    variables = {
        "PATH": f"{f'{CLOCK}:' if born.skew_s else ''}{STANDINS}:{ami.absolute() / 'bin'}:/usr/bin:/bin",
        "HOME": str(root / "root"),
        "TMPDIR": str(root / "tmp"),
        "LANG": "C.UTF-8",
        "LOCAL_AWS_ROOT": str(root),
        "LOCAL_AWS_IMAGES": str(images),
        "LOCAL_AWS_FILE_SYSTEMS": str(images.with_name(file_systems.FOLDER)),
        # Nodes share this computer's processors. With one thread per processor in every node, the shipped example took two
        # thirds more processor time, all of it in threads that wait for each other.
        "OMP_NUM_THREADS": "1",
        # To Open MPI, nodes of one name are one node: processes of two would take one file for their shared memory, and its hierarchical
        # collectives hang.
        "OMPI_MCA_btl_sm_backing_directory": str(root / "tmp"),
        "OMPI_MCA_coll": "^han",
        **network(ami),
    }
    if born.skew_s:
        python = str(ami.absolute() / "bin/python")
        variables |= {"LOCAL_AWS_SKEW_S": f"{born.skew_s:+g}", "LOCAL_AWS_PYTHON": python}
    return variables


def network(ami: Path) -> dict[str, str]:
    """Returns the way to a package index from this computer, without passwords, and one cache of downloads for all nodes: a real subnet's
    network is its own, and faster than a laptop's."""
    return {**read_ways(), "PIP_CACHE_DIR": str(ami.absolute().parent / "pip-cache")}


class Nodes:
    """Runs the running instances; leaving `with` ends everything."""

    def __init__(self, aws: LocalAws, machines: Machines, *, folder: Path, ami: Path) -> None:
        """`folder` gets the disks of the nodes, a folder each; `ami` is the virtual environment that stands in for the machine image."""
        self._aws, self._folder, self._ami = aws, folder, ami
        self._place = folder.with_name("machine") if can_separate() else None
        self.machines = machines
        self._nodes: dict[str, Node] = {}
        self.happened: list[Fault] = []
        """The faults that have struck a node, once for each node."""
        self._threads: list[threading.Thread] = []
        self._stopped = threading.Event()
        self._lock, self._disks = threading.Lock(), threading.Lock()
        machines.host = self
        self._start(self._strike, "node-faults")

    def __enter__(self) -> Nodes:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def all(self) -> list[Node]:
        """Returns the nodes in the order in which they booted."""
        return list(self._nodes.values())

    def get(self, instance: str) -> Node | None:
        return self._nodes.get(instance)

    def left(self) -> int:
        """Returns how many instances are not terminated."""
        return self.machines.left()

    def running(self) -> int:
        """Returns how many nodes have processes."""
        return sum(node.alive for node in self.all())

    def stop(self) -> None:
        """Ends every process and every metadata server; instances keep their state."""
        with self._lock:  # a node that boots right now must end too
            self._stopped.set()
        for node in self.all():
            node.cut_power()
        for thread in self._threads:
            thread.join()

    def boot(self, machine: Machine) -> None:
        """Starts its user data; returns at once."""
        with self._lock:
            if self._stopped.is_set():
                return
            grace_s = self._aws.conditions.grace(GRACE_S)
            folder = self._folder / machine.id
            born = self._aws.mischief.birth(machine, self._aws.conditions)
            images = self._aws.work / "images"
            metadata, endpoint = self._metadata(machine), self._aws.endpoint
            reached = file_systems.reached(self._aws, self._aws.work, machine.region, _groups(machine))
            node = Node(
                machine,
                metadata,
                born,
                folder,
                self._ami,
                images,
                endpoint,
                grace_s,
                reached,
                place=self._place,
                root_variables=self._aws.root_variables,
            )
            self._nodes[machine.id] = node
            self._start(lambda: node.watch(lambda: self._off(machine)), f"node-{machine.id}")

    def shut_down(self, machine: Machine) -> None:
        """Shuts down as an operating system does: SIGTERM, a grace period, SIGKILL. Returns at once."""
        if node := self._nodes.get(machine.id):
            node.shut_down()

    def end(self, machine: Machine) -> None:
        """Kills everything on the machine before it returns; its disk is gone then."""
        if node := self._nodes.get(machine.id):
            node.cut_power()
            self._discard(node)

    def said(self, machine: Machine) -> str:
        """Returns its console output so far."""
        node = self._nodes.get(machine.id)
        return node.console.read_text(errors="replace") if node and node.console.exists() else ""

    def _off(self, machine: Machine) -> None:
        if self._stopped.is_set():
            return
        self.machines.powered_off(machine)
        if machine.ending_at != NEVER:  # a machine that is only stopped keeps its disk
            self._discard(self._nodes[machine.id])

    def _discard(self, node: Node) -> None:
        """Takes the node's disk away, as EC2 does with instance stores and with a volume of DeleteOnTermination. Nothing of the node runs
        any more; what it had mounted was seen by it alone, so that nothing beside its disk can be removed."""
        gone = self._folder.with_name("ended") / node.machine.id
        with self._disks:
            if not node.folder.exists():
                return
            self._aws.mischief.death(node)
            gone.parent.mkdir(exist_ok=True)
            node.folder.rename(gone)  # at once, however many files it has
        self._start(lambda: shutil.rmtree(gone, ignore_errors=True), f"disk-{node.machine.id}")

    def _start(self, function: Callable[[], None], name: str) -> None:
        thread = threading.Thread(target=function, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _metadata(self, machine: Machine) -> Metadata:
        shown = machine.options.get("InstanceMetadataTags") == "enabled"
        return Metadata(
            instance=machine.id,
            instance_type=machine.request["InstanceType"],
            image=machine.request["ImageId"],
            rank=machine.index,
            address=machine.address,
            hostname=machine.hostname,
            mac=machine.mac,
            region=machine.region,
            zone=machine.zone,
            account=ACCOUNT,
            user_data=machine.user_data,
            tags=lambda: machine.tags_in_metadata(time.time()) if shown else None,
            role=lambda: role_of(machine.profile)[0],
            credentials=lambda: self._aws.credentials_for(role_of(machine.profile)[1], session=machine.id),
            spot_action=lambda: machine.spot_action,
            rebalance=lambda: machine.rebalance,
            tokens_required=machine.options.get("HttpTokens") == "required",
            group=machine.group,
            lost=lambda: self._aws.chance.random() < self._aws.conditions.metadata_lost,
        )

    def _strike(self) -> None:
        """Carries out each fault of single nodes at its moment, once per node."""
        while not self._stopped.wait(LOOK_S):
            mischief = self._aws.mischief
            faults = [one for one in self._aws.conditions.faults if one.name in mischief.striking]
            now = time.time()
            # Most nodes of a long rehearsal have ended, and this looks twenty times a second: it asks them once and not for each fault.
            running = [one for one in self.all() if one.alive and one.machine.state(now) == "running"] if faults else []
            for fault, node in [(fault, node) for fault in faults for node in running]:
                if fault.name not in node.struck and mischief.befalls(fault, node) and node.alive:
                    node.struck.add(fault.name)
                    mischief.strike(fault, node, self)
                    self.happened.append(fault)

    def interrupt(self, machine: Machine, *, notice: bool) -> None:
        """AWS takes a spot node back, with a notice or without one."""
        self.machines.interrupt(machine, notice=notice)

    def recommend(self, machine: Machine) -> None:
        """AWS says that it expects to take a spot node back; it may never do so."""
        recommend(machine)

    def end_block(self, machine: Machine) -> None:
        """AWS ends everything that runs in the node's reservation."""
        self.machines.end_block(machine)

    def vanish(self, machine: Machine, running_s: float) -> None:
        """Loses the node without notice; EC2 reports it after that many real-world seconds."""
        told_after_s = running_s / self._aws.conditions.speed
        self.machines.vanish(machine, "Server.InternalError", "the rehearsal was asked to lose this node", told_after_s)
