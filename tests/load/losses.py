"""A job that loses a node again and again, run by the synthesised definition with the real functions and a virtual clock."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from contract import keys
from contract.codec import encode
from contract.commits import CheckpointSet
from contract.reports import Exit, Phase
from localaws.services.ec2_instance import Machine
from tests.archives import packed
from tests.builders import JOB, PLACE
from tests.fakes.aws import Aws
from tests.fakes.events import Event
from tests.fakes.functions import Functions
from tests.fakes.yard import admits, deployed, home
from tests.load.definition import Interpreted, synthesised
from tests.properties.world import Node, send

NAME = "loses"
BOOT_S = 100.0


@dataclass
class Attempts:
    """One execution, whose attempts end one after the other as a test says."""

    aws: Aws
    run: Interpreted
    functions: Functions
    _sequence: int = 0

    @property
    def nodes(self) -> list[Machine]:
        return home(self.aws).running()

    def attend(self, event: Event) -> None:
        self.functions.invoke("attendant", event)

    def trains(self) -> None:
        """Time passes until nodes of a new attempt train."""
        end = self.aws.clock.now + 7200.0
        while self.run.state != "Train" and not self.run.status:
            assert self.aws.clock.now < end, self.run.state
            self.aws.clock.run(1.0)
        if not self.run.status:
            self.aws.clock.run(BOOT_S)
            for machine in self.nodes:
                self.beat(machine)

    def beat(self, machine: Machine) -> None:
        """A node reports that it trains."""
        self._sequence += 1
        send(self.aws, Node(machine, phase=Phase.TRAINING, sequence=self._sequence))

    def close(self, step: int) -> None:
        """The attempt commits a checkpoint."""
        closed = CheckpointSet(job=NAME, attempt=self.attempt, number=1, step=step, closed_at=0.0, parts=())
        self.aws.s3.write(PLACE.bucket, keys.BytesPrefix(NAME).closed(self.attempt, 1), encode(closed))

    def lose(self) -> None:
        """A host fails; the next attempt, or the end, is waited for."""
        home(self.aws).end(self.nodes[-1], "Server.InternalError", "host failed")
        self._until_it_has_ended()

    def end(self, code: int = 0) -> None:
        """Every command ends."""
        for number, machine in enumerate(self.nodes):
            node = Node(machine, phase=Phase.ENDED, exit=Exit(code=code), sequence=self._sequence + 1)
            self.aws.clock.at(self.aws.clock.now + 1.0 + number, lambda node=node: send(self.aws, node))  # type: ignore[misc]
        self._until_it_has_ended()

    @property
    def attempt(self) -> int:
        found: int = self.run.variables["attempt"]
        return found

    def _until_it_has_ended(self) -> None:
        attempt, end = self.attempt, self.aws.clock.now + 3600.0
        while self.attempt == attempt and not self.run.status:
            assert self.aws.clock.now < end, self.run.state
            self.aws.clock.run(1.0)


def attempts(play: Callable[[Attempts], None], *, changed: tuple[str, str] = ("", ""), **request: Any) -> Attempts:
    """An execution to whose attempts happens what `play` says; `changed`: a text of the definition, and what stands there instead."""
    aws = admits(deployed())
    functions = Functions(aws)
    source = f"{keys.UPLOADS}{NAME}.tar.gz"
    aws.s3.write(JOB.home_bucket, source, packed("train.py"))
    least: dict[str, Any] = {
        "code": f"s3://{JOB.home_bucket}/{source}", "command": ["python", "train.py"], "instance_types": ["g5.xlarge"], "nodes": 2,
    }  # fmt: skip
    text = json.dumps(synthesised())
    assert not changed[0] or changed[0] in text
    definition = json.loads(text.replace(*changed)) if changed[0] else synthesised()
    run = Interpreted(NAME, aws, functions.invoke, definition, {**least, **request})
    found = Attempts(aws, run, functions)
    with functions.installed():
        functions.wake(found.attend)
        run.start()
        found.trains()
        play(found)
    return found
