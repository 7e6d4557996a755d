"""Tests of the drain of a destroy, on the fake: what it ends, what it says, what it leaves."""
