"""The IOPS and the throughput of a gp3 volume: as asked for where its size takes them, and never a pair that EC2 rejects."""

from __future__ import annotations

import pytest

from contract import volumes


def accepts(size_gb: int, iops: int, throughput: int) -> bool:
    """EC2's rules for gp3, written down once more from its user guide."""
    return (
        3_000 <= iops <= 80_000
        and 125 <= throughput <= 2_000
        and (iops == 3_000 or iops / size_gb <= 500)
        and throughput / iops <= 0.25
    )


@pytest.mark.parametrize("size_gb", [1, 5, 6, 7, 8, 15, 16, 31, 32, 100, 159, 160, 2_000, 65_536])
@pytest.mark.parametrize(("iops", "throughput"), [(3_000, 125), (3_000, 750), (4_001, 1_000), (80_000, 2_000)])
def test_no_size_gets_what_ec2_rejects(size_gb: int, iops: int, throughput: int) -> None:
    assert accepts(size_gb, *volumes.fitted(size_gb, iops, throughput))


def test_a_volume_that_is_large_enough_gets_what_was_asked_for() -> None:
    assert volumes.fitted(32, 16_000, 1_000) == (16_000, 1_000)
    assert volumes.fitted(160, 80_000, 2_000) == (80_000, 2_000)


def test_a_small_volume_gets_fewer_iops_and_only_as_much_throughput_as_they_take() -> None:
    assert volumes.fitted(31, 16_000, 1_000) == (15_500, 1_000)
    assert volumes.fitted(7, 16_000, 1_000) == (3_500, 875)


def test_the_smallest_volume_has_what_every_volume_has() -> None:
    assert volumes.fitted(1, 80_000, 2_000) == (3_000, 750)
    assert volumes.fitted(1, 3_000, 125) == (3_000, 125)
