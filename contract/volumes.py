"""What a gp3 volume can do: the IOPS and the throughput that EC2 accepts for its size."""

from __future__ import annotations

LEAST_IOPS, MOST_IOPS = 3_000, 80_000
"""What every gp3 volume has without asking, and the most (EC2's API model, `EbsBlockDevice$Iops`)."""
LEAST_THROUGHPUT, MOST_THROUGHPUT = 125, 2_000
"""MiB/s that every gp3 volume has without asking, and the most (EC2's API model, `EbsBlockDevice$Throughput`)."""
IOPS_PER_GIB = 500
"""EC2 rejects a volume with more than the least IOPS that has more for each GiB (EBS user guide, General Purpose SSD volumes)."""
IOPS_PER_MIB = 4
"""EC2 rejects more than 0.25 MiB/s for each of the IOPS (the same page)."""


def most_throughput(iops: int) -> int:
    """Returns the most MiB/s of a volume with so many IOPS."""
    return min(MOST_THROUGHPUT, iops // IOPS_PER_MIB)


def fitted(size_gb: int, iops: int, throughput: int) -> tuple[int, int]:
    """Returns the IOPS and the MiB/s nearest to those asked for that EC2 accepts for a volume of `size_gb` GiB.

    A small volume takes fewer IOPS, and fewer IOPS take less throughput. No volume gets less than every one has.
    """
    fit = min(iops, max(LEAST_IOPS, size_gb * IOPS_PER_GIB))
    return fit, min(throughput, most_throughput(fit))
