"""Judges how a container ended, or why it never ran: because of the job and its image, or of the machine. Decisions alone."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from agent.failures import CannotStart, MachineTrouble

NEVER = "0001-01-01T00:00:00Z"
"""When a container was started that never was."""
REFUSED = 125
"""Docker's own exit code where it could not make the container, or lost its daemon."""
NO_PROGRAM = (1, 126, 127)
"""Exit codes of docker's init where it cannot run the command: not for this processor, not allowed, not there."""
INIT_SAYS = re.compile(r"\[FATAL tini \(\d+\)\] (exec .+ failed: .+)")
OWN = re.compile(
    r"unable to find (user|group)|no matching entries in (passwd|group) file|"
    r"the working directory .* is invalid|cannot mkdir: .* is not a directory|chdir to cwd|"
    r"no command specified|requirement error: unsatisfied condition",
    re.IGNORECASE,
)
"""What docker and the NVIDIA toolkit say where every machine of the same image would refuse the container. Docker's exit code does not
tell: with 127 it ends for a device or a driver's library that is not there as well."""


def failure(code: int, state: Mapping[str, Any] | None, tail: Sequence[str], words: str) -> Exception | None:
    """The exception with which the attempt ends; None where the exit code of docker is the program's own. `state` is what docker says of
    the container, None where it says nothing; `tail` and `words` are what came last."""
    if state is None and code == REFUSED:
        return _own_or_machines("docker could not make the container", words)
    if state is None:  # a daemon that is stopped ends its containers, which may save and end with 0, and is gone then
        return MachineTrouble(f"docker's client ended with {code}, and docker says no more of the container")
    if state.get("Running"):
        return MachineTrouble(f"docker's client ended with {code} before its container, which was ended: {words}")
    if str(state.get("StartedAt") or NEVER) == NEVER:
        return _own_or_machines("docker could not start the container", str(state.get("Error") or "") or words)
    if state.get("ExitCode", code) != code:
        return MachineTrouble(
            f"docker's client ended with {code} and the container with {state['ExitCode']}: was docker restarted? {words}"
        )
    if code in NO_PROGRAM and tail and (said := INIT_SAYS.fullmatch(tail[-1].strip())):
        return CannotStart(f"the image's command cannot be started: {said[1]}")
    return None


def _own_or_machines(what: str, words: str) -> Exception:
    return (CannotStart if OWN.search(words) else MachineTrouble)(f"{what}: {words}")
