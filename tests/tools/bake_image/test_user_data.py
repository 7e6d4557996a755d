"""The script that prepares the machine, run by a real bash in a folder, with programs that only write down how they are called."""

from __future__ import annotations

import gzip
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from localaws.testing.waiting import HANG_S
from tools.bake_image.recipe import SCRIPT, Recipe

ROOT = Path(__file__).parents[3]
PYTHON = """#!/bin/bash
echo "python $*" >> "$CALLS"
case "$*" in
  *"-c "*) exit 0 ;;
  *--no-index*) exit "${SEES:-0}" ;;
  *"pip install"*) cp "${@: -1}" "$CALLS.requirements"; echo "${PIP_SAYS:-installed}"; exit "${PIP:-0}" ;;
esac
"""
NOTES = '#!/bin/bash\necho "${0##*/} $*" >> "$CALLS"\n'
SECRETS = (
    "etc/ssh/ssh_host_rsa_key",
    "root/.ssh/authorized_keys",
    "root/.bash_history",
    "home/ec2-user/.python_history",
    "home/ec2-user/.ssh/authorized_keys",
    "var/lib/cloud/instances/i-1/user-data.txt",
    "var/lib/amazon/ssm/registration",
    "var/lib/systemd/random-seed",
    "var/log/cloud-init-output.log",
    "var/log/journal/abc/system.journal",
    "tmp/left",
)
KEPT = ("etc/ssh/sshd_config", "opt/pytorch/lib/torch.py", "home/ec2-user/.bashrc")


class Node:
    """A folder in the place of `/`."""

    def __init__(self, root: Path) -> None:
        self.root = root / "node"
        for file in (*SECRETS, *KEPT, "etc/machine-id", "dev/console"):
            (self.root / file).parent.mkdir(parents=True, exist_ok=True)
            (self.root / file).write_text("secret\n" if file != "dev/console" else "")
        self.program("opt/pytorch/bin/python", PYTHON)
        for name in ("systemctl", "shutdown", "cloud-init", "sync", "sleep"):
            self.program(f"stubs/{name}", NOTES)

    def program(self, place: str, text: str) -> None:
        path = self.root / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def boot(self, requirements: str = "einops==0.8.1\n", **environment: str) -> str:
        """Runs the user data, and returns what the console shows."""
        script = gzip.decompress(Recipe("ami-1", requirements.encode()).user_data(70))
        path = f"{self.root / 'stubs'}:/usr/bin:/bin"
        told = {"PATH": path, "TRAINYARD_ROOT": str(self.root), "CALLS": str(self.root / "calls"), **environment}
        subprocess.run(["bash", "-c", script.decode()], env=told, check=False, timeout=HANG_S, capture_output=True)
        return (self.root / "dev/console").read_text()

    @property
    def calls(self) -> list[str]:
        return (self.root / "calls").read_text().splitlines()


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def powered_off(node: Node) -> bool:
    return node.calls[-1].startswith("systemctl poweroff")


def test_it_installs_cleans_says_so_and_powers_off(node: Node) -> None:
    said = node.boot().splitlines()
    assert said[-1] == f"trainyard-bake: baked {Recipe('ami-1', b'einops==0.8.1' + bytes([10])).digest}"
    assert [place for place in SECRETS if (node.root / place).exists()] == []
    assert [place for place in KEPT if not (node.root / place).exists()] == []
    assert (node.root / "etc/machine-id").read_text() == ""
    assert powered_off(node)


def test_a_timer_is_armed_before_anything_else(node: Node) -> None:
    node.boot()
    assert node.calls[0] == "shutdown -P +70"


def test_the_file_arrives_byte_for_byte_whatever_is_in_it(node: Node) -> None:
    text = "einops==0.8.1  # $(touch pwned) `id` 'quoted' \"twice\" \\n\nEND-OF-REQUIREMENTS\n"
    node.boot(text)
    assert (node.root / "calls.requirements").read_text().strip("\n") == text.strip("\n")
    assert not Path("pwned").exists()


@pytest.mark.parametrize(("text", "given"), [("a==1\n", False), ("a==1 --hash=sha256:" + "0" * 64 + "\n", True)])
def test_pip_checks_hashes_where_the_file_has_them(node: Node, text: str, given: bool) -> None:
    node.boot(text)
    (install,) = [call for call in node.calls if "pip install" in call and "--no-index" not in call]
    assert ("--require-hashes" in install) == given


def test_a_package_that_cannot_be_installed_is_told_and_never_called_baked(node: Node) -> None:
    said = node.boot(PIP="1", PIP_SAYS="ERROR: No matching distribution")
    assert "pip: ERROR: No matching distribution" in said
    assert "trainyard-bake: failed: the requirements cannot be installed" in said
    assert "baked" not in said
    assert powered_off(node)
    assert len([call for call in node.calls if "pip install" in call]) == 1


def test_a_network_that_is_late_is_tried_again(node: Node) -> None:
    said = node.boot(PIP="1", PIP_SAYS="Temporary failure in name resolution")
    assert len([call for call in node.calls if "pip install" in call]) == 6
    assert "failed" in said


def test_packages_that_a_node_would_not_see_are_never_called_baked(node: Node) -> None:
    said = node.boot(SEES="1")
    assert "does not see what was installed" in said
    assert "baked" not in said
    assert powered_off(node)


def test_an_image_without_python_is_told_and_powers_off(node: Node) -> None:
    (node.root / "opt/pytorch/bin/python").unlink()
    for name in ("python3", *(f"python3.{minor}" for minor in range(10, 15))):
        node.program(f"stubs/{name}", "#!/bin/bash\nexit 1\n")
    assert "failed: no Python 3.10" in node.boot()
    assert powered_off(node)


def test_a_step_that_fails_unforeseen_powers_off_without_the_word(node: Node) -> None:
    node.program("stubs/find", "#!/bin/bash\nexit 3\n")
    said = node.boot()
    assert "failed: the script ended with code 3" in said
    assert "baked" not in said
    assert powered_off(node)


def test_what_cannot_be_cleaned_is_never_called_baked(node: Node) -> None:
    node.program("stubs/rm", "#!/bin/bash\nexit 0\n")
    said = node.boot()
    assert "failed: could not be cleaned" in said
    assert "baked" not in said


def test_it_chooses_python_as_a_node_does() -> None:
    def choice(file: Path) -> str:
        return file.read_text().partition("\npython=\n")[2].partition("\ndone\n")[0]

    assert choice(SCRIPT) == choice(ROOT / "node" / "user_data.sh") != ""


def test_pip_is_content_with_what_is_installed_and_needs_neither_an_index_nor_its_hash(tmp_path: Path) -> None:
    """So a node installs nothing anew of what the image has, also where the file has hashes."""
    file = tmp_path / "requirements.txt"
    file.write_text(f"pip=={version('pip')} --hash=sha256:{'0' * 64}\n")
    command = [sys.executable, "-m", "pip", "install", "--no-index", "--require-hashes", "-r", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG_S)
    assert (done.returncode, "already satisfied" in done.stdout) == (0, True), done.stderr
