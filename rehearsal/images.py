"""Builds the image of a rehearsal: for real where the computer can, otherwise from the files that its Dockerfile copies."""

from __future__ import annotations

from pathlib import Path

from localaws.containers import real
from rehearsal.grid import build_image
from rehearsal.screen import Screen
from rehearsal.yard import Yard


def build(yard: Yard, screen: Screen, folder: Path, what: str) -> None:
    """Has the Build machine make it, and says which it is. `what` names the part of the rehearsal."""
    if lacking := real.lacks():
        screen.say(f"the image is not built for real, its files are copied as its Dockerfile says: {lacking}")
    else:
        real.begin(yard.aws.work / "images", yard.aws.at_stop)
    with screen.parts.part(what):
        build_image(yard, folder)
