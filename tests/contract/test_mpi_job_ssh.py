"""A launcher's ssh reaches a real sshd, with keys as the operator and the kubelet put them into a pod."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from contract.jobs import Launcher
from contract.mpi_job import PodPlace, PodTraining, list_words
from localaws.testing.waiting import HANG_S

PROGRAMS = ("/usr/sbin/sshd", "ssh", "ssh-keygen", "unshare", "ip")
LACKS = [one for one in PROGRAMS if shutil.which(one) is None] + ["root"] * (os.geteuid() != 0)
PLACE = PodPlace(cluster="lab", namespace="y-lines", region="eu-central-1", keeper_image="k", port=29500)
POD = """set -e
ip link set lo up
grep -q '^sshd:' /etc/passwd || {
    (cat /etc/passwd; echo sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin) >"$PLACE/passwd"
    mount --bind "$PLACE/passwd" /etc/passwd
}
for one in /root /run /etc/ssh; do mount -t tmpfs -o mode=755 none $one; done
# A volume of a Secret, with the operator's names and modes.
mkdir /root/.ssh
chmod 1777 /root/.ssh
ssh-keygen -q -t ecdsa -b 521 -N '' -f /root/.ssh/id_rsa
cp /root/.ssh/id_rsa.pub /root/.ssh/authorized_keys
chmod 600 /root/.ssh/*
touch /etc/ssh/sshd_config
ssh-keygen -A >/dev/null
cd /
"$@" 2>"$PLACE/sshd" &
server=$!
trap 'kill $server' EXIT
HOME=/root ssh $SSH -o BatchMode=yes -o ConnectTimeout=5 127.0.0.1 echo reached || { cat "$PLACE/sshd" >&2; exit 1; }
"""
"""A pod alone: what it mounts, and where it listens, is nobody else's. ssh itself comes again until sshd is there."""


def words_of(*, options: tuple[str, ...] = (), is_worker: bool = False) -> list[str]:
    it = PodTraining(name="j", command=("python", "t.py"), launcher=Launcher.MPI, options=options)
    return list_words(it, 2, [], PLACE, is_worker=is_worker)[0]


def ssh_of(words: list[str]) -> str:
    return words[words.index("plm_rsh_args") + 1]


@pytest.mark.skipif(bool(LACKS), reason=f"needs {', '.join(LACKS)} (Debian's openssh-server)")
def test_a_launcher_reaches_a_worker_whose_keys_are_in_a_folder_that_everybody_may_write(tmp_path: Path) -> None:
    variables = {"PATH": os.environ["PATH"], "PLACE": str(tmp_path), "SSH": ssh_of(words_of())}
    said = subprocess.run(
        ["unshare", "--mount", "--net", "/bin/sh", "-c", POD, "pod", *words_of(is_worker=True)],
        env=variables,
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert said.stdout == "reached\n", said.stderr


def test_a_worker_takes_keys_from_a_folder_that_everybody_may_write() -> None:
    assert words_of(is_worker=True)[-1].endswith("/usr/sbin/sshd -De -o StrictModes=no")


def test_a_launcher_takes_the_host_key_of_a_pod_that_nobody_knows_and_keeps_no_list_of_them() -> None:
    given = shlex.split(ssh_of(words_of()))
    assert given[::2] == ["-o"] * 3
    assert {"StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "ConnectionAttempts=10"} == set(given[1::2])


def test_a_line_that_gives_ssh_its_own_words_gives_the_only_ones() -> None:
    words = words_of(options=("--mca", "plm_rsh_args", "-p 2222"))
    assert words.count("plm_rsh_args") == 1
    assert ssh_of(words) == "-p 2222"
