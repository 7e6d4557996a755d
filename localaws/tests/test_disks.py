"""A node's disk is its own: no other node sees it, and it is gone with the instance, however that ends. What people read outlives it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from localaws.machines import nodes, separation
from localaws.machines.nodes import Node
from localaws.services import ec2
from localaws.testing.ec2 import Yard, local_aws
from localaws.testing.waiting import lives, until

pytestmark = pytest.mark.rehearsal

WRITES = """#!/bin/bash
mkdir -p "$HOME/code" && echo 'ANSWER = 42' > "$HOME/code/built.py"
(trap '' TERM; setsid bash -c 'trap "" TERM; cd "$HOME"; echo $$ > pid; echo "ready at $HOME"; kill -STOP $$' &)
"""
SEPARATE, TOGETHER = "each sees its own disk", "each has a path of its own"


@pytest.fixture(scope="module", params=[SEPARATE, TOGETHER])
def yard(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Yard]:
    if request.param == SEPARATE and not separation.can_separate():
        pytest.skip("this computer gives no process mounts of its own")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nodes, "can_separate", lambda: request.param == SEPARATE)
        with local_aws(tmp_path_factory.mktemp("yard")) as made:
            yield made


def start(yard: Yard, script: str, **changes: Any) -> Node:
    (instance,) = yard.run(1, UserData=script, **changes)
    node = until(lambda: ec2.nodes().get(instance))
    assert isinstance(node, Node)
    return node


def said(yard: Yard, script: str) -> str:
    """What a node prints that runs the script, and ends."""
    node = start(yard, f"#!/bin/bash\n{script}\npoweroff\n")
    until(lambda: yard.states([node.machine.id]) == {"terminated"})
    return yard.console(node.machine.id)


def home(yard: Yard, node: Node) -> str:
    """The home folder of a node that runs WRITES, by its own word, once it is written and a stopped process is in it."""
    told = until(lambda: yard.console(node.machine.id).partition("ready at ")[2].strip())
    return str(told)


def power_off(_: Yard, node: Node) -> None:
    node.shut_down()


def terminate(yard: Yard, node: Node) -> None:
    yard.ec2.terminate_instances(InstanceIds=[node.machine.id])


def take_back(_: Yard, node: Node) -> None:
    ec2.nodes().interrupt(node.machine, notice=False)


def vanish(_: Yard, node: Node) -> None:
    ec2.nodes().vanish(node.machine, 0.0)


ENDS = [power_off, terminate, take_back, vanish]
SPOT = {"InstanceMarketOptions": {"MarketType": "spot"}}


@pytest.mark.parametrize("end", ENDS)
def test_the_next_node_can_read_nothing_of_one_that_has_ended(yard: Yard, end: Callable[[Yard, Node], None]) -> None:
    node = start(yard, WRITES, **(SPOT if end is take_back else {}))
    place = home(yard, node)
    assert (node.folder / "root/code/built.py").exists()
    end(yard, node)
    until(lambda: yard.states([node.machine.id]) == {"terminated"})
    assert not node.folder.exists()
    asks = (
        f'for one in {place} {node.folder}/root; do PYTHONPATH="$one/code" python -c "import built" || echo none; done'
    )
    assert said(yard, asks).count("ModuleNotFoundError") == 2
    assert "ready at" in yard.console(node.machine.id)


def test_a_lost_node_that_ec2_still_shows_as_running_has_no_disk_any_more(yard: Yard) -> None:
    node = start(yard, WRITES)
    home(yard, node)
    ec2.nodes().vanish(node.machine, 1e6)
    assert yard.states([node.machine.id]) == {"running"}
    assert not node.folder.exists()


@pytest.mark.parametrize("end", ENDS)
def test_no_process_lives_any_more_when_the_disk_goes(
    yard: Yard, end: Callable[[Yard, Node], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    node = start(yard, WRITES, **(SPOT if end is take_back else {}))
    home(yard, node)
    process = int((node.folder / "root/pid").read_text())
    seen = list[tuple[bool, bool, bool]]()
    monkeypatch.setattr(
        yard.aws.mischief, "death", lambda one: seen.append((lives(process), one.alive, one.folder.exists()))
    )
    assert lives(process)
    end(yard, node)
    until(lambda: yard.states([node.machine.id]) == {"terminated"})
    assert seen == [(False, False, True)]


def test_a_node_that_runs_keeps_its_disk_when_others_end(yard: Yard) -> None:
    node, other = start(yard, WRITES), start(yard, WRITES)
    for one in (node, other):
        home(yard, one)
    terminate(yard, other)
    until(lambda: yard.states([other.machine.id]) == {"terminated"})
    assert (node.folder / "root/code/built.py").exists()


def test_a_node_that_is_only_stopped_keeps_its_disk_until_it_is_terminated(yard: Yard) -> None:
    node = start(yard, WRITES, InstanceInitiatedShutdownBehavior="stop")
    home(yard, node)
    power_off(yard, node)
    until(lambda: yard.states([node.machine.id]) == {"stopped"})
    assert (node.folder / "root/code/built.py").exists()
    terminate(yard, node)
    until(lambda: yard.states([node.machine.id]) == {"terminated"})
    assert not node.folder.exists()


def test_what_lies_beside_the_disk_stays_where_the_node_linked_or_mounted_it(yard: Yard, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("of a file system")
    links = f'ln -s {tmp_path} "$HOME/link"; ln -s {tmp_path}/data "$HOME/data"; mkdir "$HOME/mounted"'
    # Never where nodes have no mounts of their own: it would be a mount of the whole computer.
    mounts = f'[ -e "$LOCAL_AWS_ROOT/run/own-mounts" ] && PATH=/usr/bin:/bin mount --bind {tmp_path} "$HOME/mounted"'
    node = start(yard, f"#!/bin/bash\n{links}; {mounts}; ls $HOME/*; echo done\n")
    until(lambda: "done" in yard.console(node.machine.id))
    assert yard.console(node.machine.id).count("data") >= 2
    terminate(yard, node)
    until(lambda: yard.states([node.machine.id]) == {"terminated"})
    until(lambda: not any((node.folder.parent.with_name("ended")).iterdir()))
    assert (tmp_path / "data").read_text() == "of a file system"
    assert Path(node.folder.parents[1], "consoles").is_dir()


def test_nodes_have_mounts_of_their_own_where_util_linux_gives_root_some() -> None:
    allowed = ["unshare", "--mount", "sh", "-c", "mount -t tmpfs none /mnt"]
    if subprocess.run(allowed, capture_output=True, check=False).returncode:
        pytest.skip("this computer gives no process mounts of its own, or nobody but root")
    assert separation.can_separate()


@pytest.mark.parametrize("yard", [SEPARATE], indirect=True)
def test_two_nodes_see_their_disks_at_the_same_path_and_neither_the_others(yard: Yard) -> None:
    first, second = start(yard, WRITES), start(yard, WRITES)
    assert home(yard, first) == home(yard, second)
    assert not os.path.lexists(home(yard, first))
    third = said(yard, f'cat {first.folder}/root/pid; echo "others: $(ls {first.folder.parent})"; ls "$HOME"')
    assert "No such file or directory" in third
    assert "others: \n" in third
    assert "pid\n" not in third
