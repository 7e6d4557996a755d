"""Tests of searches without their function: what is read, asked for, decided and reported."""
