"""Tests of the command line, against the fake of AWS."""
