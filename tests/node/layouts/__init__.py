"""Tests of how checkpoints are recognised: the folder that savers write to is in memory, and so is its clock."""
