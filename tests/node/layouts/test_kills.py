"""Tests that end a saver after every single operation: nothing torn is ever called whole, and the newest whole checkpoint is found."""

from __future__ import annotations

from random import Random

import pytest

from agent.layouts import Recognised, recognise
from tests.node.layouts.disk import Disk
from tests.node.layouts.more_savers import ALL
from tests.node.layouts.processes import Save, Saver

TRAINS_S, RESTS_S = 100.0, 11.0
STEPS = (10, 20, 30, 40)
SEEDS = range(6)


def read(saver: Saver, disk: Disk, later_s: float = 0.02) -> Recognised:
    return recognise(disk.listing(later_s), saver.layout if saver.named else "auto")


def assert_whole(disk: Disk, found: Recognised, saves: list[Save]) -> None:
    """What is called whole has every byte of one checkpoint, and its files are not called unfinished."""
    if found.newest is None:
        return
    one = found.newest
    there = disk.content(path for path in disk.files if not path.endswith(".tmp"))
    versions = [save.expected for save in saves if save.name == one.name] or [
        {one.name: save.beside[one.name]} for save in saves if one.name in save.beside
    ]
    whole = [version for version in versions if all(there.get(path) == data for path, data in version.items())]
    assert whole, f"{one.name} is torn"
    assert whole[-1].keys() <= one.files
    assert not one.files & found.unfinished


@pytest.mark.parametrize("saver", ALL, ids=lambda saver: saver.name)
def test_nothing_torn_is_called_whole_and_the_newest_whole_one_is_found_whenever_a_saver_dies(saver: Saver) -> None:
    cuts = 0
    for seed in SEEDS:
        disk, saves = Disk(Random(seed)), list[Save]()
        for step in STEPS:
            disk.now += TRAINS_S
            before = saves[-1] if saves else None
            saves.append(saver.save(disk, step))
            for _ in saves[-1].steps:
                cuts += 1
                found = read(saver, disk)
                assert_whole(disk, found, saves)
                if before is not None and not saver.reuses:
                    assert found.newest is not None, f"{before.name} is lost: {found.why}"
                    assert found.newest.name in (before.name, saves[-1].name)
            found = read(saver, disk, RESTS_S)
            assert found.layout == saver.layout
            assert found.newest is not None, found.why
            assert found.newest.name == saves[-1].name
            assert_whole(disk, found, saves)
    assert cuts >= 100


@pytest.mark.parametrize("saver", ALL, ids=lambda saver: saver.name)
def test_what_was_restored_is_recognised_as_it_was(saver: Saver) -> None:
    for seed in SEEDS:
        disk, saves = Disk(Random(seed)), list[Save]()
        for step in STEPS:
            disk.now += TRAINS_S
            saves.append(saver.save(disk, step))
            for _ in saves[-1].steps:
                pass
        disk.now += TRAINS_S
        found = read(saver, disk.restore(), RESTS_S)
        assert found.newest is not None, found.why
        assert found.newest.name == saves[-1].name


@pytest.mark.parametrize("saver", ALL, ids=lambda saver: saver.name)
def test_a_second_save_is_whole_as_soon_as_it_has_what_the_first_one_had(saver: Saver) -> None:
    disk, found = Disk(Random(3)), Recognised()
    if saver.reuses:
        pytest.skip("the same names again: they have to rest")
    for step in STEPS[:2]:
        disk.now += TRAINS_S
        save = saver.save(disk, step)
        for _ in save.steps:
            pass
        found = read(saver, disk)
    assert found.newest is not None
    assert found.newest.name == save.name, found.why
