"""Tests of the benchmarks, without their clocks."""
