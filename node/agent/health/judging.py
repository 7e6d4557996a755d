"""Judges a machine: the facts in, what is wrong with it out. No call, no clock.

Wrong with the machine is only what the image, the settings and the code of a job cannot bring about as well: another machine would meet
those again. They are told, and the training starts.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import Any

from agent.health.facts import LATE, MachineFacts
from agent.programs import Said

ADDRESS = re.compile(r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]")
"""Of a GPU on PCI, as nvidia-smi writes it."""
NO_DRIVER = {
    4: "it may not",
    9: "NVIDIA's driver is not loaded",
    12: "NVIDIA's library (NVML) is missing",
    13: "NVIDIA's library (NVML) is too old",
}
"""Exit codes of nvidia-smi (its man page, "RETURN VALUE") that say something of the image, and nothing of the GPUs."""
BROKEN = {
    8: "a GPU lacks power",
    10: "the kernel has trouble with a GPU's interrupts",
    15: "a GPU has fallen off the bus, or cannot be reached",
}
"""Those that say something of the machine, whatever else the answer says."""
BAD_DISK = frozenset({"EIO", "EROFS", "ENXIO", "ENODEV", "EUCLEAN"})
"""Errors of a broken disk, or of its file system. A full disk, and one that takes no files so large, is the request's."""
CLOCK_S = 60.0
"""A clock that is more wrong than this is told. Nothing is decided by it."""
FILES = 4096
SHARED = 1024**3
GIB = 1024**3
QUOTED = 200
MOST = 500
"""Characters of all that is wrong, in a report."""


@dataclass(frozen=True)
class Health:
    """What is known of a machine."""

    wrong: tuple[str, ...] = ()
    """What is wrong with it, each in words for a person; empty for a healthy one."""
    notes: tuple[str, ...] = ()
    """What a person should know, and what could not be checked."""
    sure: bool = True
    """Whether nothing is missing that may only be late, such as a driver that still loads."""

    @property
    def words(self) -> str:
        return "; ".join(self.wrong)[:MOST]


def judged(facts: MachineFacts) -> Health:
    """All of it, before the training."""
    parts = [_gpus(facts), _neurons(facts), Health(wrong=facts.kernel), _disk(facts), Health(notes=_odd(facts))]
    return Health(
        wrong=tuple(one for part in parts for one in part.wrong),
        notes=tuple(one for part in parts for one in part.notes),
        sure=all(part.sure for part in parts),
    )


def judged_late(facts: MachineFacts, before: Health) -> Health:
    """Once the command has failed: what was wrong `before`, or was not known then, explains nothing. A program that does not answer in the
    few seconds that it has now proves nothing either."""
    asked = facts.smi is not None and facts.smi.code is not None and before.sure
    gpus = _gpus(facts) if asked else Health()
    known = {*before.wrong, *before.notes}
    return Health(wrong=tuple(one for one in (*facts.kernel, *gpus.wrong) if one not in known))


def _gpus(facts: MachineFacts) -> Health:
    promised, said = facts.promised.gpus, facts.smi
    if not promised:
        return Health()
    if said is None or said.code in NO_DRIVER:
        return _without_driver(facts, promised, said)
    if said.code is None:
        return Health(wrong=("nvidia-smi has not answered in time",), sure=False)
    rows = [row for row in map(_row, said.text.splitlines()) if row is not None]
    wrong = [*([BROKEN[said.code] + _quoted(said)] if said.code in BROKEN else []), *filter(None, map(_memory, rows))]
    fewer, definite = len(rows) < promised, bool(wrong)
    if fewer and not wrong:
        why = f"nvidia-smi ended with code {said.code}{_quoted(said)}" if said.code else "nvidia-smi says nothing else"
        wrong.append(f"it has {len(rows)} of the {promised} GPUs of its type: {why}")
    told = (f"nvidia-smi ended with code {said.code}{_quoted(said)}",) if said.code and not wrong else ()
    return Health(wrong=tuple(wrong), notes=told, sure=definite or not fewer)


def _without_driver(facts: MachineFacts, promised: int, said: Said | None) -> Health:
    """The image's own matter, unless PCI shows fewer GPUs than there should be."""
    why = (
        "the image has no nvidia-smi" if said is None else f"{NO_DRIVER[said.code or 0]} (nvidia-smi, code {said.code})"
    )
    if facts.pci_gpus is not None and facts.pci_gpus < promised:
        return Health(wrong=(f"PCI shows {facts.pci_gpus} of the {promised} GPUs of its type, and {why}",), sure=False)
    return Health(notes=(f"the GPUs were not checked: {why}",), sure=False)


def _row(line: str) -> list[str] | None:
    """The fields of a GPU; None for a line that is none, such as a warning or an error."""
    fields = [one.strip() for one in line.split(",")]
    return fields if ADDRESS.fullmatch(fields[0]) and not any("lost" in one for one in fields) else None


def _memory(row: list[str]) -> str:
    """What is wrong with the memory of a GPU; empty where nothing is, or the GPU does not tell."""
    name, errors, *states = row
    if errors.isdecimal() and int(errors):
        return f"GPU {name} has {errors} uncorrectable memory errors (ECC) since the boot"
    said = [one for one, state in zip(STATES, states, strict=False) if state.casefold() == "yes"]
    return f"GPU {name}: {said[0]}" if said else ""


STATES = (
    "a row of its memory could not be remapped",
    "a row of its memory waits for a reset to be remapped",
    "a page of its memory waits for a reset to be retired",
)
"""What a Yes in FIELDS means, from the third on."""


def _neurons(facts: MachineFacts) -> Health:
    promised, said = facts.promised.neurons, facts.neuron_ls
    if not promised:
        return Health()
    if said is not None and said.code is None:
        return Health(wrong=("neuron-ls has not answered in time",), sure=False)
    found = _listed(said) if said is not None and said.code == 0 else None
    if found is None:
        found = facts.neuron_devices or None
    if found is None:
        return Health(notes=("the Neuron devices were not checked: the image shows no driver of them",), sure=False)
    if found < promised:
        return Health(wrong=(f"it has {found} of the {promised} Neuron devices of its type",), sure=False)
    return Health()


def _listed(said: Said) -> int | None:
    """The devices in neuron-ls's list, None where it cannot be read."""
    try:
        read: Any = json.loads(said.text)
    except (ValueError, RecursionError):
        return None
    return len(read) if isinstance(read, list) else None


def _disk(facts: MachineFacts) -> Health:
    if facts.disk == LATE:
        return Health(wrong=("its disk has not kept a small file in time",))
    if facts.disk in BAD_DISK:
        return Health(wrong=(f"its disk does not keep what is written to it ({facts.disk})",))
    return Health(notes=(f"a small file could not be written ({facts.disk})",)) if facts.disk else Health()


def _odd(facts: MachineFacts) -> tuple[str, ...]:
    """What a person should know of a machine that may train."""
    ahead, locked, files, shared = facts.clock_ahead_s, facts.locked_memory, facts.open_files, facts.shared_memory
    return tuple(
        told
        for told, so in (
            (f"its clock is {ahead or 0:+.0f} s off AWS's", ahead is not None and abs(ahead) > CLOCK_S),
            (f"only {files} files may be open", files is not None and -1 < files < FILES),
            ("EFA needs locked memory, which is limited here", facts.promised.efas and locked not in (None, -1)),
            (
                f"the shared memory (/dev/shm) has only {(shared or 0) / GIB:.2f} GiB",
                shared is not None and shared < SHARED,
            ),
            ("the disk has no room for the code's archive", facts.free is not None and facts.free < facts.archive),
        )
        if so
    )


def _quoted(said: Said) -> str:
    """The first line that is no GPU's."""
    line = next((one.strip() for one in said.text.splitlines() if one.strip() and _row(one) is None), "")
    return f" ({line[:QUOTED]})" if line else ""


def with_more(health: Health, *found: str) -> Health:
    """The same with what other looks have found wrong, each once; an empty text is nothing."""
    return replace(health, wrong=tuple(dict.fromkeys((*health.wrong, *filter(None, found)))))
