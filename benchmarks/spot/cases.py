"""What is replayed: the assumptions of the table, and those that change one of them."""

from __future__ import annotations

from benchmarks.spot.assumed import Assumed

TABLE, NOTICED = "table", "all-notice"
"""Replayed on every trace; the others on the hardest alone."""
CASES: dict[str, tuple[str, Assumed]] = {
    TABLE: ("one loss in ten without notice, half of these silent", Assumed()),
    NOTICED: ("every loss with notice", Assumed(without_notice=0.0, silent=0.0)),
    "none-notice": ("every loss without notice, and EC2 says so at once", Assumed(without_notice=1.0, silent=0.0)),
    "all-silent": ("every loss without notice, and EC2 says so after ten minutes", Assumed(silent=1.0)),
    "until-the-end": ("EC2 launches in the place that it takes back, until it has", Assumed(until_the_end=True)),
    "own-image": ("requirements are in the image, as in one of your own", Assumed(requirements_s=0.0)),
    "slow-boot": ("a node reports 90 to 200 s after its launch", Assumed(boot_s=(90.0, 200.0))),
    "slow-launch": (
        "137 s from a launch to the command, requirements included, and 60 s of imports",
        Assumed(boot_s=(137.0, 137.0), code_s=0.0, requirements_s=0.0, import_s=60.0),
    ),
    "100-gb-at-1": ("checkpoints of 100 GB, to and from S3 at 1 GB/s", Assumed(commit_s=100.0, restore_s=108.0)),
    "100-gb-to-slow-disks": (
        "the same, and the disks take 1 GB/s as well",
        Assumed(save_s=100.0, commit_s=100.0, restore_s=200.0),
    ),
    "100-gb-at-5": ("checkpoints of 100 GB, to and from S3 at 5 GB/s", Assumed(commit_s=20.0, restore_s=28.0)),
    "slow-save": ("a save stops the training until it is named (8 s)", Assumed(pause_s=8.0)),
}
"""By name: in words, and as figures."""
