"""Waits for NVIDIA's fabric manager: CUDA needs it on machines with NVSwitch, and it may start after user data."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from agent.failures import MachineTrouble

UNIT = "nvidia-fabricmanager.service"
FOLDERS = ("etc/systemd/system", "usr/lib/systemd/system", "lib/systemd/system")
SWITCHES = "nvidia-nvswitch*"
"""Devices that the driver makes where there are switches (P4d, P5). Images bring the unit to every machine, and it fails where
there are none."""
COMING = frozenset({"activating", "reloading"})
LOOK_S = 2.0
LAST_LINES = 5


def wait(
    root: Path,
    patience_s: float,
    *,
    now: Callable[[], float],
    pause: Callable[[float], None],
    note: Callable[[str], None],
) -> None:
    """Returns at once where the machine has no such unit, or none that it needs.

    Raises MachineTrouble, with the unit's last lines, when switches are there and the unit is not active in time: CUDA would
    answer every trainer with "system not yet initialized".
    """
    if not any((root / folder / UNIT).exists() for folder in FOLDERS):
        return
    told, until = False, now() + patience_s
    while (state := _ask("is-active")) != "active":
        needed = any((root / "dev").glob(SWITCHES))
        if not needed and state not in COMING:
            return
        if now() >= until:
            what = f"{UNIT} is {state or 'in an unknown state'} after {patience_s:.0f} s"
            if needed:
                lines = _ask("status", "--no-pager", "--full", f"--lines={LAST_LINES}")
                raise MachineTrouble(f"{what}, and CUDA needs it on this machine:\n{lines}")
            note(f"{what}; the machine has no NVSwitch, training starts without it")
            return
        if not told:
            note(f"waits for {UNIT}, which is {state or 'in an unknown state'}")
            told = True
        pause(LOOK_S)


def _ask(verb: str, *options: str) -> str:
    """The output of systemctl about the unit, which says as much as its exit code. Empty where it does not answer."""
    try:
        done = subprocess.run(
            ["systemctl", verb, *options, UNIT], capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()
