"""NVIDIA's GPUs of a node, as its own nvidia-smi shows them: healthy ones, until the user of the local AWS asks for something else."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

PROGRAM = Path(__file__).with_name("standins") / "devices" / "nvidia-smi"
"""The stand-in, which only prints what STATE says."""
INSTALLED, STATE, KERNEL = "usr/bin/nvidia-smi", "var/lib/gpus", "var/log/kernel"


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuState:
    """What the machine's nvidia-smi answers."""

    gpus: int
    errors: int = 0
    """Uncorrectable memory errors of the first one."""
    code: int = 0
    """The exit code."""
    words: str = ""
    """What it says before the GPUs."""
    hangs: bool = False


def address(number: int) -> str:
    """Of a GPU on PCI, as nvidia-smi writes it."""
    return f"00000000:{0x10 + number:02X}:00.0"


def show(folder: Path, state: GpuState) -> None:
    """From now on the node's nvidia-smi answers so."""
    rows = [f"{address(number)}, {0 if number else state.errors}, No, No, [N/A]" for number in range(state.gpus)]
    file = folder / STATE
    file.mkdir(parents=True, exist_ok=True)
    (file / "rows").write_text("".join(f"{line}\n" for line in (*filter(None, [state.words]), *rows)))
    (file / "code").write_text(f"{state.code}\n")
    if state.hangs:
        (file / "hangs").touch()


def install(folder: Path, state: GpuState) -> None:
    """Gives a node of a type with GPUs what NVIDIA's driver brings."""
    show(folder, state)
    place = folder / INSTALLED
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(PROGRAM)


def say(folder: Path, line: str) -> None:
    """The node's kernel says a line."""
    with (folder / KERNEL).open("a") as kernel:
        kernel.write(f"{line}\n")
