"""Says which of EC2's quotas of vCPUs count for an instance type."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Quota:
    """The quotas of one class of instance types; EC2 counts vCPUs that run."""

    words: str
    letters: tuple[str, ...]
    """How the types of the class begin, before their first digit."""
    on_demand: str
    """Code in Service Quotas."""
    spot: str
    """The same for spot instances; empty where it depends on the generation."""


QUOTAS = (
    Quota("standard types (A, C, D, H, I, M, R, T, Z)", tuple("acdhimrtz"), "L-1216C47A", "L-34B43A08"),
    Quota("G and VT types", ("g", "gr", "vt"), "L-DB2E81BA", "L-3819A6DF"),
    Quota("P types", ("p",), "L-417A185B", ""),
    Quota("Trn types", ("trn",), "L-2C3B7624", "L-6B0D517C"),
    Quota("Inf types", ("inf",), "L-1945791B", "L-B5D1601B"),
    Quota("DL types", ("dl",), "L-6E869C2A", "L-85EED4F7"),
)
"""Those of types that trainings use. The codes are those that `aws service-quotas list-service-quotas --service-code ec2` shows."""
USUAL = QUOTAS[:3]
"""What is looked at where the settings allow every type."""
OTHERS = {"im": 0, "is": 0, "mac": None, "u": None, "hpc": None, "x": None, "f": None}
"""Beginnings that are more than a letter of the standard types, to the class that they belong to, None for none of these."""
BEGINNING = re.compile(r"[a-z]+")


def find_quota(instance_type: str) -> Quota | None:
    """Returns the class of a type, or of a pattern of types with its class in front; None where it is not known."""
    found = BEGINNING.match(instance_type)
    letters = found[0] if found else ""
    if letters in OTHERS:
        place = OTHERS[letters]
        return None if place is None else QUOTAS[place]
    return next((one for one in QUOTAS if letters in one.letters), None)


def list_quotas(patterns: Iterable[str], named: Sequence[str]) -> list[Quota]:
    """Returns the classes that count for the instance types of the settings: their `patterns`, and the types that they name."""
    found = [quota for one in (*named, *patterns) if (quota := find_quota(one)) is not None]
    return list(dict.fromkeys(found or USUAL))
